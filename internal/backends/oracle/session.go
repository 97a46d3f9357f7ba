package oracle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// session is one worker's connection.
type session struct {
	*conn
	statements
	owner      *opened
	contract   loader.Contract
	binds      *binds
	text       string    // of the INSERT
	prepared   *sql.Stmt // the INSERT for one row at a time; nil before the first
	sent       bool      // rows may have reached the server
	acked      int64     // rows acknowledged by the server
	unmeasured bool      // what the session costs is not part of the run's cost
}

// open connects to the next host.
func (l *opened) open(ctx context.Context, c loader.Contract) (*session, error) {
	st, err := l.State()
	if err != nil {
		return nil, err
	}
	k, err := l.dial(ctx, l.hosts.Turn())
	if err != nil {
		return nil, err
	}
	s := &session{
		conn: k, statements: l.statements(st), owner: l, contract: c,
		binds: newBinds(l.client, st.Schema), unmeasured: st.Want.Silent,
	}
	s.text = s.insert()
	if s.hint() == "" {
		return s, nil
	}
	// Servers before 18c do not have the parameter, and obey hints.
	if err := s.setUp(ctx, useHints); err != nil && !is(err, codeNoParameter, codeUnsupported) {
		_ = k.Close()
		return nil, err
	}
	return s, nil
}

// Load sends the batch in a transaction, with a claim if the contract has claims. COMMIT is always a call of its own:
// if the driver ordered the commit with the rows, a lost answer would be undecidable, and go-ora would leave the good
// rows of a failed array to be committed by the next call.
func (s *session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.dead {
		return loader.Ack{}, errDead()
	}
	if err := ctx.Err(); err != nil {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	var ack loader.Ack
	var err error
	if s.method == methodSingle {
		ack, err = s.loadSingly(ctx, b)
	} else {
		ack, err = sqlload.LoadBatch(ctx, s, b)
	}
	if err != nil {
		return loader.Ack{}, s.wrapError(err)
	}
	s.acked += b.Rows
	return ack, nil
}

// Claim implements sqlload.Transaction. Without claims in the contract it only begins the transaction.
func (s *session) Claim(ctx context.Context, ref loader.Ref) (sqlload.Sent, error) {
	if s.contract.Dedup != loader.DedupTx {
		err := s.begin(ctx)
		return sqlload.Sent{Claimed: err == nil}, err
	}
	s.unmeasured = s.unmeasured || ref.ID.Number == sqlload.Probe
	return s.insertClaim(ctx, s.statements, ref)
}

// WhyNot implements sqlload.Transaction.
func (s *session) WhyNot(ctx context.Context) error { return s.owner.WhyNot(ctx) }

// Commit implements sqlload.Transaction. Most errors leave the outcome unknown; some mean that the server rolled back.
func (s *session) Commit(ctx context.Context) error {
	err := s.commit(ctx)
	number, ok := errorNumber(err)
	if errors.Is(err, errNotSent) || ok && rolledBack(number) {
		return &loader.Error{Op: "commit", Applied: loader.No, Err: err}
	}
	return err
}

// Rollback implements sqlload.Transaction.
func (s *session) Rollback(ctx context.Context) error { return s.rollback(ctx) }

// columns returns the batch's columns. No reference to them is left after done.
func (s *session) columns(b *batch.Batch) (c *batch.Columns, done func(), err error) {
	if c, err = b.Columns(s.Schema); err != nil {
		return nil, nil, &bindError{err.Error()}
	}
	if err := s.binds.check(c); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, func() {
		s.binds.release()
		_ = c.Close()
	}, nil
}

// Send implements sqlload.Session.
func (s *session) Send(ctx context.Context, ref loader.Ref, b *batch.Batch) (sqlload.Sent, error) {
	return sqlload.ClaimThen(s, func(ctx context.Context) (int64, []string, error) { return s.rows(ctx, b) })(ctx, ref)
}

// rows sends the rows by the method.
func (s *session) rows(ctx context.Context, b *batch.Batch) (rows int64, _ []string, err error) {
	c, done, err := s.columns(b)
	if err != nil {
		return 0, nil, err
	}
	defer done()
	if s.method != methodSingle && s.method != methodBatch {
		rows, err = s.array(ctx, c)
		return rows, nil, err
	}
	for i := 0; i < c.Rows && err == nil; i++ {
		var n int64
		n, err = s.row(ctx, c, i)
		rows += n
	}
	return rows, nil, err
}

// array sends all rows in one call, without a prepared statement: go-ora executes one again by a shorter
// message, which overflows above 65535 rows and does not ask for the good rows to be kept, so that the same array would
// fail in two ways. A soft parse is negligible beside thousands of rows.
func (s *session) array(ctx context.Context, c *batch.Columns) (int64, error) {
	s.sent = true
	defer s.passed(c, c.Rows)()
	return s.exec(ctx, s.text, s.binds.arrays(c)...)
}

// row sends one row by a prepared statement, for which go-ora's shorter message is right.
func (s *session) row(ctx context.Context, c *batch.Columns, i int) (int64, error) {
	s.sent = true
	defer s.passed(c, i+1)()
	return s.execPrepared(ctx, &s.prepared, s.text, s.binds.row(c, i)...)
}

// loadSingly commits every row by itself. A failure leaves the rows before it in the table.
func (s *session) loadSingly(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	c, done, err := s.columns(b)
	if err != nil {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	defer done()
	for i := range c.Rows {
		op, err := s.loadOne(ctx, c, i)
		if err == nil {
			continue
		}
		_ = s.rollback(ctx)
		if i > 0 {
			err = fmt.Errorf("%w; %d rows of the batch were committed before", err, i)
		}
		return loader.Ack{}, &loader.Error{Op: op, Applied: loader.Unknown, Err: err}
	}
	return loader.Ack{Rows: b.Rows}, nil
}

// loadOne commits a row. op is what it was at when it failed.
func (s *session) loadOne(ctx context.Context, c *batch.Columns, row int) (op string, err error) {
	if err := s.begin(ctx); err != nil {
		return "begin", err
	}
	n, err := s.row(ctx, c, row)
	switch {
	case err != nil:
		return "load", err
	case n != 1:
		return "load", &loader.RowsError{Sent: 1, Acknowledged: n}
	case ctx.Err() != nil:
		return "load", ctx.Err()
	}
	return "commit", s.commit(ctx)
}

// passed reports to the batch that all rows before row are sent: when the driver begins to wait for the answer, or,
// where that cannot be observed, when the returned function is called after it. Only for a batch's last row is the
// difference worth it: for the others the worker is not done.
func (s *session) passed(c *batch.Columns, row int) (after func()) {
	report := func() { c.Passed(row) }
	if row == c.Rows && s.onAnswer(report) {
		return func() {}
	}
	return report
}

// wrapError adds operation and hint to the error of a failed attempt. Methods that are not atomic leave it unknown
// whether rows were applied.
func (s *session) wrapError(err error) error {
	err = failed("load", err)
	unbound, known := (*bindError)(nil), (*loader.Error)(nil)
	if !s.owner.Caps().Atomic && !errors.As(err, &unbound) && errors.As(err, &known) {
		known.Applied = loader.Unknown
	}
	return err
}

// Close reads what the session has written and cost, and closes the connection.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), loader.ConnectTimeout)
	defer cancel()
	_ = s.rollback(ctx)
	if s.method == methodFast && s.sent {
		s.owner.addFast(ctx, s)
	}
	if !s.unmeasured {
		s.owner.addCost(ctx, s)
	}
	return s.conn.Close()
}
