package stats

import (
	"time"

	"github.com/terapush/terapush/pkg/event"
)

// phaseClock adds up the time of each phase. One of them is always current.
type phaseClock struct {
	phase event.Phase
	since time.Time
	spent map[event.Phase]time.Duration // without the time since since
}

func (p *phaseClock) enter(next event.Phase, now time.Time) {
	if p.spent == nil {
		p.spent = make(map[event.Phase]time.Duration)
	}
	if p.phase != "" {
		p.spent[p.phase] = p.total(p.phase, now)
	}
	p.phase, p.since = next, now
}

func (p *phaseClock) total(phase event.Phase, now time.Time) time.Duration {
	d := p.spent[phase]
	// Two callers may read the clock in one order and get the mutex in the other.
	if phase == p.phase && now.After(p.since) {
		d += now.Sub(p.since)
	}
	return d
}

// work returns the time in phases in which workers have something to do: their seconds are counted on this clock, so that
// neither filling buffers nor verifying shows as idle workers.
func (p *phaseClock) work(now time.Time) time.Duration {
	return p.total(event.Load, now) + p.total(event.Stage, now)
}

func (p *phaseClock) seconds(now time.Time) map[event.Phase]float64 {
	all := make(map[event.Phase]float64)
	for _, phase := range event.Phases() {
		all[phase] = p.total(phase, now).Seconds()
	}
	return all
}
