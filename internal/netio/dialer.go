// Package netio opens the connections of all back-ends: one place sets keep-alives and time limits, counts what the
// sockets took, and measures what they waited for.
package netio

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// unacknowledged is how long data may stay unacknowledged before the kernel closes the connection. By default a server
// that is gone holds a worker for a quarter of an hour. It is more than the 90 s for which a PostgreSQL session waits for a
// lock: the kernel also counts the time in which a server that is there reads nothing.
const unacknowledged = 100 * time.Second

// Dialer opens TCP and Unix connections and keeps an account of them. The zero value is ready to use. Buffer sizes are the
// kernel's: SO_SNDBUF would end its autotuning.
type Dialer struct {
	sent atomic.Int64

	mu     sync.Mutex
	routes map[string]*route
	open   map[*conn]struct{}
	dials  map[*dial]struct{}
	closed event.Sockets // the account of connections that are closed
}

// dial is a connection that is being opened.
type dial struct {
	since time.Time
	route *route
}

// DialContext opens a connection and keeps its account.
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
	d.closed.RoundTrips += min(took, begun.route.roundTrip()).Seconds()
	if err != nil {
		return nil, err
	}
	d.closed.Dialled++
	made := newConn(d, begun.route, c)
	d.open[made] = struct{}{}
	return made, nil
}

func (d *Dialer) begin(network, address string) *dial {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open, d.dials, d.routes = make(map[*conn]struct{}), make(map[*dial]struct{}), make(map[string]*route)
	}
	r := d.routes[network+" "+address]
	if r == nil {
		r = new(route)
		d.routes[network+" "+address] = r
	}
	begun := &dial{since: time.Now(), route: r}
	d.dials[begun] = struct{}{}
	return begun
}

// Sent returns the bytes that all connections have written, with protocol overhead and TLS.
func (d *Dialer) Sent() int64 { return d.sent.Load() }

// Sockets returns the account of all connections, open and closed, with waits that go on. It takes a system call of about
// a microsecond for each open connection.
func (d *Dialer) Sockets() event.Sockets {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := d.closed
	all.Open = int64(len(d.open))
	var smoothed time.Duration
	var known int
	for c := range d.open {
		k, ok := c.sample()
		c.addTo(&all)
		if ok {
			known++
			smoothed += k.smoothed
			all.DeliveryRate = max(all.DeliveryRate, k.deliveryRate)
		}
	}
	if known > 0 {
		all.RTT = (smoothed / time.Duration(known)).Seconds()
	}
	for _, r := range d.routes {
		if shortest := r.kernel.Load(); shortest > 0 {
			all.Kernel = true
			if all.MinRTT == 0 || seconds(shortest) < all.MinRTT {
				all.MinRTT = seconds(shortest)
			}
		}
	}
	for b := range d.dials {
		waited := time.Since(b.since)
		all.Awaited += waited.Seconds()
		all.RoundTrips += min(waited, b.route.roundTrip()).Seconds()
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
	c.sample()
	c.addTo(&d.closed)
}

// route is what is known of the route to one address. It is safe for concurrent use.
type route struct {
	kernel   atomic.Int64 // shortest round trip of TCP, in nanoseconds; 0: none
	question atomic.Int64 // shortest time from a small question to its answer, in nanoseconds; 0: none
}

// small is how many bytes a question may have to measure the round trip: it takes the server next to no time.
const small = 4 << 10

// roundTrip returns the shortest time in which an answer can come; 0: not known. TCP's round trip ends at a proxy; a
// question goes all the way, but takes the server some time.
func (r *route) roundTrip() time.Duration {
	return time.Duration(max(r.kernel.Load(), r.question.Load()))
}

// lower sets a shortest time that to is below.
func lower(shortest *atomic.Int64, to time.Duration) {
	for {
		now := shortest.Load()
		if to <= 0 || now > 0 && now <= int64(to) || shortest.CompareAndSwap(now, int64(to)) {
			return
		}
	}
}
