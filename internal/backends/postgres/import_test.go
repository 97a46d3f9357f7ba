package postgres_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/fake/bucket"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// withImport gives a real PostgreSQL functions of the names, parameters and answers that Amazon's documentation gives
// for aws_s3. Transactions, claims and COPY are the server's; the extension is not Amazon's.
func withImport(t *testing.T, b *bucket.Bucket) {
	t.Helper()
	endpoint := b.Target().Params.Get("endpoint")
	const gone = "DROP SCHEMA IF EXISTS aws_s3 CASCADE; DROP SCHEMA IF EXISTS aws_commons CASCADE"
	sql(t, gone+`; CREATE SCHEMA aws_commons; CREATE SCHEMA aws_s3;
		CREATE TYPE aws_commons._s3_uri_1 AS (bucket text, file_path text, region text);
		CREATE FUNCTION aws_commons.create_s3_uri(text, text, text) RETURNS aws_commons._s3_uri_1 LANGUAGE sql AS
			'SELECT ROW($1, $2, $3)::aws_commons._s3_uri_1';
		CREATE FUNCTION aws_s3.table_import_from_s3(name text, columns text, options text, s3 aws_commons._s3_uri_1) RETURNS text
			LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN
				EXECUTE format('COPY %s (%s) FROM PROGRAM %L %s', name, columns,
					'curl -sf `+endpoint+`/' || s3.bucket || '/' || s3.file_path, options);
				GET DIAGNOSTICS n = ROW_COUNT;
				RETURN format('%s rows imported into relation "%s" from file %s of 1 bytes', n, name, s3.file_path);
			END $$`)
	t.Cleanup(func() { sql(t, gone) })
}

func TestImportIntoPostgreSQL(t *testing.T) {
	server(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	b := bucket.Start()
	t.Cleanup(b.Close)
	withImport(t, b)
	to := target(t)
	to.Method, to.Via, to.TLS = "s3-import", b.Target(), loader.TLSOff
	faulty := deps()
	faults := loadertest.NewFaults(faulty.Dial)
	t.Cleanup(faults.Close)
	faulty.Dial = faults.Dial
	l, err := postgres.New().Open(t.Context(), to, faulty)
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	contract := groups("s3-import")
	_, err = l.Prepare(t.Context(), loader.Preparation{Run: "run-1", Schema: people(), Contract: contract, Create: loader.CreateIfMissing})
	require.NoError(t, err)
	proof, err := l.(loader.Prober).Probe(t.Context(), contract, csvBatch(500, 1))
	require.NoError(t, err)
	assert.True(t, proof.Transactional)
	s, err := l.Session(t.Context(), contract)
	require.NoError(t, err)
	for n := range int64(8) {
		_, err := s.Load(t.Context(), csvBatch(n, 10))
		require.NoError(t, err)
	}
	committer, resolver := l.(loader.Committer), l.(loader.Resolver)
	group := func(n int64) loader.Group {
		g := loader.Group{Ref: loader.Ref{ID: csvBatch(n, 0).ID, First: n * 20, Rows: 20}}
		for _, m := range []int64{2 * n, 2*n + 1} {
			g.Members = append(g.Members, loader.RefOf(csvBatch(m, 10)))
		}
		return g
	}
	holds := func(want string) {
		t.Helper()
		assert.Equal(t, [][]string{{want}}, sql(t, "SELECT count(DISTINCT id) || ' of ' || count(*) FROM "+to.Table))
	}

	ack, err := committer.Commit(t.Context(), group(0))
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 20}, ack)
	holds("20 of 20")

	var wg sync.WaitGroup
	acks := make([]loader.Ack, 3)
	for i := range acks {
		wg.Go(func() {
			var err error
			acks[i], err = committer.Commit(t.Context(), group(1))
			assert.NoError(t, err)
		})
	}
	wg.Wait()
	fresh := 0
	for _, a := range acks {
		if !a.AlreadyApplied {
			fresh++
		}
	}
	assert.Equal(t, 1, fresh)
	holds("40 of 40")

	hit := faults.CutAnswer("COMMIT\x00") // not READ COMMITTED
	_, err = committer.Commit(t.Context(), group(2))
	<-hit
	require.ErrorContains(t, err, "commit: ")
	assert.Equal(t, loader.Unknown, postgres.New().Classify(err).Applied)
	r, err := resolver.Resolve(t.Context(), group(2).Ref)
	require.NoError(t, err)
	assert.Equal(t, loader.Yes, r.Applied)
	holds("60 of 60")

	// The group's second object is gone: the first one's rows go with it.
	require.NoError(t, committer.Discard(t.Context(), loader.Group{Ref: group(3).Ref, Members: group(3).Members[1:]}))
	_, err = committer.Commit(t.Context(), group(3))
	require.ErrorContains(t, err, "load: ERROR: program")
	assert.Equal(t, loader.No, postgres.New().Classify(err).Applied)
	r, err = resolver.Resolve(t.Context(), group(3).Ref)
	require.NoError(t, err)
	assert.Equal(t, loader.No, r.Applied)
	holds("60 of 60")

	// The server counts fewer rows than were stored.
	_, err = s.Load(t.Context(), csvBatch(7, 9))
	require.NoError(t, err)
	_, err = committer.Commit(t.Context(), group(3))
	require.ErrorContains(t, err, "load: the server took 19 of 20 rows")
	holds("60 of 60")
	assert.Equal(t, [][]string{{"3"}}, sql(t, "SELECT count(*) FROM "+strings.Replace(to.Table, "documents", "terapush_claims", 1)+" WHERE batch >= 0"))
}

// What the server imports of the other datasets is what was stored: decimals, and keys of every kind.
func TestImportDatasets(t *testing.T) {
	server(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "key")
	t.Setenv("AWS_SECRET_ACCESS_KEY", secretKey)
	b := bucket.Start()
	t.Cleanup(b.Close)
	withImport(t, b)
	for _, name := range []string{"pairs", "lineitem", "httplogs"} {
		for _, format := range []batch.Format{batch.CSV, batch.PGText} {
			t.Run(name+" "+string(format), func(t *testing.T) {
				to := target(t)
				to.Method, to.Via, to.TLS = "s3-import", b.Target(), loader.TLSOff
				l := open(t, to)
				contract, of := groups("s3-import"), sourceOf(t, name, format)
				contract.Format = format
				_, err := l.Prepare(t.Context(), loader.Preparation{Run: name, Schema: of.schema(), Contract: contract, Create: loader.CreateIfMissing})
				require.NoError(t, err)
				s := session(t, l, contract)
				g := loader.Group{Ref: loader.Ref{ID: batch.ID{Run: name}, First: 7, Rows: 20}}
				for n := range int64(2) {
					one := of.batch(t, batch.ID{Run: name, Number: n}, 7+10*n, 10)
					one.Hold()
					g.Members = append(g.Members, loader.RefOf(one))
					_, err := s.Load(t.Context(), one)
					require.NoError(t, err)
				}
				ack, err := l.(loader.Committer).Commit(t.Context(), g)
				require.NoError(t, err)
				assert.Equal(t, loader.Ack{Rows: 20}, ack)
				found := 0
				require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), []int64{7, 10, 16, 17, 26, 27}, func(n int64, values []any) error {
					found++
					assert.Equal(t, of.row(n), values)
					return nil
				}))
				assert.Equal(t, 5, found, "all but the one behind the group")
			})
		}
	}
}
