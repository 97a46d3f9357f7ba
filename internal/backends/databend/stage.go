package databend

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// files is where the batches of a staged run lie between their upload and their COPY: a stage of the server, or an
// object store that a stage leads to.
//
// COPY remembers the files it has loaded by their path from the root of the stage, for the table and for a day, whatever
// stage and bucket they lay in. So the root is above the run's folder, and the path holds the run's id.
type files interface {
	// open makes the stage, if there has to be one.
	open(ctx context.Context) error
	// store puts a batch where COPY finds it. To put the same batch again changes nothing.
	store(ctx context.Context, n *node, b *batch.Batch) error
	// stage is the name of the stage, which can be read from now on.
	stage(ctx context.Context) (string, error)
	// path is a batch's file, from the root of the stage.
	path(number int64) string
	discard(ctx context.Context, members []loader.Ref) error
	objects(ctx context.Context, f func(name string, number, bytes int64) error) error
	// clean takes out of an error what must not be shown.
	clean(err error) error
	close() error
}

func (db *database) filesOf(p loader.Preparation) files {
	if db.objects != nil {
		return newBucket(db, p)
	}
	return &ownStage{db: db, name: db.plan.stage, folder: folder + "/" + p.Run, format: p.Contract.Format}
}

// storing is the session of a staged contract: what it loads is in the store, and in no table.
type storing struct{ *session }

// Load stores the batch.
func (s *storing) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.left {
		return loader.Ack{}, &loader.Error{Op: "store", Applied: loader.No, Err: errLeft}
	}
	if err := s.files.store(ctx, s.node, b); err != nil {
		s.leave(err)
		return loader.Ack{}, failedBefore("store", err)
	}
	return loader.Ack{Stored: true, Rows: b.Rows}, nil
}

// ownStage is a stage of the server itself, reached through its nodes.
type ownStage struct {
	db     *database
	name   string // ~ is the user's own
	folder string
	format batch.Format
}

func (o *ownStage) open(context.Context) error            { return nil } // Open has looked for it
func (o *ownStage) stage(context.Context) (string, error) { return o.name, nil }
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
	return o.db.run(ctx, statement{sql: o.removeStatement(numbers)}, nil)
}

func (o *ownStage) removeStatement(numbers []string) string {
	return fmt.Sprintf("REMOVE @%s/%s/ PATTERN = %s", o.name, o.folder, literal("("+strings.Join(numbers, "|")+")[.]"+string(o.format)))
}

func (o *ownStage) objects(ctx context.Context, f func(name string, number, bytes int64) error) error {
	return o.list(ctx, o.folder+"/", f)
}

func (o *ownStage) list(ctx context.Context, path string, f func(name string, number, bytes int64) error) error {
	return o.db.run(ctx, statement{sql: o.listStatement(path)}, func(r row) error {
		v := r.texts()
		if len(v) < 2 {
			return fmt.Errorf("the server lists a file in %d values", len(v))
		}
		size, err := strconv.ParseInt(v[1], 10, 64)
		if err != nil {
			return fmt.Errorf("the size of file %s: %w", v[0], err)
		}
		return f(v[0], o.number(v[0]), size)
	})
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
