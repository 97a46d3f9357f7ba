package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// session is one worker's connection.
type session struct {
	statements
	owner    *opened
	contract loader.Contract
	run      string
	records  bool // batches are of users' files
	conn     sessionConn
	wire     *pgconn.PgConn                                                      // of conn
	load     func(ctx context.Context, statements string, b *batch.Batch) answer // loadIn over wire
	backend  backend
	loading  atomic.Int64 // number of the batch or group being loaded, or idle
	notices  []string     // of the batch being loaded
}

const idle = -1

// maxNotices bounds the notices in a batch's ack: a trigger may raise one for each row.
const maxNotices = 10

// open connects to the next host.
func (l *opened) open(ctx context.Context, c loader.Contract) (*session, error) {
	st, err := l.State()
	if err != nil {
		return nil, err
	}
	s := &session{owner: l, contract: c, run: st.Want.Run, records: st.Want.Records, statements: l.statements(st)}
	s.loading.Store(idle)
	if err = l.join(ctx, s); err != nil {
		return nil, err
	}
	if err := s.setUp(ctx); err != nil {
		_ = s.Close()
		return nil, failed("set up the session", err)
	}
	return s, nil
}

// dialSession connects a session to the next host. Nobody asks for a while, and the last session may be the last that
// the server lets in.
func (l *opened) dialSession(ctx context.Context, s *session) (err error) {
	_ = l.spare.drop()
	notice := func(_ *pgconn.PgConn, n *pgconn.Notice) { s.addNotice(n.Severity, n.Message) }
	s.wire, _, err = l.dial(ctx, l.hosts.Turn(), notice)
	s.conn, s.load = conn{PgConn: s.wire}, s.loadIn
	return err
}

// setUp registers the session's process before it takes the run's name: a Resolve in between would end a session of the
// run that it does not know.
func (s *session) setUp(ctx context.Context) error {
	if s.options.NonTransactional {
		if _, err := s.conn.Exec(ctx, nonTransactional); err != nil {
			return err
		}
	}
	if s.contract.Dedup != loader.DedupNone && s.flavour != redshift { // otherwise Resolve ends no sessions
		found, err := sqlload.Rows(ctx, s.conn, selectOwnBackend)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return errors.New("pg_stat_activity does not show the session")
		}
		s.backend = backend{pid: found[0][0], started: found[0][1]}
		s.owner.mu.Lock()
		s.owner.sessions[s] = struct{}{}
		s.owner.mu.Unlock()
	}
	if s.records {
		if _, err := s.conn.Exec(ctx, recordSettings+sessionSettings(s.owner.target.Settings)); err != nil {
			return err
		}
	}
	if s.ahead && s.contract.Dedup == loader.DedupTx {
		if _, err := s.conn.Exec(ctx, s.prepareClaim()); err != nil {
			return err
		}
	}
	_, err := s.conn.Exec(ctx, nameSession(s.run, s.owner.shard()))
	return err
}

func (s *session) addNotice(severity, message string) {
	if len(s.notices) < maxNotices {
		s.notices = append(s.notices, severity+": "+message)
	}
}

// Load implements loader.Session.
func (s *session) Load(ctx context.Context, b *batch.Batch) (ack loader.Ack, err error) {
	end, err := s.begin(ctx, b)
	if err != nil {
		return ack, err
	}
	defer end()
	if s.contract.Dedup == loader.DedupTx {
		ack, err = sqlload.LoadBatch(ctx, s, b)
	} else {
		ack.Rows, _, err = s.rows(ctx, b)
	}
	if err != nil {
		return loader.Ack{}, s.wrapError(ctx, ofRecord(b, err))
	}
	ack.Detail = s.notices
	return ack, nil
}

