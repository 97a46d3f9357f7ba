package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// A trigger that drops rows: the server takes fewer than were sent, and says so only by the count.
func TestRowsThatTheServerDrops(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea); "+
		"CREATE FUNCTION "+schema+".drop_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.document_id = 5 THEN "+
		"RAISE NOTICE 'not five'; RETURN NULL; END IF; RETURN NEW; END $$; "+
		"CREATE TRIGGER t BEFORE INSERT ON "+to.Table+" FOR EACH ROW EXECUTE FUNCTION "+schema+".drop_one()")
	p := preparation(t, loader.CreateNever)
	l := prepared(t, to, p)
	b := documentsOf(t, 0, 0, 10)
	_, err := backendtest.Session(t, l, p.Contract).Load(t.Context(), b)
	var counted *loader.RowsError
	require.ErrorAs(t, err, &counted)
	assert.Equal(t, int64(9), counted.Acknowledged)
	assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassRows}, postgres.New().Classify(err))
	assert.Zero(t, count(t, to.Table))

	// Without a transaction the count is for the engine to compare, and the notice goes along.
	p.Contract.Delivery, p.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	b.Hold()
	ack, err := backendtest.Session(t, l, p.Contract).Load(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 9, Detail: []string{"NOTICE: not five"}}, ack)
}

// A deferred constraint speaks at COMMIT: a refusal there is certain, not unknown.
func TestCommitRefused(t *testing.T) {
	to := target(t)
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED, payload bytea); "+
		"INSERT INTO "+to.Table+" VALUES (5, 'x')")
	p := preparation(t, loader.CreateNever)
	_, err := backendtest.Session(t, prepared(t, to, p), p.Contract).Load(t.Context(), documentsOf(t, 0, 0, 10))
	assert.ErrorContains(t, err, "commit: ERROR: duplicate key value")
	assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassConstraint}, postgres.New().Classify(err))
}

// What --set says holds for every connection: a limit on the time of statements is one on the proof and on Resolve.
func TestSettingsReachEveryConnection(t *testing.T) {
	f := newFake(t, auroraVersion)
	to := f.target("postgres", "copy")
	to.Settings = []loader.Setting{{Name: "statement_timeout", Value: "7"}}
	p := preparation(t, loader.CreateNever)
	p.Schema = people()
	l := prepared(t, to, p)
	backendtest.Session(t, l, p.Contract)
	backendtest.Resolves(t, l, loader.Ref{ID: batch.ID{Run: "run-1"}, Rows: 10}, loader.No)
	require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{1}, func(int64, []any) error { return nil }))
	_, _, err := l.(loader.Claims).Forget(t.Context(), "run-1")
	require.NoError(t, err)
	set := f.queries(`SET "statement_timeout"`)
	assert.Len(t, set, int(f.connections.Load()))
	for _, s := range set {
		assert.Regexp(t, `^SET statement_timeout = 0;.* SET "statement_timeout" = '7'$`, s, "the role's is lifted, and the user's holds")
	}
}

// Questions that follow each other share a connection, unless it has ended, or a session is opened meanwhile.
func TestQuestionsShareAConnection(t *testing.T) {
	const endSessions = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%%%s%%' AND pid <> pg_backend_pid()"
	to, d, dialled := target(t), backendtest.Deps(), 0
	dial := d.Dial
	d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled++
		return dial(ctx, network, address)
	}
	schema, _, _ := strings.Cut(to.Table, ".")
	l, p := backendtest.Open(t, postgres.New(), to, d), preparation(t, loader.CreateIfMissing)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	for _, c := range []struct {
		meanwhile   func()
		connections int
	}{
		{func() {}, 0},
		{func() { sql(t, fmt.Sprintf(endSessions, schema)) }, 1},
		{func() { backendtest.Session(t, l, p.Contract) }, 2},
	} {
		_, err := l.(loader.Sizer).Stored(t.Context())
		require.NoError(t, err)
		before := dialled
		c.meanwhile()
		_, err = l.(loader.Sizer).Stored(t.Context())
		require.NoError(t, err)
		assert.Equal(t, c.connections, dialled-before)
	}
}

