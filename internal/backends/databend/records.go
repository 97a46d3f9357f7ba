package databend

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// recordsSession loads records of users' files, which have no keys by which one could count them.
//
// So a batch is a file in the run's folder of the stage, and a COPY loads it. COPY remembers for a day by their names
// which files it has loaded into a table, and copy_history lists them. That is a label which locks: of three COPYs of
// one file at the same time one is committed, and the others fail with 2014 (tried on 1.2.895); a later one loads
// nothing.
//
// A streaming load does not do: of a body that breaks off the server commits the beginning.
type recordsSession struct {
	*session
	run string
}

// Load sends the batch once.
func (s *recordsSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.ended {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: errSessionEnded}
	}
	if b.Attempt <= 1 {
		s.owner.sent.Store(b.ID.Number, time.Now())
	}
	ack, err := s.copyFile(ctx, b)
	if err != nil {
		s.after(err)
		return loader.Ack{}, failed("load", err)
	}
	s.owner.sent.Delete(b.ID.Number)
	return ack, nil
}

// copyFile puts the batch into the stage and loads it. All attempts have the same name. The server removes a file that
// is in; after a failure it is removed here, unless the statement may still be reading it.
func (s *recordsSession) copyFile(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	stage := s.owner.recordsStage(s.run, b.Format)
	path := stage.path(b.ID.Number)
	if err := stage.store(ctx, s.endpoint, b); err != nil {
		return loader.Ack{}, failedBefore("upload", err)
	}

	t := tags{queryID: queryID(batchKind, b.ID, max(b.Attempt, 1))}
	loaded, err := sqlload.Rows(ctx, conn{s.endpoint.run, statement{tags: t}}, s.copyRecords(stage.name, path, b))
	if err != nil {
		if verdict(err).Applied == loader.No {
			_ = s.owner.exec(ctx, "REMOVE @"+stage.name+"/"+path)
		}
		return loader.Ack{}, recordError(err, b)
	}
	if len(loaded) == 0 {
		return s.loadedBefore(ctx, path, b)
	}
	if len(loaded[0]) < 2 {
		return loader.Ack{}, &unreadableError{fmt.Errorf("COPY describes a file with %d values", len(loaded[0]))}
	}
	rows, err := sqlload.ParseNumber(loaded[0][1])
	if err != nil {
		return loader.Ack{}, &unreadableError{err}
	}
	return loader.Ack{Rows: rows}, nil
}

// loadedBefore is the answer of a COPY that has skipped the file.
func (s *recordsSession) loadedBefore(ctx context.Context, path string, b *batch.Batch) (loader.Ack, error) {
	is, err := s.owner.remembers(ctx, path)
	switch {
	case err != nil:
		return loader.Ack{}, &loader.Error{Op: "look for the file", Applied: loader.Unknown, Err: err}
	case !is:
		return loader.Ack{}, failedBefore("copy", &fileError{fmt.Sprintf(
			"COPY has skipped file %s, which it does not list as loaded", path)})
	}
	return loader.Ack{Rows: b.Rows, AlreadyApplied: true}, nil
}

// recordsStage is the stage with the files of a run.
func (l *opened) recordsStage(run string, f batch.Format) *serverStage {
	return &serverStage{owner: l, name: l.plan.Stage, folder: folder + "/" + run, format: f}
}

// remembers reports whether the server lists a file as loaded into the table.
func (l *opened) remembers(ctx context.Context, path string) (bool, error) {
	n, err := sqlload.Number(ctx, conn{run: l.run}, selectLoaded(l.plan.name, path))
	return n > 0, err
}

const listsLoaded = "SELECT COUNT(*) FROM copy_history"

func selectLoaded(n tableName, path string) string {
	return fmt.Sprintf(listsLoaded+"(%s) WHERE file_name = %s", literal(n.String()), literal(path))
}

