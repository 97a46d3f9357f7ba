package stats

import (
	"slices"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

const (
	momentEvery = time.Second
	maxMoments  = 600
)

// Moment is the progress of a process at one time, from its start on.
type Moment struct {
	At           float64 // seconds since the start
	Phase        string  // since the moment before
	Rows         int64
	PayloadBytes int64
	StoredBytes  int64
	Retries      int64
	BoundBy      string // the event.Limit since the moment before; "" if workers had no time
}

// Timeline collects moments of a run in bounded memory: one a second and one at the end of every phase, so that the
// time between two is of one phase. At 600 moments it drops every second one of a phase and continues half as often.
// Intervals less than half as long as the others are merged with one of the same phase: a millisecond gives no rate.
type Timeline struct {
	start    time.Time
	sample   func()
	snapshot func() (ended []event.Snapshot, now event.Snapshot)
	stop     sync.Once
	quit     chan struct{}
	done     chan struct{}

	// Owned by the goroutine until done is closed.
	stride  int // seconds between two moments
	passed  int // seconds since the last one
	moments []Moment
	lost    []map[event.Limit]float64 // until each moment
}

// StartTimeline starts collecting. Moment.At counts from start, the start of the process. sample, which may be nil, is
// called every second, even if moments are rarer, and before the snapshot of a moment. snapshot is Collector.Progress.
func StartTimeline(
	start time.Time, sample func(), snapshot func() (ended []event.Snapshot, now event.Snapshot),
) *Timeline {
	if sample == nil {
		sample = func() {}
	}
	t := &Timeline{
		start: start, sample: sample, snapshot: snapshot, quit: make(chan struct{}), done: make(chan struct{}), stride: 1,
	}
	go t.run()
	return t
}

// Stop adds the last moment and returns all of them in order, with the usual interval in seconds. After the run has
// ended, the last two have the same time: the end of its last phase, and event.Done. Further calls return the same.
func (t *Timeline) Stop() (interval float64, moments []Moment) {
	t.stop.Do(func() {
		close(t.quit)
		<-t.done
		t.add(t.phases())
		t.blame()
	})
	return t.interval(), t.moments
}

func (t *Timeline) run() {
	defer close(t.done)
	tick := time.NewTicker(momentEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.quit:
			return
		case <-tick.C:
			t.sample()
			if t.passed++; t.passed == t.stride {
				t.passed = 0
				if now := t.phases(); now.At-t.last().At >= t.least() {
					t.add(now)
				}
			}
		}
	}
}

// phases adds the ends of phases since its last call and returns the present moment.
func (t *Timeline) phases() snapped {
	ended, now := t.snapshot()
	for _, s := range ended {
		end := t.of(s)
		switch last := t.last(); {
		case len(t.moments) > 0 && last.Phase == end.Phase && end.At-last.At < t.least():
			t.moments, t.lost = t.moments[:len(t.moments)-1], t.lost[:len(t.lost)-1]
		case end.At <= last.At:
			continue // the phase took no time
		}
		t.add(end)
	}
	return t.of(now)
}

// snapped is a moment with the time lost until then.
type snapped struct {
	Moment
	lost map[event.Limit]float64
}

func (t *Timeline) of(s event.Snapshot) snapped {
	return snapped{Moment{
		At: s.At.Sub(t.start).Seconds(), Phase: string(s.Phase),
		// TakeBack may have subtracted rows of earlier processes.
		Rows: max(s.Rows-s.ResumedRows, 0), PayloadBytes: max(s.PayloadBytes-s.ResumedBytes, 0),
		StoredBytes: s.StoredBytes, Retries: s.Retries,
	}, s.LimitSeconds}
}

// last returns the newest moment, or that of the start.
func (t *Timeline) last() Moment {
	if len(t.moments) == 0 {
		return Moment{}
	}
	return t.moments[len(t.moments)-1]
}

// least returns the seconds of the shortest interval that is not merged.
func (t *Timeline) least() float64 { return t.interval() / 2 }

func (t *Timeline) interval() float64 { return (time.Duration(t.stride) * momentEvery).Seconds() }

func (t *Timeline) add(now snapped) {
	t.moments, t.lost = append(t.moments, now.Moment), append(t.lost, now.lost)
	if len(t.moments) < maxMoments {
		return
	}
	// The later one of a pair includes the other. Backwards, a moment without a pair is the first of its phase.
	kept := len(t.moments)
	for i := len(t.moments) - 1; i >= 0; i-- {
		kept--
		t.moments[kept], t.lost[kept] = t.moments[i], t.lost[i]
		if i > 0 && t.moments[i-1].Phase == t.moments[i].Phase {
			i--
		}
	}
	t.moments, t.lost, t.stride = slices.Delete(t.moments, 0, kept), slices.Delete(t.lost, 0, kept), 2*t.stride
}

// blame sets BoundBy. It must come after the last merge.
func (t *Timeline) blame() {
	// Workers lose time only while rows move, and the last of it is known a little later.
	for i := len(t.moments) - 1; i > 0; i-- {
		if phase := event.Phase(t.moments[i].Phase); phase != event.Load && phase != event.Stage {
			t.lost[i-1] = t.lost[i]
		}
	}
	var before map[event.Limit]float64
	for i, now := range t.lost {
		between := make(map[event.Limit]float64, len(now))
		for limit, seconds := range now {
			between[limit] = seconds - before[limit]
		}
		t.moments[i].BoundBy, before = string(event.BoundBy(between)), now
	}
}
