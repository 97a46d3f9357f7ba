package network

import (
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// conn is a connection with its account.
type conn struct {
	net.Conn
	dialer  *Dialer
	way     *way
	account account
	writer  writer
	raw     syscall.RawConn // nil where the system has none
}

func newConn(d *Dialer, w *way, c net.Conn) *conn {
	made := &conn{Conn: c, dialer: d, way: w, account: account{made: time.Now(), local: stays(c)}}
	if sys, ok := c.(syscall.Conn); ok {
		made.raw, _ = sys.SyscallConn() // an error leaves it nil: then less is told
	}
	made.writer = newWriter(made)
	return made
}

func (c *conn) Write(p []byte) (int, error) {
	c.account.beginWrite()
	n, err := c.writer.write(p)
	c.account.endWrite(int64(n))
	c.dialer.sent.Add(int64(n))
	return n, err
}

// WriteBuffers writes all buffers with as few system calls as the kernel allows. It consumes b.
func (c *conn) WriteBuffers(b *net.Buffers) (int64, error) {
	c.account.beginWrite()
	n, err := c.writer.writeBuffers(b)
	c.account.endWrite(n)
	c.dialer.sent.Add(n)
	return n, err
}

func (c *conn) Read(p []byte) (int, error) {
	since := c.account.now()
	c.account.reading.Store(since)
	n, err := c.Conn.Read(p)
	c.account.reading.Store(0)
	if n > 0 {
		c.answered(since)
	}
	return n, err
}

func (c *conn) Close() error {
	c.dialer.bury(c)
	return c.Conn.Close()
}

// SyscallConn lets drivers look at the socket, for their check whether an idle connection is still alive.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

// answered counts what a Read brought, begun at since. Of an answer the kernel is asked how long ago it sent the last of
// the question: a system call a turn.
func (c *conn) answered(since int64) {
	var out time.Duration
	if c.raw != nil && c.account.asked.Load() {
		if k, ok := ask(c.raw); ok {
			out = k.sent
		}
	}
	c.account.answered(since, out, c.way)
}

// stays tells whether both ends of a connection are on this machine.
func stays(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, both := c.RemoteAddr().(*net.TCPAddr)
	return ok && both && (remote.IP.IsLoopback() || remote.IP.Equal(local.IP))
}

// look asks the kernel about the connection and keeps what it says in the account. Only the dialer calls it, one at a
// time.
func (c *conn) look() (kernel, bool) {
	if c.raw == nil {
		return kernel{}, false
	}
	k, ok := ask(c.raw)
	if ok {
		c.account.kernel = k
		shorten(&c.way.kernel, k.shortest)
	}
	return k, ok
}

// account is how a connection spent its time. Reads and writes may come from two goroutines, as of an HTTP transport;
// the sampler is a third. Times are nanoseconds since the connection was made, and 0 is never.
type account struct {
	made  time.Time
	local bool

	reading    atomic.Int64 // since when a Read waits
	writing    atomic.Int64 // since when a Write goes on
	blocked    atomic.Int64 // since when it waits for room
	wrote      atomic.Int64 // when the last one began, and then when it ended
	asked      atomic.Bool  // something was written since the last answer
	unanswered atomic.Int64 // bytes of that

	totals sync.Mutex
	spent  event.Sockets // Blocked, Awaited, Turns, RoundTrips and Out

	kernel kernel // of the newest look; the dialer's
}

func (a *account) now() int64 { return int64(time.Since(a.made)) + 1 }

// beginWrite notes a question before it is out: a quick server answers, and the other goroutine reads that, before
// endWrite.
func (a *account) beginWrite() {
	now := a.now()
	a.wrote.Store(now)
	a.writing.Store(now)
	a.asked.Store(true)
}

func (a *account) endWrite(n int64) {
	a.unanswered.Add(n)
	a.wrote.Store(a.now())
	a.writing.Store(0)
}

// waits notes that a Write waits for room from now on, goesOn that it does no more.
func (a *account) waits() { a.blocked.Store(a.now()) }

func (a *account) goesOn() {
	since := a.blocked.Swap(0)
	if since == 0 {
		return
	}
	a.totals.Lock()
	defer a.totals.Unlock()
	a.spent.Blocked += seconds(a.now() - since)
}

// answered counts a Read, begun at since, that brought something. It waited from then on, or from the last write where
// that came later: an HTTP transport always reads. The kernel sent the last data of the question when out was left of
// that. It counts in ticks of its clock, of up to 10 ms, which is right on average.
func (a *account) answered(since int64, out time.Duration, w *way) {
	var waited time.Duration
	if a.writing.Load() == 0 { // else the server speaks while it is spoken to
		waited = time.Duration(max(a.now()-max(since, a.wrote.Load()), 0))
	}
	turn := a.asked.Swap(false)
	a.totals.Lock()
	defer a.totals.Unlock()
	a.spent.Awaited += waited.Seconds()
	if !turn {
		return
	}
	if a.unanswered.Swap(0) <= small {
		shorten(&w.question, waited)
	}
	a.spent.Turns++
	a.spent.Out += out.Seconds()
	a.spent.RoundTrips += min(waited, w.roundTrip()).Seconds()
}

// addTo adds the account to a sum, waits that are going on included.
func (a *account) addTo(all *event.Sockets) {
	a.totals.Lock()
	spent := a.spent
	a.totals.Unlock()
	if since := a.blocked.Load(); since > 0 {
		spent.Blocked += seconds(a.now() - since)
	}
	if reads := a.reading.Load(); reads > 0 && a.asked.Load() && a.writing.Load() == 0 {
		waited := seconds(max(a.now()-max(reads, a.wrote.Load()), 0))
		spent.Awaited += waited
		spent.Out += min(a.kernel.sent.Seconds(), waited)
	}
	all.Blocked += spent.Blocked
	all.Awaited += spent.Awaited
	all.Turns += spent.Turns
	all.Out += spent.Out
	all.RoundTrips += spent.RoundTrips
	all.Busy += a.kernel.busy.Seconds()
	all.RwndLimited += a.kernel.rwndLimited.Seconds()
	all.SndbufLimited += a.kernel.sndbufLimited.Seconds()
	if a.local {
		all.Local += (a.kernel.busy - a.kernel.rwndLimited).Seconds()
	}
	all.Retransmits += a.kernel.retransmits
	all.Segments += a.kernel.segments
}

func seconds(nanoseconds int64) float64 { return time.Duration(nanoseconds).Seconds() }

// kernel is what TCP_INFO tells of a connection.
type kernel struct {
	busy, rwndLimited, sndbufLimited time.Duration
	smoothed, shortest               time.Duration // round trips; shortest is 0 before there was one
	sent                             time.Duration // since the newest segment with data left
	retransmits, segments            int64
	deliveryRate                     int64 // bytes a second
}
