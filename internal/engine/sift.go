package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Rejects takes the records of users' files that the server refuses. It is safe for concurrent use.
type Rejects interface {
	// Take keeps the records that a batch goes in without, in place of those that it has of the batch: they are on disk
	// when it returns. Its error, as of too many, ends the run, and nothing of the batch is in.
	Take(number int64, bad []batch.Bad) error
	// Room returns how many records a batch may still go in without.
	Room(number int64) int64
}

// sifted is the layer that leaves out bad records: where the server refuses a batch for what is in it, the batch goes
// in part by part, in one transaction, without the records that the server refuses. Behind a batch with bad records the
// next one does so from the beginning: to send it whole in vain, and have the server undo it, may cost twice what the
// parts do.
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

		var refusal error
		if !w.careful {
			ack, err := next(ctx, t)
			if err == nil || !ofRecords(err) {
				return ack, err
			}
			refusal = err
		}
		before := len(t.left)
		sift := func(ctx context.Context, t *delivery) (loader.Ack, error) { return w.sift(ctx, t, refusal) }
		ack, err := w.recorded(w.counted(sift))(ctx, t)
		w.careful = err == nil && len(t.left) > before
		return ack, err
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

// sift loads a batch without its bad records, which are kept before the others are committed. refusal is the server's
// error of the whole, nil if it was not sent. The deadline is that of a batch, for each part.
func (w *worker) sift(ctx context.Context, t *delivery, refusal error) (loader.Ack, error) {
	if err := w.connect(ctx); err != nil {
		return loader.Ack{}, loader.Judged(err, w.judge(err))
	}
	session, can := w.session.(loader.Sifter)
	if !can {
		return loader.Ack{}, refusal
	}

	limit := w.deadline.limit(1, t.encoded)
	bound, cancel := context.WithCancel(ctx)
	defer cancel()
	late := time.AfterFunc(limit, cancel)
	defer late.Stop()
	ack, err := session.Sift(bound, t.batch, func(put func(context.Context, *batch.Batch) error) (int64, error) {
		err := w.findBad(t, refusal, func(part *batch.Batch) error {
			late.Reset(limit)
			err := put(bound, part)
			return loader.Judged(err, w.judge(err))
		})
		return t.Rows, err
	})
	switch {
	case err == nil:
		return ack, nil
	case bound.Err() != nil:
		w.closeSession()
		if ctx.Err() == nil {
			err = &lateError{limit: limit, err: err}
		}
	case w.judge(err).SessionDead:
		w.closeSession()
	}
	return ack, loader.Judged(err, w.judge(err))
}

// findBad puts the records of a batch, keeps those that the server refuses, and makes the batch anew without them.
func (w *worker) findBad(t *delivery, refusal error, put func(part *batch.Batch) error) error {
	s := sieve{
		records: t.records(), csv: t.batch.Format == batch.CSV, bad: make(map[int]refused),
		most: w.Rejects.Room(t.ID.Number) - int64(len(t.left)),
		put: func(some []batch.Record) error {
			part := t.of(some)
			part.Part = true
			return put(part)
		},
	}
	if err := s.sift(refusal); err != nil {
		return err
	}
	if t.ID.Number == 0 && s.nothingIsRight() {
		return &loader.JudgedError{Verdict: loader.Refused(loader.ClassData), Err: fmt.Errorf(
			"none of the first %d records is taken: are --delimiter, --quote, --header and --columns those of the files? %w",
			len(s.bad), refusal)}
	}
	if len(s.bad) == 0 {
		return nil
	}

	var bad []batch.Bad
	var kept []batch.Record
	for i, r := range s.records {
		one, is := s.bad[i]
		if !is {
			kept = append(kept, r)
			continue
		}
		bad = append(bad, batch.Bad{
			File: t.batch.Origin.File, Line: r.Line, Column: one.column, Words: one.words, Record: string(r.Raw),
		})
	}
	if err := w.leaveOut(t, bad); err != nil {
		return err
	}
	t.replace(kept)
	return nil
}

// records returns the records of the batch as it is now.
func (t *delivery) records() []batch.Record {
	if t.kept == nil {
		t.kept = t.batch.Origin.Records()
	}
	return t.kept
}

// of makes a batch of some of the records, whose bytes are those of the batch if they lie there in one piece.
func (t *delivery) of(some []batch.Record) *batch.Batch {
	b := t.batch
	made := &batch.Batch{
		ID: b.ID, Format: b.Format, First: b.First, Rows: int64(len(some)), Attempt: b.Attempt, Layout: b.Layout,
		Origin: b.Origin, AllRead: b.AllRead,
	}
	encoded := 0
	for _, r := range some {
		encoded += len(r.Wire)
		made.Payload += int64(len(r.Raw))
	}
	made.Encoded = joined(some, encoded)
	made.Hold()
	return made
}

