package e2e_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/internal/report"
)

// ofBatch reports whether a request carries the batch of that number, and how often that was tried.
func ofBatch(r doris.Request, number int64) bool {
	return isLoad(r) && strings.HasSuffix(r.Label, fmt.Sprintf("_%d", number))
}

// A load answers with a label in use, whatever the state of the other load is; after that the rows are there once.
func TestDorisLabelExists(t *testing.T) {
	t.Parallel()
	outcome := func(commits bool) <-chan bool {
		c := make(chan bool, 1)
		c <- commits
		return c
	}
	for name, fault := range map[string]doris.Fault{
		"running, and nothing came of it":       {Existing: "RUNNING"},
		"pre-committed, and nothing came of it": {Existing: "PRECOMMITTED"},
		"the answer is lost, then committed":    {Linger: outcome(true)},
		"the answer is lost, then aborted":      {Linger: outcome(false)},
		"the answer is lost, and under way":     {Linger: make(chan bool)},
		"the answer is lost, and committed":     {CutAnswer: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
				if ofBatch(r, 3) && r.Attempt == 1 {
					return fault
				}
				return doris.Fault{}
			}})
			l := fewPeople()
			r := s.push(l.peopleFlags("--workers", "2", "--verify", "full")...).run(t)
			is := reportOf(t, r.ends(t, 0))
			assert.Zero(t, is.Result.Unknown)
			s.isExact(t, l, r)
		})
	}
}

// fewPeople is a load of ten small batches.
func fewPeople() load { return peopleLoad(200, 20) }

// A label that is in although the batch was never sent is another run's, and no success.
func TestDorisForeignLabel(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		if ofBatch(r, 3) {
			return doris.Fault{Existing: "FINISHED"}
		}
		return doris.Fault{}
	}})
	l := fewPeople()
	r := s.push(l.peopleFlags("--workers", "1")...).run(t).ends(t, 7).says(t, "is applied already, although it was never sent")
	assert.Equal(t, report.Unknown, reportOf(t, r).Result.Outcome)
}

// Rows that are committed and not to be seen yet are waited for, before the proof.
func TestDorisPublishTimeout(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"stream-load", "insert"} {
		visible := make(chan struct{})
		var once sync.Once
		l := fewPeople()
		var asked atomic.Bool
		s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
			if isLoad(r) {
				return doris.Fault{PublishTimeout: visible}
			}
			if r.Kind == doris.Statement && strings.Contains(r.SQL, "WHERE `id` BETWEEN 0 AND 199") {
				if asked.Swap(true) { // the second count: terapush has seen that rows are missing, and waits
					once.Do(func() { close(visible) })
				}
			}
			return doris.Fault{}
		}})
		r := s.push(l.peopleFlags("--method", method, "--workers", "2", "--verify", "full")...).run(t).ends(t, 0)
		is := reportOf(t, r)
		assert.Positive(t, is.Phases.Finish)
		assert.Equal(t, l.batches(), is.Result.Attempts, "a publish timeout is no failure")
		s.isExact(t, l, r)
	}
}

