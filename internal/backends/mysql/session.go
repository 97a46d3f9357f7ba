package mysql

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// session is one worker's connection.
type session struct {
	statements
	sqlload.Tx
	owner  *opened
	claims bool  // batches are loaded under a claim; otherwise every statement commits by itself
	id     int64 // the server's number of the connection, for claims
	joined bool  // claim and load go in one message

	conn mysqlconn.Conn
	send func(ctx context.Context, b *batch.Batch) (rows int64, err error) // by the method

	reader string      // name in the driver's registry, which is the process's
	body   *batch.Body // for the registered reader; nil outside loadData and once handed out
	wire   *coalescer  // below conn
}

// open connects to the next host that answers.
func (l *opened) open(ctx context.Context, c loader.Contract) (*session, error) {
	st, err := l.State()
	if err != nil {
		return nil, err
	}
	s := &session{
		statements: l.statements(st), owner: l, claims: c.Dedup == loader.DedupTx, reader: "terapush-" + rand.Text(),
	}
	s.send = s.loadData
	if l.method.Name == methodInsert {
		s.send = s.insert
	}
	err = l.hosts.From(ctx, l.hosts.Turn(), func(ctx context.Context, e endpoint) error {
		return loader.ConnectError(e.config.Addr, s.connect(ctx, e), faultOf)
	})
	if err != nil {
		return nil, err
	}
	mysql.RegisterReaderHandler(s.reader, s.handOut)
	return s, nil
}

const selectConnection = "SELECT CONNECTION_ID()"

func (s *session) connect(ctx context.Context, e endpoint) (err error) {
	config := e.loadingConfig(s.flavour)
	s.joined = s.claims && s.owner.method.Name == methodLoadData && s.flavour.joins()
	config.MultiStatements = s.joined
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		s.wire, _ = c.(*coalescer)
		return c, err
	}
	to := s.owner.connector(config, s.recordSetup())
	if s.conn, err = to.Dial(ctx); err != nil {
		return err
	}
	s.Tx = sqlload.Tx{Conn: s.conn, Taken: mysqlconn.Taken}
	if err := s.prepareClaims(ctx); err != nil {
		_ = s.conn.Close()
		return err
	}
	return nil
}

// prepareClaims finds out who the session is, for claims, and how these begin their transactions.
func (s *session) prepareClaims(ctx context.Context) (err error) {
	if s.claims {
		if s.id, err = sqlload.Number(ctx, s.conn, selectConnection); err != nil {
			return err
		}
	}
	if s.claims && !s.flavour.locksTables() && s.Row.Epoch != "" {
		if err := sqlload.ExecAll(ctx, s.conn, s.insertSession(s.id), "COMMIT"); err != nil {
			return err
		}
	}
	if s.joined {
		_, err := s.conn.Exec(ctx, autocommit(false)+"; "+countRows)
		if !mysqlconn.Answered(err) {
			return err
		}
		s.joined = false // something else that passes for the flavour
	}
	// With autocommit off a claim begins its transaction by itself, which saves START TRANSACTION's round trip.
	_, err = s.conn.Exec(ctx, autocommit(!s.claims))
	return err
}

// Load sends the batch once. A dead connection of its last attempt may keep the claim locked for minutes; the engine
// has Resolve end it before it sends again.
func (s *session) Load(ctx context.Context, b *batch.Batch) (ack loader.Ack, err error) {
	if s.claims {
		ack, err = sqlload.LoadBatch(ctx, s, b)
	} else {
		ack, err = s.loadUnclaimed(ctx, b)
	}
	return ack, ofRecord(b, failed("load", err))
}

// Sift implements loader.Sifter.
func (s *session) Sift(ctx context.Context, b *batch.Batch, load loader.PutParts) (loader.Ack, error) {
	sifting := sqlload.Sifting{
		Session: s, Conn: s.conn, Put: s.rows,
		Judge: func(_ context.Context, part *batch.Batch, err error) error {
			return ofRecord(part, failed("load", err))
		},
		Again: func(ref loader.Ref) (unclaim, claim string) {
			return s.DeleteClaim(ref.ID.Run, ref.ID.Number), s.insertClaim(ref, s.id)
		},
	}
	ack, err := sifting.Sift(ctx, b, load)
	return ack, failed("load", err)
}

