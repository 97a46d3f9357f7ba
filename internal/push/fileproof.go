package push

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// choose counts the rows of the table before the load, where its proof is to compare them: an empty table costs
// nothing.
func (f *fromFiles) choose(ctx context.Context) (run.Spec, error) {
	p := f.p
	spec := p.spec
	mode, rows := p.Config.Verify, int64(0)
	asked, ifEmpty := mode == string(verify.Count), mode == config.VerifyAuto || mode == string(verify.Full)
	switch {
	case !asked && !ifEmpty, p.target.Found.HasRows && ifEmpty, !spec.Files.Shard.Whole():
		return spec, nil
	case p.target.Found.HasRows:
		var err error
		if rows, err = target.Ask(ctx, p.target, "rows", p.target.Can.Describer.Rows); err != nil {
			return spec, err
		}
	}
	counted := *spec.Files
	counted.TableRows = &rows
	spec.Files = &counted
	return spec, nil
}

// verify compares the records of the files with what was acknowledged and what is claimed, and the table's rows with
// those that it had.
func (f *fromFiles) verify(ctx context.Context) error {
	p := f.p
	mode := verify.Mode(p.Config.Verify)
	before := p.plan.Files.TableRows
	switch {
	case p.mode == verify.Full:
		if _, err := f.key(); err != nil {
			return failed(Usage, err)
		}
		mode = verify.Full
	case mode == config.VerifyAuto && before != nil:
		mode = verify.Count
	case mode == config.VerifyAuto:
		mode = verify.Ack
	case mode == verify.Count && before == nil:
		p.notes.Warn("verify count is not possible: the rows of the table were not counted before the load; " +
			"the claims are compared instead")
		mode = verify.Ack
	case mode == verify.None:
		p.verified = verify.Files{}.Result(mode)
		return nil
	}

	found := verify.Files{
		Records: p.plan.Rows, Acked: p.meters.stats.Snapshot().Rows, Labels: p.plan.Dedup == loader.DedupKey,
	}
	var err error
	if !found.Labels {
		if found.Claimed, found.Rejected, err = p.progress.CountClaims(ctx); err != nil {
			return fmt.Errorf("verifying: %w", err)
		}
	}
	if found.Rejected > 0 && mode == verify.Full {
		p.notes.Warn("records were left out, so none are read back: which of the others a batch has is not known here")
		mode = verify.Ack
	}
	if mode == verify.Count || mode == verify.Full && before != nil {
		found.Counted, found.Before = true, *before
		if found.After, err = target.Ask(ctx, p.target, "rows", p.target.Can.Describer.Rows); err != nil {
			return fmt.Errorf("verifying: %w", err)
		}
	}
	p.verified = found.Result(mode)
	more := p.verified.FoundRows - p.verified.ExpectedRows
	// Nobody says that the load is alone, or it was long ago.
	mayBeMore := p.Config.Verify != string(verify.Count) || p.idle
	alone, weaker := found, verify.Ack
	alone.Counted = false
	if mode == verify.Full {
		weaker = verify.Full
	}
	if uncounted := alone.Result(weaker); found.Counted && more > 0 && mayBeMore && uncounted.OK {
		p.notes.Warnf(
			"the table has %s more than the load has added: others write to it, and its rows prove nothing; "+
				"what was acknowledged is compared alone", english.Plural(int(more), "row", ""))
		p.verified = uncounted
	}
	if mode == verify.Full {
		return f.reread(ctx)
	}
	return nil
}

// leftOut returns an error if records were left out: the others are in.
func (f *fromFiles) leftOut() error {
	p := f.p
	n := f.rejected.count()
	if found := p.verified.Files; found != nil { // this process may not know the file
		n = max(n, found.Rejected)
	}
	if n == 0 {
		return nil
	}
	where := "are in the file of --rejects"
	if f.rejected != nil {
		where = "are in " + f.rejected.path
	}
	err := fmt.Errorf("%d records were refused by the server, and %s; all others are in", n, where)
	return &Error{Outcome: report.Rejected, Err: loader.Final(err)}
}

// sampledBatches is how many batches at most are read again for the records that are compared: they lie all over the
// files.
const sampledBatches = 64

