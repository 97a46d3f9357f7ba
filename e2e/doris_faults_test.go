package e2e_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/internal/standin/doris"
)

// ofBatch reports whether a request carries the batch of that number.
func ofBatch(r doris.Request, number int64) bool {
	return r.Loads() && strings.HasSuffix(r.Label, fmt.Sprintf("_%d", number))
}

// The label is unknown and a part of the rows is there, so nothing tells what became of the batch. It is named, it is not
// sent again, and once the part is removed the run continues and is exact.
func TestDorisUnknown(t *testing.T) {
	backendtest.Long(t)
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
	l := peopleLoad(200, 20)
	r := s.push(l.flags("--workers", "1", "--retries", "1")...).run(t).ends(t, 7)
	r.says(t, "batch 3", "rows 60 to 79", "1 of 20 rows are in the key range")
	is := reportOf(t, r)
	assert.Equal(t, report.Unknown, is.Result.Outcome)
	assert.EqualValues(t, 1, is.Result.Unknown)
	s.resume(t, "--retries", "1").run(t).ends(t, 7).says(t, "batch 3")
	sent := slices.DeleteFunc(s.loads(), func(r doris.Request) bool { return !ofBatch(r, 3) })
	assert.Len(t, sent, 1, "what may be in is not sent again")
	s.Remove("people", 65)
	done := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	s.isExact(t, l, done)
}

// kill -9 again and again, while every fifth load and every seventh redirect fails, in every way there is.
func TestDorisKillAndResume(t *testing.T) {
	backendtest.Long(t)
	t.Parallel()
	ofRedirects := []doris.Fault{{Cut: true}, {Fail: doris.NoBackend}, {HTTPStatus: http.StatusServiceUnavailable}}
	ofLoads := []doris.Fault{
		{CutAnswer: true}, {Cut: true}, {Fail: doris.TooManyVersions},
		{Truncate: true}, {RefuseEarly: doris.TooManyVersions}, {HTTPStatus: http.StatusBadGateway},
	}
	var loads, redirects atomic.Int64
	s := newCluster(t, doris.Options{Backends: 2, Script: func(r doris.Request) (f doris.Fault) {
		switch r.Kind {
		case doris.Redirect:
			if n := redirects.Add(1); n%7 == 0 {
				f = ofRedirects[n/7%3]
			}
		case doris.Load:
			if n := loads.Add(1); n%5 == 0 {
				f = ofLoads[n/5%6]
			}
		}
		return f
	}})
	l := peopleLoad(10_000, 50)
	flags := l.flags("--workers", "8", "--retries", "20", "--max-rate", "2MiB/s")
	for part := int64(1); part <= 2; part++ {
		next := s.push(flags...)
		if part > 1 {
			next = s.resume(t)
		}
		p := next.start(t)
		p.until(t, "rows", func() bool { return s.Rows("people") >= part*l.rows/3 })
		p.kill(t)
	}
	r := s.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
	assert.Equal(t, l.rows, reportOf(t, r).Result.Rows)
	assert.Greater(t, loads.Load(), l.batches())
	s.isExact(t, l, r)
}
