package stats

import (
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/event"
)

const (
	momentEvery = time.Second
	maxMoments  = 600
)

// Moment is how far a process of a run was. Counts are of this process alone, from its start on.
type Moment struct {
	At           float64 // seconds since the start
	Phase        string
	Rows         int64
	PayloadBytes int64
	StoredBytes  int64
	Retries      int64
	// BoundBy is the event.Limit that most of the workers' time since the moment before was lost to; "" where they had none.
	BoundBy string
}

// Timeline collects moments of a run while it goes, in bounded memory: one a second, and where there would be 600 it
// keeps every second one and goes on half as often. It is made by StartTimeline.
type Timeline struct {
	start    time.Time
	sample   func()
	snapshot func() event.Snapshot
	stop     sync.Once
	quit     chan struct{}
	done     chan struct{}

	// Of the goroutine until done is closed, of everybody after that.
	stride  int // seconds between two moments
	passed  int // since the last one
	moments []Moment
	lost    []map[event.Limit]float64 // until each moment
}

// StartTimeline begins to collect. start is the start of the process that At is counted from. sample is called every
// second, also where moments are rarer, and before the snapshot of a moment is taken: its windows are of a second whatever
// the run's length. It may be nil. Stop ends both.
func StartTimeline(start time.Time, sample func(), snapshot func() event.Snapshot) *Timeline {
	if sample == nil {
		sample = func() {}
	}
	t := &Timeline{
		start: start, sample: sample, snapshot: snapshot, quit: make(chan struct{}), done: make(chan struct{}), stride: 1,
	}
	go t.run()
	return t
}

// Stop takes the last moment, which is the end of the run, and gives all of them in order, with the time between two in
// seconds. It waits for the goroutine that collects them, which takes as long as one snapshot. Called again it gives the
// same.
func (t *Timeline) Stop() (interval float64, moments []Moment) {
	t.stop.Do(func() {
		close(t.quit)
		<-t.done
		t.add(t.snapshot())
		t.blame()
	})
	return (time.Duration(t.stride) * momentEvery).Seconds(), t.moments
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
				t.add(t.snapshot())
			}
		}
	}
}

func (t *Timeline) add(s event.Snapshot) {
	now := Moment{
		At: s.At.Sub(t.start).Seconds(), Phase: string(s.Phase),
		Rows: s.Rows - s.ResumedRows, PayloadBytes: s.PayloadBytes - s.ResumedBytes, StoredBytes: s.StoredBytes, Retries: s.Retries,
	}
	// The clocks of a run that is over stand still: its end takes the place of another moment of the same time.
	if last := len(t.moments) - 1; last >= 0 && t.moments[last].At >= now.At {
		t.moments, t.lost = t.moments[:last], t.lost[:last]
	}
	t.moments, t.lost = append(t.moments, now), append(t.lost, s.LimitSeconds)
	if len(t.moments) < maxMoments {
		return
	}
	// Counts grow only, so that of a pair the later one has the other in it.
	for i := range maxMoments / 2 {
		t.moments[i], t.lost[i] = t.moments[2*i+1], t.lost[2*i+1]
	}
	t.moments, t.lost, t.stride = t.moments[:maxMoments/2], t.lost[:maxMoments/2], 2*t.stride
}

// blame fills in what each moment was bound by. It comes last, when no moment is put together from two any more.
func (t *Timeline) blame() {
	var before map[event.Limit]float64
	for i, now := range t.lost {
		between := make(map[event.Limit]float64, len(now))
		for limit, seconds := range now {
			between[limit] = seconds - before[limit]
		}
		t.moments[i].BoundBy, before = string(event.BoundBy(between)), now
	}
}
