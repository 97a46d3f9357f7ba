package postgres_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/fake/bucket"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// cloud is a scripted Redshift, or an Aurora PostgreSQL with aws_s3. What it answers follows Amazon's documentation;
// nobody has run these tests against a real one.
type cloud struct {
	*fake
	bucket  *bucket.Bucket
	version string

	mu       sync.Mutex
	claims   map[string]string // committed, by group: what the claim says of its rows
	open     string            // the group that the open transaction claims
	fail     map[string]string // statements, by a part of them, that fail, and what the server says
	loseIt   bool              // the answer to COMMIT
	short    int               // rows that are missing from every count
	noImport bool

	serverless bool // stl_load_errors is empty
}

const (
	redshiftVersion = "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2, Redshift 1.0.117891"
	auroraVersion   = "PostgreSQL 16.4 on aarch64-unknown-linux-gnu, compiled by aarch64-unknown-linux-gnu-gcc (GCC) 9.5.0, 64-bit"

	secretKey, sessionToken = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", "FwoGZXIvYXdzEBYaDEXAMPLETOKEN"
)

func newCloud(t *testing.T, version string) *cloud {
	t.Setenv("AWS_ACCESS_KEY_ID", "ASIAEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	t.Setenv("AWS_SESSION_TOKEN", sessionToken)
	c := &cloud{version: version, bucket: bucket.Start(), claims: make(map[string]string), fail: make(map[string]string)}
	t.Cleanup(c.bucket.Close)
	c.fake = newFake(t, c.answer)
	return c
}

func (c *cloud) target(method string) loader.Target {
	scheme := "postgres"
	if method == "s3-copy" {
		scheme = "redshift"
	}
	return loader.Target{
		Scheme: scheme, Hosts: []string{fmt.Sprintf("127.0.0.1:%d", c.port())}, User: "u", Database: "d", Table: "people",
		Method: method, Options: map[string]string{}, TLS: loader.TLSOff, Via: c.bucket.Target(),
	}
}

func (c *cloud) answer(f *fakeConn, sql string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for part, says := range c.fail {
		if strings.Contains(sql, part) {
			f.fails("XX000", says+"; the statement was "+sql)
			return true
		}
	}
	if sql == "COMMIT" && c.open != "" {
		c.claims[c.open], c.open = "20", ""
		if c.loseIt {
			return false
		}
	}
	switch {
	case sql == "SELECT version()":
		f.rows([]string{c.version})
	case strings.Contains(sql, "FROM pg_settings"):
		f.rows([]string{"fsync", "on"})
	case strings.Contains(sql, "FROM pg_proc"):
		if c.noImport {
			f.rows()
			return true
		}
		f.rows([]string{"1.2"})
	case strings.Contains(sql, "pid = pg_backend_pid()") && strings.Contains(sql, "backend_start"):
		f.rows([]string{"100", "1700000000.5"})
	case strings.Contains(sql, "application_name ="):
		f.rows()
	case strings.Contains(sql, "has_table_privilege(c.oid, 'DELETE')"):
		f.rows([]string{"t", "logged", "t"})
	case strings.Contains(sql, "FROM pg_class") && c.version == redshiftVersion:
		f.rows([]string{"16384", "0", "public", "people", "r", "made by terapush", "p", "t"})
	case strings.Contains(sql, "FROM pg_class"):
		f.rows([]string{"16384", "16384", "public", "people", "r", "made by terapush", "p", "t"})
	case strings.Contains(sql, "FROM pg_attribute"):
		name := "text"
		if c.version == redshiftVersion {
			name = "character varying"
		}
		f.rows([]string{"id", "bigint", "bigint", "t"}, []string{"name", name, name + "(40)", "t"},
			[]string{"birthday", "date", "date", "t"},
			[]string{"t", "timestamp without time zone", "timestamp without time zone", "t"})
	case strings.HasPrefix(sql, "SELECT row_count"):
		if n, is := c.claims[numberIn(sql, "batch = ")]; is {
			f.rows([]string{n})
			return true
		}
		f.rows()
	case strings.HasPrefix(sql, "SELECT COUNT(*)"):
		f.rows([]string{"0"})
	case strings.Contains(sql, "INSERT INTO") && strings.Contains(sql, "terapush_claims"):
		c.insert(f, sql)
	case strings.Contains(sql, "pg_last_copy_count"):
		f.rows([]string{fmt.Sprint(c.rowsIn("in/run-1/g"+fmt.Sprintf("%012s", c.folder())+"/") - c.short)})
	case strings.Contains(sql, "aws_s3.table_import_from_s3("):
		c.fake.mu.Lock()
		key := c.with[len(c.with)-1][4]
		c.fake.mu.Unlock()
		f.rows([]string{fmt.Sprintf(`%d rows imported into relation "people" from file %s of 99 bytes`, c.rowsIn(key)-c.short, key)})
	case strings.Contains(sql, "stl_load_errors") && c.serverless:
		f.rows()
	case strings.Contains(sql, "stl_load_errors"), strings.Contains(sql, "sys_load_error_detail"):
		f.rows([]string{"s3://bucket/in/x.csv", "7", "name", "String length exceeds DDL length"})
	case sql == "ROLLBACK":
		c.open = ""
		f.tag("ROLLBACK")
	default:
		f.tag(strings.Fields(sql)[0])
	}
	return true
}

// insert claims, unless the claim is there. PostgreSQL's claim begins its transaction in the same message.
func (c *cloud) insert(f *fakeConn, sql string) {
	c.open = numberIn(sql, "VALUES ('run-1', ")
	if strings.HasPrefix(sql, "BEGIN") {
		f.tag("BEGIN")
	}
	_, taken := c.claims[c.open]
	if taken {
		c.open = ""
		f.tag("INSERT 0 0")
	} else {
		f.tag("INSERT 0 1")
	}
	if strings.HasSuffix(sql, "ROLLBACK") {
		c.open = ""
		f.tag("ROLLBACK")
	}
}

func (c *cloud) folder() string {
	if c.open == "-2" {
		return "999999999999"
	}
	return c.open
}

// rowsIn counts the lines of the objects below a prefix.
func (c *cloud) rowsIn(prefix string) (n int) {
	for _, key := range c.bucket.Keys() {
		if strings.HasPrefix(key, prefix) {
			n += strings.Count(c.bucket.Get(key), "\n")
		}
	}
	return n
}

func numberIn(sql, after string) string {
	_, text, _ := strings.Cut(sql, after)
	return text[:strings.IndexFunc(text+" ", func(r rune) bool { return r != '-' && (r < '0' || r > '9') })]
}

// session lists all that clients said, and the parameters of what had some, secrets aside.
func (c *cloud) session() string {
	c.fake.mu.Lock()
	defer c.fake.mu.Unlock()
	text := strings.Join(c.said, "\n") + "\n"
	for _, values := range c.with {
		text += fmt.Sprintf("with %q\n", values)
	}
	return strings.NewReplacer(secretKey, "SECRET", sessionToken, "TOKEN").Replace(text)
}

func people() rows.Schema {
	return rows.Schema{
		Dataset: "people",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "name", Type: rows.Text, MaxBytes: 40},
			{Name: "birthday", Type: rows.Date},
			{Name: "t", Type: rows.Timestamp},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
}

func groups(method string) loader.Contract {
	return loader.Contract{
		Method: method, Format: batch.CSV, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 10, GroupBatches: 2, Commits: 1,
	}
}

// openCloud stores batches 0, 1 and 2 of ten rows: group 0 is whole, group 1 has one.
func openCloud(t *testing.T, c *cloud, to loader.Target, contract loader.Contract) loader.Loader {
	t.Helper()
	l, err := postgres.New().Open(t.Context(), to, deps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), loader.Preparation{Run: "run-1", Schema: people(), Contract: contract, Create: loader.CreateNever})
	require.NoError(t, err)
	s, err := l.Session(t.Context(), contract)
	require.NoError(t, err)
	for n := range int64(3) {
		b := csvBatch(n, 10)
		ack, err := s.Load(t.Context(), b)
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Stored: true, Rows: 10}, ack)
	}
	require.NoError(t, s.Close())
	return l
}

