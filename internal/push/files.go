package push

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// loads reports whether the rows are those of the user's files.
func (p *push) loads() bool { return p.Config.Files != nil || p.spec.Files != nil }

// command is the one that the run is resumed with.
func (p *push) command() string {
	if p.loads() {
		return "load"
	}
	return "push"
}

// filesSpec finds the files of a load that begins.
func (p *push) filesSpec(ctx context.Context) (run.Spec, error) {
	c := p.Config.Files
	paths := make([]string, len(c.Paths))
	for i, path := range c.Paths {
		paths[i] = path
		if path == files.Stdin || files.InBucket(path) {
			continue
		}
		absolute, err := filepath.Abs(path) // a resume may be started in another folder
		if err != nil {
			return run.Spec{}, err
		}
		paths[i] = absolute
	}
	found, err := p.Buckets.Find(ctx, paths)
	if err != nil {
		return run.Spec{}, p.ofStore(err)
	}
	format, err := formatOf(c, found)
	if err != nil {
		return run.Spec{}, err
	}

	s := files.NewSpec(format)
	s.Files, s.Header = found, c.Header
	s.Delimiter, s.Null = c.Delimiter.Or(s.Delimiter), c.Null.Or(s.Null)
	s.Quote = c.Quote.Or(s.Quote)
	if format == files.CSV {
		s.Escape = c.Escape.Or(s.Quote)
	} else {
		s.Escape = c.Escape.Or("")
	}
	if err := s.Check(); err != nil {
		return run.Spec{}, err
	}
	if err := s.ReadHeaders(ctx); err != nil {
		return run.Spec{}, p.ofStore(err)
	}
	return run.NewFilesSpec(&run.Files{Spec: s, Columns: columnsOf(c.Columns)}, &p.Config.Batches, p.target.Method), nil
}

// ofStore gives an error of an object store, or of who was stopped, its outcome: it is none of the command line.
func (p *push) ofStore(err error) error {
	if p.stopped() || errors.As(err, new(*loader.Error)) {
		return p.orInterrupted(report.PreflightFailed, err)
	}
	return err
}

// formatOf returns the format that the user says, or that all names say.
func formatOf(c *config.Files, found []files.File) (files.Format, error) {
	if c.Format != "" {
		return files.Format(c.Format), nil
	}
	format := ""
	for _, f := range found {
		is := config.FormatOf(f.Path)
		if is == "" {
			return "", fmt.Errorf("%s: its name does not say how it is written: give --format csv, tsv or text%s", f.Name(), elsewhere(f.Path))
		}
		if format != "" && is != format {
			return "", fmt.Errorf("%s is %s, and %s is %s: load files of one format at a time", found[0].Name(), format, f.Name(), is)
		}
		format = is
	}
	return files.Format(format), nil
}

// elsewhere says what loads a file of a format that these databases do not parse.
func elsewhere(name string) string {
	name = strings.ToLower(strings.TrimSuffix(strings.TrimSuffix(name, ".gz"), ".zst"))
	switch filepath.Ext(name) {
	case ".orc", ".avro":
		return "; the database does not parse this one: write it as csv first"
	case ".json", ".ndjson", ".jsonl":
		return "; the database does not parse JSON: write it as csv first, as with jq -r '[.a, .b] | @csv'"
	case ".xlsx", ".xls":
		return "; write a spreadsheet as csv first"
	}
	return ""
}

// columnsOf reads --columns. A - leaves a field out, as an empty name does.
func columnsOf(text string) []string {
	if text == "" {
		return nil
	}
	names := strings.Split(text, ",")
	for i, name := range names {
		if names[i] = strings.TrimSpace(name); names[i] == "-" {
			names[i] = ""
		}
	}
	return names
}

// fromStdin reports whether a load that is not at its end cannot be resumed: nothing reads standard input again.
func fromStdin(r runlog.Record) bool {
	f := r.Plan.Files
	return f != nil && f.Files[0].Path == files.Stdin && r.Stage == runlog.Loading
}

// readOnce says of a run that has failed that it cannot be resumed, if that is so.
func (p *push) readOnce(err error) error {
	if err == nil || p.progress.Log == nil || p.progress.Continued || !fromStdin(p.progress.Log.Record()) {
		return nil
	}
	var in int64
	if p.meters.stats != nil {
		in = p.meters.stats.Snapshot().Rows
	}
	return loader.Final(fmt.Errorf("run %s cannot be resumed, since standard input is read once: %d of its records are in the table; "+
		"terapush forget removes its claims", p.progress.ID, in))
}

