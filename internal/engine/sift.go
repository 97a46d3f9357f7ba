package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Rejects takes the records of users' files that the server refuses. It is safe for concurrent use.
type Rejects interface {
	// Take keeps the records that a batch goes in without, in place of those that it has of the batch: they are on disk
	// when it returns. Its error, as of too many, ends the run, and nothing of the batch is in.
	Take(number int64, bad []batch.Bad) error
}

// sifted is the layer that leaves out bad records: where the server refuses a batch for what is in it, loads that are
// rolled back find the records, and the batch is sent without them.
func (w *worker) sifted(next loadFunc) loadFunc {
	return func(ctx context.Context, t *delivery) (loader.Ack, error) {
		if w.Rejects == nil || t.batch == nil || t.batch.Origin == nil {
			return next(ctx, t)
		}
		if bad := t.batch.Origin.Bad; len(bad) > 0 && t.left == nil {
			if err := w.leaveOut(t, bad); err != nil {
				return loader.Ack{}, err
			}
		}
		for again := false; ; {
			ack, err := next(ctx, t)
			if err == nil || !ofRecords(err) {
				return ack, err
			}
			bad, problem := w.find(ctx, t, err)
			switch {
			case problem != nil:
				return loader.Ack{}, problem
			case len(bad) == 0 && again: // no record is to blame for what only the batch meets, such as at its commit
				return loader.Ack{}, err
			case len(bad) == 0:
				again = true
				continue
			}
			if again, err = false, w.leaveOut(t, bad); err != nil {
				return loader.Ack{}, err
			}
		}
	}
}

// ofRecords reports whether the server has refused a batch for what is in it, and nothing is in.
func ofRecords(err error) bool {
	v := loader.VerdictOf(err)
	switch v.Class {
	case loader.ClassData, loader.ClassConstraint, loader.ClassRows:
		return v.Applied == loader.No
	}
	return false
}

// leaveOut keeps more bad records of a batch. Those of the source are not in it; it has been made anew without others.
func (w *worker) leaveOut(t *delivery, bad []batch.Bad) error {
	t.left = append(t.left, bad...)
	slices.SortFunc(t.left, func(a, b batch.Bad) int { return int(a.Line - b.Line) })
	if err := w.Rejects.Take(t.ID.Number, t.left); err != nil {
		return &loader.JudgedError{Verdict: loader.Refused(loader.ClassData), Err: err}
	}
	return nil
}

// find returns records that the server refuses, and makes the batch anew without them; none if no trial is refused. refusal
// is the server's error of the whole.
func (w *worker) find(ctx context.Context, t *delivery, refusal error) ([]batch.Bad, error) {
	s := sieve{
		records: t.records(), bad: make(map[int]string), columns: make(map[int]string),
		try: func(some []batch.Record) error { return w.try(ctx, t, some) },
		csv: t.batch.Format == batch.CSV,
	}
	if err := s.sift(refusal); err != nil || len(s.bad) == 0 {
		return nil, err
	}
	if t.ID.Number == 0 && len(s.bad) == len(s.records) && len(s.bad) >= wrongRecords {
		return nil, &loader.JudgedError{Verdict: loader.Refused(loader.ClassData), Err: fmt.Errorf(
			"all %d records of the first batch are refused: are --delimiter, --quote and --columns those of the files? %w", len(s.bad), refusal)}
	}

	var bad []batch.Bad
	var kept []batch.Record
	for i, r := range s.records {
		words, is := s.bad[i]
		if !is {
			kept = append(kept, r)
			continue
		}
		bad = append(bad, batch.Bad{File: t.batch.Origin.File, Line: r.Line, Column: s.columns[i], Words: words, Record: string(r.Raw)})
	}
	t.replace(kept)
	return bad, nil
}

// wrongRecords is how many records say, if all are refused, that the files are read in a wrong way.
const wrongRecords = 10

// try loads some records of a batch, and rolls back.
func (w *worker) try(ctx context.Context, t *delivery, some []batch.Record) error {
	one := *t
	one.replace(some)
	one.batch.Trial = true
	_, err := w.trial(ctx, &one)
	return err
}

// records returns the records of the batch as it is now.
func (t *delivery) records() []batch.Record {
	if t.kept == nil {
		t.kept = t.batch.Origin.Records()
	}
	return t.kept
}