// Of several hosts every connection takes one that can be reached and is what target_session_attrs asks for.
func TestSeveralHosts(t *testing.T) {
	to := target(t)
	good := to.Address(0, "5432")
	standby := newFake(t, auroraVersion)
	standby.says(answer{part: "transaction_read_only", rows: [][]string{{"on"}}})
	for name, hosts := range map[string][]string{
		"unreachable": {"127.0.0.1:1", good}, "the second one": {good, "127.0.0.1:1"}, "standby": {standby.listener.Addr().String(), good},
	} {
		t.Run(name, func(t *testing.T) {
			to := to
			to.Hosts, to.Params = hosts, maps.Clone(to.Params)
			to.Params.Set("target_session_attrs", "read-write")
			var log bytes.Buffer
			d := backendtest.Deps()
			d.Log = slog.New(slog.NewTextHandler(&log, nil))
			l := backendtest.Open(t, postgres.New(), to, d)
			p := preparation(t, loader.CreateIfMissing)
			_, err := l.Prepare(t.Context(), p)
			require.NoError(t, err)
			for n := range int64(2) {
				b := documentsOf(t, n, n*10, 10)
				b.ID.Run = name
				_, err = backendtest.Session(t, l, p.Contract).Load(t.Context(), b)
				require.NoError(t, err)
				backendtest.Resolves(t, l, loader.RefOf(b), loader.Yes)
			}
			assert.Equal(t, name != "standby", log.Len() > 0, "a standby has no sessions to end: %s", log.String())
		})
	}
}

// byMethod runs a test by both methods that send rows over the connection, and over TLS.
func byMethod(t *testing.T, run func(t *testing.T, s loader.Session, to loader.Target, batch func(number, first, rows int64) *batch.Batch)) {
	for name, c := range map[string]struct {
		method string
		format batch.Format
		tls    loader.TLSMode
	}{
		"copy":            {"copy", batch.PGBinary, loader.TLSOff},
		"copy over TLS":   {"copy", batch.PGBinary, loader.TLSRequire},
		"insert":          {"insert", batch.PGValues, loader.TLSOff},
		"insert over TLS": {"insert", batch.PGValues, loader.TLSRequire},
	} {
		t.Run(name, func(t *testing.T) {
			to := target(t)
			to.Method, to.TLS = c.method, c.tls
			to.Params.Del("sslmode")
			run(t, backendtest.Session(t, made(t, to), contract(c.method, c.format)), to, func(number, first, rows int64) *batch.Batch {
				b := backendtest.Batch(t, documents(t), c.format, batch.ID{Run: "run-1", Number: number}, first, rows)
				b.Hold()
				return b
			})
		})
	}
}

