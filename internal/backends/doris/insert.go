package doris

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// insertSession is one worker of insert: a pinned connection of a pool of its own, which is never replaced behind the
// caller's back and keeps its session variables.
type insertSession struct {
	*opened
	text   statements
	labels bool
	pool   *sql.DB
	conn   *sql.Conn
	merged bool // an INSERT of the session went in by group commit, or nobody can tell: it is not asked about again
}

// openInsert connects to the next frontend.
func (l *opened) openInsert(ctx context.Context, text statements, labels bool) (*insertSession, error) {
	first := l.nextFrontend()
	setup := loadingSetup(l.options.group, l.target.Settings)
	s := &insertSession{
		opened: l, text: text, labels: labels,
		pool: sql.OpenDB(connector{frontends: l.frontends, first: first, setup: setup, loads: true}),
	}
	var err error
	if s.conn, err = s.pool.Conn(ctx); err != nil {
		_ = s.Close()
		return nil, loader.ConnectError(l.frontends[first].address, err, faultOf)
	}
	return s, nil
}

// Load sends the rows in one statement, as text: Doris prepares only some statements, and the driver would lose its
// place in the protocol over a long argument (COM_STMT_SEND_LONG_DATA).
func (s *insertSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	ref, label := loader.RefOf(b), ""
	if s.labels {
		label = s.name.label(ref, false)
	}
	ack, err := s.once(ctx, ref, label, func() (loader.Ack, error) {
		rows, err := s.insert(ctx, b, label)
		if err != nil {
			return loader.Ack{}, err
		}
		ack := loader.Ack{Rows: rows}
		return ack, s.compare(ctx, &ack, label)
	})
	if err != nil {
		s.doubted.Store(true)
	}
	return ack, failed("load", err)
}

func (s *insertSession) insert(ctx context.Context, b *batch.Batch, label string) (int64, error) {
	body := b.Open()
	defer func() { _ = body.Close() }()
	head := s.text.insertHead(label)
	var text strings.Builder // the driver takes statements as strings only, hence the copy
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

// compare asks what the last statement came to. The driver drops the text of the OK packet that says so, and SHOW LAST
// INSERT repeats it: group commit shows by a label of the server's. The rows are in by now, so that a question without
// an answer is no reason to send them again: the ack says what is not known.
//
// Under group commit it is asked once a session. Whether a server merges follows from table, settings and the form of
// the statement, which stay as they are, and the question would double the round trips of INSERTs of single rows.
func (s *insertSession) compare(ctx context.Context, ack *loader.Ack, label string) error {
	if s.merged {
		return nil
	}
	s.merged = s.options.group.on()
	last, err := shown(ctx, s.conn, "SHOW LAST INSERT")
	group := s.options.group
	switch {
	case err != nil:
		ack.Detail = append(ack.Detail, "SHOW LAST INSERT: "+err.Error())
		return s.known(ctx, ack, label)
	case len(last) == 0:
		// A frontend that hands statements on to the master remembers none (apache/doris#26285).
		return s.known(ctx, ack, label)
	case group.on() && !strings.HasPrefix(last[0]["Label"], "group_commit_"):
		s.merged = false
		return notMerged(last[0]["Label"])
	case label != "" && last[0]["Label"] != label:
		return labelReplaced(label, last[0]["Label"])
	}
	if n, err := strconv.ParseInt(last[0]["FilteredRows"], 10, 64); err == nil && n > 0 {
		ack.Detail = append(ack.Detail, fmt.Sprintf("%d rows filtered", n))
	}
	return nil
}

// known asks the master for the label where the session's frontend cannot tell: one that is not known there was
// replaced.
func (s *insertSession) known(ctx context.Context, ack *loader.Ack, label string) error {
	if label == "" {
		ack.Detail = append(ack.Detail, "SHOW LAST INSERT does not tell whether the rows went in by group commit")
		return nil
	}
	state, err := s.labelState(ctx, label)
	switch {
	case err != nil:
		ack.Detail = append(ack.Detail, "the label is not confirmed: "+err.Error())
	case state == stateUnknown:
		return labelReplaced(label, "another one")
	}
	return nil
}

// Close ends the connection; a second Close does nothing.
func (s *insertSession) Close() error {
	if s.conn != nil {
		_ = s.conn.Close() // back to the pool, which closes it
	}
	return s.pool.Close()
}
