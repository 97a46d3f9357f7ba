package oracle

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// session is one worker's connection.
type session struct {
	*link
	statements
	owner      *opened
	contract   loader.Contract
	binds      *binds
	text       string    // of the INSERT
	prepared   *sql.Stmt // the same for one row at a time; nil before the first
	external   string    // the external table that was made for the session, which Close drops; "" is none
	sent       bool      // rows may have reached the server
	acked      int64     // rows that it has acknowledged
	unmeasured bool      // what the session costs is no part of the run's, or not to be asked
}

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
	k, err := l.dial(ctx, int(l.next.Add(1)-1))
	if err != nil {
		return nil, err
	}
	s := &session{
		link: k, statements: l.statements(st), owner: l, contract: c,
		binds: newBinds(l.client, st.Schema), unmeasured: st.Want.Silent,
	}
	s.text = s.insert()
	if err := s.setUp(ctx); err != nil {
		_ = k.Close()
		return nil, err
	}
	return s, nil
}

// setUp makes the server heed the hint that a method rests on. One that does not know OPTIMIZER_IGNORE_HINTS (before 18c)
// heeds hints anyway.
func (s *session) setUp(ctx context.Context) error {
	if !s.hinted() {
		return nil
	}
	_, err := s.exec(ctx, useHints)
	if s.is(err, codeNoParameter, codeUnsupported) {
		return nil
	}
	if err != nil {
		return failed("set up the session: "+useHints, loader.Mark("set up the session: "+useHints, loader.No, err))
	}
	return nil
}

// Load sends the batch in a transaction that claims it, or without a claim where the contract knows none. There is always
// a transaction, and a commit that is a call of its own: with the order to commit in the call that carries the rows, nobody
// could tell from a lost answer what came of it, and go-ora would leave the good rows of an array that failed to be
// committed by the next call.
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
		ack, err = s.singles(ctx, b)
	} else {
		send := func(ctx context.Context) (int64, []string, error) { return s.rows(ctx, b) }
		ack, err = sqlload.Load(ctx, s, loader.RefOf(b), b.Wanted(), send)
	}
	if err != nil {
		return loader.Ack{}, s.explain(err)
	}
	s.acked += b.Wanted()
	return ack, nil
}

// Claim implements sqlload.Transaction. Where the contract knows no claims it only begins the transaction.
func (s *session) Claim(ctx context.Context, ref loader.Ref) (taken bool, rows int64, err error) {
	if s.contract.Dedup != loader.DedupTx {
		return false, 0, s.begin(ctx)
	}
	if taken, err = s.insertClaim(ctx, s.statements, ref); taken {
		rows, err = sqlload.Number(ctx, s, s.SelectClaim(ref.ID.Run, ref.ID.Number))
	}
	return taken, rows, err
}

// Commit implements sqlload.Transaction. Most errors leave open what the server did; some say that it rolled back.
func (s *session) Commit(ctx context.Context) error {
	err := s.commit(ctx)
	number, said := numberOf(err)
	if errors.Is(err, errNotSent) || said && rolledBack(number) {
		return &loader.Error{Op: "commit", Applied: loader.No, Err: err}
	}
	return err
}

// Rollback implements sqlload.Transaction.
func (s *session) Rollback(ctx context.Context) error { return s.rollback(ctx) }

// columns are the batch's, of which nothing is kept behind done.
func (s *session) columns(b *batch.Batch) (c *batch.Columns, done func(), err error) {
	if c, err = b.Columns(s.Schema); err != nil {
		return nil, nil, &bindError{err.Error()}
	}
	return c, func() {
		s.binds.release()
		_ = c.Close()
	}, nil
}

// rows sends the wanted rows into the open transaction, by the method.
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
	for i := c.From; i < c.Rows && err == nil; i++ {
		var n int64
		n, err = s.row(ctx, c, i)
		rows += n
	}
	return rows, nil, err
}

// array sends all wanted rows in one call, which parses the statement each time. A prepared one would be cheaper by a soft
// parse, and is not safe with go-ora: it executes it again by a shorter message, which has no room for more than 65535
// rows and writes a number beyond all the same, and which leaves out that the good rows are to be kept, so that the same
// array would fail in two ways. For thousands of rows the parse is nothing.
func (s *session) array(ctx context.Context, c *batch.Columns) (int64, error) {
	args, err := s.binds.arrays(c)
	if err != nil {
		return 0, err
	}
	s.sent = true
	defer s.passes(c, c.Rows)()
	return s.exec(ctx, s.text, args...)
}

// row sends one row by a statement that is prepared once: a single row goes out by go-ora's shorter message as it should.
// After an error it is prepared anew, since what the driver and the server then know of it may differ.
func (s *session) row(ctx context.Context, c *batch.Columns, i int) (int64, error) {
	args, err := s.binds.row(c, i)
	if err != nil {
		return 0, err
	}
	s.sent = true
	defer s.passes(c, i+1)()
	return s.execPrepared(ctx, &s.prepared, s.text, args...)
}

// singles commits every row by itself, in the order of their numbers and by one session, so that what is there after a
// failure is a front part of the batch. Its length is Resolve's to find.
func (s *session) singles(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	c, done, err := s.columns(b)
	if err != nil {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	defer done()
	for i := c.From; i < c.Rows; i++ {
		if err := s.begin(ctx); err != nil {
			return loader.Ack{}, s.partly(ctx, "begin", i-c.From, err)
		}
		n, err := s.row(ctx, c, i)
		if err == nil && n != 1 {
			err = &loader.RowsError{Sent: 1, Acknowledged: n}
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return loader.Ack{}, s.partly(ctx, "load", i-c.From, err)
		}
		if err := s.commit(ctx); err != nil {
			return loader.Ack{}, s.partly(ctx, "commit", i-c.From, err)
		}
	}
	return loader.Ack{Rows: b.Wanted()}, nil
}

// partly is the error of a batch of which some rows are committed.
func (s *session) partly(ctx context.Context, op string, committed int, err error) error {
	_ = s.rollback(ctx)
	if committed > 0 {
		err = fmt.Errorf("%w; %d rows of the batch were committed before", err, committed)
	}
	return &loader.Error{Op: op, Applied: loader.Unknown, Err: err}
}

// passes has the batch know that the rows before this one are sent, as soon as the driver waits for the answer to what it
// sends next; or, by calling what it returns, when there is one, where the driver lets nobody see. Of rows that are sent
// one by one only the last has to be seen at once: that is when a worker waits for nothing else.
func (s *session) passes(c *batch.Columns, row int) (after func()) {
	passed := func() { c.Passed(row) }
	if row == c.Rows && s.onAnswer(passed) {
		return func() {}
	}
	return passed
}

// explain adds to a failed attempt what is known here. Rows of an array that Fast Ingest cut short may be there.
func (s *session) explain(err error) error {
	err = failed("load", err)
	if unbound := (*bindError)(nil); !s.owner.Caps().Atomic && !errors.As(err, &unbound) {
		return leaveOpen(err)
	}
	return err
}

// leaveOpen takes back what an error may say about the rows of a batch.
func leaveOpen(err error) error {
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		known.Applied = loader.Unknown
	}
	return err
}

// Close asks what the session has cost, and ends the connection.
func (s *session) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), connectPatience)
	defer cancel()
	_ = s.rollback(ctx)
	if s.external != "" && !s.dead {
		_, _ = s.exec(ctx, dropExternal(s.external))
	}
	s.owner.settle(ctx, s)
	return s.link.Close()
}