// A claim that another transaction has just inserted is waited for, with as much of the batch on its way as sockets hold;
// what was sent behind one that is taken is dropped, and the session goes on.
func TestTakenClaims(t *testing.T) {
	byMethod(t, func(t *testing.T, s loader.Session, to loader.Target, batch func(number, first, rows int64) *batch.Batch) {
		holder, err := pgconn.Connect(t.Context(), server(t))
		require.NoError(t, err)
		defer func() { _ = holder.Close(context.Background()) }()
		const rows = 20_000 // 10 MiB, 20 as text
		for number, end := range []string{"COMMIT", "ROLLBACK"} {
			first := int64(number * rows)
			claim := fmt.Sprintf("BEGIN; INSERT INTO %s VALUES ('run-1', %d, %d, %d)", claimsOf(to), number, first, rows)
			require.NoError(t, holder.Exec(t.Context(), claim).Close())
			var ack loader.Ack
			var ended sync.WaitGroup
			ended.Go(func() { ack, err = s.Load(t.Context(), batch(int64(number), first, rows)) })
			require.Eventually(t, func() bool {
				return len(sql(t, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'terapush/run-1' AND wait_event_type = 'Lock'")) > 0
			}, time.Minute, 10*time.Millisecond)
			require.NoError(t, holder.Exec(t.Context(), end).Close())
			ended.Wait()
			require.NoError(t, err)
			assert.Equal(t, loader.Ack{Rows: rows, AlreadyApplied: end == "COMMIT"}, ack)
		}
		assert.EqualValues(t, rows, count(t, to.Table))
	})
}

// A claim that waits for a fence goes by who may write after it, whatever was so when its statement began.
func TestClaimBehindAFence(t *testing.T) {
	byMethod(t, func(t *testing.T, s loader.Session, to loader.Target, batch func(number, first, rows int64) *batch.Batch) {
		fence, err := pgconn.Connect(t.Context(), server(t))
		require.NoError(t, err)
		defer func() { _ = fence.Close(context.Background()) }()
		const before = 10 // batches, by when the server has made a plan for all others
		for number := range int64(before) {
			_, err := s.Load(t.Context(), batch(number, 10*number, 10))
			require.NoError(t, err)
		}
		schema, _, _ := strings.Cut(to.Table, ".")
		taken := fmt.Sprintf("BEGIN; LOCK TABLE %s IN SHARE ROW EXCLUSIVE MODE; UPDATE %s.terapush_runs SET epoch = 'later'", claimsOf(to), schema)
		require.NoError(t, fence.Exec(t.Context(), taken).Close())
		var ended sync.WaitGroup
		var failed error
		ended.Go(func() { _, failed = s.Load(t.Context(), batch(before, 10*before, 10)) })
		require.Eventually(t, func() bool {
			return len(sql(t, "SELECT 1 FROM pg_stat_activity WHERE application_name = 'terapush/run-1' AND wait_event_type = 'Lock'")) > 0
		}, time.Minute, 10*time.Millisecond)
		require.NoError(t, fence.Exec(t.Context(), "COMMIT").Close())
		ended.Wait()
		assert.Equal(t, loader.ClassTakenOver, postgres.New().Classify(failed).Class, "%v", failed)
		assert.EqualValues(t, 10*before, count(t, to.Table))
	})
}

// Rows do not go in without their claim, whatever keeps it out.
func TestClaimLeftOut(t *testing.T) {
	byMethod(t, func(t *testing.T, s loader.Session, to loader.Target, batch func(number, first, rows int64) *batch.Batch) {
		schema, _, _ := strings.Cut(to.Table, ".")
		sql(t, "CREATE FUNCTION "+schema+".skip() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "+
			"CREATE TRIGGER t BEFORE INSERT ON "+claimsOf(to)+" FOR EACH ROW EXECUTE FUNCTION "+schema+".skip()")
		_, err := s.Load(t.Context(), batch(0, 0, 10))
		require.ErrorIs(t, err, sqlload.ErrClaimVanished)
		assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
		assert.Zero(t, count(t, to.Table))
	})
}

// A product that only passes for PostgreSQL is not sent a COPY beside other statements.
func TestOtherProducts(t *testing.T) {
	f := newFake(t, yugabyteVersion)
	f.says(answer{part: "SELECT version()", rows: [][]string{{"CockroachDB CCL v23.2.0 (x86_64-pc-linux-gnu)"}}})
	to := f.target("yugabyte", "copy")
	to.Scheme = "postgres"
	l, c := open(t, to), contract("copy", batch.PGBinary)
	require.NoError(t, prepare(t, l, c))
	ack, err := backendtest.Session(t, l, c).Load(t.Context(), documentsOf(t, 0, 0, 10))
	require.NoError(t, err)
	assert.EqualValues(t, 10, ack.Rows)
	assert.Len(t, f.queries("COPY"), 1)
	assert.Regexp(t, "^COPY", f.queries("COPY")[0])
}
