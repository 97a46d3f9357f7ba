// Package network opens the connections of all back-ends, so that one place sets keep-alives and time limits, counts
// what the sockets really took, and measures what they waited for.
package network

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// unacknowledged is how long the kernel keeps data that the server does not acknowledge before it closes the connection.
// Without it a vanished server holds a worker for the kernel's quarter of an hour.
const unacknowledged = 60 * time.Second

// Dialer opens TCP and Unix connections and keeps an account of them. The zero value works. Buffer sizes are left to the
// kernel: SO_SNDBUF would switch its autotuning off.
type Dialer struct {
	sent atomic.Int64

	mu     sync.Mutex
	ways   map[string]*way
	open   map[*conn]struct{}
	dials  map[*dial]struct{}
	closed event.Sockets // the account of connections that are closed
}

// dial is a connection being made.
type dial struct {
	since time.Time
	way   *way
}

// DialContext connects; the dialer keeps the account of the connection.
func (d *Dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	plain := net.Dialer{
		Timeout:         10 * time.Second,
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 5 * time.Second, Count: 6},
		Control:         control,
	}
	begun := d.begin(network, address)
	c, err := plain.DialContext(ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.dials, begun)
	took := time.Since(begun.since)
	d.closed.Awaited += took.Seconds()
	d.closed.Turns++
	d.closed.RoundTrips += min(took, begun.way.roundTrip()).Seconds()
	if err != nil {
		return nil, err
	}
	d.closed.Dialled++
	made := newConn(d, begun.way, c)
	d.open[made] = struct{}{}
	return made, nil
}

func (d *Dialer) begin(network, address string) *dial {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open, d.dials, d.ways = make(map[*conn]struct{}), make(map[*dial]struct{}), make(map[string]*way)
	}
	w := d.ways[network+" "+address]
	if w == nil {
		w = new(way)
		d.ways[network+" "+address] = w
	}
	begun := &dial{since: time.Now(), way: w}
	d.dials[begun] = struct{}{}
	return begun
}

// Sent returns how many bytes all connections have handed to the kernel, protocol overhead and TLS included.
func (d *Dialer) Sent() int64 { return d.sent.Load() }

// Sockets returns the account of all connections, open and closed. Waits under way count up to now. It takes about a
// microsecond and a system call for each open connection.
func (d *Dialer) Sockets() event.Sockets {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.closed
	all.Open = int64(len(d.open))
	var smoothed time.Duration
	var known int
	for c := range d.open {
		k, ok := c.look()
		c.account.addTo(&all)
		if ok {
			known++
			smoothed += k.smoothed
			all.DeliveryRate = max(all.DeliveryRate, k.deliveryRate)
		}
	}
	if known > 0 {
		all.RTT = (smoothed / time.Duration(known)).Seconds()
	}
	for _, w := range d.ways {
		if shortest := w.kernel.Load(); shortest > 0 {
			all.Kernel = true
			if all.MinRTT == 0 || time.Duration(shortest).Seconds() < all.MinRTT {
				all.MinRTT = time.Duration(shortest).Seconds()
			}
		}
	}
	for b := range d.dials {
		waited := time.Since(b.since)
		all.Awaited += waited.Seconds()
		all.RoundTrips += min(waited, b.way.roundTrip()).Seconds()
	}
	return all
}

// remove keeps the account of a connection that is about to be closed.
func (d *Dialer) remove(c *conn) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, open := d.open[c]; !open {
		return
	}
	delete(d.open, c)
	c.look()
	c.account.addTo(&d.closed)
}

// way is what is known of the route to one address. It is safe for concurrent use.
type way struct {
	kernel   atomic.Int64 // shortest round trip that TCP has seen, in nanoseconds; 0: none
	question atomic.Int64 // shortest time from a small question to its answer, likewise
}

// small is how many bytes a question may have to count as a measurement of the round trip: it is no batch, and takes the
// server next to no time.
const small = 4 << 10

// roundTrip returns the shortest time in which anything can come back, 0 where it is not known. TCP's own is that to
// the next proxy, if there is one; a question goes all the way, but takes the server some time, too.
func (w *way) roundTrip() time.Duration {
	return time.Duration(max(w.kernel.Load(), w.question.Load()))
}

// shorten lowers a shortest time.
func shorten(shortest *atomic.Int64, to time.Duration) {
	for {
		now := shortest.Load()
		if to <= 0 || now > 0 && now <= int64(to) || shortest.CompareAndSwap(now, int64(to)) {
			return
		}
	}
}
