// Package oracle is a stand-in for Oracle Database, made for the tests of a back-end that no server can be had for: a
// driver of package database/sql, and an in-memory server that it speaks to over a network connection, in a protocol of
// its own. So the connection can be cut, stalled or closed as a real one can, and so can the server.
//
// It is strict: SQL that it does not know is a syntax error and never skipped, a number that is read without TO_CHAR
// comes back as a float64, and binds that a real driver would misread are refused. What it claims to know is what the
// tests need: transactions with row and table locks, keys, checks and lengths, array binds in both drivers' modes,
// direct path, Fast Ingest, the views of the dictionary that a loader asks, and DBMS_CLOUD's external tables.
package oracle

import (
	"context"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options say what the server is like. The zero value is a current one without faults.
type Options struct {
	// Script is asked before every statement and every transaction boundary what goes wrong with it; nil is nothing.
	Script func(Statement) Fault
	// BatchErrors is go-ora's way with arrays: the good rows of one that fails stay in the transaction, and the answer is
	// ORA-24381. Otherwise, as with godror, the server stops at the first bad row, and the rows before it stay.
	BatchErrors bool
	// Cancels makes the driver end a call whose context ends, as godror does. Otherwise it ignores contexts, as go-ora is
	// made to: then only closing the network connection ends a call.
	Cancels bool
	// User is whom connections log on as; "" is TERA.
	User string
	// Owner is whose tables all of them are; "" is User.
	Owner string
	// Taken are names that tables cannot have, with the type of what has them; "" is something that nobody is shown.
	Taken map[string]string
	// Version is what product_component_version says; "" is 23.0.0.0.0.
	Version string
	// CharacterSet is NLS_CHARACTERSET; "" is AL32UTF8.
	CharacterSet string
	// NumericCharacters is NLS_NUMERIC_CHARACTERS of new sessions; "" is ".,".
	NumericCharacters string
	// Standard is MAX_STRING_SIZE=STANDARD: 4000 bytes a VARCHAR2 and 2000 a RAW.
	Standard bool
	// IgnoreHints is the default of OPTIMIZER_IGNORE_HINTS, which an Autonomous Database has on.
	IgnoreHints bool
	// Lacks names session parameters that this server does not know.
	Lacks []string
	// Denied gives the error codes of what this user may not do, by the name of a view, a package or a privilege
	// ("CREATE TABLE", "WRITES_FLUSH").
	Denied map[string]int
	// Views are the rows of dictionary views that say something else than those of a new database, by the view's name.
	Views map[string][][]any
	// Objects reads an object that an external table names.
	Objects func(uri string) ([]byte, error)
	// DrainRows is how many rows of the memory of Fast Ingest are written whenever somebody asks how far that is; 0 is
	// none, so that only a flush writes them.
	DrainRows int
	// IdleBlocker is MAX_IDLE_BLOCKER_TIME: a session that holds a lock others wait for, and that waits for its client,
	// is ended after so long. 0 is never.
	IdleBlocker time.Duration
	// NoFastIngest makes the hint MEMOPTIMIZE_WRITE a hint only: rows go in conventionally, and silently.
	NoFastIngest bool
}

// Error is an answer of the server.
type Error struct {
	Code  int
	Text  string // without the code
	First *Error // of ORA-24381: the first row's, which go-ora reports in its place
}

// Error is the server's words.
func (e *Error) Error() string { return fmt.Sprintf("ORA-%05d: %s", e.Code, e.Text) }

func ora(code int, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// Server is a database in this process.
type Server struct {
	options  Options
	listener net.Listener
	log      log
	serving  sync.WaitGroup

	store
}

// Start serves on a loopback port until Close.
func Start(o Options) (*Server, error) {
	if o.User == "" {
		o.User = "TERA"
	}
	if o.Owner == "" {
		o.Owner = o.User
	}
	if o.Version == "" {
		o.Version = "23.0.0.0.0"
	}
	if o.CharacterSet == "" {
		o.CharacterSet = "AL32UTF8"
	}
	if o.Script == nil {
		o.Script = func(Statement) Fault { return Fault{} }
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{options: o, listener: l, log: log{script: o.Script}}
	s.start()
	s.serving.Go(s.accept)
	return s, nil
}

// Address is where the server listens.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends every session and whatever they wait for.
func (s *Server) Close() {
	_ = s.listener.Close()
	s.mu.Lock()
	if !s.closed {
		close(s.stop)
	}
	s.closed = true
	s.endSessions()
	s.mu.Unlock()
	s.serving.Wait()
}

// Crash ends every session and loses what lies in the memory of Fast Ingest, as a server does that is killed. It serves
// again at once.
func (s *Server) Crash() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool = nil
	s.endSessions()
	for x := range s.open {
		x.rollback()
	}
}

// Log lists every statement and every transaction boundary so far, in the order the server took them.
func (s *Server) Log() []Statement { return s.log.all() }

// SetScript replaces the script from the next statement on.
func (s *Server) SetScript(script func(Statement) Fault) {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	s.log.script = script
}

// Sessions counts the connections that are open, as the server sees it.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.sessions)
}

// Keys counts how often each value of a table's first column is committed. Numbers are decimal digits.
func (s *Server) Keys(name string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	if t := s.tables[name]; t != nil {
		for _, r := range t.rows {
			if r.visible(nil) {
				counts[text(r.values[0])]++
			}
		}
	}
	return counts
}

// Rows counts a table's committed rows.
func (s *Server) Rows(name string) int {
	n := 0
	for _, times := range s.Keys(name) {
		n += times
	}
	return n
}

// Open counts the transactions that are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

func (s *Server) accept() {
	for {
		c, err := s.listener.Accept()
		if err != nil {
			return
		}
		s.serving.Go(func() { s.serve(c) })
	}
}

// counter counts what a session has received.
type counter struct {
	net.Conn
	received int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.received += int64(n)
	return n, err
}
