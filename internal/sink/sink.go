// Package sink holds what the sinks share: servers that speak the loading side of a database's protocol, count what
// arrives and keep nothing. With one in place of a database, a run measures the client alone.
//
// A sink runs beside the client on the same cores, so it spends as little as it can on a byte: it reads into one big
// buffer, counts rows in place, and where it is told the size of a row it has the kernel drop the data unread.
// Whatever a client sends, a sink answers with an error or hangs up; what it remembers of a connection is bounded.
package sink

import "sync/atomic"

// Answer replies to a query with a result. Not ok leaves the query to the sink: it knows the variables that clients
// probe when they connect, and everything else has an empty result. Of a very long statement it sees the beginning.
type Answer func(sql string) (columns []string, rows [][]string, ok bool)

// Options of a sink; the zero value counts honestly.
type Options struct {
	// Answer is asked first about every statement but loads and inserts. It may be nil, and is called from many
	// goroutines.
	Answer Answer
	// RowBytes is the size of a row in load data, for ceilings: the data is dropped inside the kernel, and the rows
	// acknowledged are bytes / RowBytes, which is the truth only if all rows have that size. 0 looks at the data and
	// counts.
	RowBytes int64
}

// Stats is what a sink has taken in since it was opened.
type Stats struct {
	Connections int64 `json:"connections"` // accepted, those that ended included
	Statements  int64 `json:"statements"`
	Bytes       int64 `json:"bytes"` // of acknowledged loads and inserts, without what the protocol adds
	Rows        int64 `json:"rows"`  // acknowledged; a later rollback does not take them back
}

// Counters adds up the Stats of all connections.
type Counters struct {
	connections, statements, bytes, rows atomic.Int64
}

// Statement counts a statement.
func (c *Counters) Statement() { c.statements.Add(1) }

// Loaded counts what a load or insert brought.
func (c *Counters) Loaded(bytes, rows int64) {
	c.bytes.Add(bytes)
	c.rows.Add(rows)
}

// Stats reads the counters one by one: exact when nothing is under way.
func (c *Counters) Stats() Stats {
	return Stats{
		Connections: c.connections.Load(),
		Statements:  c.statements.Load(),
		Bytes:       c.bytes.Load(),
		Rows:        c.rows.Load(),
	}
}
