package faultproxy

import (
	"net"
	"sync"
	"time"
)

const underWay = 16 // chunks that a slow way holds: 4 MiB

// sender writes one direction of a link as slowly as its way is. Without a latency the writer is the caller; with one
// it is a goroutine behind a queue, so that bytes are late but not fewer.
type sender struct {
	link  *link
	to    *net.TCPConn
	way   Way
	free  time.Time // when the bandwidth lets the next byte go
	queue chan parcel
	ended sync.WaitGroup
}

type parcel struct {
	data []byte
	due  time.Time
}

func newSender(l *link, to *net.TCPConn, w Way) *sender {
	s := &sender{link: l, to: to, way: w}
	if w.Latency > 0 {
		s.queue = make(chan parcel, underWay)
		s.ended.Go(s.deliver)
	}
	return s
}

// send takes the bytes over and reports whether the link goes on.
func (s *sender) send(p []byte) bool {
	if s.queue == nil {
		return s.write(p)
	}
	select {
	case s.queue <- parcel{append([]byte(nil), p...), time.Now().Add(s.way.Latency)}:
		return true
	case <-s.link.done:
		return false
	}
}

// drain waits until what was sent has left; nothing may be sent afterwards.
func (s *sender) drain() {
	if s.queue != nil {
		close(s.queue)
		s.ended.Wait()
		s.queue = nil
	}
}

// close passes the end of the stream on. The other direction may go on: a client may end its own and read the answer.
func (s *sender) close() {
	s.drain()
	_ = s.to.CloseWrite()
}

func (s *sender) deliver() {
	for p := range s.queue {
		s.link.sleepUntil(p.due)
		s.write(p.data) // after an error the queue runs empty by itself
	}
}

func (s *sender) write(p []byte) bool {
	s.link.stalled()
	if s.way.Rate > 0 {
		now := time.Now()
		if s.free.Before(now) {
			s.free = now
		}
		s.free = s.free.Add(time.Duration(float64(len(p)) / float64(s.way.Rate) * float64(time.Second)))
		s.link.sleepUntil(s.free)
	}
	_, err := s.to.Write(p)
	if err != nil {
		s.link.reset()
	}
	return err == nil
}
