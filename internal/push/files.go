package push

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"

	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/run"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// fromFiles is the input of a load.
type fromFiles struct {
	p        *push
	ranges   ranges
	rejected *rejects // records that are left out; nil if the first bad one ends the run
}

func (*fromFiles) command() string { return "load" }

func (f *fromFiles) openRejects(asked facts) error {
	r, err := f.p.leavesOut(asked)
	if err != nil || r == nil {
		return err
	}
	if err := r.open(); err != nil {
		return fmt.Errorf("--rejects: %w", errors.Join(err, r.close()))
	}
	f.rejected = r
	return nil
}

// leavesOut returns what is to be left out, with a file that is not open yet; nil if the first bad record ends the run.
func (p *push) leavesOut(asked facts) (*rejects, error) {
	c := p.Config.Files
	if c == nil || c.MaxRejects == 0 {
		return nil, nil
	}
	if asked.caps.Dedup == loader.DedupKey {
		return nil, fmt.Errorf("--max-rejects: %s recognizes a batch by a label, and nothing in the database would say "+
			"which of its records are missing: correct the files, or load into a staging table whose columns are texts, and "+
			"INSERT from there what is right",
			p.target.Driver.Name())
	}
	path, err := filepath.Abs(c.Rejects)
	if err != nil {
		return nil, fmt.Errorf("--rejects: %w", err)
	}
	for _, input := range asked.spec.Files.Files {
		if file.Same(path, input.Path) {
			return nil, fmt.Errorf("--rejects: %s is one of the files that are loaded: choose another name", path)
		}
	}
	return &rejects{path: path, run: p.progress.ID(), most: c.MaxRejects, lines: make(map[int64][][]byte)}, nil
}

// connected finds the columns that the fields of a load go into. It has to be asked before the table is prepared, since
// what is prepared for are these columns.
func (f *fromFiles) connected(ctx context.Context) error {
	p := f.p
	if p.spec.Method != "" || p.idle { // the run has begun, or does not begin
		return nil
	}
	can := p.target.Can.Describer
	if can == nil {
		return failed(Usage, fmt.Errorf("%s does not take files yet", p.target.Driver.Name()))
	}
	columns, err := target.AskSoon(ctx, p.target, "columns", can.Columns)
	if err != nil {
		return err
	}
	first, err := firstRecords(ctx, p.spec.Files)
	if err != nil {
		return p.orInterrupted(Usage, p.ofStore(err))
	}
	mapped, err := p.spec.Files.ForTable(columns, p.plan.Format, first)
	if err != nil {
		return failed(Usage, fmt.Errorf("table %s: %w", p.target.Table, err))
	}
	if key := p.Config.Files.Key; key != "" {
		column, err := mapped.Column(key)
		if err != nil {
			return failed(Usage, fmt.Errorf("--key: %w", err))
		}
		if err := findable(column, columns); err != nil {
			return failed(Usage, err)
		}
	}
	spec := p.spec
	spec.Files = mapped
	return p.replanAs(spec)
}

// firstRecords reads the first record of each file, where no header is declared.
func firstRecords(ctx context.Context, f *run.Files) (all []run.FirstRecord, err error) {
	if f.Header || f.Format.Named() {
		return nil, nil
	}
	for _, file := range f.Files {
		fields, err := f.First(ctx, file)
		if err != nil {
			return nil, err
		}
		if fields != nil {
			all = append(all, run.FirstRecord{File: file.Name(), Fields: fields})
		}
	}
	return all, nil
}

// probeBatch makes a batch without records: the probe is of the claim alone.
func (f *fromFiles) probeBatch(context.Context, []int64) (*batch.Batch, func(), error) {
	return &batch.Batch{ID: batch.ID{Run: f.p.progress.ID(), Number: math.MaxInt64}, Rows: 1}, func() {}, nil
}

// recall reads which batches earlier processes have cut.
func (f *fromFiles) recall() error {
	p := f.p
	if f.ranges.keep != nil {
		return nil
	}
	kept, keep, err := p.progress.Log().Ranges()
	if err != nil {
		return err
	}
	f.ranges = ranges{known: kept, keep: keep}
	for _, r := range kept {
		p.plan.Cut.Add(r.Records, r.To-r.From)
	}
	if p.plan.Files.Ended {
		p.plan.Cut.End(int64(len(kept)))
	}
	return nil
}

// ranges are the batches of a load, as far as they are cut.
type ranges struct {
	known []files.Range // by earlier processes
	keep  func([]files.Range) error
}

// ahead keeps ranges on disk, before their batches are sent.
func (f *fromFiles) ahead(more []files.Range) error {
	if err := f.ranges.keep(more); err != nil {
		return err
	}
	for _, r := range more {
		f.p.plan.Cut.Add(r.Records, r.To-r.From)
	}
	return nil
}

func (f *fromFiles) rejects() engine.Rejects {
	if f.rejected == nil {
		return nil
	}
	return f.rejected
}

// fromStdin reports whether a load that is not at its end cannot be resumed: nothing reads standard input again.
func fromStdin(r runlog.Record) bool {
	f := r.Plan.Files
	return f != nil && f.Files[0].Path == files.Stdin && r.Stage == runlog.Loading
}

func (f *fromFiles) report(r *report.Plan) {
	made := &f.p.plan
	if made.Files == nil { // there is no plan yet
		return
	}
	r.Files = &report.Files{
		Bytes: made.Files.Bytes(), Format: string(made.Files.Format), Labels: made.Dedup == loader.DedupKey,
		Digest: made.Files.Digest(),
	}
	for _, f := range made.Files.Files {
		r.Files.Paths = append(r.Files.Paths, f.Path)
	}
}

// explain says of a run that has failed that it cannot be resumed, if that is so.
func (f *fromFiles) explain(err error) error {
	p := f.p
	if err == nil || p.progress.Log() == nil || p.progress.Continued() || !fromStdin(p.progress.Log().Record()) {
		return nil
	}
	var in int64
	if p.meters.stats != nil {
		in = p.meters.stats.Snapshot().Rows
	}
	return loader.Final(fmt.Errorf(
		"run %s cannot be resumed, since standard input is read once: %d of its records are in the table; "+
			"terapush forget removes its claims", p.progress.ID(), in))
}

func (f *fromFiles) close() error { return f.rejected.close() }
