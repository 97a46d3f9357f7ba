package postgres_test

import (
	"bytes"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

func session(t *testing.T, l loader.Loader, c loader.Contract) loader.Session {
	t.Helper()
	s, err := l.Session(t.Context(), c)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A trigger that drops rows: the server takes fewer than were sent, and says so only by the count.
func TestRowsThatTheServerDrops(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint, payload bytea); "+
		"CREATE FUNCTION "+schema+".drop_one() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN IF NEW.document_id = 5 THEN "+
		"RAISE NOTICE 'not five'; RETURN NULL; END IF; RETURN NEW; END $$; "+
		"CREATE TRIGGER t BEFORE INSERT ON "+to.Table+" FOR EACH ROW EXECUTE FUNCTION "+schema+".drop_one()")
	l := open(t, to)
	p := preparation(t, loader.CreateNever)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	b := documentsOf(t, 0, 0, 10)
	_, err = session(t, l, p.Contract).Load(t.Context(), b)
	var counted *loader.RowsError
	require.ErrorAs(t, err, &counted)
	assert.Equal(t, int64(9), counted.Acknowledged)
	assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassRows}, postgres.New().Classify(err))
	assert.Zero(t, count(t, to.Table))

	// Without a transaction the count is for the engine to compare, and the notice goes along.
	p.Contract.Delivery, p.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	b.Hold()
	ack, err := session(t, l, p.Contract).Load(t.Context(), b)
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 9, Detail: []string{"NOTICE: not five"}}, ack)
}

// A deferred constraint speaks at COMMIT: a refusal there is certain, not unknown.
func TestCommitRefused(t *testing.T) {
	to := target(t)
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED, payload bytea); "+
		"INSERT INTO "+to.Table+" VALUES (5, 'x')")
	l := open(t, to)
	p := preparation(t, loader.CreateNever)
	_, err := l.Prepare(t.Context(), p)
	require.NoError(t, err)
	_, err = session(t, l, p.Contract).Load(t.Context(), documentsOf(t, 0, 0, 10))
	assert.ErrorContains(t, err, "commit: ERROR: duplicate key value")
	assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassConstraint}, postgres.New().Classify(err))
}

// A body that leaves rows out is still a whole COPY stream and a whole INSERT.
func TestSkip(t *testing.T) {
	for f, method := range map[batch.Format]string{batch.PGBinary: "copy", batch.PGText: "copy", batch.PGValues: "insert"} {
		t.Run(string(f), func(t *testing.T) {
			to := target(t)
			to.Method = method
			l := open(t, to)
			p := preparation(t, loader.CreateIfMissing)
			p.Contract = contract(method, f)
			_, err := l.Prepare(t.Context(), p)
			require.NoError(t, err)
			b := documents(t, f, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
			b.Skip = 4
			b.Hold()
			ack, err := session(t, l, p.Contract).Load(t.Context(), b)
			require.NoError(t, err)
			assert.Equal(t, int64(6), ack.Rows)
			assert.Equal(t, [][]string{{"4", "9"}}, sql(t, "SELECT min(document_id), max(document_id) FROM "+to.Table))
		})
	}
}

// What --set says holds for every connection: the table's reader sleeps for longer than the role's statements may take, and
// the role's transactions are read-only.
func TestSettingsReachEveryConnection(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	role := schema + "_role"
	sql(t, "CREATE TABLE "+to.Table+" (document_id bigint NOT NULL, payload bytea NOT NULL); INSERT INTO "+to.Table+" VALUES (0, 'x'); "+
		"CREATE ROLE "+role+" LOGIN PASSWORD 'pw'; GRANT USAGE, CREATE ON SCHEMA "+schema+" TO "+role+"; GRANT SELECT, INSERT ON "+to.Table+" TO "+role+"; "+
		"ALTER TABLE "+to.Table+" ENABLE ROW LEVEL SECURITY; "+
		"CREATE POLICY slow ON "+to.Table+" USING (pg_sleep(0.3) IS NOT NULL) WITH CHECK (true); "+
		"ALTER ROLE "+role+" SET statement_timeout = '100ms'; ALTER ROLE "+role+" SET default_transaction_read_only = on; "+
		"ALTER ROLE "+role+" SET quote_all_identifiers = on")
	t.Cleanup(func() { sql(t, "DROP OWNED BY "+role+"; DROP ROLE "+role) })
	to.User, to.Password, to.Method = role, "pw", "insert" // COPY FROM is not for tables with row security

	p := preparation(t, loader.CreateNever)
	_, err := open(t, to).Prepare(t.Context(), p)
	require.ErrorContains(t, err, "statement_timeout=0")
	to.Settings = []loader.Setting{{Name: "statement_timeout", Value: "0"}}
	_, err = open(t, to).Prepare(t.Context(), p)
	require.ErrorContains(t, err, "otherwise the user is read-only: --set default_transaction_read_only=off")

	to.Settings = append(to.Settings, loader.Setting{Name: "default_transaction_read_only", Value: "off"})
	l := open(t, to)
	_, err = l.Prepare(t.Context(), p)
	require.NoError(t, err)
	b := documents(t, batch.PGValues, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 1, 1)
	b.Hold()
	_, err = session(t, l, p.Contract).Load(t.Context(), b)
	require.NoError(t, err)
	found, err := l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
	require.NoError(t, err)
	assert.Equal(t, loader.Yes, found.Applied)
	var rows int64
	all := loader.Grouping{KeyRange: loader.KeyRange{Last: 9}, Size: 10}
	require.NoError(t, l.(loader.Counter).Count(t.Context(), all, func(b loader.Bucket) error { rows += b.Rows; return nil }))
	assert.Equal(t, int64(2), rows)
	require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{1}, func(int64, []any) error { return nil }))
	_, err = l.(loader.Claims).Forget(t.Context(), "run-1")
	require.NoError(t, err)
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
			d := deps()
			d.Log = slog.New(slog.NewTextHandler(&log, nil))
			l, err := postgres.New().Open(t.Context(), to, d)
			require.NoError(t, err)
			p := preparation(t, loader.CreateIfMissing)
			_, err = l.Prepare(t.Context(), p)
			require.NoError(t, err)
			for n := range int64(2) {
				b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: name, Number: n}, n*10, 10)
				b.Hold()
				_, err = session(t, l, p.Contract).Load(t.Context(), b)
				require.NoError(t, err)
				found, err := l.(loader.Resolver).Resolve(t.Context(), loader.RefOf(b))
				require.NoError(t, err)
				assert.Equal(t, loader.Yes, found.Applied)
			}
			assert.Equal(t, name != "standby", log.Len() > 0, "a standby has no sessions to end: %s", log.String())
		})
	}
}

// A lost answer makes pgconn's Exec say "conn closed" and call it safe to retry. If this test fails, pgconn was
// repaired and socket.go can go.
func TestPgconnForgetsWhyTheConnectionBroke(t *testing.T) {
	f := newFake(t, redshiftVersion)
	f.open, f.loseCommit = "0", true
	c, err := pgconn.Connect(t.Context(), "postgres://u@"+f.listener.Addr().String()+"/d?sslmode=disable")
	require.NoError(t, err)
	_, err = c.Exec(t.Context(), "COMMIT").ReadAll()
	assert.ErrorIs(t, err, pgconn.ErrConnClosed)
	assert.True(t, pgconn.SafeToRetry(err))
}