// atRow finds the record at the end of an error or a warning: Incorrect integer value: 'x' for column `d`.`t`.`a` at
// row 3. A value, which comes before, may say the same.
var atRow = regexp.MustCompile("(?:column '?(?:`[^`]*`\\.)*`?([^`']+)`?'? )?at row (\\d+)\\s*$")

// ofRecord adds to an error about a batch of a user's file which record it is about, if the server says it.
func ofRecord(b *batch.Batch, err error) error {
	if err == nil || b.Layout == nil {
		return err
	}
	counted := (*loader.RowsError)(nil)
	if !errors.As(err, &counted) {
		if e := recordIn(err.Error()); e != nil {
			e.Err = err
			return e
		}
		return err
	}

	var all []*loader.RecordError
	for _, text := range counted.Detail {
		if e := recordIn(text); e != nil {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return err
	}
	first := *all[0]
	first.Err, first.More = err, all
	return &first
}

// recordIn finds the record in the text of an error or a warning, nil if there is none.
func recordIn(text string) *loader.RecordError {
	at := atRow.FindStringSubmatch(text)
	if at == nil {
		return nil
	}
	record, _ := strconv.ParseInt(at[2], 10, 64)
	return &loader.RecordError{Record: record, Column: at[1], Err: errors.New(text)}
}

// loadUnclaimed sends the rows and reads the warnings if rows are missing, and always after LOAD DATA LOCAL, which
// turns bad values into warnings; an INSERT fails at them in the strict sql_mode. The rows are committed by then, so
// warnings are for the report.
func (s *session) loadUnclaimed(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	rows, err := s.send(ctx, b)
	switch {
	case err != nil && !s.owner.caps.Atomic: // the part of a failed statement stays in such a table
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.Unknown, Err: err}
	case err != nil, rows == b.Rows && s.owner.method.Name == methodInsert:
		return loader.Ack{Rows: rows}, err
	}
	warnings, err := s.warnings(ctx, maxWarnings)
	if err != nil {
		warnings = []string{"the server's warnings could not be read: " + loader.Explain(err)}
	}
	return loader.Ack{Rows: rows, Detail: warnings}, nil
}

// Claim inserts the claim row, which begins the transaction. While another session holds the claim uncommitted, the
// server makes this one wait, lockWait at most.
func (s *session) Claim(ctx context.Context, ref loader.Ref) (sqlload.Sent, error) {
	return s.ClaimBy(ctx, s.Statements, ref, tag(ref.ID)+s.insertClaim(ref, s.id))
}

// WhyNot implements sqlload.Transaction.
func (s *session) WhyNot(ctx context.Context) error { return s.owner.WhyNot(ctx) }

// Send implements sqlload.Session. A claim that exists ends the message before LOAD DATA has asked for the rows.
func (s *session) Send(ctx context.Context, ref loader.Ref, b *batch.Batch) (sent sqlload.Sent, err error) {
	if !s.joined {
		return sqlload.ClaimThen(s, func(ctx context.Context) (int64, []string, error) { return s.rows(ctx, b) })(ctx, ref)
	}
	found := warnings{most: s.most(b), of: s.flavour}
	var claims int64
	done := s.lend(b)
	err = s.conn.Query(ctx, s.claimAndLoad(ref, s.id, s.reader, b.Layout), func(row [][]byte) (err error) {
		if len(row) > 2 {
			found.add(row)
			return nil
		}
		if claims, err = sqlload.ParseNumber(string(row[0])); err == nil {
			sent.Rows, err = sqlload.ParseNumber(string(row[1]))
		}
		return err
	})
	sent.Claimed, sent.Warnings = done(), found.texts()
	if err == nil && claims == 0 {
		return sqlload.Sent{}, nil
	}
	if err != nil && err.Error() == "bad connection" {
		err = driver.ErrBadConn // the driver's own, of a write in the middle of the rows, which it translates after Exec alone
	}
	if err == nil || sent.Claimed || !s.Taken(err) {
		return sent, err
	}
	if err = s.Rollback(ctx); err == nil {
		sent.Rows, err = sqlload.Number(ctx, s.conn, s.SelectClaim(ref.ID.Run, ref.ID.Number))
	}
	sent.Taken = err == nil
	return sent, err
}

