package e2e_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	standin "github.com/terapush/terapush/internal/fake/databend"
	"github.com/terapush/terapush/internal/report"
)

// eachDatabendMethod runs a test against a stand-in of its own with every method.
func eachDatabendMethod(t *testing.T, test func(t *testing.T, method string)) {
	t.Parallel()
	for _, method := range databendMethods() {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			test(t, method)
		})
	}
}

// methodFlags are the command line's for a load by one of the methods; two batches make a commit group.
func methodFlags(l load, method string, more ...string) []string {
	flags := l.peopleFlags("--method", method, "--verify", "full")
	if method == "stage-load" {
		flags = append(flags, "--commit-batches", "2")
	}
	return append(flags, more...)
}

// The statement runs, and terapush is killed before the answer: the resume ends the query, or finds that its rows are in.
func TestDatabendKillBeforeTheAnswer(t *testing.T) {
	for name, goesOn := range map[string]bool{"the query still runs": false, "the query went on": true} {
		t.Run(name, func(t *testing.T) {
			eachDatabendMethod(t, func(t *testing.T, method string) {
				hold := make(chan struct{})
				s := newScripted(t, standin.Options{Presign: true, Fault: func(k standin.Kind, label string, attempt int) standin.Fault {
					if k == loads(method) && labelled(label) == 3 && attempt == 1 {
						return standin.Fault{Hold: hold}
					}
					return standin.Fault{}
				}})
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
				assert.True(t, is.Verify.OK)
				assert.Equal(t, []int64{l.rows, 0}, []int64{is.Result.Rows, is.Result.Unknown})
				if !goesOn {
					close(hold) // too late: it was ended
				}
				s.isPeople(t, l)
				assert.Empty(t, s.fake.Files("~"), "files in the stage")
			})
		})
	}
}

// Killed when everything lies in the store and no COPY has been sent: nothing is uploaded again, and nothing stays.
func TestDatabendKillBeforeTheCopy(t *testing.T) {
	t.Parallel()
	d, f, seen := newEngine(t), newFolder(t), newPuts()
	store := seen.front(t, f)
	dead := make(chan struct{})
	var once sync.Once
	t.Cleanup(func() { once.Do(func() { close(dead) }) })
	copies := make(chan struct{}, 100)
	server := newFront(t, "http://"+d.url.Host, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/v1/query" {
			return false
		}
		body, err := io.ReadAll(r.Body)
		r.Body = io.NopCloser(bytes.NewReader(body))
		select {
		case <-dead:
			return false
		default:
		}
		if err != nil || !bytes.Contains(body, []byte("COPY INTO")) {
			return false
		}
		copies <- struct{}{}
		<-dead
		panic(http.ErrAbortHandler) // of a process that is gone
	}, nil)

	l := peopleLoad(4000, 500)
	target := d.target(through(server.address()))
	p := d.pushTo(target, l.peopleFlags("--method", "stage-load", "--commit-batches", "100", "--verify", "full",
		"--via", f.target(behind(store), with("server_endpoint", f.endpoint)))...).start(t)
	p.until(t, "the COPY", func() bool { return len(copies) > 0 })
	p.kill(t)
	once.Do(func() { close(dead) })
	assert.Len(t, f.list(t), int(l.batches()))
	sent, _ := seen.soFar()

	r := d.pushTo(target, "--resume", d.run(t)).run(t).ends(t, 0)
	is := reportOf(t, r)
	assert.True(t, is.Verify.OK)
	assert.Zero(t, is.Result.StoredBytes)
	again, _ := seen.soFar()
	assert.Equal(t, sent, again, "uploads of the first process and of both")
	d.isPeople(t, l, 100)
	d.nothingLeft(t, f)
	keepsSecrets(t, d, storeSecrets(t), r.all())
}

// The rows went in, and no answer came, for every fifth batch or group.
func TestDatabendLostAnswers(t *testing.T) {
	eachDatabendMethod(t, func(t *testing.T, method string) {
		s := newScripted(t, standin.Options{Presign: true, Fault: func(k standin.Kind, label string, attempt int) standin.Fault {
			return standin.Fault{LoseAnswer: k == loads(method) && labelled(label)%5 == 0 && attempt == 1}
		}})
		l := peopleLoad(scaled[int64](3000, 100_000), 50)
		is := reportOf(t, s.push(methodFlags(l, method, "--workers", "4")...).run(t).ends(t, 0))
		loaded := l.batches()
		if method == "stage-load" {
			loaded /= 2
		}
		assert.Equal(t, loaded/5, is.Result.Duplicates, "batches or groups that were found to be in")
		assert.Equal(t, []int64{l.rows, l.batches()}, []int64{is.Result.Rows, is.Result.Batches})
		assert.EqualValues(t, loaded, s.count(loads(method), ""), "none of them was sent twice")
		s.isPeople(t, l)
	})
}

// An answer that ends in the middle says nothing, whatever it answers.
func TestDatabendTruncatedAnswers(t *testing.T) {
	eachDatabendMethod(t, func(t *testing.T, method string) {
		s := newScripted(t, standin.Options{Presign: true, Fault: func(k standin.Kind, label string, attempt int) standin.Fault {
			return standin.Fault{Truncate: (k == loads(method) && labelled(label)%5 == 0 || k == standin.Upload) && attempt == 1}
		}})
		l := peopleLoad(1000, 50)
		is := reportOf(t, s.push(methodFlags(l, method, "--workers", "4")...).run(t).ends(t, 0))
		assert.Positive(t, is.Result.Retries+is.Result.Duplicates)
		assert.Equal(t, []int64{l.rows, 0}, []int64{is.Result.Rows, is.Result.Unknown})
		s.isPeople(t, l)
	})
}

