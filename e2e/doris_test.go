package e2e_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/internal/report"
)

const dorisKind kind = "doris"

// dorisPassword is the user's, of characters that mean something in a URL.
const dorisPassword = "p@ss/w:rd?#%+&= e!"

// cluster is a Doris that belongs to one test: the stand-in in this process, which keeps the rows, seen by a MySQL client
// and by what it tells of itself.
type cluster struct {
	*doris.Cluster
	*database
}

func newCluster(t *testing.T, o doris.Options) *cluster {
	t.Helper()
	o.Password = dorisPassword
	c, err := doris.Start(o)
	require.NoError(t, err)
	t.Cleanup(c.Close)
	u := &url.URL{Scheme: string(dorisKind), User: url.UserPassword("root", o.Password), Host: c.SQLAddress(), Path: "/"}
	require.NoError(t, newClient(t, dorisKind, u).exec("CREATE DATABASE d"))
	u.Path = "/d"
	d := &database{kind: dorisKind, client: newClient(t, dorisKind, u), state: filepath.Join(t.TempDir(), "state")}
	d.url = &url.URL{Scheme: u.Scheme, User: url.User("root"), Host: u.Host, Path: u.Path, RawQuery: "http_port=" + c.HTTPPort()}
	return &cluster{c, d}
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

func (c *cluster) again(t *testing.T, command string, flags ...string) invocation {
	t.Helper()
	return knowing(c.database.again(t, command, flags...))
}

// isExact asks the cluster: every row of the load once, the rows of the first batches as they have to be, no byte of
// them at the frontend, and the password nowhere.
func (c *cluster) isExact(t *testing.T, l load, results ...result) {
	t.Helper()
	counts := c.KeyCounts("d." + l.table)
	require.Len(t, counts, int(l.rows), "different keys in the table")
	for key, n := range counts {
		require.Equal(t, 1, n, "rows with key %s", key)
	}
	c.holdsPeople(t, l)
	assert.Zero(t, c.FrontendBodyBytes(), "a frontend takes no rows")
	c.hides(t, results...)
}

// holdsPeople compares the first and the last rows of the load, every field of them.
func (c *cluster) holdsPeople(t *testing.T, l load) {
	t.Helper()
	const some = 300
	for _, first := range []int64{0, max(0, l.rows-some)} {
		want, n := newPeopleRows(t, first), 0
		require.NoError(t, c.query(fmt.Sprintf("SELECT * FROM %s WHERE id >= %d AND id < %d ORDER BY id", l.table, first, first+some),
			func(scan func(...any) error) error {
				row := want.step()
				got, into := make([]string, len(row)), make([]any, len(row))
				for i := range into {
					into[i] = &got[i]
				}
				n++
				if err := scan(into...); err != nil || equalRow(row, got) {
					return err
				}
				return fmt.Errorf("row %d: %v, want %v", first, got, row)
			}))
		require.EqualValues(t, min(some, l.rows), n)
	}
}

// hides looks for the password in all that was said and kept.
func (c *cluster) hides(t *testing.T, results ...result) {
	t.Helper()
	hides(t, dorisPassword, everythingIn(t, c.state))
	for _, r := range results {
		hides(t, dorisPassword, r.all())
	}
}

// loads are the stream loads that reached a backend, and the statements with a label.
func (c *cluster) loads() (all []doris.Request) {
	for _, r := range c.Requests() {
		if r.Kind == doris.Load || r.Kind == doris.Statement && strings.HasPrefix(r.SQL, "INSERT") {
			all = append(all, r)
		}
	}
	return all
}

// isLoad reports whether a request carries rows.
func isLoad(r doris.Request) bool {
	return r.Kind == doris.Load || r.Kind == doris.Statement && strings.HasPrefix(r.SQL, "INSERT")
}

// Every method and format, and a report that says what was done.
func TestDoris(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rows  int64
		flags []string
	}{
		// The stand-in parses rows in this process, under the race detector.
		"csv":     {scaled[int64](20_000, 1_000_000), nil},
		"ndjson":  {scaled[int64](10_000, 20_000), []string{"--format", "ndjson"}},
		"parquet": {scaled[int64](10_000, 20_000), []string{"--format", "parquet"}},
		"insert":  {scaled[int64](5_000, 10_000), []string{"--method", "insert"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newCluster(t, doris.Options{Backends: 3})
			l := peopleLoad(c.rows, c.rows/20)
			r := s.push(l.peopleFlags(append(c.flags, "--workers", "4", "--verify", "full")...)...).run(t).ends(t, 0)
			hasAllFields(t, r.stdout)
			is := reportOf(t, r)
			assert.Empty(t, r.stderr)
			assert.Equal(t, report.OK, is.Result.Outcome)
			assert.Equal(t, []any{"exactly-once", l.rows, l.batches(), l.batches()},
				[]any{is.Plan.Delivery, is.Result.Rows, is.Result.Batches, is.Result.Attempts})
			assert.Equal(t, []any{"full", true, true, l.rows, l.rows}, []any{is.Verify.Mode, is.Verify.Ran, is.Verify.OK, is.Verify.ExpectedRows, is.Verify.FoundRows})
			assert.Positive(t, is.Verify.SampledRows)
			assert.Zero(t, is.Result.Retries+is.Result.Duplicates+is.Result.Unknown+is.Result.Missing+is.Result.GivenUp)
			assert.Contains(t, is.Target.Server, "Doris")
			assert.Equal(t, "off_mode", is.Target.Settings["group_commit"])
			s.isExact(t, l, r)
			labels := map[string]bool{}
			for _, request := range s.loads() {
				labels[request.Label] = true
				assert.Contains(t, request.Label, is.Run.ID)
			}
			assert.Len(t, labels, int(l.batches()), "one label a batch")
		})
	}
}

