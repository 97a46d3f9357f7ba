// Package oracle is a stand-in for Oracle Database: sessions, transactions, locks, array binds and Fast Ingest as a
// state machine, behind a driver of package database/sql that reaches it over TCP, so that connections can be cut. It
// knows the statements that terapush sends by their shapes, and evaluates no SQL.
package oracle

import (
	"cmp"
	"database/sql"
	"encoding/gob"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// Options say what the server is like. The zero value is a current one without faults.
type Options struct {
	// Script is asked before every request what goes wrong with it; nil is nothing.
	Script func(Request) Fault
	// Native makes driver and server behave as they do with godror: a call ends with its context, and an array stops at
	// its first bad row. Otherwise they behave as with go-ora: only closing the network connection ends a call, and the
	// good rows of an array that fails stay in the transaction (ORA-24381).
	Native bool
	Owner  string // of all tables; "" is the user, TERA
	// Taken are names that tables cannot have, with the type of what has them; "" is something that is not shown.
	Taken        map[string]string
	IgnoreHints  bool // OPTIMIZER_IGNORE_HINTS, which is TRUE on an Autonomous Database
	NoFastIngest bool // rows for Fast Ingest are inserted conventionally, and the server does not say so
	// DrainRows is how many rows in the memory of Fast Ingest are written whenever the applied number is asked for.
	DrainRows int
	// IdleBlocker is MAX_IDLE_BLOCKER_TIME: a session is ended that waits for its client for so long while others wait
	// for its transaction. 0 is never.
	IdleBlocker time.Duration
}

// Requests that are not statements; drivers also send COMMIT and ROLLBACK as statements. LogOff commits what is open.
const (
	Connect  = "CONNECT"
	Commit   = "COMMIT"
	Rollback = "ROLLBACK"
	LogOff   = "LOGOFF"
)

// CommitSent is in the bytes of an order to commit, with its length in front, and in no other request's.
const CommitSent = "\x06" + Commit

// Request is one request as the server received it.
type Request struct {
	Number int    // 1, 2, …: over all sessions
	SQL    string // a statement, or one of the words above
	Binds  []any  // int64, string, []byte, time.Time, or slices of them
	// Explicit reports whether the client has begun a transaction. Changes outside of one are committed at once.
	Explicit bool
}

// Is reports whether the statement contains the text, in any case. The words above must be all of it.
func (r Request) Is(text string) bool {
	switch text {
	case Connect, Commit, Rollback, LogOff:
		return r.SQL == text
	}
	return strings.Contains(strings.ToUpper(r.SQL), strings.ToUpper(text))
}

// Fault is what goes wrong with one request.
type Fault struct {
	Hold             <-chan struct{} // delays the work until the channel is closed
	Fail, FailAnswer *Error          // is answered instead of the work, or after it
	Answer           [][]any         // are the rows of the answer, instead of the work
	Cut, CutAnswer   bool            // ends the session instead of the work, or instead of the answer
	Count            int64           // unless 0, replaces the number of rows in the answer
}

// At returns a script with the fault for the n-th request that Is the text.
func At(text string, n int, f Fault) func(Request) Fault {
	var mu sync.Mutex
	return func(r Request) Fault {
		mu.Lock()
		defer mu.Unlock()
		if r.Is(text) {
			if n--; n == 0 {
				return f
			}
		}
		return Fault{}
	}
}

// Where returns a script with the fault of the text that the request Is.
func Where(faults map[string]Fault) func(Request) Fault {
	return func(r Request) Fault {
		for text, f := range faults {
			if r.Is(text) {
				return f
			}
		}
		return Fault{}
	}
}

// Error is an error of the server.
type Error struct {
	Code  int
	Text  string // without the code
	First *Error // of ORA-24381: that of the first bad row, which go-ora reports in its place
}

// Error returns the server's words.
func (e *Error) Error() string { return fmt.Sprintf("ORA-%05d: %s", e.Code, e.Text) }

// Ora returns the error with a code, and with what the server says besides.
func Ora(code int, details ...any) *Error {
	return &Error{Code: code, Text: cmp.Or(fmt.Sprint(details...), "the server's words")}
}

const user = "TERA"

// Server is a database in this process. Its lock guards everything; a session that waits for another one releases it.
type Server struct {
	options  Options
	listener net.Listener
	serving  sync.WaitGroup
	stop     chan struct{}

	mu       sync.Mutex
	closed   bool
	script   func(Request) Fault
	requests []Request
	tables   map[string]*table
	open     *standin.Transactions
	sessions map[*session]bool
	waiting  int           // sessions that wait for a transaction
	object   int64         // the last table's number
	sequence int64         // the last number of Fast Ingest
	memory   []pooled      // of Fast Ingest, oldest first
	schemas  []rows.Schema // beside those of the built-in datasets, the latest first
}

// Start serves on a loopback port until Close.
func Start(o Options) (*Server, error) {
	if o.Owner == "" {
		o.Owner = user
	}
	for _, bind := range []any{[][]byte{}, []time.Time{}, time.Time{}, []sql.NullInt64{}, sql.NullInt64{}} {
		gob.Register(bind)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{
		options: o, listener: l, stop: make(chan struct{}), tables: make(map[string]*table),
		sessions: make(map[*session]bool),
	}
	s.open = standin.NewTransactions(&s.mu)
	s.SetScript(o.Script)
	s.serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.serving.Go(func() { s.serve(c) })
		}
	})
	return s, nil
}