// begin begins a load of a batch, until end is called.
func (s *session) begin(ctx context.Context, b *batch.Batch) (end func(), err error) {
	if s.conn.IsClosed() {
		return nil, errDead()
	}
	if err := ctx.Err(); err != nil {
		return nil, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	s.notices = nil
	s.loading.Store(b.ID.Number)
	return func() { s.loading.Store(idle) }, nil
}

// Sift implements loader.Sifter. Constraints that would wait for the commit are checked with each part.
func (s *session) Sift(ctx context.Context, b *batch.Batch, load loader.PutParts) (ack loader.Ack, err error) {
	end, err := s.begin(ctx, b)
	if err != nil {
		return ack, err
	}
	defer end()
	judge := func(ctx context.Context, part *batch.Batch, err error) error {
		return s.wrapError(ctx, ofRecord(part, err))
	}
	sifting := sqlload.Sifting{
		Session: s, Conn: s.conn, Put: s.rows, Judge: judge, Begin: "SET CONSTRAINTS ALL IMMEDIATE", Release: true,
		Again: func(ref loader.Ref) (unclaim, claim string) {
			return s.DeleteClaim(ref.ID.Run, ref.ID.Number), s.InsertClaim(ref)
		},
	}
	ack, err = sifting.Sift(ctx, b, load)
	if err != nil {
		return loader.Ack{}, s.wrapError(ctx, err)
	}
	ack.Detail = s.notices
	return ack, nil
}

// copyContext finds line and column in the context of an error: COPY orders, line 3, column total: "x". Its words are
// in the server's language.
var copyContext = regexp.MustCompile(`(?m)^COPY [^\n]*?, [^,:\d]* ?(\d+)(?:, [^,:\s]+ ([^:\n]+))?(?::|$)`)

// ofRecord adds to an error about a batch of a user's file which record it is about, if the server says it. What helps
// is in the server's words.
func ofRecord(b *batch.Batch, err error) error {
	server := (*pgconn.PgError)(nil)
	if b.Layout == nil || !errors.As(err, &server) {
		return err
	}
	at := copyContext.FindStringSubmatch(server.Where)
	if at == nil {
		return err
	}
	line, _ := strconv.ParseInt(at[1], 10, 64)
	return &loader.RecordError{Line: line, Column: at[2], Err: err}
}

// Claim implements sqlload.Transaction. A commit group needs a transaction without claims as well: it is loaded whole.
func (s *session) Claim(ctx context.Context, ref loader.Ref) (sent sqlload.Sent, err error) {
	if s.contract.Dedup != loader.DedupTx {
		_, err = s.conn.Exec(ctx, "BEGIN")
		return sqlload.Sent{Claimed: err == nil}, err
	}
	statement := claim(s.Statements, ref)
	if s.flavour == redshift {
		found, err := lockAndSelectClaim(ctx, s.conn, s.Statements, ref)
		if err != nil {
			return sent, err
		}
		if len(found) > 0 {
			rows, err := claimedRows(found, nil)
			return sqlload.Sent{Taken: err == nil, Rows: rows}, err
		}
		statement = s.InsertClaim(ref)
	}
	n, err := s.conn.Exec(ctx, statement)
	if is(err, "23505") {
		return s.taken(ctx, ref)
	}
	if err != nil {
		return sent, err
	}
	return sqlload.Sent{Claimed: n == 1}, nil
}

// Send implements sqlload.Session. Claim and rows go in one message, and the data of a COPY behind it: the batch is
// sent and dropped if the claim fails.
func (s *session) Send(ctx context.Context, ref loader.Ref, b *batch.Batch) (sent sqlload.Sent, err error) {
	if !s.ahead {
		return sqlload.ClaimThen(s, func(ctx context.Context) (int64, []string, error) { return s.rows(ctx, b) })(ctx, ref)
	}
	a := s.load(ctx, s.claimAndLoad(ref, s.contract.Format, b.Layout), b)
	sent.Claimed, sent.Rows = a.count(0) == 1, a.count(1)
	if len(a.rows) > 0 && !sent.Claimed { // whatever became of the rows, which are rolled back
		return sqlload.Sent{}, nil
	}
	if !sent.Claimed && is(a.err, "23505") {
		return s.taken(ctx, ref)
	}
	return sent, a.err
}

// taken reads the claim that exists. The failed transaction answers no query.
func (s *session) taken(ctx context.Context, ref loader.Ref) (sent sqlload.Sent, err error) {
	found, err := sqlload.Rows(ctx, s.conn, "ROLLBACK; "+s.SelectClaim(ref.ID.Run, ref.ID.Number))
	sent.Rows, err = claimedRows(found, err)
	sent.Taken = err == nil
	return sent, err
}

// WhyNot implements sqlload.Transaction.
func (s *session) WhyNot(ctx context.Context) error { return s.owner.WhyNot(ctx) }

// claimedRows returns the rows of the claim that SelectClaim has found.
func claimedRows(found [][]string, err error) (int64, error) {
	if err == nil && len(found) == 0 {
		err = sqlload.ErrClaimVanished
	}
	if err != nil {
		return 0, err
	}
	return sqlload.ParseNumber(found[0][0])
}

// rows sends the batch. Notices are no reason to give it up, so it returns no warnings.
func (s *session) rows(ctx context.Context, b *batch.Batch) (rows int64, warnings []string, err error) {
	a := s.load(ctx, s.statements.load(s.contract.Format, b.Layout, s.contract.Dedup), b)
	return a.count(0), nil, a.err
}

// Commit implements sqlload.Transaction. The server answers COMMIT of a failed transaction with ROLLBACK and no error.
// What a deferred constraint refuses is certainly not applied.
func (s *session) Commit(ctx context.Context) error {
	tag, err := s.conn.commit(ctx)
	if err != nil {
		if loader.Judge(err, faultOf).Class == loader.ClassConstraint {
			return &loader.Error{Op: "commit", Applied: loader.No, Err: err}
		}
		return err
	}
	if tag != "COMMIT" {
		return &loader.Error{Op: "commit", Applied: loader.No, Err: fmt.Errorf("the server answered %s", tag)}
	}
	return nil
}

// Rollback implements sqlload.Transaction. It works when ctx has ended.
func (s *session) Rollback(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loader.ConnectTimeout)
	defer cancel()
	_, err := s.conn.Exec(ctx, "ROLLBACK")
	return err
}

// Close ends the connection.
func (s *session) Close() error {
	s.unregister()
	return s.conn.Close()
}

// unregister removes the session from those that Resolve spares.
func (s *session) unregister() {
	s.owner.mu.Lock()
	defer s.owner.mu.Unlock()
	delete(s.owner.sessions, s)
}

// wrapError adds the end of the context, a hint and, for a COPY in several transactions, "unknown" to the error of an
// attempt. It closes the socket of a connection that pgconn has given up.
func (s *session) wrapError(ctx context.Context, err error) error {
	e := describe("load", err)
	if ended := ctx.Err(); ended != nil && !errors.Is(e, ended) {
		e.Err = fmt.Errorf("%w: %w", ended, e.Err)
	}
	if known := (*loader.RecordError)(nil); errors.As(err, &known) {
		e.Err, e.Hint = &loader.RecordError{Line: known.Line, Column: known.Column, Err: e.Err}, ""
	}
	if !s.owner.Caps().Atomic {
		e.Applied = loader.Unknown
	}
	if s.conn.IsClosed() {
		s.unregister()
		closeSocket(s.wire)
	}
	return e
}
