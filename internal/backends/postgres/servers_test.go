package postgres_test

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// server is the URL of a real PostgreSQL, of its superuser.
func server(t testing.TB) string { return backendtest.Server(t, "TERAPUSH_TEST_POSTGRES") }

// target is a table that does not exist in a schema of its own.
func target(t testing.TB) loader.Target {
	t.Helper()
	to, err := loader.ParseTarget(server(t))
	require.NoError(t, err)
	schema := fmt.Sprintf("t%x", time.Now().UnixNano())
	sql(t, "CREATE SCHEMA "+schema)
	t.Cleanup(func() { sql(t, "DROP SCHEMA IF EXISTS "+schema+" CASCADE") })
	to.Table = schema + ".documents"
	return to
}

// sql runs statements as superuser and returns the rows of the last one.
func sql(t testing.TB, text string) [][]string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	c, err := pgconn.Connect(ctx, server(t))
	require.NoError(t, err)
	defer func() { _ = c.Close(ctx) }()
	results, err := c.Exec(ctx, text).ReadAll()
	require.NoError(t, err, text)
	var all [][]string
	for _, row := range results[len(results)-1].Rows {
		var values []string
		for _, v := range row {
			values = append(values, string(v))
		}
		all = append(all, values)
	}
	return all
}

// count counts the rows of a table, or of one with a condition.
func count(t testing.TB, table string) int64 {
	n, err := strconv.ParseInt(sql(t, "SELECT count(*) FROM "+table)[0][0], 10, 64)
	require.NoError(t, err)
	return n
}

// claimsOf is the claim table beside a table.
func claimsOf(to loader.Target) string {
	return strings.Replace(to.Table, "documents", "terapush_claims", 1)
}

func documents(t testing.TB) dataset.Dataset {
	return backendtest.Dataset(t, "documents", dataset.Options{PayloadKind: dataset.Bytes})
}

// sourceOf is one of the datasets without a payload.
func sourceOf(t testing.TB, name string) dataset.Dataset {
	return backendtest.Dataset(t, name, dataset.Options{Seed: 7})
}

// documentsOf returns rows first … first+n−1 of run-1 as a batch.
func documentsOf(t *testing.T, number, first, n int64) *batch.Batch {
	b := backendtest.Batch(t, documents(t), batch.PGBinary, batch.ID{Run: "run-1", Number: number}, first, n)
	b.Hold()
	return b
}

func contract(method string, f batch.Format) loader.Contract {
	return loader.Contract{Method: method, Format: f, Delivery: loader.ExactlyOnce, Dedup: loader.DedupTx, BatchRows: 1000}
}
