package stats_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// clock is a time that moves when told to.
type clock struct{ now time.Time }

func newClock() *clock { return &clock{now: time.Unix(1_700_000_000, 0)} }

func (c *clock) read() time.Time { return c.now }

func (c *clock) pass(d time.Duration) { c.now = c.now.Add(d) }

func applied(rows int64, seconds float64) event.Event {
	return event.Event{Attempt: 1, Outcome: event.Applied, Rows: rows, Payload: 10 * rows, Encoded: 11 * rows, Seconds: seconds}
}

func TestCounting(t *testing.T) {
	c := stats.New(stats.Options{Workers: 2, PlannedRows: 1000, PlannedBytes: 10_000})
	c.Resume(stats.Earlier{Rows: 100, MissingRows: 2, Batches: 1, PayloadBytes: 1000})
	c.Add(applied(100, 0.5))
	c.Add(event.Event{Attempt: 1, Outcome: event.Unknown, Class: loader.ClassTimeout, Payload: 1000, Encoded: 1100, Seconds: 60})
	c.Add(event.Event{Attempt: 2, Outcome: event.Already, Rows: 100, Payload: 1000, Encoded: 1100, Seconds: 0.1})
	c.Add(event.Event{Attempt: 1, Outcome: event.NotApplied, Class: loader.ClassRows, Missing: 3})
	c.GiveUp(event.NotApplied)
	c.GiveUp(event.Unknown)
	c.Verified(event.Verification{OK: true, ExpectedRows: 300, FoundRows: 300})

	s := c.Snapshot()
	require.Equal(t, [4]int64{300, 3, 3000, 2200}, [4]int64{s.Rows, s.Batches, s.PayloadBytes, s.EncodedBytes})
	require.Equal(t, [3]int64{100, 1, 1000}, [3]int64{s.ResumedRows, s.ResumedBatches, s.ResumedBytes})
	require.Equal(t, [4]int64{4, 1, 5, 2}, [4]int64{s.Attempts, s.Retries, s.MissingRows, s.BatchSeconds.Count()})
	require.Equal(t, [2]int64{1, 1}, [2]int64{s.FailedBatches, s.UnknownBatches})
	require.Equal(t, map[event.Outcome]int64{"applied": 1, "already": 1, "unknown": 1, "not_applied": 1, "stored": 0}, s.Outcomes)
	require.Equal(t, [2]int64{1, 1}, [2]int64{s.AppliedBatches, s.AlreadyBatches})
	require.Equal(t, int64(1), s.Errors[loader.ClassTimeout])
	require.Len(t, s.Errors, len(loader.Classes()), "every class is there from the start")
	require.InDelta(t, 0.6, s.BatchSeconds.Sum, 1e-9)
	require.Equal(t, event.Verification{OK: true, ExpectedRows: 300, FoundRows: 300}, s.Verification)
	require.Equal(t, [2]int64{1000, 10_000}, [2]int64{s.PlannedRows, s.PlannedBytes})
}

