package e2e_test

import (
	"net/url"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/standin/doris"
)

const dorisKind kind = "doris"

// dorisPassword is the user's, of characters that mean something in a URL.
const dorisPassword = "p@ss/w:rd?#%+&= e!"

// cluster is a Doris that belongs to one test: the stand-in in this process. Its database has no client.
type cluster struct {
	*doris.Cluster
	*database
}

func newCluster(t testing.TB, o doris.Options) *cluster {
	t.Helper()
	o.Password = dorisPassword
	c, err := doris.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return &cluster{c, &database{
		kind: dorisKind, state: filepath.Join(t.TempDir(), "state"),
		url: &url.URL{
			Scheme: string(dorisKind), User: url.User("root"), Host: c.SQL, Path: "/" + doris.Database,
			RawQuery: "http_port=" + c.HTTPPort(),
		},
	}}
}

// knowing gives the invocation the password, as a person would who does not want it seen.
func knowing(i invocation) invocation {
	i.env = append(i.env, "TERAPUSH_PASSWORD="+dorisPassword)
	return i
}

func (c *cluster) push(flags ...string) invocation { return knowing(c.database.push(flags...)) }

func (c *cluster) resume(t *testing.T, flags ...string) invocation {
	t.Helper()
	return knowing(c.database.resume(t, flags...))
}

// isExact asserts that the table has every row of the load once, and every value of it, that no byte of the rows went to the
// frontend, and that the password is nowhere.
func (c *cluster) isExact(t testing.TB, l load, results ...result) {
	t.Helper()
	l.isAll(t, c.Table(l.table).Rows)
	for _, r := range c.Requests() {
		require.False(t, r.Kind == doris.Redirect && r.Bytes != 0, "a frontend takes no rows")
	}
	c.hides(t, results...)
}

// hides looks for the password in all that was said and kept.
func (c *cluster) hides(t testing.TB, results ...result) {
	t.Helper()
	hides(t, dorisPassword, everythingIn(t, c.state))
	for _, r := range results {
		hides(t, dorisPassword, r.all())
	}
}

// loads are the stream loads that reached a backend, and the INSERTs.
func (c *cluster) loads() []doris.Request {
	return slices.DeleteFunc(c.Requests(), func(r doris.Request) bool { return !r.Loads() })
}

// Group commit has no labels: it is refused where exactly once is asked for, says what it is, and what it doubles.
func TestDorisGroupCommit(t *testing.T) {
	backendtest.Long(t)
	t.Parallel()
	var lost, loads atomic.Int64
	s := newCluster(t, doris.Options{Backends: 2, Script: func(r doris.Request) doris.Fault {
		cut := r.Loads() && loads.Add(1)%5 == 0
		if cut {
			lost.Add(1)
		}
		return doris.Fault{CutAnswer: cut}
	}})
	l := peopleLoad(5*scaled[int64](400, 10_000), 5)
	flags := l.flags("--group-commit", "async", "--group-commit-interval-ms", "20", "--workers", "32", "--retries", "20")
	s.push(append(flags, "--delivery", "exactly-once")...).fails(t, "group commit", "at-least-once")

	r := s.push(append(flags, "--verify", "full")...).run(t).ends(t, 4)
	is := reportOf(t, r)
	assert.GreaterOrEqual(t, lost.Load(), l.batches()/5)
	assert.Equal(t, []any{"at-least-once", "async_mode"}, []any{is.Plan.Delivery, is.Target.Settings["group_commit"]})
	r.says(t, "group commit", "at least once", "retry of what may be applied")
	assert.Contains(t, is.Cost, "wal_files")
	assert.Equal(t, l.rows, is.Result.Rows, "acknowledged rows, each counted once")
	assert.Equal(t, []any{true, false}, []any{is.Verify.Ran, is.Verify.OK})
	for _, bad := range is.Verify.BadBatches {
		assert.Equal(t, "doubled", bad.Reason)
	}
	assert.Len(t, s.Table("people").Counts(), int(l.rows), "nothing is missing")
	assert.Equal(t, l.rows+5*lost.Load(), s.Rows("people"), "what was sent again is there again")
	assert.Equal(t, s.Rows("people"), is.Verify.FoundRows)
	s.hides(t, r)
}
