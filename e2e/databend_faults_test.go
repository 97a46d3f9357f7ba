package e2e_test

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	standin "github.com/terapush/terapush/internal/standin/databend"
)

// eachDatabendMethod runs a test with every method. Its stand-in does as fault says with the loads: with an attempt at the batch,
// or the commit group, of a number.
func eachDatabendMethod(t *testing.T, test func(t *testing.T, method string, with func(faultOf) *scripted)) {
	t.Parallel()
	for _, method := range databendMethods() {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			test(t, method, func(fault faultOf) *scripted {
				return newScripted(t, standin.Options{Presign: true, Script: func(r standin.Request) standin.Fault {
					if r.Kind != loads(method) {
						return standin.Fault{}
					}
					return fault(labelled(r.Label), r.Attempt)
				}})
			})
		})
	}
}

type faultOf func(number int64, attempt int) standin.Fault

// methodFlags are the command line's for a load by one of the methods; two batches make a commit group.
func methodFlags(l load, method string, more ...string) []string {
	flags := l.flags("--method", method, "--verify", "full")
	if method == "stage-load" {
		flags = append(flags, "--commit-batches", "2")
	}
	return append(flags, more...)
}

// The statement runs, and terapush is killed before the answer: the resume ends the query, or finds that its rows are in.
func TestDatabendKillBeforeTheAnswer(t *testing.T) {
	for name, goesOn := range map[string]bool{"the query still runs": false, "the query went on": true} {
		t.Run(name, func(t *testing.T) {
			eachDatabendMethod(t, func(t *testing.T, method string, with func(faultOf) *scripted) {
				hold := make(chan struct{})
				s := with(func(number int64, attempt int) standin.Fault {
					if number == 3 && attempt == 1 {
						return standin.Fault{Hold: hold}
					}
					return standin.Fault{}
				})
				l := peopleLoad(1000, 100)
				p := s.push(methodFlags(l, method, "--workers", "2")...).start(t)
				p.until(t, "the statement that is held", func() bool {
					return slices.ContainsFunc(s.fake.Requests(), func(r standin.Request) bool {
						return r.Kind == loads(method) && labelled(r.Label) == 3 && slices.Contains(s.fake.Running(), r.QueryID)
					})
				})
				p.kill(t)
				if goesOn {
					close(hold)
					require.Eventually(t, func() bool { return len(s.fake.Running()) == 0 }, patience, 5*time.Millisecond)
				}
				is := reportOf(t, s.resume(t).run(t).ends(t, 0))
				assert.Equal(t, []any{true, l.rows, int64(0)}, []any{is.Verify.OK, is.Result.Rows, is.Result.Unknown})
				if !goesOn {
					close(hold) // too late: it was ended
				}
				s.has(t, l)
				assert.Empty(t, s.fake.Files(), "files in the stage")
			})
		})
	}
}

// Killed when everything is in the stage and no COPY has run: nothing is uploaded again, and nothing stays.
func TestDatabendKillBeforeTheCopy(t *testing.T) {
	t.Parallel()
	dead := make(chan struct{})
	s := newScripted(t, standin.Options{Script: func(r standin.Request) (f standin.Fault) {
		if r.Kind == standin.Copy && r.Attempt == 1 {
			<-dead
			f.Refuse = http.StatusServiceUnavailable
		}
		return f
	}})
	l := peopleLoad(4000, 500)
	p := s.push(l.flags("--method", "stage-load", "--commit-batches", "100", "--verify", "full")...).start(t)
	p.until(t, "the COPY", func() bool { return s.fake.Count(standin.Copy) > 0 })
	p.kill(t)
	close(dead)
	assert.Len(t, s.fake.Files(), int(l.batches()))
	is := reportOf(t, s.resume(t).run(t).ends(t, 0))
	assert.True(t, is.Verify.OK)
	assert.Zero(t, is.Result.StoredBytes)
	assert.EqualValues(t, l.batches(), s.fake.Count(standin.Upload), "uploads of both processes")
	s.has(t, l)
	assert.Empty(t, s.fake.Files())
}

// The rows went in, and for every fifth batch or group no answer came, or half of one, which says nothing.
func TestDatabendLostAnswers(t *testing.T) {
	eachDatabendMethod(t, func(t *testing.T, method string, with func(faultOf) *scripted) {
		s := with(func(number int64, attempt int) standin.Fault {
			return standin.Fault{CutAnswer: number%10 == 0 && attempt == 1, Truncate: number%10 == 5 && attempt == 1}
		})
		l := peopleLoad(scaled[int64](3000, 100_000), 50)
		is := reportOf(t, s.push(methodFlags(l, method, "--workers", "4")...).run(t).ends(t, 0))
		loaded := l.batches()
		if method == "stage-load" {
			loaded /= 2
		}
		assert.Equal(t, loaded/5, is.Result.Duplicates, "batches or groups that were found to be in")
		assert.Equal(t, []int64{l.rows, l.batches(), 0}, []int64{is.Result.Rows, is.Result.Batches, is.Result.Unknown})
		assert.EqualValues(t, loaded, s.fake.Count(loads(method)), "none of them was sent twice")
		s.has(t, l)
	})
}

// A batch is not answered in time. A label is a check and no lock, so two requests with one of them would both go in:
// the earlier query is ended before the next attempt is sent.
func TestDatabendOverlap(t *testing.T) {
	eachDatabendMethod(t, func(t *testing.T, method string, with func(faultOf) *scripted) {
		hold := make(chan struct{})
		s := with(func(number int64, attempt int) standin.Fault {
			if number == 2 && attempt == 1 {
				return standin.Fault{Hold: hold}
			}
			return standin.Fault{}
		})
		l := peopleLoad(600, 50)
		is := reportOf(t, s.push(methodFlags(l, method, "--workers", "2", "--batch-timeout", "1s")...).run(t).ends(t, 0))
		close(hold) // the first attempt would go on now
		assert.Positive(t, is.Result.Retries)
		assert.Zero(t, is.Result.Unknown)
		require.Eventually(t, func() bool { return len(s.fake.Running()) == 0 }, patience, 5*time.Millisecond)
		s.has(t, l)

		var order []string
		for _, r := range s.fake.Requests() {
			switch {
			case r.Kind == standin.Kill:
				order = append(order, "kill")
			case r.Kind == loads(method) && labelled(r.Label) == 2:
				order = append(order, "load")
			}
		}
		assert.Equal(t, "load kill load", strings.Join(slices.Compact(order), " "))
	})
}

// A label that is taken at the first attempt is a collision, and no success, though rows of these keys are there.
func TestDatabendLabelTaken(t *testing.T) {
	t.Parallel()
	l := peopleLoad(40, 10)
	var once sync.Once
	var s *scripted
	s = newScripted(t, standin.Options{Script: func(r standin.Request) standin.Fault {
		if r.Kind == standin.Stream {
			once.Do(func() {
				s.fake.TakeLabel(r.Label)
				assert.NoError(t, s.fake.Insert(l.table, l.values(t, 0, 10)...))
			})
		}
		return standin.Fault{}
	}})
	r := s.push(l.flags("--workers", "1", "--retries", "2")...).run(t).ends(t, 1).says(t, "is taken; 10 rows", "start a new run")
	is := reportOf(t, r)
	assert.NotEqual(t, report.OK, is.Result.Outcome)
	assert.False(t, is.Verify.OK)
	assert.Len(t, s.fake.Rows(l.table), 10+int(is.Result.Rows), "rows of others, and those that were acknowledged")
}
