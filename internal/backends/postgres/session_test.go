package postgres_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
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
	src := documents(t, batch.PGBinary, dataset.Bytes)
	b := src.batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	_, err = session(t, l, p.Contract).Load(t.Context(), b)
	var counted *loader.RowsError
	require.ErrorAs(t, err, &counted)
	assert.Equal(t, int64(9), counted.Acknowledged)
	assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassRows}, postgres.New().Classify(err))
	assert.Equal(t, [][]string{{"0"}}, sql(t, "SELECT count(*) FROM "+to.Table))

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
	b := documents(t, batch.PGBinary, dataset.Bytes).batch(t, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	_, err = session(t, l, p.Contract).Load(t.Context(), b)
	assert.ErrorContains(t, err, "commit: ERROR: duplicate key value")
	assert.Equal(t, loader.Verdict{Applied: loader.No, Class: loader.ClassConstraint}, postgres.New().Classify(err))
}

// A body that leaves rows out is still a whole COPY stream and a whole INSERT.
func TestSkip(t *testing.T) {
	for _, f := range encode.Formats() {
		method := map[batch.Format]string{batch.PGBinary: "copy", batch.PGText: "copy", batch.PGValues: "insert"}[f]
		if method == "" {
			continue
		}
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
