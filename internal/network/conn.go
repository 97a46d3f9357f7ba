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
	made := &conn{Conn: c, dialer: d, way: w, account: account{made: time.Now(), local: bothLocal(c)}}
	if sys, ok := c.(syscall.Conn); ok {
		made.raw, _ = sys.SyscallConn() // an error leaves it nil: then the kernel is not asked
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
	} else if err != nil {
		c.noAnswer(since)
	}
	return n, err
}

func (c *conn) Close() error {
	c.dialer.remove(c)
	return c.Conn.Close()
}

// SyscallConn returns the socket, for drivers that check whether an idle connection is still alive.
func (c *conn) SyscallConn() (syscall.RawConn, error) {
	return c.Conn.(syscall.Conn).SyscallConn()
}

// answered counts a Read, begun at since, that returned data.
func (c *conn) answered(since int64) {
	waited, turn, asked := c.account.answered(since)
	if turn {
		c.account.turn(waited, c.out(waited, asked), asked, c.way)
	}
}

// clockTick is the longest tick of the kernel's clock: it cannot tell when within it something was sent.
const clockTick = 10 * time.Millisecond

// out returns how much of a wait came after the last of the question had gone out. The kernel is asked when it sent
// that, which is a system call a turn, of one or two microseconds. What is small fits into every first window and goes
// out at once: of a small question that was soon answered nothing has to be asked, and there may be tens of thousands
// a second.
func (c *conn) out(waited time.Duration, asked int64) time.Duration {
	switch {
	case c.raw == nil:
		return 0
	case asked <= small && waited < clockTick:
		return waited
	}
	k, _ := ask(c.raw)
	return k.sent
}

// noAnswer counts a Read, begun at since, that awaited an answer and returned none: the server has closed the
// connection, or a deadline has passed. The wait was counted while it went on. Without this the sum over all
// connections would fall by what may be minutes, and hide what the others have waited meanwhile.
func (c *conn) noAnswer(since int64) {
	if c.account.asked.Load() {
		waited := c.account.waited(since)
		c.account.add(event.Sockets{Awaited: waited.Seconds(), Out: min(c.out(waited, c.account.unanswered.Load()), waited).Seconds()})
	}
}

// bothLocal reports whether both ends of a connection are on this machine.
func bothLocal(c net.Conn) bool {
	local, ok := c.LocalAddr().(*net.TCPAddr)
	remote, both := c.RemoteAddr().(*net.TCPAddr)
	return ok && both && (remote.IP.IsLoopback() || remote.IP.Equal(local.IP))
}

// look asks the kernel about the connection and keeps the answer in the account. Only the dialer calls it, one at a time.
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
	writing    atomic.Int64 // since when a Write is under way
	blocked    atomic.Int64 // since when it waits for room
	wrote      atomic.Int64 // when the last one began, and then when it ended
	asked      atomic.Bool  // something was written since the last answer
	unanswered atomic.Int64 // bytes of that

	totals sync.Mutex
	spent  event.Sockets // Blocked, Awaited, Turns, RoundTrips and Out

	kernel kernel // of the newest look; the dialer's
}

func (a *account) now() int64 { return int64(time.Since(a.made)) + 1 }

// beginWrite notes a request before it is sent: a quick server answers, and the other goroutine reads that, before
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

// waits notes that a Write waits for room from now on. One that is woken and finds no room goes on waiting.
func (a *account) waits() { a.blocked.CompareAndSwap(0, a.now()) }

// goesOn notes that it waits no more.
func (a *account) goesOn() {
	since := a.blocked.Swap(0)
	if since == 0 {
		return
	}
	a.add(event.Sockets{Blocked: seconds(a.now() - since)})
}

// waited returns how long a Read that began at since has waited by now: from then on, or from the last write where
// that came later, since an HTTP transport always reads. While a write is under way nothing counts as waiting: the server
// may answer meanwhile.
func (a *account) waited(since int64) time.Duration {
	if a.writing.Load() != 0 {
		return 0
	}
	return time.Duration(max(a.now()-max(since, a.wrote.Load()), 0))
}

// answered counts a Read, begun at since, that returned data. It ends a turn if something was written since the last
// answer: asked bytes of it.
func (a *account) answered(since int64) (waited time.Duration, turn bool, asked int64) {
	waited = a.waited(since)
	if turn = a.asked.Swap(false); turn {
		asked = a.unanswered.Swap(0)
	}
	a.add(event.Sockets{Awaited: waited.Seconds()})
	return waited, turn, asked
}

// turn counts a question of so many bytes that was answered. The kernel sent the last of it when out was left of the
// wait. It counts in ticks of its clock, of up to 10 ms, which is right on average.
func (a *account) turn(waited, out time.Duration, asked int64, w *way) {
	if asked <= small {
		shorten(&w.question, waited)
	}
	a.add(event.Sockets{Turns: 1, Out: out.Seconds(), RoundTrips: min(waited, w.roundTrip()).Seconds()})
}

// add adds what was spent.
func (a *account) add(more event.Sockets) {
	a.totals.Lock()
	defer a.totals.Unlock()
	a.spent.Blocked += more.Blocked
	a.spent.Awaited += more.Awaited
	a.spent.Turns += more.Turns
	a.spent.Out += more.Out
	a.spent.RoundTrips += more.RoundTrips
}

// addTo adds the account to a sum, waits that are going on included.
func (a *account) addTo(all *event.Sockets) {
	a.totals.Lock()
	spent := a.spent
	a.totals.Unlock()
	if since := a.blocked.Load(); since > 0 {
		spent.Blocked += seconds(a.now() - since)
	}
	if since := a.reading.Load(); since > 0 && a.asked.Load() {
		waited := a.waited(since)
		spent.Awaited += waited.Seconds()
		spent.Out += min(a.kernel.sent, waited).Seconds()
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

// kernel is the TCP_INFO of a connection.
type kernel struct {
	busy, rwndLimited, sndbufLimited time.Duration
	smoothed, shortest               time.Duration // round trips; shortest is 0 before there was one
	sent                             time.Duration // since the newest segment with data left
	retransmits, segments            int64
	deliveryRate                     int64 // bytes a second
}
