package e2e_test

import (
	"cmp"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/standin"
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

func newCluster(t *testing.T, o doris.Options) *cluster {
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
func (c *cluster) isExact(t *testing.T, l load, results ...result) {
	t.Helper()
	c.holds(t, l.table, 0, l.rows, l.row(t))
	for _, r := range c.Requests() {
		require.False(t, r.Kind == doris.Redirect && r.Bytes != 0, "a frontend takes no rows")
	}
	c.hides(t, results...)
}

// holds asserts that the table has n rows from a number on, each once and as wanted, among whatever others.
func (c *cluster) holds(t *testing.T, name string, first, n int64, want func(i int64) []string) {
	t.Helper()
	table := c.Table(name)
	found := slices.DeleteFunc(table.Rows, func(r standin.Row) bool { return r.Number < first || first+n <= r.Number })
	require.EqualValues(t, n, len(found), "rows in %s", name)
	slices.SortFunc(found, func(a, b standin.Row) int { return cmp.Compare(a.Number, b.Number) })
	for i, r := range found {
		require.Equal(t, first+int64(i), r.Number)
		var got []string
		for j, v := range r.Values {
			got = append(got, standin.Text(table.Schema.Columns[j], v))
		}
		require.Equal(t, want(int64(i)), got, "row %d", r.Number)
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

// loads are the stream loads that reached a backend, and the INSERTs.
func (c *cluster) loads() []doris.Request {
	return slices.DeleteFunc(c.Requests(), func(r doris.Request) bool { return !r.Loads() })
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
			r := s.push(l.flags(append(c.flags, "--workers", "4", "--verify", "full")...)...).run(t).ends(t, 0)
			hasAllFields(t, r.stdout)
			is := reportOf(t, r)
			assert.Empty(t, r.stderr)
			proven(t, is, l.rows)
			assert.Equal(t, []any{l.batches(), l.batches()}, []any{is.Result.Batches, is.Result.Attempts})
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

// Group commit has no labels: it is refused where exactly once is asked for, says what it is, and what it doubles.
func TestDorisGroupCommit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, method string }{{"async", "stream-load"}, {"sync", "insert"}} {
		t.Run(c.mode+" "+c.method, func(t *testing.T) {
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
			flags := l.flags("--method", c.method, "--group-commit", c.mode, "--group-commit-interval-ms", "20",
				"--workers", "32", "--retries", "20")
			s.push(append(flags, "--delivery", "exactly-once")...).fails(t, "group commit", "at-least-once")

			r := s.push(append(flags, "--verify", "full")...).run(t).ends(t, 4)
			is := reportOf(t, r)
			assert.GreaterOrEqual(t, lost.Load(), l.batches()/5)
			assert.Equal(t, []any{"at-least-once", c.mode + "_mode"}, []any{is.Plan.Delivery, is.Target.Settings["group_commit"]})
			r.says(t, "group commit", "at least once", "sending again what may be applied already")
			assert.Equal(t, l.rows, is.Result.Rows, "acknowledged rows, each counted once")
			assert.Equal(t, []any{true, false}, []any{is.Verify.Ran, is.Verify.OK})
			for _, bad := range is.Verify.BadBatches {
				assert.Equal(t, "doubled", bad.Reason)
			}
			assert.Len(t, s.Table("people").Counts(), int(l.rows), "nothing is missing")
			assert.Equal(t, l.rows+5*lost.Load(), s.Rows("people"), "what was sent again is there again")
			assert.Equal(t, s.Rows("people"), is.Verify.FoundRows)
			s.hides(t, r)
			for _, request := range s.loads() {
				assert.Empty(t, request.Label, "group commit takes no label")
			}
		})
	}
}

// Without faults group commit ends exact, waits until the log is in the table, and still promises no more than it can.
func TestDorisGroupCommitWithoutFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ mode, method, workers string }{
		{"async", "stream-load", "8"}, {"async", "insert", "30"}, {"sync", "insert", "200"}, {"sync", "stream-load", "30"},
	} {
		t.Run(c.mode+" "+c.method, func(t *testing.T) {
			t.Parallel()
			s := newCluster(t, doris.Options{})
			l := peopleLoad(2000, 10)
			flags := l.flags("--method", c.method, "--group-commit", c.mode, "--group-commit-interval-ms", "100",
				"--workers", c.workers, "--verify", "full")
			r := s.push(flags...).run(t).ends(t, 0)
			is := reportOf(t, r)
			assert.Equal(t, []any{"at-least-once", true}, []any{is.Plan.Delivery, is.Verify.OK})
			if c.mode == "async" {
				assert.Positive(t, is.Phases.Finish, "the time until the rows could be read")
			}
			s.isExact(t, l, r)
		})
	}
}

// Every method and format takes every dataset.
func TestDorisDatasets(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ method, format string }{
		{"stream-load", "doriscsv"}, {"stream-load", "ndjson"}, {"stream-load", "parquet"}, {"insert", "values"},
		{"s3-load", "doriscsv"}, {"s3-load", "parquet"},
	} {
		t.Run(c.method+" "+c.format, func(t *testing.T) {
			t.Parallel()
			s := newCluster(t, doris.Options{Backends: 2})
			flags := []string{"--method", c.method, "--format", c.format, "--workers", "3", "--verify", "full"}
			if c.method == "s3-load" {
				flags = append(flags, "--via", newFolder(t).target(), "--commit-batches", "3")
			}
			for _, name := range []string{"pairs", "lineitem", "httplogs"} { // row numbers of three kinds
				l := dataLoad(name, 3_003, 501, 0)
				proven(t, reportOf(t, s.push(l.flags(flags...)...).run(t).ends(t, 0)), l.rows)
				s.holds(t, name, 0, l.rows, l.row(t))
			}
		})
	}
}

