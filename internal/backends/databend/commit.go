package databend

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Commit loads the files of a group with one COPY, which is atomic.
func (db *database) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	p, err := db.staged()
	if err != nil {
		return loader.Ack{}, err
	}
	stage, err := p.files.stage(ctx)
	if err != nil {
		return loader.Ack{}, failedBefore("make the stage", err)
	}
	paths := make([]string, len(g.Members))
	for i, m := range g.Members {
		paths[i] = p.files.path(m.ID.Number)
	}
	var m marks
	if p.contract.Dedup == loader.DedupKey {
		m = db.marksOf(ofGroup, g.ID, max(g.Attempt, 1))
	}
	var loaded []loadedFile
	s := statement{sql: p.copyInto(stage, paths, p.contract.Format), marks: m}
	err = db.run(ctx, s, func(r row) error {
		f, err := readLoaded(r)
		loaded = append(loaded, f)
		return err
	})
	if err != nil {
		return loader.Ack{}, failed("copy", p.files.clean(err))
	}
	if len(loaded) == 0 {
		// The label is taken, or every file was loaded before.
		return db.skipped(ctx, p, ofGroup, m, g.Ref)
	}
	return checkLoaded(g, paths, loaded)
}

// loadedFile is one row of COPY's result.
type loadedFile struct {
	name         string
	rows, errors int64
	firstError   string
}

// readLoaded reads File, Rows_loaded, Errors_seen, First_error and First_error_line.
func readLoaded(r row) (f loadedFile, err error) {
	v := r.texts()
	if len(v) < 4 {
		return f, &unreadableError{fmt.Errorf("COPY describes a file in %d values", len(v))}
	}
	f.name, f.firstError = v[0], v[3]
	if f.rows, err = strconv.ParseInt(v[1], 10, 64); err == nil {
		f.errors, err = strconv.ParseInt(v[2], 10, 64)
	}
	if err != nil {
		return f, &unreadableError{err}
	}
	return f, nil
}

// checkLoaded compares the rows of every file. A file that is not in the answer was skipped, and then the group as a
// whole is neither in nor out, as far as the answer tells.
func checkLoaded(g loader.Group, paths []string, loaded []loadedFile) (loader.Ack, error) {
	byName := make(map[string]loadedFile, len(loaded))
	var sum int64
	for _, f := range loaded {
		byName[f.name] = f
		sum += f.rows
	}
	var wrong []string
	for i, m := range g.Members {
		switch f, found := byName[paths[i]]; {
		case !found:
			wrong = append(wrong, fmt.Sprintf("file %s was skipped", paths[i]))
		case f.rows != m.Rows || f.errors != 0:
			wrong = append(wrong, strings.TrimSpace(fmt.Sprintf("file %s: %d of %d rows, %d errors %s", f.name, f.rows, m.Rows, f.errors, f.firstError)))
		}
	}
	if len(wrong) == 0 && sum == g.Rows {
		return loader.Ack{Rows: sum}, nil
	}
	return loader.Ack{}, &loader.Error{Op: "copy", Applied: loader.Unknown,
		Err:  &loader.RowsError{Sent: g.Rows, Acknowledged: sum, Detail: wrong},
		Hint: "a file of this name was loaded into the table within a day? look at the table's rows before going on"}
}

// Discard removes the files of a group that is in the table.
func (db *database) Discard(ctx context.Context, g loader.Group) error {
	p, err := db.staged()
	if err != nil {
		return err
	}
	return failed("remove the files", p.files.discard(ctx, g.Members))
}

// Objects lists the files of a run that still lie in the stage or the store.
func (db *database) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	p, err := db.staged()
	if err != nil {
		return err
	}
	if run != p.run {
		return fmt.Errorf("databend: run %s was prepared, and the files of run %s are asked for", p.run, run)
	}
	return failed("list the files", p.files.objects(ctx, f))
}

func (db *database) staged() (*prepared, error) {
	p, err := db.prepared()
	if err == nil && p.files == nil {
		err = fmt.Errorf("databend: method %s stores nothing", db.plan.method.Name)
	}
	return p, err
}