// replace makes the batch anew, of some of its records.
func (t *delivery) replace(kept []batch.Record) {
	b := t.batch
	made := &batch.Batch{ID: b.ID, Format: b.Format, First: b.First, Rows: int64(len(kept)), Attempt: b.Attempt, Layout: b.Layout, Origin: b.Origin,
		AllRead: b.AllRead}
	for _, r := range kept {
		made.Encoded = append(made.Encoded, r.Wire...)
		made.Payload += int64(len(r.Raw))
	}
	made.Hold()
	t.batch, t.kept = made, kept
	t.Rows, t.payload, t.encoded = made.Rows, made.Payload, int64(len(made.Encoded))
}

// sieve finds the records that a server refuses.
type sieve struct {
	records []batch.Record
	try     func([]batch.Record) error
	csv     bool // lines within records count

	bad     map[int]string // with the server's words
	columns map[int]string // that it names
	alone   []int          // those that the server refused alone, and may take beside others: their foreign keys are of these
}

// sift finds bad records; none if no trial is refused. The batch without them may be refused again.
//
// A server that stops at a bad record says where it is, and has looked at those before: the next try begins behind it. One
// that says nothing, as of a duplicate key, is asked about halves. Two records may be bad together only: then the shortest
// beginning that is refused ends with one of them.
func (s *sieve) sift(refusal error) error {
	all := s.rest(0, len(s.records))
	if len(all) > 1 {
		if err := s.findIn(0, len(s.records), refusal); err != nil {
			return err
		}
		if len(s.bad) > 0 {
			return s.giveBack()
		}
	}

	// The refusal may have been of what is over by now, or of what a trial does not meet.
	err := s.try(pick(s.records, all))
	if err == nil || !ofRecords(err) {
		return err
	}
	if len(all) == 1 {
		return s.findIn(0, 1, err)
	}
	return s.shortest(all, err)
}

// giveBack takes back that records are bad which the server refuses alone, and not beside all the others.
func (s *sieve) giveBack() error {
	for len(s.alone) > 0 {
		rest := s.rest(0, len(s.records))
		err := s.try(pick(s.records, rest))
		if err == nil {
			break
		}
		if !ofRecords(err) {
			return err
		}
		found := len(s.bad)
		if err := s.findIn(0, len(s.records), err); err != nil {
			return err
		}
		if len(s.bad) > found {
			continue
		}
		if err := s.shortest(rest, err); err != nil {
			return err
		}
	}

	slices.Sort(s.alone)
	for _, i := range s.alone {
		said := s.bad[i]
		delete(s.bad, i)
		taken, err := s.takes(s.rest(0, len(s.records)))
		if err != nil {
			return err
		}
		if !taken {
			s.bad[i] = said
		}
	}
	return nil
}

// findIn finds bad records among some that are refused.
func (s *sieve) findIn(from, to int, refusal error) error {
	for {
		rest := s.rest(from, to)
		if len(rest) == 0 {
			return nil
		}
		named, err := s.take(rest, refusal)
		if err != nil {
			return err
		}
		switch {
		case named:
		case len(rest) == 1:
			s.bad[rest[0]] = words(refusal)
			if loader.VerdictOf(refusal).Class != loader.ClassData {
				s.alone = append(s.alone, rest[0])
			}
			return nil
		default:
			half := rest[len(rest)/2]
			for _, part := range [][2]int{{from, half}, {half, to}} {
				err := s.try(pick(s.records, s.rest(part[0], part[1])))
				if err == nil {
					continue
				}
				if !ofRecords(err) {
					return err
				}
				if err := s.findIn(part[0], part[1], err); err != nil {
					return err
				}
			}
			return nil
		}

		at := loader.RecordError{}
		if known := (*loader.RecordError)(nil); errors.As(refusal, &known) {
			at = *known
		}
		if at.Line > 0 { // the server has stopped there: those before are right
			from = s.index(rest, at) + 1
		}
		rest = s.rest(from, to)
		if len(rest) == 0 {
			return nil
		}
		if refusal = s.try(pick(s.records, rest)); refusal == nil {
			return nil
		}
		if !ofRecords(refusal) {
			return refusal
		}
	}
}

