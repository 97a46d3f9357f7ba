// Package databend is a stand-in for a Databend node, for tests of what no real server can be made to do on demand: faults by
// script, kills, labels, loads that begin late. It evaluates no SQL: it knows the statements that terapush sends by their shapes,
// refuses every other, and keeps rows by their numbers.
//
// What it does was read in the server's source (databend 43b24ec0, src/query/service/src/servers/http/v1). As there, a
// deduplicate label is looked up before a statement runs and written when it commits, with nothing held in between: of two
// statements with one label that overlap, both commit. A streaming load whose connection breaks commits the rows that have
// arrived. A query outlives its client until it ends or is killed; killed, it changes nothing.
package databend

import (
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// Options describe a server, whose user is root without a password. The zero value has streaming loads and no presigned
// URLs.
type Options struct {
	Version     string              // 1.2.895 if empty
	Presign     bool                // whether the storage has presigned URLs; they lead to the server itself
	NoStreaming bool                // an older server: /v1/streaming_load answers 404
	Schemas     []rows.Schema       // of tables that are none of a dataset
	Script      func(Request) Fault // says what goes wrong; it is called from several goroutines
}

// Kind is what a request asks for.
type Kind string

// The kinds.
const (
	Stream  Kind = "streaming_load"
	Insert  Kind = "insert" // of an attached file
	Copy    Kind = "copy"
	Delete  Kind = "delete"
	Upload  Kind = "upload_to_stage"
	Put     Kind = "put" // to a presigned URL
	Presign Kind = "presign"
	Page    Kind = "page"
	Kill    Kind = "kill"    // by the query's id, or KILL QUERY
	Control Kind = "control" // every other statement
)

// Request is a request that the server has understood.
type Request struct {
	Kind         Kind
	SQL, QueryID string
	Label        string // of a page and a kill the query's id, of an upload the file's place
	Attempt      int    // counts the requests of this kind with this label, from 1
}

// Fault is what goes wrong with one request; the zero value is nothing. Fields may be combined.
type Fault struct {
	Refuse   int             // the HTTP status of a refusal before the body is read; nothing is applied
	Fail     int             // the code of a statement that fails, once its body was read; nothing is applied
	Cut      bool            // the connection breaks before the statement commits, which it does nevertheless
	Starting bool            // the first answer has no result, only the address of the next page
	Late     <-chan struct{} // until it is closed a streaming load stays in the socket: its head was read, and it is not listed
	Hold     <-chan struct{} // until it is closed a statement waits between the look at its label and its commit
	Linger   bool            // the statement runs although the server has agreed to kill it: it was committing already
}

// Server is a running stand-in. It is safe for concurrent use.
type Server struct {
	*httptest.Server
	options Options
	shapes  []shape
	closed  func()
	closing chan struct{}

	mu       sync.Mutex
	tables   map[string]*table // by database.table
	labels   map[string]bool
	files    map[string][]byte // of the user's stage, by path
	queries  map[string]*query // of /v1/query, by id
	running  map[string]*query // by session: system.processes
	attempts map[string]int
	requests []Request
	made     int // tables so far: their ids
}

// table is a table, with the names of the files that COPY has loaded.
type table struct {
	*standin.Table
	id     int
	loaded map[string]bool
}

// Start serves on a loopback port until Close.
func Start(o Options) *Server {
	o.Version = cmp.Or(o.Version, "1.2.895")
	s := &Server{
		options: o, shapes: shapes(), closing: make(chan struct{}), tables: make(map[string]*table), labels: make(map[string]bool),
		files: make(map[string][]byte), queries: make(map[string]*query),
		running: make(map[string]*query), attempts: make(map[string]int),
	}
	s.closed = sync.OnceFunc(func() { close(s.closing) })
	s.Server = httptest.NewServer(s)
	return s
}

// Close kills every query and stops the server. It may be called twice.
func (s *Server) Close() {
	s.closed()
	s.Server.Close()
}

// Addr is host:port.
func (s *Server) Addr() string { return s.Listener.Addr().String() }

// Rows returns a table's rows in the order of their arrival; nil if there is no such table.
func (s *Server) Rows(name string) []standin.Row {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.tables[qualified(name)]; t != nil {
		return append([]standin.Row{}, t.Rows...)
	}
	return nil
}

// Insert puts rows into a table as another client would.
func (s *Server) Insert(name string, more ...[]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, err := s.table(name)
	if err != nil {
		return err
	}
	for _, values := range more {
		row, rowErr := t.Row(values)
		err = errors.Join(err, rowErr)
		t.Rows = append(t.Rows, row)
	}
	return err
}

// Files lists the paths of the files in the user's stage.
func (s *Server) Files() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.files))
}

// Requests returns what was asked so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Count is how many requests of a kind there were.
func (s *Server) Count(k Kind) (n int) {
	for _, r := range s.Requests() {
		if r.Kind == k {
			n++
		}
	}
	return n
}

// Running lists the ids of the queries that are running.
func (s *Server) Running() (ids []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, q := range s.running {
		ids = append(ids, q.id)
	}
	return ids
}

// ServeHTTP implements http.Handler with the routes of a node.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, presignedPath) {
		s.servePresigned(w, r)
		return
	}
	user, password, ok := r.BasicAuth()
	if !ok || user != "root" || password != "" {
		refuse(w, http.StatusUnauthorized, 5100, "AuthenticateFailure: wrong user or password")
		return
	}
	id, what, ofQuery := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/query/"), "/")
	switch {
	case r.URL.Path == "/v1/query":
		s.serveQuery(w, r)
	case r.URL.Path == "/v1/upload_to_stage":
		s.serveUpload(w, r)
	case r.URL.Path == "/v1/streaming_load" && !s.options.NoStreaming:
		s.serveStream(w, r)
	case ofQuery && strings.HasPrefix(r.URL.Path, "/v1/query/"):
		s.serveStarted(w, r, id, what)
	default:
		refuse(w, http.StatusNotFound, http.StatusNotFound, "no such route")
	}
}

// next notes a request and returns its fault. refused reports whether it was answered already.
func (s *Server) next(w http.ResponseWriter, r Request) (f Fault, refused bool) {
	s.mu.Lock()
	key := string(r.Kind) + " " + r.Label
	s.attempts[key]++
	r.Attempt = s.attempts[key]
	s.requests = append(s.requests, r)
	s.mu.Unlock()
	if s.options.Script != nil {
		f = s.options.Script(r)
	}
	if f.Refuse == 0 {
		return f, false
	}
	refuse(w, f.Refuse, f.Refuse, "refused by the script")
	return f, true
}

func newID() string { return strings.ToLower(rand.Text()) }

func refuse(w http.ResponseWriter, status, code int, message string) {
	send(w, status, map[string]any{"error": map[string]any{"code": code, "message": message}})
}

func send(w http.ResponseWriter, status int, body any) {
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // maps and texts
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}

// cut breaks the connection without an answer.
func cut(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = connection.Close()
}