// joined returns records as they are sent, of so many bytes. Those of a batch lie one behind the other.
func joined(some []batch.Record, length int) []byte {
	if length == 0 {
		return nil
	}
	first, last := some[0].Wire, some[len(some)-1].Wire
	if whole := first[:cap(first)]; len(whole) >= length && &whole[length-1] == &last[len(last)-1] {
		return whole[:length:length]
	}
	all := make([]byte, 0, length)
	for _, r := range some {
		all = append(all, r.Wire...)
	}
	return all
}

// replace makes the batch anew, of some of its records. The bytes are its own: who sends it again may still read them
// when the source has its buffer back.
func (t *delivery) replace(kept []batch.Record) {
	t.batch, t.kept = t.of(kept), kept
	t.batch.Encoded = bytes.Clone(t.batch.Encoded)
	t.Rows, t.payload, t.encoded = t.batch.Rows, t.batch.Payload, int64(len(t.batch.Encoded))
}

// sieve puts records in, and finds those that a server refuses.
type sieve struct {
	records []batch.Record
	csv     bool  // lines within records count
	most    int64 // bad records; it ends with one more
	put     func([]batch.Record) error

	bad   map[int]refused
	again []int // those of them that may be right behind others: their foreign keys are of these
}

// refused is what the server says of a record.
type refused struct{ words, column string }

// parts is how many parts a batch is put in at least. A part that is refused is put again, up to the bad record: with
// more of them this costs less, and the parts themselves more.
const parts = 32

// wrongRecords is how many records at the beginning of the files say, if all are refused, that these are read in a
// wrong way; few files are so short that all of their records may be bad.
const wrongRecords, fewRecords = 1000, 10

// sift puts the records, and finds the bad ones. A part that the server refuses is put again, up to the record that the
// server names, and that record by itself, since a value may look like a server's words; without a name, by halves.
func (s *sieve) sift(refusal error) error {
	n := len(s.records)
	most := max(n/parts, 1)
	size := most
	suspects := s.named(0, n, refusal)
	for at := 0; at < n && int64(len(s.bad)) <= s.most; {
		for len(suspects) > 0 && suspects[0] < at {
			suspects = suspects[1:]
		}
		to := min(at+size, n)
		if len(suspects) > 0 {
			to = min(to, max(suspects[0], at+1))
		}
		err := s.put(s.records[at:to])
		switch {
		case err != nil && !ofRecords(err):
			return err
		case err == nil:
			if to-at == size {
				size = min(2*size, most)
			}
			at = to
		case to == at+1:
			s.refuse(at, err)
			if len(s.bad) >= wrongRecords && s.nothingIsRight() {
				return nil
			}
			size = max(size/2, 1) // more of them may follow
			at = to
		default:
			suspects = s.named(at, to, err)
			if len(suspects) == 0 {
				size = (to - at + 1) / 2
			}
		}
	}
	return s.putAgain()
}

// nothingIsRight reports whether so many records are bad, and no other was put, that something is wrong with all.
func (s *sieve) nothingIsRight() bool {
	n := min(len(s.records), wrongRecords)
	if n < fewRecords || len(s.bad) < n {
		return false
	}
	for i := range n {
		if _, bad := s.bad[i]; !bad {
			return false
		}
	}
	return true
}

// refuse notes what the server says of a record that it refuses.
func (s *sieve) refuse(record int, err error) {
	one := refused{words: words(err)}
	if known := (*loader.RecordError)(nil); errors.As(err, &known) {
		one.column = known.Column
	}
	s.bad[record] = one
	if loader.VerdictOf(err).Class != loader.ClassData {
		s.again = append(s.again, record)
	}
}

// putAgain puts records that may have been refused for what they refer to, as long as one of them goes in.
func (s *sieve) putAgain() error {
	for more := true; more; {
		more = false
		for _, i := range s.again {
			if _, bad := s.bad[i]; !bad {
				continue
			}
			err := s.put(s.records[i : i+1])
			if err != nil && !ofRecords(err) {
				return err
			}
			if err == nil {
				delete(s.bad, i)
				more = true
			}
		}
	}
	return nil
}

// named returns which of some records an error is about, in their order: those that a server has warned of, or the one
// where it has stopped.
func (s *sieve) named(from, to int, err error) (all []int) {
	one := (*loader.RecordError)(nil)
	if !errors.As(err, &one) {
		return nil
	}
	every := one.More
	if len(every) == 0 {
		every = []*loader.RecordError{one}
	}
	for _, e := range every {
		if i := indexOf(s.records[from:to], *e, s.csv); i >= 0 {
			all = append(all, from+i)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// indexOf returns which of the records that were sent an error is about; −1 if it does not say that.
//
// PostgreSQL counts the line ends within the records of csv, and names the line where a record ends. In the first
// record it counts carriage returns instead, since it does not know yet what ends a line.
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
