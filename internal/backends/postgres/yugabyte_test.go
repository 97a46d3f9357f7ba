package postgres_test

import (
	"bytes"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// yugabyte is one node of a scripted cluster. What it answers follows YugabyteDB's documentation and source; nobody
// has run these tests against a real one.
type yugabyte struct {
	*fake
	version string
	nodes   [][]string // host, port, public_ip
	columns [][]string // of the table: name, type, type with length, needed
	key     string     // the columns of its primary key

	mu        sync.Mutex
	failAt    int        // the next COPY fails, with so many rows committed
	front     [][]string // count, min, max of a batch's rows
	backends  []string   // pids of sessions to end
	survives  bool       // claim and row survive a rollback
	rollsBack bool       // COMMIT is answered by ROLLBACK
	taken     bool       // every claim is taken, and none can be read
	copied    [][]byte
}

func newYugabyte(t *testing.T) *yugabyte {
	y := &yugabyte{
		version: "PostgreSQL 15.2-YB-2024.2.0.0-b145 on x86_64-pc-linux-gnu", key: "document_id",
		columns: [][]string{{"document_id", "bigint", "bigint", "t"}, {"payload", "bytea", "bytea", "t"}},
	}
	y.fake = newFake(t, y.answer)
	return y
}

func (y *yugabyte) target() loader.Target {
	return loader.Target{
		Scheme: "yugabyte", Hosts: []string{fmt.Sprintf("127.0.0.1:%d", y.port())}, User: "yugabyte", Database: "yugabyte",
		Table: "documents", Method: "copy", Options: map[string]string{}, TLS: loader.TLSOff,
	}
}

func (y *yugabyte) answer(c *fakeConn, sql string) bool {
	y.mu.Lock()
	defer y.mu.Unlock()
	switch {
	case sql == "SELECT version()":
		c.rows([]string{y.version})
	case strings.Contains(sql, "FROM pg_settings"):
		c.rows([]string{"yb_default_copy_from_rows_per_transaction", "20000"})
	case strings.Contains(sql, "FROM yb_servers()"):
		c.rows(y.nodes...)
	case strings.Contains(sql, "pid = pg_backend_pid()") && strings.Contains(sql, "backend_start"):
		c.rows([]string{"100", "1700000000.5"})
	case strings.Contains(sql, "application_name ="):
		var rows [][]string
		for _, pid := range y.backends {
			rows = append(rows, []string{pid, "1600000000"})
		}
		c.rows(rows...)
	case strings.Contains(sql, "pg_terminate_backend"):
		y.backends = nil
		c.rows([]string{"t"})
	case strings.Contains(sql, "pg_stat_progress_copy"):
		c.rows([]string{strconv.Itoa(y.failAt)})
	case strings.Contains(sql, "has_table_privilege(c.oid, 'DELETE')"): // no claim table yet
		c.rows()
	case strings.Contains(sql, "FROM pg_class"):
		c.rows([]string{"16384", "16384", "public", "documents", "r", "made by terapush", "p", "t"})
	case strings.Contains(sql, "FROM pg_index"):
		c.rows([]string{"t", y.key})
	case strings.Contains(sql, "FROM pg_attribute"):
		c.rows(y.columns...)
	case strings.Contains(sql, "MIN("):
		c.rows(y.front...)
	case strings.HasPrefix(sql, "SELECT row_count") && y.survives && len(y.copied) > 0:
		c.rows([]string{"1"})
	case strings.HasPrefix(sql, "SELECT COUNT(*) FROM"):
		c.rows([]string{map[bool]string{false: "0", true: "1"}[y.survives && len(y.copied) > 0]})
	case strings.HasPrefix(sql, "COPY"):
		body := c.copyIn()
		y.copied = append(y.copied, body)
		if y.failAt > 0 {
			c.fails("XX000", "Timed out waiting for a tablet leader")
			return true
		}
		c.tag(fmt.Sprintf("COPY %d", bytes.Count(body, []byte{0, 2, 0, 0, 0, 8, 0, 0, 0, 0})))
	case strings.HasPrefix(sql, "BEGIN") && strings.HasSuffix(sql, "ROLLBACK"):
		c.tag("BEGIN")
		c.tag("INSERT 0 1")
		c.tag("ROLLBACK")
	case strings.HasPrefix(sql, "BEGIN") && y.taken:
		c.tag("INSERT 0 0")
	case strings.HasPrefix(sql, "SELECT row_count") && y.taken: // removed just now
		c.rows()
	case strings.HasPrefix(sql, "BEGIN"):
		c.tag("INSERT 0 1")
	case sql == "COMMIT" && y.rollsBack:
		c.tag("ROLLBACK")
	default:
		c.tag(strings.Fields(sql)[0])
	}
	return true
}

func openYugabyte(t *testing.T, to loader.Target, c loader.Contract) (loader.Loader, loader.Session) {
	t.Helper()
	l, err := postgres.New().Open(t.Context(), to, deps())
	require.NoError(t, err)
	_, err = l.Prepare(t.Context(), loader.Preparation{
		Run: "run-1", Schema: documents(t, c.Format, dataset.Bytes).schema(), Contract: c, Create: loader.CreateIfMissing,
	})
	require.NoError(t, err)
	s, err := l.Session(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return l, s
}

// A COPY in several transactions fails half way: the attempt is unknown, the look at the table finds its front, and
// the next attempt sends the rest.
func TestYugabyteRowsPerTransaction(t *testing.T) {
	y := newYugabyte(t)
	to := y.target()
	to.Options["rows-per-transaction"] = "20"
	c := contract("copy", batch.PGBinary)
	c.Dedup = loader.DedupRange
	l, s := openYugabyte(t, to, c)
	assert.Equal(t, "YugabyteDB", l.Server().Product)
	assert.Equal(t, loader.DedupRange, l.Caps().Dedup)
	assert.Equal(t, int64(20), l.Caps().MinRows)
	assert.False(t, l.Caps().Atomic)

	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1", Number: 3}, 300, 100)
	ref := loader.RefOf(b)
	y.failAt, y.backends, y.front = 40, []string{"7"}, [][]string{{"40", "300", "339"}}
	b.Hold()
	_, err := s.Load(t.Context(), b)
	assert.EqualError(t, err, "load: ERROR: Timed out waiting for a tablet leader (SQLSTATE XX000)")
	v := postgres.New().Classify(err)
	assert.Equal(t, loader.Unknown, v.Applied)
	assert.True(t, v.Retry)

	res, err := l.(loader.Resolver).Resolve(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, loader.Resolution{Applied: loader.No, Rows: 40}, res)
	assert.Len(t, y.queries("pg_terminate_backend(7)"), 1)

	y.failAt, b.Skip = 0, res.Rows
	ack, err := s.Load(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, int64(60), ack.Rows)
	assert.Equal(t, b.Encoded[:b.Head], y.copied[1][:b.Head])
	assert.Equal(t, b.Encoded[b.Starts[40]:], y.copied[1][b.Head:])

	copies := y.queries("COPY")
	assert.Equal(t, `COPY "public"."documents" ("document_id", "payload") FROM STDIN WITH (FORMAT binary, ROWS_PER_TRANSACTION 20)`, copies[0])
	assert.Empty(t, y.queries("BEGIN"), "in a transaction block YugabyteDB ignores ROWS_PER_TRANSACTION")
}

func TestYugabyteFront(t *testing.T) {
	for name, c := range map[string]struct {
		found   []string
		want    loader.Resolution
		problem string
	}{
		"nothing": {[]string{"0", "", ""}, loader.Resolution{Applied: loader.No}, ""},
		"all":     {[]string{"100", "300", "399"}, loader.Resolution{Applied: loader.Yes, Rows: 100}, ""},
		"a front": {[]string{"20", "300", "319"}, loader.Resolution{Applied: loader.No, Rows: 20}, ""},
		"a hole":  {[]string{"20", "300", "320"}, loader.Resolution{}, "not the first rows"},
		"an end":  {[]string{"20", "380", "399"}, loader.Resolution{}, "not the first rows"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYugabyte(t)
			to := y.target()
			to.Options["rows-per-transaction"] = "20"
			c0 := contract("copy", batch.PGBinary)
			c0.Dedup = loader.DedupRange
			l, _ := openYugabyte(t, to, c0)
			y.front = [][]string{c.found}
			got, err := l.(loader.Resolver).Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "run-1", Number: 3}, First: 300, Rows: 100})
			require.NoError(t, err, "what was found is an answer")
			assert.Contains(t, got.Reason, c.problem)
			got.Reason = ""
			assert.Equal(t, c.want, got)
		})
	}
}