// rows sends the batch, and reads the warnings.
func (s *session) rows(ctx context.Context, b *batch.Batch) (rows int64, warnings []string, err error) {
	if rows, err = s.send(ctx, b); err != nil {
		return 0, nil, err
	}
	warnings, err = s.warnings(ctx, s.most(b))
	return rows, warnings, err
}

// loadData sends the rows as the answer to the server's request for the reader.
func (s *session) loadData(ctx context.Context, b *batch.Batch) (int64, error) {
	defer s.lend(b)()
	return s.conn.Exec(ctx, tag(b.ID)+s.statements.loadData(s.reader, b.Layout))
}

// lend lets the registered reader hand the batch out until done is called, which reports whether it did.
func (s *session) lend(b *batch.Batch) (done func() bool) {
	body := b.Open()
	s.body = body
	return func() bool {
		handedOut := s.body == nil
		s.body = nil
		_ = body.Close() // the driver has done it if the server asked for the reader
		return handedOut
	}
}

// handOut returns the body once. A server that asks again, or a driver that resends, would get its end or all of it
// again; for nil the driver reports an error. It runs inside ExecContext, on the session's goroutine.
func (s *session) handOut() io.Reader {
	if s.body == nil {
		return nil
	}
	largest := int64(largestPacket)
	if most := s.owner.MaxStatement; most > 0 {
		largest = min(largest, most)
	}
	u := &upload{body: s.body, conn: s.wire, largest: largest}
	s.body = nil
	return u
}

// insert sends the rows in the statement itself.
func (s *session) insert(ctx context.Context, b *batch.Batch) (int64, error) {
	return s.conn.Insert(ctx, tag(b.ID)+s.insertHead(), b)
}

// maxWarnings is the most of the server's warnings in an answer, and maxTold in that of a part, which is for the
// records that they name: as many as a session lets the server keep.
const maxWarnings, maxTold = 5, 10_000

func (s *session) most(b *batch.Batch) int {
	if b.Part {
		return maxTold
	}
	return maxWarnings
}

// warnings reads the warnings of the last statement, without harmless notes. To ask for @@warning_count first is no
// cheaper, and MySQL 9.7, unlike MariaDB, forgets the warnings over that question.
func (s *session) warnings(ctx context.Context, most int) ([]string, error) {
	found := warnings{most: most, of: s.flavour}
	err := s.conn.Query(ctx, "SHOW WARNINGS", func(row [][]byte) error {
		found.add(row)
		return nil
	})
	return found.texts(), err
}

// warnings are the rows of SHOW WARNINGS.
type warnings struct {
	of    flavour
	most  int
	first []string
	more  int
}

// cutOff is the number of a note with which MySQL 9.7 makes 1.00 of the text 1,000.50 for a DECIMAL. It says the same
// of digits that the column has no room for, so those are refused with it. MariaDB has a warning for the former.
const cutOff = "1265"

// add takes a row: level, number, message.
func (w *warnings) add(row [][]byte) {
	switch {
	case string(row[0]) == "Note" && (w.of != mySQL || string(row[1]) != cutOff):
	case len(w.first) < w.most:
		w.first = append(w.first, fmt.Sprintf("%s %s: %s", row[0], row[1], row[2]))
	default:
		w.more++
	}
}

func (w *warnings) texts() []string {
	if w.more > 0 {
		return append(w.first, fmt.Sprintf("%d more, perhaps not all: the server keeps max_error_count of them", w.more))
	}
	return w.first
}

// Close closes the connection; a second Close does nothing.
func (s *session) Close() error {
	mysql.DeregisterReaderHandler(s.reader)
	return s.conn.Close()
}

// tag precedes a batch's statements, so that a process list shows their run, and Resolve finds the sessions of a dead
// process.
func tag(id batch.ID) string {
	return fmt.Sprintf("/* terapush run=%s batch=%d */ ", id.Run, id.Number)
}
