package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/internal/standin/doris"
)

// ofBatch reports whether a request carries the batch of that number.
func ofBatch(r doris.Request, number int64) bool {
	return r.Loads() && strings.HasSuffix(r.Label, fmt.Sprintf("_%d", number))
}

// lossy makes every fifth load and every seventh redirect fail, in every way there is. It counts the loads.
func lossy(failed *atomic.Int64) func(doris.Request) doris.Fault {
	ofRedirects := []doris.Fault{{Cut: true}, {Fail: doris.NoBackend}, {HTTPStatus: http.StatusServiceUnavailable}}
	ofLoads := []doris.Fault{
		{CutAnswer: true}, {Cut: true}, {Fail: doris.TooManyVersions}, // and those that a statement does not have
		{Truncate: true}, {RefuseEarly: doris.TooManyVersions}, {HTTPStatus: http.StatusBadGateway},
	}
	var loads, redirects atomic.Int64
	return func(r doris.Request) (f doris.Fault) {
		switch {
		case r.Kind == doris.Redirect:
			if n := redirects.Add(1); n%7 == 0 {
				f = ofRedirects[n/7%3]
			}
		case r.Loads():
			if n := loads.Add(1); n%5 == 0 {
				failed.Add(1)
				all := ofLoads
				if r.Kind == doris.Statement {
					all = all[:3]
				}
				f = all[n/5%int64(len(all))]
			}
		}
		return f
	}
}

// A thousand small batches, of which one in five fails or loses its answer: labels make every row arrive once.
func TestDorisLostAnswers(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"stream-load", "insert"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var failed atomic.Int64
			s := newCluster(t, doris.Options{Backends: 2, Script: lossy(&failed)})
			l := peopleLoad(5*scaled[int64](1000, 10_000), 5)
			r := s.push(l.flags("--method", method, "--workers", "16", "--retries", "20", "--verify", "full")...).run(t).ends(t, 0)
			is := reportOf(t, r)
			assert.GreaterOrEqual(t, failed.Load(), l.batches()/5)
			assert.GreaterOrEqual(t, is.Result.Duplicates, failed.Load()/6, "batches found to be in")
			assert.Equal(t, "exactly-once", is.Plan.Delivery)
			assert.Equal(t, []int64{l.rows, l.batches(), 0}, []int64{is.Result.Rows, is.Result.Batches, is.Result.Unknown})
			s.isExact(t, l, r)
		})
	}
}

// The label is unknown and a part of the rows is there, so nothing tells what became of the batch. It is named, it is not
// sent again, and once the part is removed the run continues and is exact.
func TestDorisUnknown(t *testing.T) {
	t.Parallel()
	started := make(chan *cluster, 1) // the script is there before the cluster it belongs to
	s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		if !ofBatch(r, 3) || r.Attempt > 1 {
			return doris.Fault{}
		}
		(<-started).Append("people", standin.Row{Number: 65})
		return doris.Fault{Cut: true}
	}})
	started <- s
	l := fewPeople()
	r := s.push(l.flags("--workers", "1", "--retries", "1")...).run(t).ends(t, 7)
	r.says(t, "batch 3", "keys 60 to 79", "1 of 20 rows are in the key range")
	is := reportOf(t, r)
	assert.Equal(t, report.Unknown, is.Result.Outcome)
	assert.EqualValues(t, 1, is.Result.Unknown)
	s.resume(t, "--retries", "1").run(t).ends(t, 7).says(t, "batch 3")
	sent := 0
	for _, request := range s.loads() {
		if ofBatch(request, 3) {
			sent++
		}
	}
	assert.Equal(t, 1, sent, "what may be in is not sent again")
	s.Remove("people", 65)
	done := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	s.isExact(t, l, done)
}

// kill -9 between the body and its answer: the resume finds the batch in, and sends it no second time.
func TestDorisKillBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	answered, n := make(chan struct{}, 1), atomic.Int64{}
	backend := newFront(t, "http://"+s.Backends[0], nil, func(r *http.Response) error {
		if n.Add(1) != 4 {
			return nil
		}
		answered <- struct{}{}
		<-r.Request.Context().Done() // the client is dead
		return r.Request.Context().Err()
	})
	l := peopleLoad(2000, 100)
	p := s.push(l.flags("--be", s.Backends[0]+"="+backend.address(), "--workers", "1")...).start(t)
	<-answered
	p.kill(t)
	assert.EqualValues(t, 400, s.Rows("people"), "the fourth batch is in")
	r := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	is := reportOf(t, r)
	assert.Equal(t, []int64{1, 300}, []int64{is.Result.Duplicates, is.Run.ResumedRows})
	s.isExact(t, l, r)
	assert.Len(t, s.loads(), int(l.batches()), "each batch is sent once")
}

// kill -9 while the server has a body that it has not looked at: the resume ends that load, and sends the rows itself.
func TestDorisKillDuringALoad(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"stream-load", "insert"} {
		held, begun := make(chan struct{}), make(chan struct{}, 1)
		s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
			if !ofBatch(r, 3) || r.Attempt > 1 {
				return doris.Fault{}
			}
			begun <- struct{}{}
			return doris.Fault{Hold: held}
		}})
		l := peopleLoad(2000, 100)
		p := s.push(l.flags("--method", method, "--workers", "2")...).start(t)
		<-begun
		p.kill(t)
		next := s.resume(t, "--verify", "full").start(t)
		next.until(t, "another attempt", func() bool {
			n := 0
			for _, r := range s.loads() {
				if ofBatch(r, 3) {
					n++
				}
			}
			return n == 2
		})
		close(held) // the dead one's request continues, late
		r := next.wait(t).ends(t, 0)
		assert.Zero(t, reportOf(t, r).Result.Unknown)
		s.isExact(t, l, r)
	}
}

// kill -9 again and again, under losses.
func TestDorisKillAndResume(t *testing.T) {
	t.Parallel()
	var failed atomic.Int64
	s := newCluster(t, doris.Options{Backends: 2, Script: lossy(&failed)})
	l := peopleLoad(20_000, 50)
	flags := l.flags("--workers", "8", "--retries", "20", "--max-rate", "4MiB/s")
	for part := int64(1); part <= 4; part++ {
		next := s.push(flags...)
		if part > 1 {
			next = s.resume(t)
		}
		p := next.start(t)
		p.until(t, "rows", func() bool { return s.Rows("people") >= part*l.rows/5 })
		p.kill(t)
	}
	r := s.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
	assert.Equal(t, l.rows, reportOf(t, r).Result.Rows)
	assert.Positive(t, failed.Load())
	s.isExact(t, l, r)
}
