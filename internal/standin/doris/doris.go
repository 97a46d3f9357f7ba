// Package doris stands in for an Apache Doris cluster in tests: a frontend that speaks HTTP and the MySQL protocol,
// and backends on addresses of their own, which take stream loads. It is a state machine of labels, transactions,
// group commit and redirects, and fails by script. It keeps rows by their numbers (package standin), knows the
// statements that terapush sends by their shapes, and refuses all others: it evaluates no SQL.
//
// Answers and refusals follow Doris' sources (be/src/service/http/action/stream_load.cpp and stream_load_context.cpp of
// 2026, the frontend's LoadAction) and its documentation, release 3.1 where releases differ.
package doris

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// Options describe a cluster. The zero value is one frontend and one backend, user root without a password.
type Options struct {
	Password string
	Backends int // how many; 1. They listen on 127.0.0.2, 127.0.0.3, …, which Linux has without further set-up
	// Script is asked once for every redirect, load and statement what goes wrong with it; nil is a healthy cluster. It is
	// called from many goroutines at once.
	Script func(Request) Fault
	// Follower makes SHOW LAST INSERT return no row, as on a frontend that forwards the INSERT to the master
	// (apache/doris#26285).
	Follower bool
	// GroupInterval is how long a group commit takes in loads of a table that does not say so itself; 0 is 10 s, as of Doris.
	GroupInterval time.Duration
	// Shows replaces what SHOW statements say: settings by name, and values by column.
	Shows map[string]string
}

// Database is the only one of a cluster.
const Database = "d"

// Cluster is a running stand-in. Its methods may be called at any time.
type Cluster struct {
	SQL, HTTP string   // host:port of the frontend
	Backends  []string // host:port of each backend

	options Options
	http    []*httptest.Server
	sql     *sink.Server
	closing sync.Once
	stop    chan struct{}  // closed by Close: what is held continues
	pending sync.WaitGroup // transactions that wait for a channel

	mu       sync.Mutex // guards all that follows
	tables   map[string]*table
	labels   map[string]*txn // the newest of each
	lastID   int64           // of transactions and partitions
	turn     int             // the backend of the next load
	rejected []string        // why rows were filtered, by the number in ErrorURL
	attempts map[[3]string]int
	requests []Request
	schemas  []rows.Schema // beside those of the built-in datasets
}

// Start starts a cluster. Its ports are chosen by the system.
func Start(o Options) (*Cluster, error) {
	if o.Script == nil {
		o.Script = func(Request) Fault { return Fault{} }
	}
	c := &Cluster{
		options: o, stop: make(chan struct{}), tables: map[string]*table{}, labels: map[string]*txn{},
		attempts: map[[3]string]int{},
	}
	var err error
	c.HTTP, err = c.serve("127.0.0.1", c.frontend())
	for i := 0; i < max(o.Backends, 1) && err == nil; i++ {
		var address string
		// A host of its own: with the frontend's a client would keep its Authorization header over the redirect.
		address, err = c.serve(fmt.Sprintf("127.0.0.%d", 2+i), c.backend(i))
		c.Backends = append(c.Backends, address)
	}
	if err == nil {
		c.sql, err = sink.Listen("127.0.0.1:0", sink.Options{}, c.session)
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("starting the Doris stand-in: %w", err)
	}
	c.SQL = c.sql.Addr()
	return c, nil
}

func (c *Cluster) serve(host string, h http.Handler) (address string, err error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return "", err
	}
	s := httptest.NewUnstartedServer(h)
	_ = s.Listener.Close()
	s.Listener, s.Config.ErrorLog = l, log.New(io.Discard, "", 0)
	s.Start()
	c.http = append(c.http, s)
	return l.Addr().String(), nil
}

// Close ends all connections and returns when nothing of the cluster runs any more.
func (c *Cluster) Close() {
	c.closing.Do(func() { close(c.stop) })
	for _, s := range c.http {
		s.CloseClientConnections()
		s.Close()
	}
	if c.sql != nil {
		_ = c.sql.Close()
	}
	c.pending.Wait()
}

// HTTPPort is the port of HTTP, as ?http_port= takes it.
func (c *Cluster) HTTPPort() string {
	_, port, _ := net.SplitHostPort(c.HTTP)
	return port
}

// Table returns a copy of a table, with its visible rows; an empty one where there is none of that name.
func (c *Cluster) Table(name string) *standin.Table {
	c.mu.Lock()
	defer c.mu.Unlock()
	t, is := c.tables[name]
	if !is {
		return &standin.Table{}
	}
	found := *t.Table
	found.Rows = slices.Clone(t.Rows)
	return &found
}

// Rows returns how many rows of a table are visible.
func (c *Cluster) Rows(name string) int64 { return int64(len(c.Table(name).Rows)) }

// CreateTable makes a table with one bucket and one replica, as somebody else would. properties are written as in
// CREATE TABLE: "name" = "value", ….
func (c *Cluster) CreateTable(name, properties string, columns ...standin.Column) {
	c.mu.Lock()
	defer c.mu.Unlock()
	made := standin.NewTable(name, columns, columns[0].Name)
	made.HoldRowsOf(c.schemas)
	t := &table{Table: made, buckets: 1, properties: readProperties(properties)}
	t.properties["replication_num"] = "1"
	c.add(t)
}

// Know gives the rows of tables with a schema's columns, which are made from now on, their numbers. The latest of several
// counts.
func (c *Cluster) Know(s rows.Schema) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.schemas = slices.Insert(c.schemas, 0, s)
}

// Append puts rows into a table, past all labels.
func (c *Cluster) Append(name string, added ...standin.Row) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[name]
	t.Rows = append(t.Rows, added...)
}

// Remove removes the rows of a number.
func (c *Cluster) Remove(name string, number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tables[name]
	t.Rows = slices.DeleteFunc(t.Rows, func(r standin.Row) bool { return r.Number == number })
}

// ForgetLabels makes the labels of all loads that are over unknown, as time does.
func (c *Cluster) ForgetLabels() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for label, x := range c.labels {
		if x.state == visible || x.state == aborted {
			delete(c.labels, label)
		}
	}
}

// Flush ends the interval of every group commit that is under way: its rows become visible, and its loads are answered.
func (c *Cluster) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, t := range c.tables {
		c.endGroup(t, t.group)
	}
}

// wait returns when the channel is closed, or the cluster.
func (c *Cluster) wait(held <-chan struct{}) {
	if held != nil {
		select {
		case <-held:
		case <-c.stop:
		}
	}
}
