package engine

import (
	"context"
	"math"
	"sync"
	"time"
)

// schedule is when batches are to be sent under a rate: each as long after the first as the bytes before it take at that
// rate. It does not wait for anybody. Where the server stalls, the batches that it holds up are late and go out as fast
// as the workers can until the schedule is met again, so that the rate holds on average since the start.
//
// A bucket of tokens that overflows would forget the stall instead: the load would go on as if the batches had been
// meant for later, and their latency would hide what a client with a schedule of its own has to wait.
type schedule struct {
	perSecond int64 // encoded bytes

	mu     sync.Mutex
	began  time.Time // zero before the first batch
	booked int64     // encoded bytes of all batches that have a place
	length int64     // of the newest batch
}

// slot is a batch's place in the schedule; the zero value is none.
type slot struct {
	intended time.Time
	length   int64 // that it was booked with
}

// book returns the next slot. The batch is not known yet; all but the last are alike, so it is taken to be as long as the
// newest one.
func (s *schedule) book() slot {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.began.IsZero() {
		s.began = time.Now()
	}
	after := math.Round(float64(s.booked) / float64(s.perSecond) * float64(time.Second))
	p := slot{intended: s.began.Add(time.Duration(after)), length: s.length}
	s.booked += p.length
	return p
}

// settle corrects the schedule by the length that the batch turned out to have.
func (s *schedule) settle(p slot, length int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.booked += length - p.length
	s.length = length
}

// wait waits for the next slot. It returns false when ctx has ended.
func (s *schedule) wait(ctx context.Context) (slot, bool) {
	p := s.book()
	early := time.Until(p.intended)
	if early <= 0 {
		return p, ctx.Err() == nil
	}
	wait := time.NewTimer(early)
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return p, false
	case <-wait.C:
		return p, ctx.Err() == nil
	}
}
