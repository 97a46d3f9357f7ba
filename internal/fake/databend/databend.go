// Package databend is a stand-in for a Databend node: its HTTP handlers over tables in memory, for tests of what no real
// server can be made to do on demand.
//
// It understands the statements that terapush sends, and refuses every other. Loads are parsed here, by nobody's code
// but its own, and the rows are kept, so that a test compares rows and not counts. What the handlers do was read in the
// server's source (databend 43b24ec0, src/query/service/src/servers/http/v1); databend-go tests it.
//
// As on the server a deduplicate label is looked up before a statement runs and written when it commits, with nothing
// held in between: of two statements with one label that overlap, both commit. A streaming load whose connection breaks
// commits the rows that have come. A query outlives its client until it ends or is killed; killed, it changes nothing.
package databend

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Options shape a stand-in. The zero value is a server with user root and no password.
type Options struct {
	User, Password string                           // root without a password if empty
	Version        string                           // 1.2.895 if empty
	MaxRunning     int                              // statements that write at a time; 8 if 0
	LabelTTL       time.Duration                    // how long a label is remembered; 24 h if 0
	Now            func() time.Time                 // the clock that labels expire by; time.Now if nil
	Presign        bool                             // whether the storage knows presigned URLs; they lead to the stand-in itself
	NoStreaming    bool                             // an older server: /v1/streaming_load answers 404
	Object         func(url string) ([]byte, error) // reads an object of an external stage: s3://bucket/key
	// Fault scripts what goes wrong. attempt counts the requests of this kind with this label, from 1; without a label
	// it counts those of the kind. It is called from several goroutines.
	Fault func(kind Kind, label string, attempt int) Fault
}

// Fake is the stand-in. It is an http.Handler, safe for concurrent use.
type Fake struct {
	options Options
	rules   []rule
	slots   chan struct{}
	closed  chan struct{}

	mu       sync.Mutex
	store    store
	queries  map[string]*query
	running  map[string]*query // by session id: system.processes
	attempts map[attemptKey]int
	seen     []Request
}

type attemptKey struct {
	kind  Kind
	label string
}

// Request is one request that was understood, for tests that look at what was sent.
type Request struct {
	Kind       Kind
	SQL, Label string
	QueryID    string
	Header     http.Header // without the credentials
}

// New makes a stand-in with an empty database called default.
func New(o Options) *Fake {
	if o.User == "" {
		o.User = "root"
	}
	if o.Version == "" {
		o.Version = "1.2.895"
	}
	if o.MaxRunning == 0 {
		o.MaxRunning = 8
	}
	if o.LabelTTL == 0 {
		o.LabelTTL = 24 * time.Hour
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Fake{
		options: o, rules: rules(), slots: make(chan struct{}, o.MaxRunning), closed: make(chan struct{}), store: newStore(),
		queries: map[string]*query{}, running: map[string]*query{}, attempts: map[attemptKey]int{},
	}
}

// Close kills every query, so that a server over the stand-in can be closed.
func (f *Fake) Close() { close(f.closed) }

// Rows gives a table's rows in the order of their arrival, by "table" or "database.table"; nil if there is no such
// table. Values are int64, string (also of dates and timestamps, as they were written, and of decimals with all digits of
// their scale) or nil.
func (f *Fake) Rows(name string) [][]any {
	f.mu.Lock()
	defer f.mu.Unlock()
	if t := f.store.tables[qualified(name)]; t != nil {
		return append([][]any{}, t.rows...)
	}
	return nil
}

// Files lists what lies in a stage of the server's own, as paths.
func (f *Fake) Files(stage string) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.store.list(stage, "")
}

// Requests gives what was asked so far.
func (f *Fake) Requests() []Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Request{}, f.seen...)
}

// Running lists the query ids of what is at work.
func (f *Fake) Running() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, q := range f.running {
		ids = append(ids, q.id)
	}
	return ids
}

// ForgetLabel makes a label free again, as the end of its window does.
func (f *Fake) ForgetLabel(label string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.store.labels, label)
}

func qualified(name string) string {
	if !strings.Contains(name, ".") {
		return "default." + name
	}
	return name
}

// ServeHTTP serves the routes of a node.
func (f *Fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-DATABEND-VERSION", f.options.Version)
	if strings.HasPrefix(r.URL.Path, "/presigned/") {
		f.servePresigned(w, r)
		return
	}
	user, password, ok := r.BasicAuth()
	if !ok || user != f.options.User || password != f.options.Password || len(r.Header.Values("Authorization")) != 1 {
		refuse(w, http.StatusUnauthorized, 5100, "AuthenticateFailure: wrong user or password")
		return
	}
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v1/query/"), "/")
	switch {
	case r.URL.Path == "/v1/session/login" && r.Method == http.MethodPost:
		answer(w, map[string]any{"version": f.options.Version, "session_id": newID()})
	case r.URL.Path == "/v1/query" && r.Method == http.MethodPost:
		f.serveQuery(w, r)
	case r.URL.Path == "/v1/upload_to_stage" && r.Method == http.MethodPut:
		f.serveUpload(w, r)
	case r.URL.Path == "/v1/streaming_load" && r.Method == http.MethodPut && !f.options.NoStreaming:
		f.serveStream(w, r)
	case strings.HasPrefix(r.URL.Path, "/v1/query/") && rest != "":
		f.serveOld(w, r, id, rest)
	default:
		refuse(w, http.StatusNotFound, http.StatusNotFound, "no such route")
	}
}

// next notes a request and asks the script about it.
func (f *Fake) next(kind Kind, sql, label, id string, h http.Header) Fault {
	h = h.Clone()
	h.Del("Authorization")
	f.mu.Lock()
	key := attemptKey{kind, label}
	f.attempts[key]++
	n := f.attempts[key]
	f.seen = append(f.seen, Request{Kind: kind, SQL: sql, Label: label, QueryID: id, Header: h})
	f.mu.Unlock()
	if f.options.Fault == nil {
		return Fault{}
	}
	return f.options.Fault(kind, label, n)
}

func newID() string { return strings.ToLower(rand.Text()) }

func answer(w http.ResponseWriter, body any) { send(w, http.StatusOK, body, false) }

func refuse(w http.ResponseWriter, status, code int, message string) {
	send(w, status, map[string]any{"error": map[string]any{"code": code, "message": message}}, false)
}

func send(w http.ResponseWriter, status int, body any, truncated bool) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(body) // maps and strings
	all := text.Bytes()
	if truncated {
		all = all[:len(all)/2]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(all)
}

// cut breaks the connection without an answer.
func cut(w http.ResponseWriter) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_ = connection.Close()
}
