package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// session is one worker's connection.
type session struct {
	owner    *opened
	contract loader.Contract
	run      string
	statements
	conn    *pgconn.PgConn
	backend backend
	loading atomic.Int64 // number of the batch being loaded, or idle

	notices []string // of the batch being loaded
}

const idle = -1

// notesKept bounds the notices that one batch can add to its ack: a trigger may raise one a row.
const notesKept = 10

// Session connects to the next host.
func (l *opened) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := l.open(ctx, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (l *opened) open(ctx context.Context, c loader.Contract) (*session, error) {
	st, err := l.State()
	if err != nil {
		return nil, err
	}
	s := &session{owner: l, contract: c, run: st.Want.Run, statements: l.statements(st)}
	s.loading.Store(idle)
	if s.conn, _, err = l.dialAny(ctx, int(l.next.Add(1)-1), s.note); err != nil {
		return nil, err
	}
	if err := s.begin(ctx); err != nil {
		_ = s.Close()
		return nil, err
	}
	return s, nil
}

// begin asks the server for the session's name there, and only then takes the run's name: a Resolve that happens to look
// now would end a session of the run that it does not know.
func (s *session) begin(ctx context.Context) error {
	if s.options.nonTransactional {
		if _, err := exec(ctx, s.conn, nonTransactional); err != nil {
			return failed("set up the session", err)
		}
	}
	if s.contract.Dedup == loader.DedupNone || s.flavour == redshift { // nobody will ever want to end it, or can find it
		_, err := exec(ctx, s.conn, nameSession(s.run))
		return failed("set up the session", err)
	}
	found, err := rowsOf(ctx, s.conn, selectOwnBackend)
	if err != nil {
		return failed("set up the session", err)
	}
	if len(found) == 0 {
		return errors.New("set up the session: pg_stat_activity does not show it")
	}
	s.backend = backend{pid: found[0][0], started: found[0][1]}
	s.owner.mu.Lock()
	s.owner.sessions[s] = struct{}{}
	s.owner.mu.Unlock()
	if _, err := exec(ctx, s.conn, nameSession(s.run)); err != nil {
		return failed("set up the session", err)
	}
	return nil
}

// note keeps the server's notices for the ack.
func (s *session) note(_ *pgconn.PgConn, n *pgconn.Notice) { s.notice(n.Severity, n.Message) }

func (s *session) notice(severity, message string) {
	if len(s.notices) < notesKept {
		s.notices = append(s.notices, severity+": "+message)
	}
}

// Load sends the batch in a transaction that claims it, or by itself where the contract knows no claims.
func (s *session) Load(ctx context.Context, b *batch.Batch) (ack loader.Ack, err error) {
	if s.conn.IsClosed() {
		return ack, errDead()
	}
	if err := ctx.Err(); err != nil {
		return ack, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	s.notices = nil
	s.loading.Store(b.ID.Number)
	defer s.loading.Store(idle)
	if s.contract.Dedup == loader.DedupTx {
		ack, err = sqlload.Load(ctx, s, loader.RefOf(b), b.Wanted(), func(ctx context.Context) (int64, []string, error) {
			return s.Rows(ctx, b)
		})
	} else {
		ack.Rows, _, err = s.Rows(ctx, b)
	}
	if err != nil {
		return loader.Ack{}, s.explain(ctx, err)
	}
	ack.Detail = s.notices
	return ack, nil
}

// Claim implements sqlload.Transaction.
func (s *session) Claim(ctx context.Context, ref loader.Ref) (taken bool, rows int64, err error) {
	if s.flavour == redshift {
		found, err := lockAndLook(ctx, conn{s.conn}, s.Statements, ref)
		if err != nil || len(found) > 0 {
			return s.taken(found, err)
		}
		_, err = exec(ctx, s.conn, s.InsertClaim(ref))
		return false, 0, err
	}
	results, err := exec(ctx, s.conn, claim(s.Statements, ref))
	if err != nil || results[len(results)-1].CommandTag.RowsAffected() == 1 {
		return false, 0, err
	}
	return s.taken(rowsOf(ctx, s.conn, s.SelectClaim(ref.ID.Run, ref.ID.Number)))
}

// taken reads the claim that is there already.
func (s *session) taken(found [][]string, err error) (bool, int64, error) {
	if err == nil && len(found) == 0 {
		err = sqlload.ErrClaimVanished
	}
	if err != nil {
		return false, 0, err
	}
	rows, err := sqlload.ParseNumber(found[0][0])
	return true, rows, err
}

// Rows sends the batch by the method. Notices are no reason to give a batch up, so it returns none as warnings.
func (s *session) Rows(ctx context.Context, b *batch.Batch) (int64, []string, error) {
	statement := s.send(s.contract.Format, s.contract.Dedup)
	if s.method == methodInsert {
		rows, err := s.insert(ctx, statement, b)
		return rows, nil, err
	}
	rows, err := s.copyIn(ctx, statement, b)
	return rows, nil, err
}

func (s *session) insert(ctx context.Context, statement string, b *batch.Batch) (int64, error) {
	body := b.Open()
	defer func() { _ = body.Close() }()
	var text strings.Builder // its String is no further copy
	text.Grow(len(statement) + int(body.Size()))
	text.WriteString(statement)
	if _, err := body.WriteTo(&text); err != nil {
		return 0, err
	}
	results, err := exec(ctx, s.conn, text.String())
	if err != nil {
		return 0, err
	}
	return results[0].CommandTag.RowsAffected(), nil
}

// Commit implements sqlload.Transaction. COMMIT of a transaction that has failed is answered by ROLLBACK, without an error; and
// what a deferred constraint refuses is certainly not applied.
func (s *session) Commit(ctx context.Context) error {
	results, err := exec(ctx, s.conn, "COMMIT")
	if err != nil {
		if loader.Judge(err, faultOf).Class == loader.ClassConstraint {
			return &loader.Error{Op: "commit", Applied: loader.No, Err: err}
		}
		return err
	}
	if tag := results[0].CommandTag.String(); tag != "COMMIT" {
		return &loader.Error{Op: "commit", Applied: loader.No, Err: fmt.Errorf("the server answered %s", tag)}
	}
	return nil
}

// Rollback implements sqlload.Transaction. It is needed most when ctx has ended.
func (s *session) Rollback(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectPatience)
	defer cancel()
	_, err := exec(ctx, s.conn, "ROLLBACK")
	return err
}

// Close ends the connection.
func (s *session) Close() error {
	s.leave()
	return closeConn(s.conn)
}

// leave takes the session off the list of those that Resolve spares.
func (s *session) leave() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	delete(s.owner.sessions, s)
}

// explain adds to a failed attempt what is known here: that the context ended it, what to do about it, and how far a
// COPY in several transactions came. A connection that pgconn has given up is closed at this end at once.
func (s *session) explain(ctx context.Context, err error) error {
	e := describe("load", err)
	if ended := ctx.Err(); ended != nil && !errors.Is(e, ended) {
		e.Err = fmt.Errorf("%w: %w", ended, e.Err)
	}
	if !s.owner.Caps().Atomic {
		e.Applied = loader.Unknown
	}
	switch {
	case s.conn.IsClosed():
		s.leave()
		closeSocket(s.conn)
	case !s.owner.Caps().Atomic:
		e.Err = s.progress(ctx, e.Err)
	}
	return e
}

// progress asks YugabyteDB how many rows of the failed COPY it has committed; the view keeps them for the session that
// sent it. It is for the reader of the message: Resolve looks at the table.
func (s *session) progress(ctx context.Context, err error) error {
	found, lost := rowsOf(ctx, s.conn, "SELECT tuples_processed FROM pg_stat_progress_copy WHERE pid = pg_backend_pid()")
	if lost != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; %s rows of the batch were committed before", err, found[0][0])
}