// A proof later, from the run's record alone, sees what has changed since; forget leaves the rows.
func TestDorisVerifyLater(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	l := peopleLoad(2000, 100)
	s.push(l.peopleFlags("--verify", "none")...).run(t).ends(t, 0)
	is := reportOf(t, s.again(t, "verify", "--json", "--verify", "full").run(t).ends(t, 0))
	assert.Equal(t, []any{true, l.rows}, []any{is.Verify.OK, is.Verify.FoundRows})
	s.must(t, "DELETE FROM people WHERE id = 1234")
	is = reportOf(t, s.again(t, "verify", "--json").run(t).ends(t, 4))
	if assert.Len(t, is.Verify.BadBatches, 1) {
		assert.Equal(t, []any{int64(12), "short"}, []any{is.Verify.BadBatches[0].Number, is.Verify.BadBatches[0].Reason})
	}
	s.again(t, "forget").run(t).ends(t, 0)
	assert.Empty(t, s.runs(t))
	assert.EqualValues(t, l.rows-1, s.Rows("d.people"))
}

// lossy loses one answer in five, in every way there is. It counts what it did.
func lossy(lost *atomic.Int64) func(doris.Request) doris.Fault {
	var loads atomic.Int64
	return func(r doris.Request) doris.Fault {
		if !isLoad(r) {
			return doris.Fault{}
		}
		n := loads.Add(1)
		if n%5 != 0 {
			return doris.Fault{}
		}
		lost.Add(1)
		if r.Kind == doris.Statement {
			return doris.Fault{CutAnswer: n%2 == 0, CutBody: n % 2}
		}
		return []doris.Fault{{CutAnswer: true}, {Truncate: true}, {CutBody: 500}}[n/5%3]
	}
}

// A thousand small batches, one answer in five is lost: labels make every row arrive once.
func TestDorisLostAnswers(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"stream-load", "insert"} {
		t.Run(method, func(t *testing.T) {
			t.Parallel()
			var lost atomic.Int64
			s := newCluster(t, doris.Options{Backends: 2, Script: lossy(&lost)})
			l := peopleLoad(5*scaled[int64](1000, 10_000), 5)
			r := s.push(l.peopleFlags("--method", method, "--workers", "16", "--retries", "20", "--verify", "full")...).run(t).ends(t, 0)
			is := reportOf(t, r)
			assert.GreaterOrEqual(t, lost.Load(), l.batches()/5)
			assert.GreaterOrEqual(t, is.Result.Duplicates, lost.Load()/3, "batches found to be in")
			assert.Equal(t, []any{"exactly-once", l.rows, l.batches(), int64(0)}, []any{is.Plan.Delivery, is.Result.Rows, is.Result.Batches, is.Result.Unknown})
			s.isExact(t, l, r)
		})
	}
}

// Group commit has no labels: it is refused where exactly once is asked for, says what it is, and what it doubles.
func TestDorisGroupCommit(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"async", "sync"} {
		for _, method := range []string{"stream-load", "insert"} {
			t.Run(mode+" "+method, func(t *testing.T) {
				t.Parallel()
				var lost, loads atomic.Int64
				s := newCluster(t, doris.Options{Backends: 2, Script: func(r doris.Request) doris.Fault {
					cut := isLoad(r) && loads.Add(1)%5 == 0
					if cut {
						lost.Add(1)
					}
					return doris.Fault{CutAnswer: cut}
				}})
				l := peopleLoad(5*scaled[int64](400, 10_000), 5)
				flags := l.peopleFlags("--method", method, "--group-commit", mode, "--group-commit-interval-ms", "20", "--workers", "32", "--retries", "20")
				s.push(append(flags, "--delivery", "exactly-once")...).fails(t, "group commit", "at-least-once")

				r := s.push(append(flags, "--verify", "full")...).run(t).ends(t, 4)
				is := reportOf(t, r)
				assert.GreaterOrEqual(t, lost.Load(), l.batches()/5)
				assert.Equal(t, "at-least-once", is.Plan.Delivery)
				assert.Contains(t, strings.Join(is.Warnings, "\n"), "at least once")
				assert.Equal(t, mode+"_mode", is.Target.Settings["group_commit"])
				r.says(t, "group commit", "at least once", "sending again what may be applied already")
				assert.Equal(t, l.rows, is.Result.Rows, "acknowledged rows, each counted once")
				assert.Equal(t, []any{true, false}, []any{is.Verify.Ran, is.Verify.OK})
				for _, bad := range is.Verify.BadBatches {
					assert.Equal(t, "doubled", bad.Reason)
				}
				counts := s.KeyCounts("d.people")
				assert.Len(t, counts, int(l.rows), "nothing is missing")
				total := 0
				for _, n := range counts {
					total += n
				}
				assert.EqualValues(t, total, is.Verify.FoundRows)
				assert.Equal(t, l.rows+5*lost.Load(), is.Verify.FoundRows, "what was sent again is there again")
				s.hides(t, r)
				for _, request := range s.loads() {
					assert.Empty(t, request.Label, "group commit takes no label")
				}
			})
		}
	}
}