func csvBatch(number, n int64) *batch.Batch {
	b := &batch.Batch{ID: batch.ID{Run: "run-1", Number: number}, Format: batch.CSV, First: number * 10, Rows: n}
	for i := range n {
		b.Encoded = fmt.Appendf(b.Encoded, "%d,n,1970-01-01,1970-01-01 00:00:00.000000\n", b.First+i)
	}
	b.Hold()
	return b
}

// groupZero are batches 0 and 1.
func groupZero() loader.Group {
	g := loader.Group{Ref: loader.Ref{ID: batch.ID{Run: "run-1"}, Rows: 20}}
	for n := range int64(2) {
		g.Members = append(g.Members, loader.Ref{ID: batch.ID{Run: "run-1", Number: n}, First: n * 10, Rows: 10})
	}
	return g
}

func eachCloud(t *testing.T, test func(t *testing.T, c *cloud, method, sends string)) {
	t.Run("redshift", func(t *testing.T) { test(t, newCloud(t, redshiftVersion), "s3-copy", "COPY") })
	t.Run("aurora", func(t *testing.T) { test(t, newCloud(t, auroraVersion), "s3-import", "aws_s3.table_import_from_s3(") })
}

func TestStaged(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, method, sends string) {
		l := openCloud(t, c, c.target(method), groups(method))
		assert.True(t, l.Caps().Staged)
		assert.Equal(t, []string{
			"in/run-1/g000000000000/000000000000.csv", "in/run-1/g000000000000/000000000001.csv", "in/run-1/g000000000001/000000000002.csv",
		}, c.bucket.Keys())
		committer := l.(loader.Committer)
		ack, err := committer.Commit(t.Context(), groupZero())
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 20}, ack)

		again, err := committer.Commit(t.Context(), groupZero())
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Rows: 20, AlreadyApplied: true}, again)
		assert.Len(t, c.queries(sends), map[string]int{"s3-copy": 1, "s3-import": 2}[method], "a COPY for all, an import for each")
		for number, want := range map[int64]loader.Applied{0: loader.Yes, 1: loader.No} {
			r, err := l.(loader.Resolver).Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "run-1", Number: number}, Rows: 20})
			require.NoError(t, err)
			assert.Equal(t, want, r.Applied)
		}

		require.NoError(t, committer.Discard(t.Context(), groupZero()))
		var left []string
		require.NoError(t, l.(loader.Inventory).Objects(t.Context(), "run-1", func(name string, number, bytes int64) error {
			left = append(left, fmt.Sprintf("%s %d %d", name, number, bytes))
			return nil
		}))
		assert.Equal(t, []string{"in/run-1/g000000000001/000000000002.csv 2 430"}, left)
	})
}