// The keys of a batch are looked for one by one, whatever they are made of.
func TestYugabyteFrontOfOtherKeys(t *testing.T) {
	for name, c := range map[string]struct {
		columns       [][]string
		half, whole   string // of its key
		hashed, asked string
	}{
		"httplogs": {
			[][]string{
				{"ts", "timestamp without time zone", "timestamp without time zone", "t"}, {"client_ip", "text", "text", "t"},
				{"request", "text", "text", "t"}, {"status", "bigint", "bigint", "t"}, {"size", "bigint", "bigint", "t"},
			},
			"status", "ts", `PRIMARY KEY ("ts" HASH)`,
			`"ts" IN (CAST('2026-01-01 00:00:00.000300' AS timestamp),CAST('2026-01-01 00:00:00.000301' AS timestamp),CAST('2026-01-01 00:00:00.000302' AS timestamp))`,
		},
		"lineitem": {
			[][]string{
				{"l_orderkey", "bigint", "bigint", "t"}, {"l_partkey", "bigint", "bigint", "t"}, {"l_suppkey", "bigint", "bigint", "t"},
				{"l_linenumber", "bigint", "bigint", "t"}, {"l_quantity", "numeric", "numeric(15,2)", "t"},
				{"l_extendedprice", "numeric", "numeric(15,2)", "t"}, {"l_discount", "numeric", "numeric(15,2)", "t"},
				{"l_tax", "numeric", "numeric(15,2)", "t"}, {"l_returnflag", "text", "text", "t"}, {"l_linestatus", "text", "text", "t"},
				{"l_shipdate", "date", "date", "t"}, {"l_commitdate", "date", "date", "t"}, {"l_receiptdate", "date", "date", "t"},
				{"l_shipinstruct", "text", "text", "t"}, {"l_shipmode", "text", "text", "t"}, {"l_comment", "text", "text", "t"},
			},
			"l_orderkey", "l_orderkey, l_linenumber", `PRIMARY KEY ("l_orderkey" HASH, "l_linenumber")`,
			`"l_orderkey" IN (76) AND ("l_orderkey" - 1) * 4 + ("l_linenumber" - 1) IN (300,301,302)`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYugabyte(t)
			y.columns, y.key, y.front = c.columns, c.half, [][]string{{"2", "300", "301"}}
			to := y.target()
			to.Options["rows-per-transaction"] = "2"
			wanted := contract("copy", batch.PGBinary)
			wanted.Dedup = loader.DedupRange
			l, err := postgres.New().Open(t.Context(), to, deps())
			require.NoError(t, err)
			p := loader.Preparation{Run: "run-1", Schema: sourceOf(t, name, batch.PGBinary).schema(), Contract: wanted, Create: loader.CreateIfMissing}
			_, err = l.Prepare(t.Context(), p)
			require.ErrorContains(t, err, "needs a table whose only index is "+c.hashed)
			y.key = c.whole
			_, err = l.Prepare(t.Context(), p)
			require.NoError(t, err)

			got, err := l.(loader.Resolver).Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "run-1", Number: 3}, First: 300, Rows: 3})
			require.NoError(t, err)
			assert.Equal(t, loader.Resolution{Applied: loader.No, Rows: 2}, got)
			require.Len(t, y.queries("MIN("), 1)
			assert.True(t, strings.HasSuffix(y.queries("MIN(")[0], " WHERE "+c.asked), y.queries("MIN(")[0])
		})
	}
}