// mapFields finds the columns that the fields of a load go into. It has to be asked before the table is prepared, since
// what is prepared for are these columns.
func (p *push) mapFields(ctx context.Context) error {
	can := p.target.Can.Lister
	if can == nil {
		return failed(Usage, fmt.Errorf("%s does not take files yet", p.target.Driver.Name()))
	}
	columns, err := target.AskSoon(ctx, p.target, "columns", can.Columns)
	if err != nil {
		return err
	}
	mapped, err := p.spec.Files.ForTable(columns, p.plan.Format, p.firstRecords(ctx))
	if err != nil {
		return failed(Usage, fmt.Errorf("table %s: %w", p.target.Table, err))
	}
	p.spec.Files = mapped
	return p.replan(p.caps)
}

// firstRecords reads the first record of each file, where no header is declared. What cannot be read is found when the
// file is.
func (p *push) firstRecords(ctx context.Context) (all []run.First) {
	f := p.spec.Files
	if f.Header {
		return nil
	}
	for _, file := range f.Files {
		if fields, err := f.First(ctx, file); err == nil && fields != nil {
			all = append(all, run.First{File: file.Name(), Fields: fields})
		}
	}
	return all
}

// openRanges reads which batches earlier processes have cut.
func (p *push) openRanges() error {
	if p.ranges.keep != nil {
		return nil
	}
	kept, keep, err := p.progress.Log.Ranges()
	if err != nil {
		return err
	}
	p.ranges = ranges{known: kept, keep: keep}
	for _, r := range kept {
		p.resources.Cut.Add(r.Records, r.To-r.From)
	}
	if p.plan.Files.Ended {
		p.resources.Cut.End(int64(len(kept)))
	}
	return nil
}

// ranges are the batches of a load, as far as they are cut.
type ranges struct {
	known []files.Range // by earlier processes
	keep  func([]files.Range) error
}

// ahead keeps ranges on disk, before their batches are sent.
func (p *push) ahead(more []files.Range) error {
	if err := p.ranges.keep(more); err != nil {
		return err
	}
	for _, r := range more {
		p.resources.Cut.Add(r.Records, r.To-r.From)
	}
	return nil
}

// fileSource makes the batches of files.
type fileSource struct {
	*files.Source
	spec    *run.Files
	wire    files.Spec // how records are sent
	buffers int
	ended   bool // nothing is to be sent, and there is no Source
	drain   <-chan struct{}
}

func (p *push) openFileSource(ctx context.Context) (rowSource, error) {
	if err := p.openRanges(); err != nil {
		return nil, err
	}
	if err := p.keepRejects(); err != nil {
		return nil, err
	}
	if p.progress.Continued {
		var err error
		if _, p.leftOff, err = p.progress.Claimed(p.common.ctx); err != nil {
			return nil, err
		}
	}
	if p.idle || p.progress.Stage() != runlog.Loading { // the files may be gone by now
		return &fileSource{ended: true}, nil
	}
	spec := p.plan.Files
	if p.progress.Continued {
		if err := p.Buckets.Connect(ctx, spec.Files); err != nil {
			return nil, err
		}
	}
	wire := files.Config{
		Spec: spec.Spec, Run: p.progress.ID, Wire: p.plan.Format, Fields: spec.Width(),
		BatchBytes: spec.BatchBytes, Buffers: p.plan.Buffers, Workers: p.plan.Workers,
		BufferBytes: p.plan.Memory / int64(p.plan.Buffers) / pageBytes * pageBytes,
		Parallel:    min(len(spec.Files), p.plan.Workers, runtime.GOMAXPROCS(0)),
		Known:       p.ranges.known, Done: p.progress.Done, Ahead: p.ahead, Skip: p.rejects != nil,
	}
	from, err := files.New(wire)
	if err != nil {
		return nil, err
	}
	return &fileSource{Source: from, spec: spec, wire: wire.WireSpec(), buffers: p.plan.Buffers, drain: p.Drain}, nil
}

// pageBytes is the size of a page of memory: buffers share none.
const pageBytes = 4096

// Batch adds to the batch how its records are written, and where they are.
func (s *fileSource) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	if s.ended {
		return nil, &source.EndError{}
	}
	wait, cancel := Until(ctx, s.drain, errStopped)
	defer cancel(nil)
	b, err := s.Source.Batch(wait, number)
	if err != nil && ctx.Err() == nil && wait.Err() != nil {
		return nil, errStopped // what is not read yet, as of a pipe, may never be
	}
	if err != nil {
		return nil, err
	}
	r, known := s.Range(number)
	if !known {
		b.Release()
		return nil, fmt.Errorf("batch %d has no range", number)
	}
	b.Layout = s.spec.Layout(r.File)
	b.Origin = &batch.Origin{
		File: s.spec.Files[r.File].Name(), Line: r.FirstLine, Record: r.FirstRecord + 1,
		Records: func() []batch.Record { return s.records(r, b.Encoded) },
	}
	for _, bad := range s.Bad(number) {
		b.Origin.Bad = append(b.Origin.Bad, batch.Bad{File: bad.Path, Line: bad.Line, Words: bad.Why, Record: string(bad.Record)})
	}
	return b, nil
}

