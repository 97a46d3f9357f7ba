// Package doris stands in for an Apache Doris cluster in tests: a frontend that speaks HTTP and MySQL's protocol, and
// backends on addresses of their own, which take stream loads. It parses every row itself and keeps it typed, so that
// a test asserts what arrived, not what was answered.
//
// Answers and refusals follow Doris' source (be/src/service/http/action/stream_load.cpp and stream_load_context.cpp of
// 2026, the frontend's LoadAction) and its documentation, release 3.1 where releases differ. What could not be looked
// up is marked "assumed". What the stand-in does not understand it refuses; it never answers an empty success.
package doris

import (
	"cmp"
	"fmt"
	"net"
	"sync"
	"time"
)

// Options shape a cluster. The zero value is one frontend and one backend, user root without a password.
type Options struct {
	User     string // root
	Password string
	Version  string // 3.1.2
	Backends int    // how many; 1. They listen on 127.0.0.2, 127.0.0.3, …, which Linux has without further set-up
	// LabelLife is how long a label of a finished load is remembered: streaming_label_keep_max_second, 12 hours.
	LabelLife time.Duration
	// Now is the clock that labels age by; time.Now.
	Now func() time.Time
	// Script is asked once for every redirect, load and statement what goes wrong with it; nil is a healthy cluster.
	// It is called from many goroutines at once.
	Script func(Request) Fault
	// Objects reads the object store behind SELECT … FROM S3(…); without it such statements fail.
	Objects Objects
	// Follower answers SHOW LAST INSERT with no row, as a frontend does that has handed the INSERT on to the master
	// (apache/doris#26285).
	Follower bool
	// PlainLocation leaves user and password out of the redirect. Doris puts them in.
	PlainLocation bool
	// ChunkedKeepsLabel is how releases before the table property group_commit_mode (apache/doris#61242, 2026) treat a
	// chunked load without a group_commit header. Later ones drop its label.
	ChunkedKeepsLabel bool
	// Config is what SHOW FRONTEND CONFIG and SHOW BACKEND CONFIG say otherwise than a new cluster: values by name.
	Config map[string]string
	// Backend is what SHOW BACKENDS says otherwise of every backend, and Grants what SHOW GRANTS says otherwise of the
	// user: values by column.
	Backend, Grants map[string]string
	// LabelNeedsOffMode is how the first snapshots with that property treat a label without group_commit: off_mode:
	// they take it for a label with group commit and refuse it. It was repaired later.
	LabelNeedsOffMode bool
}

// Cluster is a running stand-in. All of it is safe for concurrent use.
type Cluster struct {
	options  Options
	store    *store
	log      *log
	frontend *frontend
	mysql    *mysqlServer
	backends []*backend
	stop     chan struct{} // closed by Close: what is held by a fault goes on
	once     sync.Once
}

// Start starts a cluster. Its ports are chosen by the system.
func Start(o Options) (*Cluster, error) {
	o.User = cmp.Or(o.User, "root")
	o.Version = cmp.Or(o.Version, "3.1.2")
	o.Backends = max(o.Backends, 1)
	o.LabelLife = cmp.Or(o.LabelLife, 12*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Script == nil {
		o.Script = func(Request) Fault { return Fault{} }
	}
	c := &Cluster{options: o, stop: make(chan struct{})}
	c.store = newStore(c)
	c.log = newLog(o.Script)
	var err error
	if c.frontend, err = newFrontend(c); err == nil {
		c.mysql, err = newMySQL(c)
	}
	for i := 0; i < o.Backends && err == nil; i++ {
		var b *backend
		if b, err = newBackend(c, i); err == nil {
			c.backends = append(c.backends, b)
		}
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("starting the Doris stand-in: %w", err)
	}
	c.frontend.serve()
	c.mysql.serve()
	for _, b := range c.backends {
		b.serve()
	}
	return c, nil
}

// Close ends all connections and waits until nothing of the cluster runs any more.
func (c *Cluster) Close() {
	c.once.Do(func() {
		close(c.stop)
		if c.frontend != nil {
			c.frontend.close()
		}
		if c.mysql != nil {
			c.mysql.close()
		}
		for _, b := range c.backends {
			b.close()
		}
		c.store.close()
	})
}

// SQLAddress is the host and port of MySQL's protocol.
func (c *Cluster) SQLAddress() string { return c.mysql.listener.Addr().String() }

// HTTPAddress is the host and port of the frontend's HTTP.
func (c *Cluster) HTTPAddress() string { return c.frontend.address() }

// BackendAddresses are the hosts and ports of the backends' HTTP.
func (c *Cluster) BackendAddresses() []string {
	var all []string
	for _, b := range c.backends {
		all = append(all, b.address())
	}
	return all
}

// HTTPPort is the port of HTTPAddress, as ?http_port= takes it.
func (c *Cluster) HTTPPort() string {
	_, port, err := net.SplitHostPort(c.HTTPAddress())
	if err != nil {
		panic(err) // an address of our own listener
	}
	return port
}

// Rows counts the visible rows of a table, given as database.table; 0 where there is no such table.
func (c *Cluster) Rows(table string) int64 { return c.store.rows(table) }

// KeyCounts tells how often every value of the table's first column is there: proof that each row arrived exactly
// once. Values are written as SELECT would.
func (c *Cluster) KeyCounts(table string) map[string]int { return c.store.keyCounts(table) }

// Requests are the redirects, loads and statements so far, in the order of their arrival.
func (c *Cluster) Requests() []Request { return c.log.all() }

// FrontendBodyBytes counts the bytes of bodies that reached the frontend, which nobody reads there: a client that
// sends them wastes the wire, or loses them. It is exact once the client has closed the connection.
func (c *Cluster) FrontendBodyBytes() int64 { return c.frontend.bodyBytes.Load() }

// Flush ends the interval of every group commit that is under way: its rows become visible and its waiting loads are
// answered.
func (c *Cluster) Flush() { c.store.flush() }

// LoseWAL forgets what async_mode has acknowledged and not yet made visible, like the disk of a backend that dies. It
// returns how many rows that were.
func (c *Cluster) LoseWAL() int64 { return c.store.loseWAL() }

// State is a label's state as get_load_state names it: UNKNOWN, PREPARE, PRECOMMITTED, COMMITTED, VISIBLE or ABORTED.
func (c *Cluster) State(database, label string) string { return c.store.labelState(database, label) }

// wait blocks until the channel is closed or the cluster is.
func (c *Cluster) wait(held <-chan struct{}) {
	if held != nil {
		select {
		case <-held:
		case <-c.stop:
		}
	}
}

// Grouped counts the loads that the table's group commit has joined so far and not yet committed.
func (c *Cluster) Grouped(table string) int { return c.store.grouped(table) }
