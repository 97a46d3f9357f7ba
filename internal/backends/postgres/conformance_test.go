package postgres_test

import (
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// harness is a fresh table for every case, loaded in batches of n rows.
func harness(d dataset.Dataset, f batch.Format, method string, n int64, change func(*loader.Target)) loadertest.Harness {
	wanted := contract(method, f)
	wanted.BatchRows = n
	return backendtest.Harness(d, loadertest.Harness{
		Driver: postgres.New(), Deps: backendtest.Deps(), Contract: wanted, Commit: "COMMIT\x00", // not READ COMMITTED
		Target: func(t *testing.T) loader.Target {
			to := target(t)
			to.Method, to.TLS = method, loader.TLSOff
			if change != nil {
				change(&to)
			}
			return to
		},
	})
}

// Every format, every kind of key, and both kinds of table.
func TestConformance(t *testing.T) {
	unlogged := func(to *loader.Target) { to.Options = options("unlogged", "true") }
	for name, h := range map[string]loadertest.Harness{
		"copy binary":      harness(documents(t), batch.PGBinary, "copy", 1000, nil),
		"insert":           harness(documents(t), batch.PGValues, "insert", 1000, nil),
		"copy text, items": harness(sourceOf(t, "lineitem"), batch.PGText, "copy", 1001, unlogged), // which cuts orders
		"copy csv, logs":   harness(sourceOf(t, "httplogs"), batch.CSV, "copy", 2000, nil),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h.Answers = []string{"FROM STDIN", "c\x00\x00\x00\x04"} // CopyDone
			if name == "insert" {
				h.Answers = []string{"OVERRIDING SYSTEM VALUE"}
			}
			loadertest.Run(t, h)
		})
	}
}

// Method s3-import on a real PostgreSQL, in a database of its own with functions of the names, parameters and answers
// that Amazon's documentation gives for aws_s3. Transactions, claims and COPY are the server's; the extension is not
// Amazon's.
func TestConformanceOfImport(t *testing.T) {
	name := fmt.Sprintf("aws%x", time.Now().UnixNano())
	sql(t, "CREATE DATABASE "+name)
	at, err := url.Parse(server(t))
	require.NoError(t, err)
	at.Path = "/" + name
	t.Cleanup(func() { sql(t, "DROP DATABASE "+name+" WITH (FORCE)") }) // after the variable has its old value again
	t.Setenv("TERAPUSH_TEST_POSTGRES", at.String())
	b := backendtest.StoreAndKeys(t, nil)
	sql(t, `CREATE SCHEMA aws_commons; CREATE SCHEMA aws_s3;
		CREATE TYPE aws_commons._s3_uri_1 AS (bucket text, file_path text, region text);
		CREATE FUNCTION aws_commons.create_s3_uri(text, text, text) RETURNS aws_commons._s3_uri_1 LANGUAGE sql AS
			'SELECT ROW($1, $2, $3)::aws_commons._s3_uri_1';
		CREATE FUNCTION aws_s3.table_import_from_s3(name text, columns text, options text, s3 aws_commons._s3_uri_1) RETURNS text
			LANGUAGE plpgsql AS $$ DECLARE n bigint; BEGIN
				EXECUTE format('COPY %s (%s) FROM PROGRAM %L %s', name, columns,
					'curl -sf `+b.URL+`/' || s3.bucket || '/' || s3.file_path, options);
				GET DIAGNOSTICS n = ROW_COUNT;
				RETURN format('%s rows imported into relation "%s" from file %s of 1 bytes', n, name, s3.file_path);
			END $$`)
	for f, name := range map[batch.Format]string{batch.CSV: "lineitem", batch.PGText: "httplogs"} {
		t.Run(string(f), func(t *testing.T) {
			h := harness(sourceOf(t, name), f, "s3-import", 2000, func(to *loader.Target) { to.Via = b.Via() })
			h.Contract.GroupBatches, h.Contract.Commits = 2, 1
			loadertest.Run(t, h)
		})
	}
}