// Without rows per transaction a batch is claimed like everywhere.
func TestYugabyteClaims(t *testing.T) {
	y := newYugabyte(t)
	_, s := openYugabyte(t, y.target(), contract("copy", batch.PGBinary))
	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	ack, err := s.Load(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, int64(10), ack.Rows)
	assert.Len(t, y.queries("BEGIN"), 1)
	assert.Len(t, y.queries("COMMIT"), 2, "READ COMMITTED and COMMIT")
	assert.Contains(t, y.queries("COPY")[0], "WITH (FORMAT binary)")
	assert.Contains(t, y.queries("CREATE TABLE")[0], "PRIMARY KEY ((run, batch) HASH)")
}

// A server answers the COMMIT of a transaction that it has given up with ROLLBACK, and without an error.
func TestCommitThatRollsBack(t *testing.T) {
	y := newYugabyte(t)
	y.rollsBack = true
	_, s := openYugabyte(t, y.target(), contract("copy", batch.PGBinary))
	_, err := s.Load(t.Context(), documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 100))
	require.ErrorContains(t, err, "the server answered ROLLBACK")
	assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
}

// A claim that keeps another out and cannot be read is an error, and nothing is sent.
func TestClaimThatVanishes(t *testing.T) {
	y := newYugabyte(t)
	y.taken = true
	_, s := openYugabyte(t, y.target(), contract("copy", batch.PGBinary))
	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	_, err := s.Load(t.Context(), b)
	require.ErrorIs(t, err, sqlload.ErrClaimVanished)
	assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
	assert.Empty(t, y.copied)
}

