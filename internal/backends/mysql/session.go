package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// session is one worker's connection: a pinned sql.Conn of a pool of its own. Unlike a pool a pinned connection is
// never replaced behind the caller's back, which would lose the transaction, and statements are never sent again; the
// driver's bare connection would do the same and leave us to scan rows by hand.
type session struct {
	statements
	db     *database
	claims bool   // batches go in under a claim; else every statement commits by itself
	id     uint64 // the server's number of the connection, if it claims

	pool *sql.DB
	conn *sql.Conn
	send func(ctx context.Context, b *batch.Batch) (rows int64, err error) // by the method

	reader string      // name in the driver's registry, which all of the process share
	body   *batch.Body // what the registered reader gives out, once
}

// Session connects one worker to the next host that answers.
func (db *database) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := db.open(ctx, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (db *database) open(ctx context.Context, c loader.Contract) (*session, error) {
	text, err := db.prepared()
	if err != nil {
		return nil, err
	}
	s := &session{statements: text, db: db, claims: c.Dedup == loader.DedupTx, reader: "terapush-" + rand.Text()}
	s.send = s.loadData
	if db.method.Name == insert {
		s.send = s.insert
	}
	err = loader.FirstOf(ctx, db.endpoints, int(db.turn.Add(1)-1), func(ctx context.Context, e endpoint) error {
		err := s.connect(ctx, e)
		if err != nil {
			_ = s.Close()
		}
		return loader.ConnectError(e.address, err, faultOf)
	})
	if err != nil {
		return nil, err
	}
	mysql.RegisterReaderHandler(s.reader, s.handOut)
	return s, nil
}

func (s *session) connect(ctx context.Context, e endpoint) (err error) {
	s.pool = sql.OpenDB(connector{e.loadingConfig(s.flavour), s.flavour.setup(s.db.target.Settings)})
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		return err
	}
	if s.claims {
		if err := s.conn.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&s.id); err != nil {
			return err
		}
	}
	// With autocommit off a claim begins its transaction by itself, which saves START TRANSACTION's round trip.
	_, err = s.conn.ExecContext(ctx, autocommit(!s.claims))
	return err
}

// Load sends the batch once. A connection that its last attempt left behind, and that the server may not know to be
// dead, keeps the claim locked for minutes: the engine asks Resolve to end it before it sends again.
func (s *session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if !s.claims {
		ack, err := s.loadUnclaimed(ctx, b)
		return ack, failed("load", err)
	}
	ack, err := sqlload.Load(ctx, s, loader.RefOf(b), b.Wanted(), func(ctx context.Context) (int64, []string, error) {
		return s.Rows(ctx, b)
	})
	return ack, failed("load", err)
}

// loadUnclaimed sends the rows and asks what became of them: when some are missing, and always after LOAD DATA LOCAL,
// which bends bad values into warnings. In an INSERT the strict sql_mode makes them errors.
// The rows are committed by then, so warnings are for the report and fail nothing.
func (s *session) loadUnclaimed(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	rows, err := s.send(ctx, b)
	if err != nil && !s.db.caps.Atomic {
		// What a statement had done before it failed stays, on such a table.
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.Unknown, Err: err}
	}
	if err != nil || rows == b.Wanted() && s.db.method.Name == insert {
		return loader.Ack{Rows: rows}, err
	}
	warnings, err := s.warnings(ctx)
	if err != nil {
		warnings = []string{"the server's warnings could not be read: " + err.Error()}
	}
	return loader.Ack{Rows: rows, Detail: warnings}, nil
}

// Claim inserts the claim row, which begins the transaction. Where another session holds the claim uncommitted, the
// server lets this one wait, lockWait at most.
func (s *session) Claim(ctx context.Context, ref loader.Ref) (taken bool, rows int64, err error) {
	_, err = s.conn.ExecContext(ctx, tag(ref.ID)+s.insertClaim(ref, s.id))
	var failed *mysql.MySQLError
	if !errors.As(err, &failed) || failed.Number != duplicateKey {
		return false, 0, err
	}
	err = s.conn.QueryRowContext(ctx, s.SelectClaim(ref.ID.Run, ref.ID.Number)).Scan(&rows)
	return true, rows, err
}

// Rows sends the rows and reads the warnings.
func (s *session) Rows(ctx context.Context, b *batch.Batch) (rows int64, warnings []string, err error) {
	if rows, err = s.send(ctx, b); err != nil {
		return 0, nil, err
	}
	warnings, err = s.warnings(ctx)
	return rows, warnings, err
}

// loadData sends the rows as the answer to the server's request for the reader.
func (s *session) loadData(ctx context.Context, b *batch.Batch) (int64, error) {
	body := b.Open()
	defer func() { _ = body.Close() }() // the driver has done it, if the server asked for the reader
	s.body = body
	defer func() { s.body = nil }()
	return affected(s.conn.ExecContext(ctx, tag(b.ID)+s.statements.loadData(s.reader)))
}

// handOut gives out the body once. A server, or a driver that resends, would otherwise get the end of it or all of it
// again; for nil the driver reports an error. It runs inside ExecContext, on the session's goroutine.
func (s *session) handOut() io.Reader {
	if s.body == nil {
		return nil
	}
	body := s.body
	s.body = nil
	return body
}

// insert sends the rows in the statement itself. The driver takes statements as strings only, hence the copy.
func (s *session) insert(ctx context.Context, b *batch.Batch) (int64, error) {
	body := b.Open()
	defer func() { _ = body.Close() }()
	head := tag(b.ID) + s.insertHead()
	var text strings.Builder
	text.Grow(len(head) + int(body.Size()))
	text.WriteString(head)
	if _, err := body.WriteTo(&text); err != nil {
		return 0, err
	}
	return affected(s.conn.ExecContext(ctx, text.String()))
}

func affected(r sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// maxWarnings is how many of the server's warnings an answer carries.
const maxWarnings = 5

// warnings reads what the last statement left, without its notes. Asking for @@warning_count first would be no cheaper,
// and MySQL (9.7, unlike MariaDB) forgets the warnings over that question.
func (s *session) warnings(ctx context.Context) ([]string, error) {
	kept, err := s.conn.QueryContext(ctx, "SHOW WARNINGS")
	if err != nil {
		return nil, err
	}
	defer func() { _ = kept.Close() }()
	var found []string
	more := 0
	for kept.Next() {
		var level, message string
		var number int
		if err := kept.Scan(&level, &number, &message); err != nil {
			return nil, err
		}
		switch {
		case level == "Note":
		case len(found) < maxWarnings:
			found = append(found, fmt.Sprintf("%s %d: %s", level, number, message))
		default:
			more++
		}
	}
	if more > 0 {
		found = append(found, fmt.Sprintf("%d more, perhaps not all: the server keeps max_error_count of them", more))
	}
	return found, kept.Err()
}

// Commit ends the transaction of a batch.
func (s *session) Commit(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "COMMIT")
	return err
}

// Rollback gives up the transaction of a batch. Where it cannot be sent, as after ctx has ended between two
// statements, the connection is closed: the next batch would become part of the same transaction.
func (s *session) Rollback(ctx context.Context) error {
	_, err := s.conn.ExecContext(ctx, "ROLLBACK")
	if err != nil {
		_ = s.Close()
	}
	return err
}

// Close ends the connection; a second Close does nothing.
func (s *session) Close() error {
	mysql.DeregisterReaderHandler(s.reader)
	if s.conn != nil {
		_ = s.conn.Close() // back to the pool, which closes it
	}
	return s.pool.Close()
}
