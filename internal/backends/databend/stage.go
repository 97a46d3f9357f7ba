package databend

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// files is where the batches of a staged run lie between their upload and their COPY: a stage of the server, or an
// object store that a stage leads to.
//
// COPY remembers the files it has loaded by their path from the root of the stage, for the table and for a day,
// whatever stage and bucket they lay in. So the root is above the run's folder, and the path holds the run's id.
type files interface {
	// store puts a batch where COPY finds it. To put the same batch again changes nothing.
	store(ctx context.Context, n *node, b *batch.Batch) error
	// stage makes the stage, where there has to be one of the run's own, and returns its name.
	stage(ctx context.Context) (string, error)
	// path is a batch's file, from the root of the stage.
	path(number int64) string
	discard(ctx context.Context, members []loader.Ref) error
	objects(ctx context.Context, f func(name string, number, bytes int64) error) error
	// clean takes out of an error what must not be shown.
	clean(err error) error
	close() error
}

func (l *opened) filesOf(p loader.Preparation) files {
	if l.store != nil {
		return newBucket(l, p)
	}
	return &ownStage{of: l, name: l.plan.stage, folder: folder + "/" + p.Run, format: p.Contract.Format}
}

// storing is the session of a staged contract: what it loads is in the store, and in no table.
type storing struct{ *session }

// Load stores the batch.
func (s *storing) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.left {
		return loader.Ack{}, &loader.Error{Op: "store", Applied: loader.No, Err: errLeft}
	}
	if err := s.owner.files.store(ctx, s.node, b); err != nil {
		s.leave(err)
		return loader.Ack{}, failedBefore("store", err)
	}
	return loader.Ack{Stored: true, Rows: b.Rows}, nil
}

// ownStage is a stage of the server itself, reached through its nodes.
type ownStage struct {
	of     *opened
	name   string // ~ is the user's own
	folder string
	format batch.Format
}

func (o *ownStage) stage(context.Context) (string, error) { return o.name, nil } // Open has looked for it
func (o *ownStage) path(number int64) string              { return o.folder + "/" + fileName(number, o.format) }
func (o *ownStage) clean(err error) error                 { return err }
func (o *ownStage) close() error                          { return nil }

// store uploads the batch. An earlier upload that broke may be written out later than this one, in part and under the
// same name, as the name has to be known to whoever commits the group; so a batch that is sent again is measured. What
// is overwritten later still, COPY's count of the rows shows.
func (o *ownStage) store(ctx context.Context, n *node, b *batch.Batch) error {
	path := o.path(b.ID.Number)
	if err := n.upload(ctx, o.name, path, b); err != nil || b.Attempt <= 1 {
		return err
	}
	size := int64(-1)
	err := o.list(ctx, path, func(name string, _, bytes int64) error {
		if strings.HasSuffix(name, path) {
			size = bytes
		}
		return nil
	})
	if err == nil && size != int64(len(b.Encoded)) {
		err = &brokenFileError{path, size, int64(len(b.Encoded))}
	}
	return err
}

// brokenFileError says that a file is not as long as what was uploaded: it can be uploaded again.
type brokenFileError struct {
	path       string
	size, sent int64
}

func (e *brokenFileError) Error() string {
	return fmt.Sprintf("file %s has %d bytes in the stage, and %d were uploaded", e.path, e.size, e.sent)
}

// discard removes the files with one statement. The pattern is matched below the folder, which is the run's.
func (o *ownStage) discard(ctx context.Context, members []loader.Ref) error {
	numbers := make([]string, len(members))
	for i, m := range members {
		numbers[i] = fmt.Sprintf("%012d", m.ID.Number)
	}
	return o.of.exec(ctx, o.removeStatement(numbers))
}

func (o *ownStage) removeStatement(numbers []string) string {
	pattern := "(" + strings.Join(numbers, "|") + ")[.]" + string(o.format)
	return fmt.Sprintf("REMOVE @%s/%s/ PATTERN = %s", o.name, o.folder, literal(pattern))
}

