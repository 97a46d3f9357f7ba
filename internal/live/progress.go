// Package live shows the progress of a run: a line for people, JSON lines for scripts, and Prometheus metrics. All
// three read snapshots and count nothing themselves.
package live

import (
	"sync"
	"time"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// Mode is the form of the progress.
type Mode string

// The modes.
const (
	Auto  Mode = "auto"  // Bar on a terminal, else Plain
	Bar   Mode = "bar"   // one line, redrawn; Plain without a terminal
	Plain Mode = "plain" // a line every 10 s, without control characters
	JSON  Mode = "json"  // an object every 10 s
	None  Mode = "none"
)

// on returns the mode that the terminal allows.
func (m Mode) on(t *Terminal) Mode {
	if m == Plain || m == JSON || m == None {
		return m
	}
	if t.Interactive() {
		return Bar
	}
	return Plain
}

const (
	redraw        = 250 * time.Millisecond
	observe       = time.Second // between snapshots if nothing is redrawn: rates need samples
	plainInterval = 10 * time.Second
)

// ProgressOptions configure Progress.
type ProgressOptions struct {
	Mode      Mode // "" is Auto
	Terminal  *Terminal
	Snapshot  func() event.Snapshot // called by one goroutine at a time
	Interval  time.Duration         // between the lines of Plain and JSON; 0: 10 s
	Transient bool                  // remove a bar at the end: the caller prints the result
}

// Progress prints the progress of a run until it is stopped.
type Progress struct {
	options ProgressOptions
	mode    Mode
	tracker stats.Tracker
	stop    sync.Once
	quit    chan struct{}
	done    chan struct{}
}

// StartProgress starts printing. Call Stop to end it.
func StartProgress(o ProgressOptions) *Progress {
	if o.Interval <= 0 {
		o.Interval = plainInterval
	}
	p := &Progress{options: o, mode: o.Mode.on(o.Terminal), quit: make(chan struct{}), done: make(chan struct{})}
	go p.run()
	return p
}

// Stop prints the final state as the last line. Afterwards nothing is printed; further calls do nothing.
func (p *Progress) Stop() {
	p.stop.Do(func() { close(p.quit) })
	<-p.done
}

func (p *Progress) run() {
	defer close(p.done)
	if p.mode == None {
		<-p.quit
		return
	}
	every := redraw
	if p.mode != Bar {
		every = min(observe, p.options.Interval)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for next := time.Now().Add(p.options.Interval); ; {
		select {
		case <-p.quit:
			p.last()
			return
		case now := <-tick.C:
			s := p.options.Snapshot()
			r := p.tracker.Observe(s)
			switch {
			case p.mode == Bar:
				p.options.Terminal.draw(Line(s, r, p.options.Terminal.columns()))
			case !now.Before(next):
				p.print(s, r)
				next = next.Add(p.options.Interval)
			}
		}
	}
}

// last prints the final state as an ordinary line.
func (p *Progress) last() {
	s := p.options.Snapshot()
	r := p.tracker.Observe(s)
	if p.mode == Bar {
		p.options.Terminal.draw("")
		if p.options.Transient {
			return
		}
	}
	p.print(s, r)
}

func (p *Progress) print(s event.Snapshot, r stats.Rates) {
	var line []byte
	switch p.mode {
	case JSON:
		line = JSONLine(s, r)
	case Bar:
		line = append([]byte(Line(s, r, p.options.Terminal.columns())), '\n')
	default:
		line = append([]byte(Line(s, r, 0)), '\n')
	}
	// A closed output must not end the run.
	_, _ = p.options.Terminal.Write(line)
}
