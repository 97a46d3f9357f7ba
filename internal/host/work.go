package host

import (
	"slices"
	"time"

	"github.com/terapush/terapush/internal/report"
)

// Work is what the machine did while rows moved, which may be more than once.
type Work struct {
	since  time.Time // zero: no stretch has begun
	before Load

	seconds float64
	cores   []float64 // seconds that each was busy
	nics    map[string]Traffic
}

// Start begins a stretch of time in which rows move.
func (w *Work) Start() { w.since, w.before = time.Now(), ReadLoad() }

// Stop ends it, where one was begun.
func (w *Work) Stop() {
	if w.since.IsZero() {
		return
	}
	w.add(time.Since(w.since).Seconds(), w.before, ReadLoad())
	w.since = time.Time{}
}

func (w *Work) add(seconds float64, before, now Load) {
	w.seconds += seconds
	// Cores and interfaces that came meanwhile have no beginning, and those that went no end.
	for i := range min(len(now.Cores), len(before.Cores)) {
		if i == len(w.cores) {
			w.cores = append(w.cores, 0)
		}
		w.cores[i] += max(now.Cores[i]-before.Cores[i], 0)
	}
	for _, n := range now.NICs {
		for _, b := range before.NICs {
			if b.Name == n.Name {
				w.traffic(b, n)
			}
		}
	}
}

func (w *Work) traffic(before, now Traffic) {
	if w.nics == nil {
		w.nics = make(map[string]Traffic)
	}
	t := w.nics[now.Name]
	if t.Allowance == nil {
		t.Allowance = make(map[string]int64)
	}
	t.Name = now.Name
	t.Sent += max(now.Sent-before.Sent, 0)
	t.Received += max(now.Received-before.Received, 0)
	for name, n := range now.Allowance {
		t.Allowance[name] += max(n-before.Allowance[name], 0)
	}
	w.nics[now.Name] = t
}

// AddTo adds the cores, the interface that leads to the target, and what the driver held back. Where that interface is
// not known, it takes the one that sent most.
func (w *Work) AddTo(e *report.Evidence, nics []NIC, to string) {
	if w.seconds <= 0 {
		return
	}
	if len(w.cores) > 0 {
		var sum float64
		for _, busy := range w.cores {
			sum += busy
		}
		// The clocks of two files differ by a little.
		e.HottestCore, e.MachineCPU = min(slices.Max(w.cores)/w.seconds, 1), min(sum/w.seconds/float64(len(w.cores)), 1)
	}
	var most Traffic
	e.Allowance = make(map[string]int64)
	for _, t := range w.nics {
		if t.Sent > most.Sent || t.Sent == most.Sent && t.Name < most.Name {
			most = t
		}
		for name, n := range t.Allowance {
			if n > 0 {
				e.Allowance[name] += n
			}
		}
	}
	if t, known := w.nics[to]; known {
		most = t
	}
	e.NIC, e.NICBits = most.Name, 8*float64(most.Sent)/w.seconds
	for _, n := range nics {
		// A pair of virtual interfaces reports 10 Gbit/s whatever it can do.
		if n.Name == most.Name && n.BitsPerSecond > 0 && float64(n.BitsPerSecond) >= e.NICBits {
			e.NICSpeed, e.NICShare = n.BitsPerSecond, e.NICBits/float64(n.BitsPerSecond)
		}
	}
}