// reread compares a sample of records with the rows of the table that have their keys.
func (f *fromFiles) reread(ctx context.Context) error {
	p := f.p
	columns, key, err := f.compared(ctx)
	if err != nil {
		return err
	}
	spec := p.plan.Files
	if s, is := p.source.(*fileSource); is && s.ended { // nothing has been read yet
		if err := p.Buckets.Connect(ctx, spec.Files); err != nil {
			return err
		}
	}
	ranges, err := f.sampled()
	if err != nil {
		return err
	}
	each := int64(cmp.Or(p.Config.VerifyRows, verify.DefaultVerifyRows)) / int64(max(len(ranges), 1))

	var sample []verify.Record
	err = spec.Reread(ctx, ranges, func(r files.Range, records []byte) error {
		taken := verify.Spread(r.Records, max(each, 1), uint64(r.Batch))
		n, fields := int64(0), spec.Fields(r.File)
		for lines, record := range spec.Records(records) {
			if len(taken) > 0 && taken[0] == n {
				line := r.FirstLine + lines
				place := fmt.Sprintf("%s, line %d", spec.Files[r.File].Name(), line)
				sample = append(sample, verify.Record{
					Place: place, Line: line, Fields: byColumn(columns, fields, spec.Values(record)),
				})
				taken = taken[1:]
			}
			n++
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	return p.verified.Compare(ctx, p.target.Can.Describer, columns, key, sample, p.target.Ask)
}

// byColumn returns the values of a record in the order of the columns.
func byColumn(columns []rows.Column, fields []string, values [][]byte) [][]byte {
	sorted := make([][]byte, len(columns))
	for i, c := range columns {
		if at := slices.Index(fields, c.Name); at >= 0 && at < len(values) {
			sorted[i] = values[at]
		}
	}
	return sorted
}

// sampled returns the batches of which records are compared.
func (f *fromFiles) sampled() ([]files.Range, error) {
	kept, _, err := f.p.progress.Log().Ranges()
	if err != nil {
		return nil, err
	}
	var some []files.Range
	for _, n := range verify.Spread(int64(len(kept)), sampledBatches, uint64(len(kept))) {
		some = append(some, kept[n])
	}
	return some, nil
}

// compared returns the columns that are compared, and which of them is the key.
func (f *fromFiles) compared(ctx context.Context) (columns []rows.Column, key int, err error) {
	p := f.p
	name, err := f.key()
	if err != nil {
		return nil, 0, failed(Usage, err)
	}
	table, err := target.Ask(ctx, p.target, "columns", p.target.Can.Describer.Columns)
	if err != nil {
		return nil, 0, err
	}
	if err := findable(name, table); err != nil {
		return nil, 0, failed(Usage, err)
	}
	for _, c := range table {
		if _, err := p.plan.Files.Column(c.Name); err != nil {
			continue // it gets no field
		}
		if c.Values == nil {
			p.verified.NotCompared = append(p.verified.NotCompared, fmt.Sprintf("%s (%s)", c.Name, c.Type))
			continue
		}
		if c.Name == name {
			key = len(columns)
		}
		columns = append(columns, *c.Values)
	}
	return columns, key, nil
}

// findable returns an error if rows are not found by the texts of a column.
func findable(key string, table []loader.Column) error {
	for _, c := range table {
		if c.Name != key || c.Values == nil {
			continue
		}
		if t := c.Values.Type; t.IsInteger() || t == rows.Text || t == rows.Char || t == rows.UUID {
			return nil
		}
	}
	return fmt.Errorf("--key %s: rows are found by a column of integers, texts or UUIDs", key)
}

var errNotCompared = errors.New("--verify full compares the fields of csv, tsv and text: take count for other formats")

// key returns the column of --key, of this process or of the one that began the load.
func (f *fromFiles) key() (string, error) {
	p := f.p
	if p.plan.Files.Format.Named() {
		return "", errNotCompared
	}
	name := ""
	if p.Config.Files != nil {
		name = p.Config.Files.Key
	}
	if name == "" && p.progress.Log() != nil {
		name = p.progress.Log().Record().Flag("key")
	}
	if name == "" {
		return "", errors.New(
			"--verify full reads records back by a key, and the load was begun without --key: take count")
	}
	column, err := p.plan.Files.Column(name)
	if err != nil {
		return "", fmt.Errorf("--key: %w", err)
	}
	return column, nil
}