func TestStagedFails(t *testing.T) {
	eachCloud(t, func(t *testing.T, c *cloud, method, sends string) {
		l := openCloud(t, c, c.target(method), groups(method))
		committer := l.(loader.Committer)
		fails := func(want loader.Applied, text string) {
			t.Helper()
			_, err := committer.Commit(t.Context(), groupZero())
			require.ErrorContains(t, err, text)
			assert.Equal(t, want, postgres.New().Classify(err).Applied)
			assert.Empty(t, c.claims)
		}
		rollbacks := func() int { return len(c.queries("ROLLBACK")) }

		before := rollbacks()
		c.fail[sends] = "S3ServiceException: Access Denied"
		fails(loader.No, "load: ERROR: S3ServiceException: Access Denied")
		assert.Equal(t, before+1, rollbacks())
		c.fail = nil

		c.short = 1
		fails(loader.No, "load: the server took "+map[string]string{"s3-copy": "19", "s3-import": "18"}[method]+" of 20 rows")
		assert.Equal(t, before+2, rollbacks())
		c.short = 0

		c.loseIt = true
		_, err := committer.Commit(t.Context(), groupZero())
		require.ErrorContains(t, err, "commit: connection lost")
		assert.Equal(t, loader.Unknown, postgres.New().Classify(err).Applied)
		r, err := l.(loader.Resolver).Resolve(t.Context(), groupZero().Ref)
		require.NoError(t, err)
		assert.Equal(t, loader.Yes, r.Applied, "the server had it")
	})
}