// memory is how long the server remembers the files that it has loaded.
func (l *opened) memory() time.Duration {
	hours, err := strconv.Atoi(l.server.Settings["load_file_metadata_expire_hours"])
	if err != nil {
		return labelWindow
	}
	return min(time.Duration(hours)*time.Hour, labelWindow)
}

// prepareRecords checks the table, and that the server remembers the files of a load.
func (l *opened) prepareRecords(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	l.began = p.Began
	if l.memory() < time.Hour {
		return loader.Table{}, failedBefore("prepare", errors.New(
			"load_file_metadata_expire_hours is 0, so the server remembers no file "+
				"that it has loaded: give --set load_file_metadata_expire_hours=24"))
	}
	table, err := l.Table.Prepare(ctx, p)
	if err != nil {
		return table, err
	}
	if _, err := l.remembers(ctx, l.recordsStage(p.Run, p.Contract.Format).path(0)); err != nil {
		return table, failedBefore("ask which files the table has", fmt.Errorf(
			"a load of files goes in exactly once by the server's "+
				"copy_history, which it does not answer: %w", err))
	}
	return table, nil
}

// resolveRecords ends the queries of earlier attempts, and then asks whether the server lists the batch's file. What an
// earlier process has sent longer ago than the server remembers may be in all the same.
func (l *opened) resolveRecords(ctx context.Context, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	if err := l.endAttempts(ctx, batchKind, ref.ID, max(ref.Attempt, 1)); err != nil {
		return loader.Resolution{}, err
	}
	stage := l.recordsStage(s.Want.Run, s.Want.Contract.Format)
	path := stage.path(ref.ID.Number)
	in, err := l.remembers(ctx, path)
	if err != nil {
		return loader.Resolution{}, failed("ask which files the table has", err)
	}
	if in {
		_ = l.exec(ctx, "REMOVE @"+stage.name+"/"+path) // no query reads it any more, and one that stays does no harm
		return loader.Resolution{Applied: loader.Yes}, nil
	}

	sent, memory := l.began, l.memory()
	if first, ok := l.sent.Load(ref.ID.Number); ok {
		sent = first.(time.Time)
	}
	if time.Since(sent) < memory {
		return loader.Resolution{Applied: loader.No}, nil
	}
	return loader.Resolution{Reason: fmt.Sprintf(
		"the server forgets after %s which files it has loaded, and the batch may have been "+
			"sent before: compare the table with the file", memory)}, nil
}

// copyRecords loads a file of records, whose fields are the columns of the batch's layout, and has it removed
// afterwards. With PURGE alone the server remembers the name; with FORCE it would not.
func (s *recordsSession) copyRecords(stage, path string, b *batch.Batch) string {
	columns := make([]string, len(b.Layout.Columns))
	for i, name := range b.Layout.Columns {
		columns[i] = quote(name)
	}
	return s.copyFiles("@"+stage, strings.Join(columns, ", "), []string{path}, recordFormat(b.Format)) + " PURGE = true"
}

var (
	badColumn = regexp.MustCompile(`^(?s)(?:Invalid value '.*'|Missing value) for column (\d+) \(`)
	badPlace  = regexp.MustCompile(`(?s)(?: for File '[^']*'.*)?\s+at file '[^']*', line (\d+)$`)
)

// recordError reads which record an error is about. COPY counts records from 0, though it calls them lines, and names a
// file that the user does not know.
func recordError(err error, b *batch.Batch) error {
	var refused *serverError
	if !errors.As(err, &refused) {
		return err
	}
	place := badPlace.FindStringSubmatchIndex(refused.message)
	if place == nil {
		return err
	}
	said := *refused
	said.message = refused.message[:place[0]]
	n, problem := strconv.ParseInt(refused.message[place[2]:place[3]], 10, 64)
	if problem != nil {
		return err
	}
	at := &loader.RecordError{Record: n + 1, Err: &said}
	if column := badColumn.FindStringSubmatch(said.message); column != nil {
		if i, err := strconv.Atoi(column[1]); err == nil && i < len(b.Layout.Columns) {
			at.Column = b.Layout.Columns[i]
		}
	}
	return at
}
