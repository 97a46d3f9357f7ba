package engine

import (
	"context"
	"math"
	"sync"
	"time"
)

// schedule plans the start of batches under a rate: each as long after the first as the bytes before it take at that
// rate. After a stall of the server the delayed batches are sent as fast as the workers can until the schedule is met
// again, so that the rate holds on average since the start.
//
// A token bucket that overflows would forget the stall: batches would be scheduled later, and their latency would hide
// how long a client with a schedule of its own has to wait.
type schedule struct {
	perSecond int64 // encoded bytes

	mu     sync.Mutex
	began  time.Time // zero before the first batch
	booked int64     // encoded bytes of all batches that have a slot
	length int64     // of the newest batch
}

// slot is a batch's start in the schedule; the zero value is none.
type slot struct {
	intended time.Time
	length   int64 // estimated
}

// book returns the next slot. The batch is not known yet: its length is taken to be the newest one's, since all but the
// last are alike.
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

// correct replaces the estimated length of a slot by the batch's.
func (s *schedule) correct(p slot, length int64) {
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
