package doris

import (
	"maps"
	"net/http"
	"slices"
	"strings"
)

// Kind is what a request is.
type Kind string

// The kinds of request that a script is asked about.
const (
	Redirect  Kind = "redirect"  // a stream load at the frontend
	Load      Kind = "load"      // a stream load at a backend
	Statement Kind = "statement" // a statement over the MySQL protocol
)

// Request is one request as its head describes it; bodies are not kept.
type Request struct {
	Kind    Kind
	Table   string // of a load, with the database
	Label   string // "" where the client sent none
	Attempt int    // 1, 2, …: requests of the same kind and label, or without a label of the same kind and table
	Bytes   int64  // of the body or the statement; −1 in chunks
	Header  map[string]string
	SQL     string // the statement, cut to its first 4 KiB
}

// Loads reports whether the request carries rows, or names objects with rows.
func (r Request) Loads() bool {
	return r.Kind == Load || r.Kind == Statement && strings.HasPrefix(r.SQL, "INSERT ")
}

// Fault is what goes wrong with one request. The zero value is nothing.
type Fault struct {
	// Hold delays the request until the channel is closed: a statement, or a backend before it reads the body.
	Hold <-chan struct{}
	// Cut closes the connection before anything is done.
	Cut bool
	// CutAnswer does the work, then closes the connection in place of an answer.
	CutAnswer bool
	// Linger is CutAnswer with the outcome left open: the transaction stays in PREPARE until the channel says whether it
	// is committed (true) or aborted (false, or closed).
	Linger <-chan bool
	// Truncate does the work and sends half of the answer's JSON as if it were all of it.
	Truncate bool
	// Fail reads the body and answers Status Fail with this message, nothing applied; a statement gets error 1105.
	Fail string
	// RefuseEarly answers Fail without reading the body and resets the connection.
	RefuseEarly string
	// HTTPStatus answers with this status and nothing else: 401, 503.
	HTTPStatus int
	// Existing answers Label Already Exists in this state (RUNNING, FINISHED, PRECOMMITTED …) without looking at the
	// label.
	Existing string
	// PublishTimeout commits, answers Publish Timeout, and makes the rows visible when the channel is closed.
	PublishTimeout <-chan struct{}
	// NoGroup loads without group commit where it was asked for, silently.
	NoGroup bool
	// LoseWAL acknowledges a load with async_mode and loses its rows.
	LoseWAL bool
	// Label replaces the load's label.
	Label string
}

// Messages of Doris, for Fault.Fail.
const (
	// TooManyVersions is compaction that is behind: fewer and larger loads help, and so does a retry.
	TooManyVersions = "[E-235]failed to init rowset builder. version count: 2001, exceed limit: 2000, tablet: 10017"
	// NoBackend is a cluster without a backend for loads.
	NoBackend = "[INTERNAL_ERROR]errCode = 2, detailMessage = No backend load available or there is no available BE"
)

// ask notes a request and asks the script about it.
func (c *Cluster) ask(r Request) Fault {
	key := [3]string{string(r.Kind), r.Label}
	if r.Label == "" {
		key[2] = r.Table
	}
	c.mu.Lock()
	c.attempts[key]++
	r.Attempt = c.attempts[key]
	c.requests = append(c.requests, r)
	c.mu.Unlock()
	return c.options.Script(r)
}

// askHTTP is ask about a stream load.
func (c *Cluster) askHTTP(kind Kind, r *http.Request) Fault {
	all := map[string]string{"host": r.Host}
	for name, values := range r.Header {
		all[strings.ToLower(name)] = values[0]
	}
	maps.DeleteFunc(all, func(name, _ string) bool { return name == "authorization" })
	table := r.PathValue("db") + "." + r.PathValue("table")
	return c.ask(Request{Kind: kind, Table: table, Label: r.Header.Get("label"), Bytes: r.ContentLength, Header: all})
}

// Requests are the redirects, loads and statements so far, in the order of their arrival.
func (c *Cluster) Requests() []Request {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.requests)
}