// records takes a batch in use apart.
func (s *fileSource) records(r files.Range, sent []byte) (all []batch.Record) {
	bad := make(map[int64]bool)
	for _, b := range s.Bad(r.Batch) {
		bad[b.Line] = true
	}
	for lines, raw := range s.spec.Records(s.Raw(r.Batch)) {
		if line := r.FirstLine + lines; !bad[line] {
			all = append(all, batch.Record{Raw: raw, Line: line})
		}
	}
	i := 0
	for _, wire := range s.wire.Records(sent) {
		all[i].Wire = wire
		i++
	}
	return all
}

// Fill does nothing: files are read while batches are sent.
func (*fileSource) Fill(context.Context, int, func(int64)) error { return nil }

// Buffers returns how many buffers there are.
func (s *fileSource) Buffers() int { return s.buffers }

// Free returns how many of them hold no batch.
func (s *fileSource) Free() int {
	if s.ended {
		return 0
	}
	return s.Source.Free()
}

// Close ends the reading.
func (s *fileSource) Close() error {
	if s.ended {
		return nil
	}
	return s.Source.Close()
}

// Refills returns 0: nothing is made twice.
func (*fileSource) Refills() int64 { return 0 }

// plannedBytes returns what estimates how many bytes there are in the files, by the share of them that is read.
func (p *push) plannedBytes(f *run.Files) func() int64 {
	cut, from := p.resources.Cut, p.source.(*fileSource)
	return func() int64 {
		made := cut.All()
		if from.ended {
			return made
		}
		read, all := from.Progress()
		switch {
		case cut.Ended():
			return made
		case read <= 0 || all <= 0 || made == 0:
			return f.PlainBytes()
		}
		return max(int64(float64(made)*float64(all)/float64(read)), made)
	}
}

// rowSource is the source of a run, with what the meters show of it.
type rowSource interface {
	source.Source
	Fill(ctx context.Context, parallel int, progress func(bytes int64)) error
	Buffers() int
	Free() int
	Refills() int64
}

// countBefore counts the rows of the table before a load, where its proof is to compare them: an empty table costs nothing.
func (p *push) countBefore(ctx context.Context) error {
	mode, rows := p.Config.Verify, int64(0)
	switch {
	case mode != config.VerifyAuto && mode != string(verify.Count), p.target.Found.HasRows && mode == config.VerifyAuto:
		return nil
	case p.target.Found.HasRows:
		var err error
		if rows, err = target.Ask(ctx, p.target, "rows", p.target.Can.Lister.Rows); err != nil {
			return err
		}
	}
	counted := *p.spec.Files
	counted.TableRows = &rows
	p.spec.Files = &counted
	return nil
}

// verifyFiles compares the records of the files with what was acknowledged and what is claimed, and the table's rows with
// those that it had.
func (p *push) verifyFiles(ctx context.Context) error {
	mode := verify.Mode(p.Config.Verify)
	before := p.plan.Files.TableRows
	switch {
	case mode == config.VerifyAuto && before != nil:
		mode = verify.Count
	case mode == config.VerifyAuto:
		mode = verify.Ack
	case mode == verify.Count && before == nil:
		p.notes.Warn("verify count is not possible: the rows of the table were not counted before the load; the claims are compared instead")
		mode = verify.Ack
	case mode == verify.None:
		p.verified = verify.Files{}.Result(mode)
		return nil
	}

	found := verify.Files{Records: p.plan.Rows, Acked: p.meters.stats.Snapshot().Rows}
	var err error
	if found.Claimed, found.Rejected, err = p.progress.Claimed(ctx); err != nil {
		return fmt.Errorf("verifying: %w", err)
	}
	if mode == verify.Count {
		found.Before = *before
		if found.After, err = target.Ask(ctx, p.target, "rows", p.target.Can.Lister.Rows); err != nil {
			return fmt.Errorf("verifying: %w", err)
		}
	}
	p.verified = found.Result(mode)
	if alone := found.Result(verify.Ack); p.Config.Verify == config.VerifyAuto && mode == verify.Count && alone.OK &&
		p.verified.FoundRows > p.verified.ExpectedRows {
		p.notes.Warnf("the table has %d rows more than the load has added: others write to it, and its rows prove nothing; the claims are "+
			"compared alone", p.verified.FoundRows-p.verified.ExpectedRows)
		p.verified = alone
	}
	p.meters.stats.Verified(event.Verification{OK: p.verified.OK, ExpectedRows: p.verified.ExpectedRows, FoundRows: p.verified.FoundRows})
	if !p.verified.OK {
		return &Error{Outcome: report.VerificationFailed, Err: p.target.Suspect(errors.New(p.verified.Failure()))}
	}
	return nil
}
