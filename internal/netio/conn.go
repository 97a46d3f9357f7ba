package netio

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// conn is a connection with an account of how it spent its time. Reads and writes may come from two goroutines, as with
// an HTTP transport; the sampler is a third. Times are nanoseconds since the connection was opened, and 0 is never.
type conn struct {
	net.Conn
	dialer *Dialer
	route  *route
	writer writer
	raw    syscall.RawConn // nil where the system has none
	opened time.Time
	local  bool // both ends are on this machine

	reading    atomic.Int64 // since when a Read waits
	writing    atomic.Bool  // a Write runs
	blocked    atomic.Int64 // since when a Write waits for room
	wrote      atomic.Int64 // when the last Write ended
	asked      atomic.Bool  // something was written since the last answer
	unanswered atomic.Int64 // bytes of that

	mu    sync.Mutex
	spent event.Sockets // Blocked, Awaited, Turns, RoundTrips and Out

	kernel tcpInfo // the newest sample; the dialer's
}

func newConn(d *Dialer, r *route, c net.Conn) *conn {
	made := &conn{Conn: c, dialer: d, route: r, opened: time.Now(), local: bothLocal(c)}
	if sys, ok := c.(syscall.Conn); ok {
		made.raw, _ = sys.SyscallConn() // after an error the kernel is not asked
	}
	made.writer.conn = made
	return made
}

// bothLocal reports whether both ends of a connection are on this machine.
func bothLocal(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, both := c.RemoteAddr().(*net.TCPAddr)
	return ok && both && (remote.IP.IsLoopback() || remote.IP.Equal(local.IP))
}

func (c *conn) Write(p []byte) (int, error) {
	c.beginWrite()
	n, err := c.writer.write(p)
	c.endWrite(int64(n))
	return n, err
}

// WriteBuffers writes all buffers with as few system calls as the kernel allows. It consumes b.
func (c *conn) WriteBuffers(b *net.Buffers) (int64, error) {
	c.beginWrite()
	n, err := c.writer.writeBuffers(b)
	c.endWrite(n)
	return n, err
}

// beginWrite notes a request before it is sent: the answer may be read by another goroutine before endWrite.
func (c *conn) beginWrite() {
	c.writing.Store(true) // first: a Read that sees the request must not count a wait from before it
	c.asked.Store(true)
}

func (c *conn) endWrite(n int64) {
	c.unanswered.Add(n)
	c.wrote.Store(c.now())
	c.writing.Store(false)
	c.dialer.sent.Add(n)
}

func (c *conn) Read(p []byte) (int, error) {
	since := c.now()
	c.reading.Store(since)
	n, err := c.Conn.Read(p)
	c.reading.Store(0)
	switch {
	case n > 0:
		c.answered(since)
	case err != nil && c.asked.Load():
		// No answer: the server has closed the connection, or a deadline has passed. The wait was counted while it went
		// on; without this the sum over all connections would fall, and hide what the others have waited meanwhile.
		waited := c.waited(since)
		out := min(c.sinceSent(waited, c.unanswered.Load()), waited)
		c.add(event.Sockets{Awaited: waited.Seconds(), Out: out.Seconds()})
	}
	return n, err
}

func (c *conn) Close() error {
	c.dialer.remove(c)
	return c.Conn.Close()
}

// SyscallConn returns the socket, for drivers that check whether an idle connection is still open.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

func (c *conn) now() int64 { return int64(time.Since(c.opened)) + 1 }

// block notes that a Write waits for room. One that is woken and finds no room is still blocked.
func (c *conn) block() { c.blocked.CompareAndSwap(0, c.now()) }

func (c *conn) unblock() {
	if since := c.blocked.Swap(0); since > 0 {
		c.add(event.Sockets{Blocked: seconds(c.now() - since)})
	}
}

// waited returns how long a Read that began at since has waited: from then on, or from the last write where that came
// later, since an HTTP transport always reads. During a write nothing counts: the server may answer meanwhile.
func (c *conn) waited(since int64) time.Duration {
	if c.writing.Load() {
		return 0
	}
	return time.Duration(max(c.now()-max(since, c.wrote.Load()), 0))
}

// answered counts a Read, begun at since, that returned data. It ends a turn if something was written since the last
// answer. The kernel's clock has ticks of up to 10 ms, so Out is right on average.
func (c *conn) answered(since int64) {
	waited := c.waited(since)
	spent := event.Sockets{Awaited: waited.Seconds()}
	if c.asked.Swap(false) {
		question := c.unanswered.Swap(0)
		if question <= small {
			lower(&c.route.question, waited)
		}
		spent.Turns, spent.Out = 1, c.sinceSent(waited, question).Seconds()
		spent.RoundTrips = min(waited, c.route.roundTrip()).Seconds()
	}
	c.add(spent)
}

// clockTick is the longest tick of the kernel's clock.
const clockTick = 10 * time.Millisecond

// sinceSent returns how much of a wait came after the kernel had sent the last byte of the question. To ask it is a
// system call a turn, of one or two microseconds. A small question fits into every first window and goes out at once,
// so it need not be asked about one that was answered quickly; of those there may be tens of thousands a second.
func (c *conn) sinceSent(waited time.Duration, question int64) time.Duration {
	switch {
	case c.raw == nil:
		return 0
	case question <= small && waited < clockTick:
		return waited
	}
	k, _ := readInfo(c.raw)
	return k.sent
}

// sample asks the kernel about the connection. Only the dialer calls it, under its lock.
func (c *conn) sample() (tcpInfo, bool) {
	if c.raw == nil {
		return tcpInfo{}, false
	}
	k, ok := readInfo(c.raw)
	if ok {
		c.kernel = k
		lower(&c.route.kernel, k.shortest)
	}
	return k, ok
}

func (c *conn) add(more event.Sockets) {
	c.mu.Lock()
	defer c.mu.Unlock()
	add(&c.spent, more)
}

func add(sum *event.Sockets, more event.Sockets) {
	sum.Blocked += more.Blocked
	sum.Awaited += more.Awaited
	sum.Turns += more.Turns
	sum.Out += more.Out
	sum.RoundTrips += more.RoundTrips
}

// addTo adds the account to a sum, with waits that go on.
func (c *conn) addTo(all *event.Sockets) {
	c.mu.Lock()
	spent := c.spent
	c.mu.Unlock()
	if since := c.blocked.Load(); since > 0 {
		spent.Blocked += seconds(c.now() - since)
	}
	if since := c.reading.Load(); since > 0 && c.asked.Load() {
		waited := c.waited(since)
		spent.Awaited += waited.Seconds()
		spent.Out += min(c.kernel.sent, waited).Seconds()
	}
	add(all, spent)
	k := c.kernel
	all.Busy += k.busy.Seconds()
	all.RwndLimited += k.rwndLimited.Seconds()
	all.SndbufLimited += k.sndbufLimited.Seconds()
	if c.local {
		all.Local += (k.busy - k.rwndLimited).Seconds()
	}
	all.Retransmits += k.retransmits
	all.Segments += k.segments
}

func seconds(nanoseconds int64) float64 { return time.Duration(nanoseconds).Seconds() }

// tcpInfo is a part of the TCP_INFO of a connection.
type tcpInfo struct {
	busy, rwndLimited, sndbufLimited time.Duration
	smoothed, shortest               time.Duration // round trips; shortest is 0 before there was one
	sent                             time.Duration // since the newest segment with data was sent
	retransmits, segments            int64
	deliveryRate                     int64 // bytes a second
}