func (o *ownStage) objects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return o.list(ctx, o.folder+"/", f)
}

func (o *ownStage) list(ctx context.Context, path string, f func(name string, number, bytes int64) error) error {
	found, err := o.of.rows(ctx, o.listStatement(path))
	for _, row := range found {
		size, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			return fmt.Errorf("the size of file %s: %w", row[0], err)
		}
		if err := f(row[0], o.number(row[0]), size); err != nil {
			return err
		}
	}
	return err
}

func (o *ownStage) listStatement(path string) string { return "LIST @" + o.name + "/" + path }

// number is the batch that a file holds, or −1.
func (o *ownStage) number(name string) int64 {
	file := name[strings.LastIndexByte(name, '/')+1:]
	text, _, _ := strings.Cut(file, ".")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && fileName(n, o.format) == file {
		return n
	}
	return -1
}

// Commit loads the files of a group with one COPY, which is atomic.
func (l *opened) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	s, err := l.staged()
	if err != nil {
		return loader.Ack{}, err
	}
	stage, err := l.files.stage(ctx)
	if err != nil {
		return loader.Ack{}, failedBefore("make the stage", err)
	}
	paths := make([]string, len(g.Members))
	for i, m := range g.Members {
		paths[i] = l.files.path(m.ID.Number)
	}
	var m marks
	if s.Want.Contract.Dedup == loader.DedupKey {
		m = l.marksOf(ofGroup, g.ID, max(g.Attempt, 1))
	}
	sql := statements{s.Statements}.copyInto(stage, paths, s.Want.Contract.Format)
	loaded, err := sqlload.Rows(ctx, conn{l, statement{marks: m}}, sql)
	if err != nil {
		return loader.Ack{}, failed("copy", l.files.clean(err))
	}
	if len(loaded) == 0 {
		// The label is taken, or every file was loaded before.
		return l.skipped(ctx, ofGroup, m, g.Ref)
	}
	return checkLoaded(g, paths, loaded)
}

// checkLoaded compares the rows of every file with COPY's answer, which is File, Rows_loaded, Errors_seen,
// First_error and First_error_line. A file that is not in it was skipped, and then nothing says whether the group as
// a whole is in.
func checkLoaded(g loader.Group, paths []string, loaded [][]string) (loader.Ack, error) {
	files := make(map[string][]string, len(loaded))
	var sum int64
	for _, row := range loaded {
		if len(row) < 4 {
			return loader.Ack{}, failed("copy", &unreadableError{fmt.Errorf("COPY describes a file in %d values", len(row))})
		}
		n, err := strconv.ParseInt(row[1], 10, 64)
		if err != nil {
			return loader.Ack{}, failed("copy", &unreadableError{err})
		}
		files[row[0]] = row
		sum += n
	}
	var wrong []string
	for i, m := range g.Members {
		switch f := files[paths[i]]; {
		case f == nil:
			wrong = append(wrong, fmt.Sprintf("file %s was skipped", paths[i]))
		case f[1] != strconv.FormatInt(m.Rows, 10) || f[2] != "0":
			text := fmt.Sprintf("file %s: %s of %d rows, %s errors %s", f[0], f[1], m.Rows, f[2], f[3])
			wrong = append(wrong, strings.TrimSpace(text))
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
func (l *opened) Discard(ctx context.Context, g loader.Group) error {
	if _, err := l.staged(); err != nil {
		return err
	}
	return failed("remove the files", l.files.discard(ctx, g.Members))
}

// Objects lists the files of a run that still lie in the stage or the store.
func (l *opened) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	s, err := l.staged()
	if err != nil {
		return err
	}
	if run != s.Want.Run {
		return fmt.Errorf("databend: run %s was prepared, and the files of run %s are asked for", s.Want.Run, run)
	}
	return failed("list the files", l.files.objects(ctx, f))
}

func (l *opened) staged() (*sqlload.State, error) {
	s, err := l.State()
	if err == nil && l.files == nil {
		err = fmt.Errorf("databend: method %s stores nothing", l.plan.method.Name)
	}
	return s, err
}