// take notes the records that an error names and the server refuses alone, or behind those before them, and reports
// whether there are any. A value may look like a server's words, and a line be counted in another way.
func (s *sieve) take(rest []int, refusal error) (named bool, err error) {
	for _, one := range recordErrors(refusal) {
		i := s.index(rest, *one)
		if i < 0 {
			continue
		}
		if _, known := s.bad[i]; known {
			continue
		}
		guilty, err := s.guilty(rest, i)
		if err != nil {
			return named, err
		}
		if guilty {
			named = true
			s.bad[i], s.columns[i] = words(one.Err), one.Column
		}
	}
	return named, nil
}

// guilty reports whether the server refuses a record alone, or those before it only together with it, as a key that is there
// twice.
func (s *sieve) guilty(rest []int, record int) (bool, error) {
	if taken, err := s.takes([]int{record}); !taken {
		return err == nil, err
	}
	var before []int
	for _, i := range rest {
		if _, bad := s.bad[i]; i < record && !bad {
			before = append(before, i)
		}
	}
	if taken, err := s.takes(before); !taken {
		return false, err
	}
	taken, err := s.takes(append(before, record))
	return !taken && err == nil, err
}

// takes reports whether the server takes some records. An error says that this is not known.
func (s *sieve) takes(some []int) (bool, error) {
	err := s.try(pick(s.records, some))
	if err != nil && ofRecords(err) {
		return false, nil
	}
	return err == nil, err
}

// recordErrors returns the record that an error is about, or all that a server has warned of.
func recordErrors(err error) (all []*loader.RecordError) {
	one := (*loader.RecordError)(nil)
	if !errors.As(err, &one) {
		return nil
	}
	if len(one.More) > 0 {
		return one.More
	}
	return []*loader.RecordError{one}
}

// index returns the number of the record that an error is about, of those that were sent; −1 if there is none.
func (s *sieve) index(rest []int, e loader.RecordError) int {
	at := indexOf(pick(s.records, rest), e, s.csv)
	if at < 0 {
		return -1
	}
	return rest[at]
}

// indexOf returns which of the records that were sent an error is about; −1 if it does not say that.
//
// PostgreSQL counts the line ends within the records of csv, and names the line where a record ends. In the first record it
// counts carriage returns instead, since it does not know yet what ends a line.
func indexOf(sent []batch.Record, e loader.RecordError, csv bool) int {
	if e.Record > int64(len(sent)) {
		return -1
	}
	if e.Record > 0 {
		return int(e.Record - 1)
	}
	lines := int64(0)
	for i, r := range sent {
		lines++
		switch {
		case csv && i == 0:
			lines += int64(bytes.Count(r.Wire, []byte{'\r'}))
		case csv:
			lines += int64(bytes.Count(r.Wire, []byte{'\n'})) - 1
		}
		if lines >= e.Line && e.Line > 0 {
			return i
		}
	}
	return -1
}

// shortest finds the record with which the shortest beginning that is refused ends.
func (s *sieve) shortest(rest []int, refusal error) error {
	low, high := 0, len(rest) // the first low are taken, the first high are not
	for high-low > 1 {
		middle := (low + high) / 2
		err := s.try(pick(s.records, rest[:middle]))
		switch {
		case err == nil:
			low = middle
		case ofRecords(err):
			high, refusal = middle, err
		default:
			return err
		}
	}
	s.bad[rest[high-1]] = words(refusal)
	return nil
}

// rest returns the records of a part that are not bad.
func (s *sieve) rest(from, to int) (all []int) {
	for i := from; i < to; i++ {
		if _, bad := s.bad[i]; !bad {
			all = append(all, i)
		}
	}
	return all
}

func pick(records []batch.Record, which []int) []batch.Record {
	some := make([]batch.Record, len(which))
	for i, n := range which {
		some[i] = records[n]
	}
	return some
}

// words are the server's own about a record, without what terapush was doing.
func words(err error) string {
	counted := (*loader.RowsError)(nil)
	if errors.As(err, &counted) && len(counted.Detail) > 0 {
		return counted.Detail[0]
	}
	known := (*loader.Error)(nil)
	if errors.As(err, &known) {
		return known.Err.Error()
	}
	return err.Error()
}