// Every method and format that carries the documents of the journal; the one that comes first does not.
func TestJournalInDoris(t *testing.T) {
	t.Parallel()
	l := journalLoad(10, 10, 0)
	invocation{args: append([]string{"push", "doris://root@192.0.2.1/d", "--dry-run"}, l.unplaced("--format", "doriscsv")...)}.
		run(t).ends(t, 2).says(t, "doriscsv", "payload", "use format ndjson")
	for flags, format := range map[string]string{
		"--method stream-load": "ndjson", "--method stream-load --format parquet": "parquet", "--method insert": "values",
		"--method s3-load --commit-batches 3": "parquet", "--method stream-load --primary-key": "ndjson",
	} {
		t.Run(flags, func(t *testing.T) {
			t.Parallel()
			s := newCluster(t, doris.Options{Backends: 2})
			given := strings.Fields(flags)
			if strings.Contains(flags, "s3-load") {
				given = append(given, "--via", newFolder(t).target())
			}
			for _, l := range twoJournals(t, s.database, s.push, format, given, []string{"--first-key", "3000"}) {
				s.holds(t, "journal", l.first, l.rows, l.row(t))
			}
			assert.EqualValues(t, 4100, s.Rows("journal"))
		})
	}
}

// A wrong password, a table that cannot take the rows, and a server that is no Doris are found before anything is sent.
func TestDorisPreflight(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{})
	l := fewPeople()
	wrong := s.database.push(l.flags()...)
	wrong.env = []string{"TERAPUSH_PASSWORD=not-the-password"}
	r := wrong.fails(t, "root", "check user")
	assert.NotContains(t, r.all(), "not-the-password")
	s.CreateTable("small", "", standin.Column{Name: "id", Type: "BIGINT"})
	s.push(append(l.flags(), "--table", "small")...).fails(t, "small", "name")
	assert.Empty(t, s.runs(t))
	assert.Empty(t, s.loads(), "nothing was sent")

	d := newDatabase(t, mariaDB)
	other := *d.url
	other.Scheme = "doris"
	s.pushTo(other.String(), l.flags()...).fails(t, "not Doris", "mysql://")
}

// fewPeople is a load of ten small batches.
func fewPeople() load { return peopleLoad(200, 20) }

// Rows that the server cannot read end the run in the words of its error file, and no row of that batch is in.
func TestDorisFilteredRows(t *testing.T) {
	t.Parallel()
	s := newCluster(t, doris.Options{Script: func(r doris.Request) doris.Fault {
		if r.Kind == doris.Load {
			return doris.Fault{Filter: "column(name) values is null"}
		}
		return doris.Fault{}
	}})
	r := s.push(fewPeople().flags("--workers", "1")...).run(t).ends(t, 1)
	r.says(t, "too many filtered rows", "Reason: column(name)", "the server could not read some rows")
	assert.Len(t, s.loads(), 1, "bad rows are not sent again")
	assert.Zero(t, s.Rows("people"))
	assert.Equal(t, report.Failed, reportOf(t, r).Result.Outcome)
	s.hides(t, r)
}