// Batches are stored one by one and acknowledged in groups; bytes and rows count once on each way.
func TestCountingStagedLoads(t *testing.T) {
	now := newClock()
	c := stats.New(stats.Options{Now: now.read})
	c.Phase(event.Stage)
	stored := event.Event{Attempt: 1, Outcome: event.Stored, Rows: 100, Payload: 1000, Encoded: 1100, Seconds: 2}
	now.pass(time.Second)
	c.Add(stored)
	c.Add(stored)
	require.Equal(t, now.now, c.Snapshot().LastProgress)
	s := c.Snapshot()
	require.Equal(t, [4]int64{}, [4]int64{s.Rows, s.Batches, s.PayloadBytes, s.EncodedBytes}, "not in the table yet")
	require.Equal(t, [3]int64{200, 2, 2200}, [3]int64{s.StoredRows, s.StoredBatches, s.StoredBytes})

	c.Phase(event.Commit)
	group := event.Event{Attempt: 1, Members: 2, Outcome: event.NotApplied, Class: loader.ClassThrottled, Payload: 2000, Encoded: 2200, Seconds: 60}
	c.Add(group)
	group.Attempt, group.Outcome, group.Class, group.Rows = 2, event.Applied, "", 200
	c.Add(group)
	group.Outcome, group.Members = event.Already, 3
	c.Add(group)
	s = c.Snapshot()
	require.Equal(t, [4]int64{400, 5, 4000, 4400}, [4]int64{s.Rows, s.Batches, s.PayloadBytes, s.EncodedBytes})
	require.Equal(t, [3]int64{200, 2, 2200}, [3]int64{s.StoredRows, s.StoredBatches, s.StoredBytes})
	require.Equal(t, [2]int64{2, 3}, [2]int64{s.AppliedBatches, s.AlreadyBatches})
	require.Equal(t, [2]int64{5, 2}, [2]int64{s.Attempts, s.Retries})
	require.Equal(t, map[event.Outcome]int64{"applied": 1, "already": 1, "unknown": 0, "not_applied": 1, "stored": 2}, s.Outcomes)
	require.EqualValues(t, 2, s.BatchSeconds.Count(), "a group is no batch")
}

func TestPhasesAddUp(t *testing.T) {
	now := newClock()
	began := now.now
	now.pass(time.Second) // connecting, before there is a plan
	c := stats.New(stats.Options{Now: now.read, Start: began})
	require.Zero(t, c.Snapshot().LastProgress)
	now.pass(time.Second)
	c.Phase(event.Fill)
	now.pass(3 * time.Second)
	c.Phase(event.Load)
	loadBegan := now.now
	now.pass(5 * time.Second)
	require.Equal(t, loadBegan, c.Snapshot().LastProgress, "a load without an answer makes no progress since it began")
	c.Add(applied(1, 1))
	require.Equal(t, now.now, c.Snapshot().LastProgress)
	c.Phase(event.Verify)
	now.pass(time.Second)
	c.Phase(event.Load)
	now.pass(time.Second)
	c.Phase(event.Done)
	now.pass(time.Hour)
	want := map[event.Phase]float64{"prepare": 2, "fill": 3, "load": 6, "stage": 0, "commit": 0, "finish": 0, "verify": 1}
	require.Equal(t, want, c.Snapshot().PhaseSeconds)
}

func TestDoneStandsStill(t *testing.T) {
	now := newClock()
	wire := int64(10)
	c := stats.New(stats.Options{
		Workers: 3, Now: now.read,
		WireBytes: func() int64 { return wire }, Refills: func() int64 { return 4 },
		Buffers: func() (int, int) { return 2, 5 },
		Lost:    func() stats.Lost { return stats.Lost{Sockets: event.Sockets{Open: wire}} },
	})
	c.Phase(event.Load)
	now.pass(time.Second)
	c.Phase(event.Done)
	report := c.Snapshot()
	wire = 99 // connections say goodbye
	now.pass(time.Minute)
	c.Worker(0).Enter(event.Idle)
	require.Equal(t, report, c.Snapshot(), "the last scrape equals the report")
	require.Equal(t, [2]int64{10, 4}, [2]int64{report.WireBytes, report.Refills})
	require.Equal(t, [2]int{2, 5}, [2]int{report.BuffersFree, report.Buffers})
}