// What passes is tried again: too many versions, no backend, a reset, a refusal before the body was read, a bad gateway.
func TestDorisRetries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  doris.Kind
		fault doris.Fault
	}{
		"too many versions":      {doris.Load, doris.Fault{Fail: doris.TooManyVersions}},
		"no backend":             {doris.Load, doris.Fault{Fail: doris.NoBackend}},
		"no backend to name":     {doris.Redirect, doris.Fault{Fail: doris.NoBackend}},
		"frontend resets":        {doris.Redirect, doris.Fault{CutAnswer: true}},
		"frontend unavailable":   {doris.Redirect, doris.Fault{HTTPStatus: http.StatusServiceUnavailable}},
		"backend resets":         {doris.Load, doris.Fault{CutBody: 2000}},
		"refused early":          {doris.Load, doris.Fault{RefuseEarly: doris.TooManyVersions}},
		"backend unavailable":    {doris.Load, doris.Fault{HTTPStatus: http.StatusBadGateway}},
		"half an answer":         {doris.Load, doris.Fault{Truncate: true}},
		"too many versions, SQL": {doris.Statement, doris.Fault{Fail: doris.TooManyVersions}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var seen, failed atomic.Int64
			s := newCluster(t, doris.Options{Backends: 2, Script: func(r doris.Request) doris.Fault {
				if r.Kind != c.kind || r.Kind == doris.Statement && !isLoad(r) || seen.Add(1)%4 != 0 {
					return doris.Fault{}
				}
				failed.Add(1)
				return c.fault
			}})
			l, method := peopleLoad(800, 20), "stream-load"
			if c.kind == doris.Statement {
				method = "insert"
			}
			r := s.push(l.peopleFlags("--method", method, "--workers", "8", "--retries", "20", "--verify", "full")...).run(t).ends(t, 0)
			is := reportOf(t, r)
			assert.Positive(t, failed.Load())
			assert.Equal(t, []int64{l.rows, 0}, []int64{is.Result.Rows, is.Result.Unknown})
			if c.fault.Fail != "" || c.fault.RefuseEarly != "" {
				assert.Equal(t, failed.Load(), is.Result.Retries)
			}
			s.isExact(t, l, r)
		})
	}
}

// What does not pass ends the run in the server's own words, and a resume goes on once it is repaired.
func TestDorisRefusals(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind  doris.Kind
		fault doris.Fault
		says  []string
	}{
		"frontend refuses":    {doris.Redirect, doris.Fault{Fail: "Cluster is in safe mode."}, []string{"Cluster is in safe mode."}},
		"frontend forbids":    {doris.Redirect, doris.Fault{HTTPStatus: http.StatusUnauthorized}, []string{"401", "GRANT LOAD_PRIV"}},
		"backend forbids":     {doris.Load, doris.Fault{HTTPStatus: http.StatusForbidden}, []string{"403", "GRANT LOAD_PRIV"}},
		"backend refuses":     {doris.Load, doris.Fault{Fail: "[ANALYSIS_ERROR]errCode = 2, detailMessage = no such thing"}, []string{"no such thing"}},
		"never a backend":     {doris.Redirect, doris.Fault{Fail: doris.NoBackend}, []string{"No backend load available", "SHOW BACKENDS"}},
		"always too many":     {doris.Load, doris.Fault{Fail: doris.TooManyVersions}, []string{"-235", "compaction is behind"}},
		"another label":       {doris.Load, doris.Fault{Label: "made_up"}, []string{"an earlier batch failed: the server replaced the label", "by made_up", "--delivery at-least-once"}},
		"the frontend is TLS": {doris.Redirect, doris.Fault{HTTPS: true}, []string{"8050"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var broken atomic.Bool
			var seen atomic.Int64
			broken.Store(true)
			s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
				if r.Kind == c.kind && broken.Load() && seen.Add(1) > 3 {
					return c.fault
				}
				return doris.Fault{}
			}})
			l := fewPeople()
			r := s.push(l.peopleFlags("--workers", "1", "--retries", "1")...).run(t).ends(t, 1).says(t, append(c.says, "to go on: terapush")...)
			is := reportOf(t, r)
			assert.Equal(t, report.Failed, is.Result.Outcome)
			assert.Zero(t, is.Result.Unknown)
			s.hides(t, r)
			broken.Store(false)
			again := s.resume(t, "--verify", "full").run(t).ends(t, 0)
			s.isExact(t, l, again)
		})
	}
}

