package doris

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// insertSession is one worker of insert.
type insertSession struct {
	*opened
	text   statements
	labels bool
	conn   mysqlconn.Conn
	merged bool // an INSERT was merged by group commit, or the server cannot tell: the question is not repeated

	prepared preparedInsert
}

// openInsert connects to the next frontend.
func (l *opened) openInsert(ctx context.Context, text statements, labels bool) (*insertSession, error) {
	first := l.hosts.Turn()
	setup := sessionSetup(l.options.group, l.target.Settings)
	c := connector(l.hosts.List, first, true, setup)
	c.Open = l.openConn
	conn, err := c.Dial(ctx)
	if err != nil {
		return nil, loader.ConnectError(l.hosts.At(first).address, err, faultOf)
	}
	return &insertSession{opened: l, text: text, labels: labels, conn: conn}, nil
}

// Load sends the rows in one statement: as text, since Doris prepares only what group commit can merge, or prepared.
func (s *insertSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	ref, label := loader.RefOf(b), ""
	if s.labels {
		label = s.name.label(ref, false)
	}
	ack, err := s.once(ctx, ref, label, func() (loader.Ack, error) {
		rows, err := s.insert(ctx, label, b)
		if err != nil {
			return loader.Ack{}, err
		}
		ack := loader.Ack{Rows: rows}
		return ack, s.checkLast(ctx, &ack, label)
	})
	if err != nil {
		s.doubted.Store(true)
	}
	return ack, failed("load", err)
}

func (s *insertSession) insert(ctx context.Context, label string, b *batch.Batch) (rows int64, err error) {
	if s.options.Prepared {
		return s.prepared.insert(ctx, s.conn, s.text, b)
	}
	return s.conn.Insert(ctx, s.text.insertHead(label), b)
}

// checkLast checks under which label the last statement went in, and whether it was merged. The driver drops the text
// of the OK packet that says so, and SHOW LAST INSERT repeats it. The rows are in, so a question without an answer is
// no reason to send them again; the ack says what is not known.
//
// Under group commit it is asked once a session: table, settings and the form of the statement decide, which do not
// change, and the question would double the round trips of small INSERTs.
func (s *insertSession) checkLast(ctx context.Context, ack *loader.Ack, label string) error {
	if s.merged {
		return nil
	}
	group := s.options.group.on()
	s.merged = group
	last, err := shown(ctx, s.conn, "SHOW LAST INSERT")
	switch {
	case err != nil:
		ack.Detail = append(ack.Detail, "SHOW LAST INSERT: "+loader.Explain(err))
		return s.checkLabel(ctx, ack, label)
	case len(last) == 0: // a frontend that forwards statements to the master remembers none (apache/doris#26285)
		return s.checkLabel(ctx, ack, label)
	case group && !strings.HasPrefix(last[0]["Label"], "group_commit_"):
		s.merged = false
		return notMerged(last[0]["Label"])
	case label != "" && last[0]["Label"] != label:
		return labelReplaced(label, last[0]["Label"])
	}
	if n := sqlload.Integer(last[0]["FilteredRows"]); n > 0 {
		ack.Detail = append(ack.Detail, fmt.Sprintf("%d rows filtered", n))
	}
	return nil
}

// checkLabel asks the master for the label if the session's frontend does not know it.
func (s *insertSession) checkLabel(ctx context.Context, ack *loader.Ack, label string) error {
	if label == "" {
		ack.Detail = append(ack.Detail, "SHOW LAST INSERT does not show whether group commit merged the rows")
		return nil
	}
	state, err := s.labelState(ctx, label)
	switch {
	case err != nil:
		ack.Detail = append(ack.Detail, "the label is not confirmed: "+loader.Explain(err))
	case state == stateUnknown:
		return labelReplaced(label, "another one")
	}
	return nil
}

// Close ends the connection; a second Close does nothing.
func (s *insertSession) Close() error { return s.conn.Close() }
