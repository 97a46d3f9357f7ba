// Package sink holds what the sinks share: servers that speak the loading side of a database's protocol, count what
// arrives and keep nothing. With one in place of a database, a run measures the client and the way there alone.
//
// A sink often runs beside the client on the same cores, so it spends as little as it can on a byte: it counts rows
// where they lie in one big buffer, and with NoCount the kernel drops the data unread. Whatever a client sends, a sink
// answers with an error or closes the connection. An idle connection takes a few KiB, one that loads 256 KiB more, and
// a statement its own length, which is at most 256 MiB.
package sink

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// ErrTold fails a load for Options.Fail. Each protocol has its own message for it, with an error after which clients
// retry.
var ErrTold = errors.New("terapush sink: this load fails because the sink was told to fail some")

// Options of a sink; the zero value counts truthfully, is as fast as it can and accepts every client.
type Options struct {
	// NoCount drops load data inside the kernel, to measure the fastest that a client can send. The rows acknowledged
	// are then 0, or bytes / RowBytes, which is the truth only if all rows have that size. Connections with TLS have
	// to be read all the same, and rows of an INSERT are counted, since its end has to be found.
	NoCount bool
	// RowBytes is the size of a row in load data, in bytes. It is not looked at without NoCount.
	RowBytes int64
	// ReadRate is how many bytes a second a sink reads of each connection; 0 is no limit.
	ReadRate int64
	// AckDelay passes between the end of a load and its answer. Other statements are answered at once.
	AckDelay time.Duration
	// Fail is n where every n-th load, counted over the whole server, ends with ErrTold; 0 fails none.
	Fail int64
	// CRC makes a checksum of the data, which takes time. It needs counting.
	CRC bool
	// TLS has a certificate for those clients that want to encrypt. nil offers none.
	TLS *tls.Config
}

// Name returns what a server must have somewhere in its version, so that a report shows what the rows were pushed into.
func (o *Options) Name() string {
	if o.NoCount {
		return loader.NoCountMark
	}
	return loader.SinkMark
}

// Stats is what a sink has taken in since it was opened.
type Stats struct {
	Connections int64 `json:"connections"` // accepted, those that ended included
	Statements  int64 `json:"statements"`
	Bytes       int64 `json:"bytes"` // of acknowledged loads and inserts, without what the protocol adds
	Rows        int64 `json:"rows"`  // acknowledged; a later rollback does not take them back
	// Failed is how many loads failed for Options.Fail.
	Failed int64 `json:"failed,omitempty"`
	// CRC is the CRC-32C of every acknowledged load's data, all of them combined with exclusive or, as eight
	// hexadecimal digits: the order of the loads does not matter, and two equal loads cancel each other. "" where it
	// was not asked for.
	CRC string `json:"crc32c,omitempty"`
}

// Counters adds up the Stats of all connections.
type Counters struct {
	connections, statements, bytes, rows atomic.Int64
	loads, failed                        atomic.Int64
	crc                                  atomic.Uint32
	withCRC                              bool
	// Unix nanoseconds: when the first load began, when the last one was answered.
	first, last atomic.Int64
}

// loaded counts what a load or insert brought.
func (c *Counters) loaded(bytes, rows int64) {
	c.bytes.Add(bytes)
	c.rows.Add(rows)
	c.last.Store(time.Now().UnixNano())
}

// begin notes when the first load began.
func (c *Counters) begin() {
	if c.first.Load() == 0 {
		c.first.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// sum adds a load's checksum.
func (c *Counters) sum(crc uint32) {
	for {
		old := c.crc.Load()
		if c.crc.CompareAndSwap(old, old^crc) {
			return
		}
	}
}

// Stats reads the counters one by one: exact when nothing is under way.
func (c *Counters) Stats() Stats {
	s := Stats{
		Connections: c.connections.Load(),
		Statements:  c.statements.Load(),
		Bytes:       c.bytes.Load(),
		Rows:        c.rows.Load(),
		Failed:      c.failed.Load(),
	}
	if c.withCRC {
		s.CRC = fmt.Sprintf("%08x", c.crc.Load())
	}
	return s
}

// Busy returns the time between the beginning of the first load and the end of the last one, pauses included.
func (c *Counters) Busy() time.Duration {
	return max(0, time.Duration(c.last.Load()-c.first.Load()))
}