// A wrong password is found before anything is written, by either protocol, and never repeated.
func TestDorisPreflight(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	l := fewPeople()
	wrong := s.database.push(l.peopleFlags()...)
	wrong.env = []string{"TERAPUSH_PASSWORD=not-the-password"}
	r := wrong.fails(t, "root", "check user")
	assert.NotContains(t, r.all(), "not-the-password")
	inURL := s.pushTo(s.target(as("root", "not-the-password")), l.peopleFlags()...).fails(t, "root", "check user")
	assert.NotContains(t, inURL.all(), "not-the-password")

	knowing(s.pushTo(s.target(through("127.0.0.1:"+freePort(t))), l.peopleFlags()...)).fails(t, "connection refused", "9030")
	knowing(s.pushTo(s.target(through(deafServer(t))), l.peopleFlags()...)).fails(t, "no answer within 10s")
	s.push(l.peopleFlags("--create", "never")...).fails(t, "people", "does not exist")
	s.must(t, "CREATE TABLE small (id BIGINT NOT NULL) DUPLICATE KEY(id) DISTRIBUTED BY HASH(id) BUCKETS 1 PROPERTIES (\"replication_num\" = \"1\")")
	s.push(append(l.peopleFlags(), "--table", "small")...).fails(t, "small", "name")
	assert.Empty(t, s.runs(t))
	assert.Empty(t, s.loads(), "nothing was sent")

	// Another server of that protocol is no Doris.
	d := newDatabase(t, mariaDB)
	other := *d.url
	other.Scheme = "doris"
	s.pushTo(other.String(), l.peopleFlags()...).fails(t, "not Doris", "mysql://")
}

// Rows that the server cannot read end the run in the words of its error file, and no row of that batch is in. Here the
// table gets narrower behind the back of a run that has found it fit.
func TestDorisFilteredRows(t *testing.T) {
	t.Parallel()
	var once sync.Once
	started := make(chan *cluster, 1) // the script is there before the cluster it belongs to
	s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		if r.Kind == doris.Redirect && r.Attempt > 1 { // the first asks for the way, before there is a table
			once.Do(func() {
				s := <-started
				ddl := secondAnswer(t, s.database, "SHOW CREATE TABLE people")
				narrow := strings.Replace(ddl, "`name` varchar(16)", "`name` varchar(15)", 1)
				assert.NotEqual(t, ddl, narrow)
				assert.NoError(t, s.exec("DROP TABLE people"))
				assert.NoError(t, s.exec(narrow))
			})
		}
		return doris.Fault{}
	}})
	started <- s
	l := fewPeople()
	r := s.push(l.peopleFlags("--workers", "1")...).run(t).ends(t, 1)
	r.says(t, "too many filtered rows", "Reason:", "name", "the server could not read some rows")
	assert.Len(t, s.loads(), 1, "bad rows are not sent again")
	assert.Zero(t, s.Rows("d.people"))
	s.hides(t, r)
}

// secondAnswer answers a question whose answer stands in the second column.
func secondAnswer(t *testing.T, d *database, query string) (answer string) {
	t.Helper()
	var first string
	assert.NoError(t, d.query(query, func(scan func(...any) error) error { return scan(&first, &answer) }), query)
	return answer
}

// The label is forgotten and a part of the rows is there: nobody can say what became of the batch. It is named, it is not
// sent again, and once the part is removed the run goes on and is exact.
func TestDorisUnknown(t *testing.T) {
	t.Parallel()
	started := make(chan *cluster, 1)
	s := newCluster(t, doris.Options{LabelLife: time.Nanosecond, Script: func(r doris.Request) doris.Fault {
		if !ofBatch(r, 3) || r.Attempt > 1 {
			return doris.Fault{}
		}
		s := <-started
		assert.NoError(t, s.exec("INSERT INTO people VALUES ('"+strings.Join(newPeopleRows(t, 65).step(), "', '")+"')"))
		return doris.Fault{CutBody: 10}
	}})
	started <- s
	l := fewPeople()
	r := s.push(l.peopleFlags("--workers", "1", "--retries", "1")...).run(t).ends(t, 7)
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
	s.must(t, "DELETE FROM people WHERE id = 65")
	done := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	s.isExact(t, l, done)
}

