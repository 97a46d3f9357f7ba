package doris

import (
	"slices"
	"sync"
)

// Kind is what a request is.
type Kind string

// The kinds of request a script is asked about.
const (
	Redirect  Kind = "redirect"  // a stream load at the frontend
	Load      Kind = "load"      // a stream load at a backend
	Statement Kind = "statement" // a statement over MySQL's protocol
)

// Request is one request as its head tells it; bodies are not kept.
type Request struct {
	Kind     Kind
	Database string // of a load, or the statement's current one
	Table    string // of a load
	Label    string // of a load, or of INSERT … WITH LABEL; empty where the client sent none
	Attempt  int    // 1, 2, …: requests of the same kind and label; without a label, of the same kind, database and table
	Bytes    int64  // Content-Length (-1: chunked), or the statement's length
	Backend  int    // which backend a load went to
	Header   map[string]string
	SQL      string // the statement, cut to its first 4 KiB
}

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	// Hold delays the request until the channel is closed: the frontend's answer, or a backend before it reads the body.
	Hold <-chan struct{}
	// CutBody ends the connection after so many bytes of the body were read, before anything is committed; a statement
	// with it is not run at all.
	CutBody int64
	// CutAnswer does the work, then ends the connection instead of answering.
	CutAnswer bool
	// Linger is CutAnswer with the outcome left open: the transaction stays in PREPARE until the channel says whether it
	// is committed (true) or aborted (false, or closed).
	Linger <-chan bool
	// Truncate does the work and sends half of the answer's JSON as if it were all of it.
	Truncate bool
	// Fail reads the body and answers Status Fail with this message, nothing applied; a statement gets error 1105.
	Fail string
	// RefuseEarly answers Fail without reading the body and resets the connection, as a backend does that has seen enough.
	RefuseEarly string
	// HTTPStatus answers with this status and nothing else: 401, 503.
	HTTPStatus int
	// Existing answers Label Already Exists in this state (RUNNING, FINISHED, PRECOMMITTED …) without looking at the label.
	Existing string
	// PublishTimeout commits, answers Publish Timeout, and makes the rows visible when the channel is closed.
	PublishTimeout <-chan struct{}
	// HTTPS makes the frontend send the client to its https port, as enable_https does.
	HTTPS bool
	// NoGroup loads without group commit where it was asked for, silently.
	NoGroup bool
	// LoseWAL acknowledges an async_mode load and loses its rows.
	LoseWAL bool
	// Label replaces the load's label.
	Label string
}

// Messages of Doris that clients have to tell apart, for Fault.Fail.
const (
	// TooManyVersions is compaction that cannot follow: fewer and larger loads are the cure, a retry helps.
	TooManyVersions = "[E-235]failed to init rowset builder. version count: 2001, exceed limit: 2000, tablet: 10017"
	// TooManyFiltered is bad data: no retry helps.
	TooManyFiltered = "[DATA_QUALITY_ERROR]too many filtered rows"
	// NoBackend is a cluster without a backend for loads.
	NoBackend = "[INTERNAL_ERROR]errCode = 2, detailMessage = No backend load available or there is no available BE"
)

// log numbers the requests and asks the script.
type log struct {
	script   func(Request) Fault
	mu       sync.Mutex
	attempts map[[4]string]int
	requests []Request
}

func newLog(script func(Request) Fault) *log {
	return &log{script: script, attempts: map[[4]string]int{}}
}

func (l *log) ask(r Request) Fault {
	key := [4]string{string(r.Kind), r.Label}
	if r.Label == "" {
		key = [4]string{string(r.Kind), "", r.Database, r.Table}
	}
	l.mu.Lock()
	l.attempts[key]++
	r.Attempt = l.attempts[key]
	l.requests = append(l.requests, r)
	l.mu.Unlock()
	return l.script(r)
}

func (l *log) all() []Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}