// Without faults group commit ends exact, waits until the log is in the table, and still promises no more than it can.
func TestDorisGroupCommitInPeace(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	l := peopleLoad(2000, 20)
	r := s.push(l.peopleFlags("--group-commit", "async", "--group-commit-interval-ms", "300", "--workers", "8", "--verify", "full")...).run(t).ends(t, 0)
	is := reportOf(t, r)
	assert.Equal(t, "at-least-once", is.Plan.Delivery)
	assert.True(t, is.Verify.OK)
	s.isExact(t, l, r)
}

// The server merges nothing although it was asked to, and says so only by what is missing in its answer.
func TestDorisSilentFallback(t *testing.T) {
	t.Parallel()
	for _, method := range []string{"stream-load", "insert"} {
		s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault { return doris.Fault{NoGroup: isLoad(r)} }})
		l := peopleLoad(200, 20)
		r := s.push(l.peopleFlags("--method", method, "--group-commit", "sync", "--workers", "1")...).run(t).ends(t, 1)
		r.says(t, "the server did not merge the load, as group commit requires", "light_schema_change")
		assert.LessOrEqual(t, len(s.loads()), 1, "it stops at the first one")
	}
}

// The dry run of every method shows its statements and no secret.
func TestDorisDryRun(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flags []string
		shows []string
	}{
		"stream-load": {nil, []string{"CREATE TABLE", "DUPLICATE KEY", "DISTRIBUTED BY HASH", "PUT ", "/api/d/people/_stream_load", "label: terapush_",
			"max_filter_ratio: 0", "group_commit: off_mode", "exactly-once by label"}},
		"grouped": {[]string{"--group-commit", "async", "--group-commit-interval-ms", "500"}, []string{"group_commit: async_mode", "at-least-once",
			`"group_commit_interval_ms" = "500"`}},
		"insert":  {[]string{"--method", "insert"}, []string{"INSERT INTO `d`.`people` WITH LABEL", "VALUES", "enable_insert_strict"}},
		"s3-load": {[]string{"--method", "s3-load", "--via", "s3://some-bucket/in?region=eu-central-1"}, []string{"FROM S3(", "s3://some-bucket/in/RUN/", "WITH LABEL", "CAST(c1 AS BIGINT)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := knowing(invocation{
				args: append([]string{"push", "doris://root@192.0.2.1/d", "--dataset", "people", "--rows", "100000", "--dry-run"}, c.flags...),
				env:  []string{"AWS_ACCESS_KEY_ID=the-id-itself", "AWS_SECRET_ACCESS_KEY=the-key-itself", "AWS_SESSION_TOKEN=the-token-itself"},
			})
			r := i.run(t).ends(t, 0)
			for _, text := range append(c.shows, "100,000", "people") {
				assert.Contains(t, r.stdout, text)
			}
			assert.NotContains(t, r.all(), "-itself")
			hides(t, dorisPassword, r.all())
		})
	}
}

// What Doris cannot be asked for is refused before anybody is reached.
func TestDorisUsage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ flags, says []string }{
		"orc":            {[]string{"--format", "orc"}, []string{"orc"}},
		"no store":       {[]string{"--method", "s3-load"}, []string{"--via s3://"}},
		"needless store": {[]string{"--via", "s3://some-bucket/in"}, []string{"--via", "stream-load stores no objects"}},
		"group commit":   {[]string{"--group-commit", "on"}, []string{"off, sync, async"}},
		"session":        {[]string{"--set", "exec_mem_limit=1"}, []string{"stream load has no session"}},
		"through --set":  {[]string{"--method", "insert", "--set", "group_commit=async_mode"}, []string{"--group-commit"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append([]string{"push", "doris://root@192.0.2.1/d", "--dataset", "people", "--rows", "10"}, c.flags...)
			run(t, args...).ends(t, 2).says(t, c.says...)
		})
	}
}