func TestWorkerSecondsAddUpToTheLoad(t *testing.T) {
	now := newClock()
	c := stats.New(stats.Options{Workers: 2, Now: now.read})
	now.pass(time.Hour) // filling is nobody's idleness
	c.Phase(event.Load)
	w := c.Worker(0)
	w.Enter(event.Connecting)
	now.pass(time.Second)
	w.Enter(event.Sending)
	now.pass(2 * time.Second)
	w.Enter(event.WaitAck)
	now.pass(4 * time.Second)
	s := c.Snapshot()
	require.Equal(t, 4.0, s.WorkerSeconds[event.WaitAck], "the state that is on counts")
	w.Enter(event.Idle)
	now.pass(time.Second)
	c.Phase(event.Verify)
	now.pass(time.Hour)

	s = c.Snapshot()
	require.Len(t, s.WorkerSeconds, len(event.States()))
	require.Equal(t, map[event.State]float64{
		event.Idle: 1 + 8, event.WaitBuffer: 0, event.WaitRate: 0, event.Connecting: 1, event.Sending: 2,
		event.WaitAck: 4, event.BackingOff: 0, event.Resolving: 0, event.WaitCommit: 0,
	}, s.WorkerSeconds)
	var sum float64
	for _, seconds := range s.WorkerSeconds {
		sum += seconds
	}
	require.Equal(t, 2*s.PhaseSeconds[event.Load], sum)
}

// What others account for is copied, and has all limits before they do.
func TestLostTime(t *testing.T) {
	lost := stats.Lost{}
	c := stats.New(stats.Options{Lost: func() stats.Lost { return lost }})
	require.Len(t, c.Snapshot().LimitSeconds, len(event.Limits()))
	require.Len(t, stats.New(stats.Options{}).Snapshot().LimitSeconds, len(event.Limits()), "no account")

	lost = stats.Lost{
		Seconds: map[event.Limit]float64{event.LimitTarget: 3}, BoundBy: event.LimitTarget, Sockets: event.Sockets{Open: 2, Busy: 1.5},
	}
	s := c.Snapshot()
	lost.Seconds[event.LimitTarget] = 9
	require.Equal(t, 3.0, s.LimitSeconds[event.LimitTarget])
	require.Zero(t, s.LimitSeconds[event.LimitTail])
	require.Equal(t, event.LimitTarget, s.BoundBy)
	require.Equal(t, lost.Sockets, s.Sockets)
}

// Payload counts as sent when its bytes are out, and once for each time that they were.
func TestWork(t *testing.T) {
	now := newClock()
	c := stats.New(stats.Options{Workers: 3, Now: now.read})
	c.Phase(event.Load)
	now.pass(time.Second)
	require.Equal(t, c.Snapshot().WorkerSeconds, c.Work().Seconds)
	require.Equal(t, now.now, c.Work().At)
	require.Zero(t, c.Work().Payload)

	b := &batch.Batch{Payload: 1000, Encoded: make([]byte, 1600)}
	b.Hold()
	w := c.Worker(0)
	w.Hold(b)
	w.Enter(event.Sending)
	require.Zero(t, c.Work().Payload)
	body := b.Open()
	_, err := body.Read(make([]byte, 400))
	require.NoError(t, err)
	require.EqualValues(t, 250, c.Work().Payload)
	c.Add(event.Event{Attempt: 1, Outcome: event.Unknown, Payload: 1000})
	w.Enter(event.BackingOff)
	require.EqualValues(t, 1000, c.Work().Payload, "an unknown outcome counts as sent")
	w.Enter(event.Sending)
	require.EqualValues(t, 1250, c.Work().Payload, "and again")
	c.Add(event.Event{Attempt: 2, Outcome: event.Stored, Payload: 1000, Encoded: 1600})
	w.Hold(nil)
	require.EqualValues(t, 2000, c.Work().Payload)
	c.Add(event.Event{Attempt: 1, Members: 4, Outcome: event.Applied, Payload: 4000})
	require.EqualValues(t, 2000, c.Work().Payload, "a commit sends nothing")
	require.NoError(t, body.Close())

	arrays := &batch.Batch{Payload: 700} // columns have no bytes of their own
	c.Worker(1).Hold(arrays)
	c.Worker(1).Enter(event.WaitAck)
	require.EqualValues(t, 2700, c.Work().Payload)
}

