package databend

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// files is where the batches of a staged run lie between upload and COPY: a stage of the server, or an object store
// that a stage leads to.
//
// COPY remembers the files it has loaded into a table for a day, by their path from the root of the stage, whatever
// stage and bucket that was. So the root is above the run's folder, and the path holds the run's id.
type files interface {
	// store puts a batch where COPY finds it. Storing the same batch again changes nothing.
	store(ctx context.Context, n *endpoint, b *batch.Batch) error
	// stage creates the run's own stage, if it has one, and returns its name.
	stage(ctx context.Context) (string, error)
	// path is a batch's file, from the root of the stage.
	path(number int64) string
	discard(ctx context.Context, members []loader.Ref) error
	objects(ctx context.Context, f func(name string, number, bytes int64) error) error
	// redact takes secrets out of an error.
	redact(err error) error
	close() error
}

func (l *opened) filesOf(p loader.Preparation) files {
	if l.store != nil {
		return newBucket(l, p)
	}
	return &serverStage{owner: l, name: l.plan.Stage, folder: folder + "/" + p.Run, format: p.Contract.Format}
}

// serverStage is a stage of the server, reached through its nodes.
type serverStage struct {
	owner  *opened
	name   string // ~ is the user's own
	folder string
	format batch.Format
}

func (s *serverStage) stage(context.Context) (string, error) { return s.name, nil } // Open has checked that it exists
func (s *serverStage) path(number int64) string              { return s.folder + "/" + fileName(number, s.format) }
func (s *serverStage) redact(err error) error                { return err }
func (s *serverStage) close() error                          { return nil }

// store uploads the batch. The committer has to know the name, so all attempts share it, and an earlier upload that
// broke may be written later than this one. So a batch that is sent again is measured afterwards. A file that is
// overwritten after that is found by COPY's count of the rows.
func (s *serverStage) store(ctx context.Context, n *endpoint, b *batch.Batch) error {
	path := s.path(b.ID.Number)
	if err := n.upload(ctx, s.name, path, b); err != nil || b.Attempt <= 1 {
		return err
	}
	size := int64(-1)
	err := s.list(ctx, path, func(name string, _, bytes int64) error {
		if strings.HasSuffix(name, path) {
			size = bytes
		}
		return nil
	})
	if err == nil && size != int64(len(b.Encoded)) {
		err = &fileError{fmt.Sprintf("file %s has %d bytes in the stage, and %d were uploaded", path, size, len(b.Encoded))}
	}
	return err
}

// discard removes the files with one statement. The pattern is matched below the run's folder.
func (s *serverStage) discard(ctx context.Context, members []loader.Ref) error {
	numbers := make([]string, len(members))
	for i, m := range members {
		numbers[i] = fmt.Sprintf("%012d", m.ID.Number)
	}
	pattern := "(" + strings.Join(numbers, "|") + ")[.]" + string(s.format)
	return s.owner.exec(ctx, fmt.Sprintf("REMOVE @%s/%s/ PATTERN = %s", s.name, s.folder, literal(pattern)))
}

func (s *serverStage) objects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return s.list(ctx, s.folder+"/", f)
}

func (s *serverStage) list(ctx context.Context, path string, f func(name string, number, bytes int64) error) error {
	found, err := s.owner.rows(ctx, "LIST @"+s.name+"/"+path)
	for _, row := range found {
		size, err := sqlload.ParseNumber(row[1])
		if err != nil {
			return fmt.Errorf("the size of file %s: %w", row[0], err)
		}
		if err := f(row[0], s.number(row[0]), size); err != nil {
			return err
		}
	}
	return err
}

// number is the batch in a file, or −1.
func (s *serverStage) number(name string) int64 {
	file := name[strings.LastIndexByte(name, '/')+1:]
	text, _, _ := strings.Cut(file, ".")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n >= 0 && fileName(n, s.format) == file {
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
		return loader.Ack{}, failedBefore("create the stage", err)
	}
	paths := make([]string, len(g.Members))
	for i, m := range g.Members {
		paths[i] = l.files.path(m.ID.Number)
	}
	var t tags
	if s.Want.Contract.Dedup == loader.DedupKey {
		t = l.tagsOf(groupKind, g.ID, g.Attempt)
	}
	sql := statements{s.Statements}.copyInto(stage, paths, s.Want.Contract.Format)
	loaded, err := sqlload.Rows(ctx, conn{l.run, statement{tags: t}}, sql)
	if err != nil {
		return loader.Ack{}, failed("copy", l.files.redact(err))
	}
	if len(loaded) == 0 { // the label is taken, or every file was loaded before
		return l.skipped(ctx, groupKind, t, g.Ref)
	}
	return checkLoaded(g, paths, loaded)
}

// checkLoaded compares the rows of every file with COPY's answer: File, Rows_loaded, Errors_seen, First_error,
// First_error_line. COPY has skipped a file that is not in it, and then it is unknown whether the group is in.
func checkLoaded(g loader.Group, paths []string, loaded [][]string) (loader.Ack, error) {
	files := make(map[string][]string, len(loaded))
	var sum int64
	for _, row := range loaded {
		if len(row) < 4 {
			return loader.Ack{}, failed("copy", &unreadableError{fmt.Errorf("COPY describes a file with %d values", len(row))})
		}
		n, err := sqlload.ParseNumber(row[1])
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
		Hint: "was a file of this name loaded into the table within a day? check the table's rows before you resume"}
}

// Discard removes the files of a group that is in the table.
func (l *opened) Discard(ctx context.Context, g loader.Group) error {
	if _, err := l.staged(); err != nil {
		return err
	}
	return failed("remove the files", l.files.discard(ctx, g.Members))
}

// Objects lists the files of the run that are still in the stage or the store.
func (l *opened) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	s, err := l.staged()
	if err != nil {
		return err
	}
	if run != s.Want.Run {
		return fmt.Errorf("databend: run %s was prepared, not run %s", s.Want.Run, run)
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