func TestYugabyteWithoutTransactions(t *testing.T) {
	y := newYugabyte(t)
	to := y.target()
	to.Options["disable-transactional-writes"] = "true"
	c := contract("copy", batch.PGBinary)
	c.Dedup, c.Delivery = loader.DedupNone, loader.AtLeastOnce
	l, s := openYugabyte(t, to, c)
	assert.Equal(t, loader.AtLeastOnce, l.Caps().Delivery())
	assert.Contains(t, l.Caps().Reason, "yb_enable_upsert_mode")
	assert.NotEmpty(t, y.queries("SET yb_disable_transactional_writes = on"))

	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	y.failAt = 1
	_, err := s.Load(t.Context(), b)
	assert.Equal(t, loader.Unknown, postgres.New().Classify(err).Applied, "rows may have stayed")
}

// Sessions go to all nodes that answer. One node has an address that means nothing here, and a public one that does.
func TestYugabyteNodes(t *testing.T) {
	first, second := newYugabyte(t), newYugabyte(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	dead := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	require.NoError(t, l.Close())
	first.nodes = [][]string{
		{"127.0.0.1", strconv.Itoa(int(first.port())), ""},
		{"no.such.host.invalid", strconv.Itoa(int(second.port())), "127.0.0.1"},
		{"127.0.0.1", dead, ""},
	}
	c := contract("copy", batch.PGBinary)
	opened, _ := openYugabyte(t, first.target(), c)
	for range 3 {
		s, err := opened.Session(t.Context(), c)
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
	}
	assert.Len(t, first.queries("SET application_name"), 2)
	assert.Len(t, second.queries("SET application_name"), 2)

	// A session that was left behind can only be ended on its own node.
	second.backends = []string{"8"}
	_, err = opened.(loader.Resolver).Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "run-1", Number: 9}})
	require.NoError(t, err)
	assert.Len(t, second.queries("pg_terminate_backend(8)"), 1)
}

func TestProbeThatSurvives(t *testing.T) {
	y := newYugabyte(t)
	c := contract("copy", batch.PGBinary)
	l, _ := openYugabyte(t, y.target(), c)
	probe := func() loader.Proof {
		b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1", Number: 0}, 7, 1)
		b.Hold()
		proof, err := l.(loader.Prober).Probe(t.Context(), c, b)
		require.NoError(t, err)
		return proof
	}
	assert.Equal(t, loader.Proof{Transactional: true}, probe())
	assert.Empty(t, y.queries("DELETE FROM"))

	y.survives, y.copied = true, nil
	assert.Equal(t, loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, probe())
	assert.Equal(t, []string{
		`DELETE FROM "public"."documents" WHERE "document_id" = 7`,
		`DELETE FROM "public"."terapush_claims" WHERE run = 'run-1' AND batch = -2`,
	}, y.queries("DELETE FROM"))
}

func TestRedshiftTakesNoRowsItself(t *testing.T) {
	y := newYugabyte(t)
	y.version = "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC gcc (GCC) 3.4.2 20041017 (Red Hat 3.4.2-6.fc3), Redshift 1.0.117891"
	to := y.target()
	for _, to.Scheme = range []string{"postgres", "redshift"} {
		_, err := postgres.New().Open(t.Context(), to, deps())
		assert.ErrorContains(t, err, "Redshift, which takes bulk rows through S3 only")
		assert.ErrorContains(t, err, "s3-copy")
	}
}