// A batch is not answered in time. A label is a check and no lock, so two requests with one of them would both go in:
// the earlier query is ended before the next attempt is sent.
func TestDatabendOverlap(t *testing.T) {
	eachDatabendMethod(t, func(t *testing.T, method string) {
		hold := make(chan struct{})
		s := newScripted(t, standin.Options{Presign: true, Fault: func(k standin.Kind, label string, attempt int) standin.Fault {
			if k == loads(method) && labelled(label) == 2 && attempt == 1 {
				return standin.Fault{Hold: hold}
			}
			return standin.Fault{}
		}})
		l := peopleLoad(600, 50)
		is := reportOf(t, s.push(methodFlags(l, method, "--workers", "2", "--batch-timeout", "1s")...).run(t).ends(t, 0))
		close(hold) // the first attempt would go on now
		assert.Positive(t, is.Result.Retries)
		assert.Zero(t, is.Result.Unknown)
		require.Eventually(t, func() bool { return len(s.fake.Running()) == 0 }, patience, 5*time.Millisecond)
		s.isPeople(t, l)

		var order []string
		for _, r := range s.fake.Requests() {
			switch {
			case r.Kind == standin.Kill && (len(order) == 0 || order[len(order)-1] != "kill"):
				order = append(order, "kill")
			case r.Kind == loads(method) && labelled(r.Label) == 2:
				order = append(order, "load")
			}
		}
		assert.Equal(t, "load kill load", strings.Join(order, " "))
	})
}

// taken takes a label as soon as it is first used by a load, with a statement of somebody else's.
func taken(t *testing.T, statement string) (s *scripted) {
	t.Helper()
	var once sync.Once
	s = newScripted(t, standin.Options{Fault: func(k standin.Kind, label string, _ int) standin.Fault {
		if k == standin.Stream {
			once.Do(func() { s.say(t, statement, label) })
		}
		return standin.Fault{}
	}})
	s.say(t, "CREATE TABLE other (n BIGINT)", "")
	return s
}

// say sends a statement as another client would.
func (s *scripted) say(t *testing.T, statement, label string) {
	r, err := http.NewRequest(http.MethodPost, "http://"+s.url.Host+"/v1/query", strings.NewReader(fmt.Sprintf(`{"sql":%q}`, statement)))
	if err != nil {
		t.Error(err)
		return
	}
	r.SetBasicAuth("root", "")
	r.Header.Set("X-DATABEND-DEDUPLICATE-LABEL", label)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Error(err)
		return
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body)
	if answer.StatusCode != http.StatusOK || !bytes.Contains(text, []byte(`"error":null`)) {
		t.Errorf("%s: status %d: %s", statement, answer.StatusCode, text)
	}
}

// A label that is taken at the first attempt is a collision, and no success, whether rows of these keys are there or not.
func TestDatabendLabelTaken(t *testing.T) {
	t.Parallel()
	l := small(40)
	l.kind, l.batchRows = "text", 10
	for name, c := range map[string]struct {
		statement string
		rows      int
		says      []string
	}{
		"without rows": {"INSERT INTO other (n) VALUES (1)", 0, []string{"is taken", "start a new run"}},
		"with rows":    {"INSERT INTO documents (document_id, payload) VALUES " + strings.Join(foreignRows(10), ", "), 10, []string{"is taken; 10 rows", "start a new run"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := taken(t, c.statement)
			r := s.push(l.flags("--workers", "1", "--retries", "2")...).run(t)
			r.ends(t, 1).says(t, c.says...)
			is := reportOf(t, r)
			assert.NotEqual(t, report.OK, is.Result.Outcome)
			assert.False(t, is.Verify.OK)
			assert.Len(t, s.fake.Rows("documents"), c.rows+int(is.Result.Rows), "rows of others, and those that were acknowledged")
		})
	}
}

// foreignRows are the first n of the keys, with other payloads.
func foreignRows(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("(%d, 'mine')", i))
	}
	return all
}

// A statement fails inside an answer of status 200, or a streaming load with 400: the server's own words, and after the
// cause is gone the rest of the rows.
func TestDatabendStatementFails(t *testing.T) {
	eachDatabendMethod(t, func(t *testing.T, method string) {
		const words = `invalid number in column "id", line 17`
		var mu sync.Mutex
		broken := true
		s := newScripted(t, standin.Options{Presign: true, Fault: func(k standin.Kind, label string, _ int) standin.Fault {
			mu.Lock()
			defer mu.Unlock()
			if broken && k == loads(method) && labelled(label) == 1 {
				return standin.Fault{Code: 1046, Message: words}
			}
			return standin.Fault{}
		}})
		l := peopleLoad(400, 50)
		r := s.push(methodFlags(l, method, "--workers", "1", "--retries", "2")...).run(t).ends(t, 1)
		r.says(t, words, "--resume")
		assert.Equal(t, report.Failed, reportOf(t, r).Result.Outcome)
		mu.Lock()
		broken = false
		mu.Unlock()
		s.resume(t).run(t).ends(t, 0)
		s.isPeople(t, l)
		assert.Empty(t, s.fake.Files("~"), "files in the stage")
	})
}
