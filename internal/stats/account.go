package stats

import (
	"maps"
	"sync"

	"github.com/terapush/terapush/pkg/event"
)

// Bottleneck keeps the account of a run, window by window. It has no clock of its own: a window ends when Sample is called,
// once a second, and at the start and the end of a load so that none is half of it. It is safe for concurrent use.
type Bottleneck struct {
	read func() Reading

	mu      sync.Mutex
	begun   bool
	last    Reading
	account Account
}

// Account is a run so far, up to the newest window in which workers had time. Its maps belong to the receiver.
type Account struct {
	Seconds Seconds     // of all windows
	BoundBy event.Limit // of the newest; "" before the first
	Sockets event.Sockets
	// Total is all windows together.
	Total Window
	// Fastest is the mean, over the windows in which it was known, of what the fastest connection delivered, in bytes a
	// second. One look alone may have met a burst.
	Fastest float64

	looks int64 // that Fastest is the mean of
}

// NewBottleneck begins an account. read is called by one goroutine at a time, and must not call it.
func NewBottleneck(read func() Reading) *Bottleneck {
	return &Bottleneck{read: read, account: Account{Seconds: Window{}.seconds()}}
}

// Sample ends a window. The first call only begins one. A window in which no worker had any time is left out.
func (m *Bottleneck) Sample() {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.read()
	m.account.Sockets = now.Sockets
	w := between(m.last, now)
	m.last = now
	if !m.begun {
		m.begun = true
		return
	}
	if w.WorkerSeconds() > 0 {
		m.account.add(w)
	}
}

func (a *Account) add(w Window) {
	lost := w.seconds()
	for limit, seconds := range lost {
		a.Seconds[limit] += seconds
	}
	a.BoundBy = event.BoundBy(lost)
	a.Total.add(w)
	if rate := float64(w.Sockets.DeliveryRate); rate > 0 {
		a.looks++
		a.Fastest += (rate - a.Fastest) / float64(a.looks)
	}
}

// Account is the run as it is now.
func (m *Bottleneck) Account() Account {
	m.mu.Lock()
	defer m.mu.Unlock()
	a := m.account
	a.Seconds, a.Total.Workers = maps.Clone(a.Seconds), maps.Clone(a.Total.Workers)
	return a
}