// A cluster that does not tell about labels leaves a batch unknown whose answer was lost, and nothing else. Once it tells,
// the run goes on and is exact.
func TestDorisCannotTell(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		return doris.Fault{CutAnswer: ofBatch(r, 3) && r.Attempt == 1}
	}})
	var mute atomic.Bool
	mute.Store(true)
	cloud := newFront(t, "http://"+s.HTTPAddress(), func(w http.ResponseWriter, r *http.Request) bool {
		if !mute.Load() || !strings.HasSuffix(r.URL.Path, "/get_load_state") {
			return false
		}
		_, _ = io.WriteString(w, `{"msg":"Error","code":1,"data":"errCode = 2, detailMessage = Not supported","count":0}`)
		return true
	}, nil)
	_, port, _ := strings.Cut(cloud.address(), ":")
	target := s.target(with("http_port", port))
	l := fewPeople()
	r := knowing(s.pushTo(target, l.peopleFlags("--workers", "2", "--retries", "2")...)).run(t).ends(t, 7)
	r.says(t, "Not supported", "batch 3")
	is := reportOf(t, r)
	assert.Equal(t, report.Unknown, is.Result.Outcome)
	assert.EqualValues(t, 1, is.Result.Unknown)
	s.hides(t, r)

	still := knowing(s.pushTo(target, "--resume", is.Run.ID, "--retries", "1")).run(t).ends(t, 7)
	assert.EqualValues(t, 1, reportOf(t, still).Result.Unknown)
	mute.Store(false)
	done := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	assert.EqualValues(t, 1, reportOf(t, done).Result.Duplicates)
	s.isExact(t, l, done)
}

// kill -9 between the body and its answer: the resume finds the batch in, and sends it no second time.
func TestDorisKillBeforeTheAnswer(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	answered, n := make(chan struct{}, 1), atomic.Int64{}
	backend := newFront(t, "http://"+s.BackendAddresses()[0], nil, func(r *http.Response) error {
		if n.Add(1) != 4 {
			return nil
		}
		answered <- struct{}{}
		<-r.Request.Context().Done() // the client is dead
		return r.Request.Context().Err()
	})
	l := peopleLoad(2000, 100)
	detour := []string{"--be", s.BackendAddresses()[0] + "=" + backend.address(), "--workers", "1"}
	p := s.push(l.peopleFlags(detour...)...).start(t)
	<-answered
	p.kill(t)
	assert.EqualValues(t, 400, s.Rows("d.people"), "the fourth batch is in")
	r := s.resume(t, "--verify", "full").run(t).ends(t, 0)
	is := reportOf(t, r)
	assert.EqualValues(t, 1, is.Result.Duplicates)
	assert.EqualValues(t, 300, is.Run.ResumedRows)
	s.isExact(t, l, r)
	attempts := map[string]int{}
	for _, request := range s.loads() {
		attempts[request.Label]++
	}
	assert.Len(t, attempts, int(l.batches()))
	for label, times := range attempts {
		assert.Equal(t, 1, times, label)
	}
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
		p := s.push(l.peopleFlags("--method", method, "--workers", "2")...).start(t)
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
		close(held) // the dead one's request goes on, late
		r := next.wait(t).ends(t, 0)
		assert.Zero(t, reportOf(t, r).Result.Unknown)
		s.isExact(t, l, r)
	}
}

// kill -9 again and again, under losses.
func TestDorisKillAndResume(t *testing.T) {
	t.Parallel()
	var lost atomic.Int64
	s := newCluster(t, doris.Options{Backends: 2, Script: lossy(&lost)})
	l := peopleLoad(20_000, 50)
	flags := l.peopleFlags("--workers", "8", "--retries", "20", "--max-rate", "4MiB/s")
	for part := int64(1); part <= 4; part++ {
		next := s.push(flags...)
		if part > 1 {
			next = s.resume(t)
		}
		p := next.start(t)
		p.until(t, "rows", func() bool { return s.Rows("d.people") >= part*l.rows/5 })
		p.kill(t)
	}
	r := s.resume(t, "--max-rate", "1GiB/s", "--verify", "full").run(t).ends(t, 0)
	assert.Equal(t, l.rows, reportOf(t, r).Result.Rows)
	assert.Positive(t, lost.Load())
	s.isExact(t, l, r)
}