// Address returns host:port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends every session.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.locked(func() {
		if !s.closed {
			close(s.stop)
		}
		s.closed = true
		s.endSessions()
	})
	s.serving.Wait()
}

// Crash ends every session and loses what is in the memory of Fast Ingest. The server is up again at once.
func (s *Server) Crash() {
	s.locked(func() {
		s.memory = nil
		s.endSessions()
		s.open.RollBack()
	})
}

func (s *Server) endSessions() {
	for x := range s.sessions {
		x.kill()
	}
}

func (s *Server) locked(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// SetScript replaces the script; nil is no faults.
func (s *Server) SetScript(script func(Request) Fault) {
	if script == nil {
		script = func(Request) Fault { return Fault{} }
	}
	s.locked(func() { s.script = script })
}

// Requests returns all requests in the order of their arrival.
func (s *Server) Requests() (all []Request) {
	s.locked(func() { all = slices.Clone(s.requests) })
	return all
}

// Quiet reports whether no connection and no transaction is open.
func (s *Server) Quiet() (quiet bool) {
	s.locked(func() { quiet = len(s.sessions)+s.open.Open() == 0 })
	return quiet
}

// Waiting returns how many sessions wait for another one's transaction.
func (s *Server) Waiting() (n int) {
	s.locked(func() { n = s.waiting })
	return n
}

// Has reports whether there is a table of that name.
func (s *Server) Has(name string) (has bool) {
	s.locked(func() { has = s.tables[name] != nil })
	return has
}

// Counts counts how often each row number is committed in a table.
func (s *Server) Counts(name string) (counts map[int64]int) {
	s.locked(func() {
		if t := s.tables[name]; t != nil {
			counts = t.Counts()
		}
	})
	return counts
}

// Rows counts a table's committed rows.
func (s *Server) Rows(name string) (n int) {
	for _, times := range s.Counts(name) {
		n += times
	}
	return n
}

// Know gives the rows of tables with a schema's columns, which are made from now on, their numbers.
func (s *Server) Know(schema rows.Schema) {
	s.locked(func() { s.schemas = slices.Insert(s.schemas, 0, schema) })
}

// Insert commits a row, as another client would.
func (s *Server) Insert(name string, values []any) error {
	return s.alone(func(x *session) { t := x.table(name); x.put(t, t.complete(values)) })
}

// Run runs an administrator's statements, each in a transaction of its own. The script is not asked.
func (s *Server) Run(statements ...string) error {
	for _, text := range statements {
		err := s.alone(func(x *session) {
			if _, err := x.run(request{SQL: text}); err != nil {
				panic(err)
			}
		})
		if err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// alone works in a transaction of its own.
func (s *Server) alone(work func(*session)) (err error) {
	s.locked(func() {
		x := s.newSession(nil)
		err = try(func() { work(x) })
		x.end(err == nil)
	})
	return err
}

func (s *Server) newSession(c net.Conn) *session {
	ignore := strings.ToUpper(fmt.Sprint(s.options.IgnoreHints))
	return &session{server: s, net: c, settings: map[string]string{"OPTIMIZER_IGNORE_HINTS": ignore}}
}

// ask records a request and returns what goes wrong with it.
func (s *Server) ask(r Request) Fault {
	var script func(Request) Fault
	s.locked(func() {
		r.Number = len(s.requests) + 1
		s.requests = append(s.requests, r)
		script = s.script
	})
	return script(r)
}