func TestDescribe(t *testing.T) {
	now := newClock()
	c := stats.New(stats.Options{Workers: 2, Now: now.read})
	b := &batch.Batch{ID: batch.ID{Run: "r", Number: 17}, Encoded: make([]byte, 3<<20)}
	b.Hold()
	body := b.Open()
	_, err := body.Read(make([]byte, 1<<20))
	require.NoError(t, err)

	w := c.Worker(1)
	w.Hold(b)
	w.Enter(event.Sending)
	now.pass(61 * time.Second)
	require.Equal(t, int64(3<<20), c.Snapshot().BytesInFlight)
	all := c.Describe()
	require.Equal(t, stats.Activity{
		Worker: 1, State: event.Sending, For: 61 * time.Second, Batch: 17, Sent: 1 << 20, Encoded: 3 << 20,
	}, all[1])
	require.Equal(t, "worker 0: idle for 1m1s", all[0].String())
	require.Equal(t, "worker 1: send for 1m1s, batch 17, 1.000 MiB of 3.000 MiB sent", all[1].String())

	w.Hold(nil)
	require.NoError(t, body.Close())
	b.Release()
	require.Equal(t, int64(-1), c.Describe()[1].Batch)
	require.Zero(t, c.Snapshot().BytesInFlight)
}

func TestLatency(t *testing.T) {
	c := stats.New(stats.Options{})
	require.Zero(t, c.Latency())
	for i := range 1000 {
		c.Add(applied(1, float64(i+1)/1000))
	}
	q := c.Latency()
	require.InEpsilon(t, 0.5, q.P50, 0.002)
	require.InEpsilon(t, 0.9, q.P90, 0.002)
	require.InEpsilon(t, 0.99, q.P99, 0.002)
	require.Equal(t, 1.0, q.Max)

	c.Add(applied(1, 7200)) // two hours, beyond the histogram's range
	require.Equal(t, 7200.0, c.Latency().Max)
	h := c.Snapshot().BatchSeconds
	require.Equal(t, int64(1), h.Counts[len(h.Bounds)], "in the bucket without an end")
	require.Equal(t, int64(1001), h.Count())
	require.Equal(t, int64(1), h.Counts[0], "a bucket's upper end belongs to it")
	require.Len(t, h.Counts, len(h.Bounds)+1)
}

// With -race this also shows that everything may be called at once.
func TestConcurrentUse(t *testing.T) {
	const workers, batches = 8, 200
	c := stats.New(stats.Options{Workers: workers})
	c.Phase(event.Load)
	quit := make(chan struct{})
	var watcher, all sync.WaitGroup
	watcher.Go(func() {
		last := event.Snapshot{}
		for {
			select {
			case <-quit:
				return
			default:
			}
			s := c.Snapshot()
			if s.Rows != 5*s.Batches || s.Rows < last.Rows {
				t.Error("a snapshot saw half an event")
			}
			last = s
			c.Describe()
			c.Latency()
		}
	})
	for i := range workers {
		all.Go(func() {
			for range batches {
				b := &batch.Batch{Encoded: make([]byte, 10)}
				c.Worker(i).Hold(b)
				c.Worker(i).Enter(event.Sending)
				c.Add(applied(5, 0.01))
				c.Worker(i).Hold(nil)
				c.Worker(i).Enter(event.WaitBuffer)
			}
		})
	}
	all.Wait()
	close(quit)
	watcher.Wait()
	require.Equal(t, int64(5*workers*batches), c.Snapshot().Rows)
}

func TestFailuresAreBounded(t *testing.T) {
	c := stats.New(stats.Options{})
	for batch := range int64(200) {
		c.Add(event.Event{Batch: batch, Outcome: event.Applied})
		c.Add(event.Event{Batch: batch, Attempt: 1, Outcome: event.NotApplied, Class: loader.Class("server"), Error: "full"})
	}
	failed := c.Failures()
	require.Len(t, failed, 100)
	require.EqualValues(t, 99, failed[99].Batch)
	require.Equal(t, "full", failed[99].Error)
}
