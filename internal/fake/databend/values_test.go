package databend_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/databend"
)

// into loads rows of a format into a table by streaming load, and gives the server's refusal.
func (s server) into(t *testing.T, table, format, rows string) string {
	t.Helper()
	kind, body := form("upload", "batch", rows)
	_, a := s.request(t, http.MethodPut, "/v1/streaming_load", http.Header{
		"Content-Type": {kind}, "X-Databend-Sql": {"INSERT INTO " + table + " FROM @_databend_load FILE_FORMAT = (type = " + format + ")"},
	}, body)
	if a.Error != nil {
		return a.Error.Message
	}
	return ""
}

// The engine rounds what is behind the scale, and refuses what it has no digits for.
func TestDecimals(t *testing.T) {
	s := newServer(t, databend.Options{})
	s.query(t, "CREATE TABLE d (p DECIMAL(5, 2) NOT NULL, q DECIMAL(18,18))")
	require.Equal(t, "DECIMAL(5, 2)", *s.query(t, "SELECT name, data_type, is_nullable = 'YES' OR default_kind <> '' FROM system.columns"+
		" WHERE database = 'default' AND `table` = 'd'").Data[0][1])
	for _, c := range []struct{ format, rows, says string }{
		{"CSV", "999.99,0.000000000000000001\n-0.05,\\N\n12.345,-.5\n-12.345,1e-1\n", ""},
		{"NDJSON", `{"p":"-999.99","q":"0.1"}`, ""},
		{"NDJSON", `{"p":1.5,"q":"0.1"}`, "decimals as strings"},
		{"CSV", "1000,0\n", "Decimal overflow"},
		{"CSV", "999.995,0\n", "Decimal overflow"},
		{"CSV", "0,-1\n", "Decimal overflow"},
		{"NDJSON", `{"p":"1000.00","q":"0"}`, "Decimal overflow"},
		{"CSV", "1/3,0\n", "bad decimal literal"},
		{"CSV", "0x10,0\n", "bad decimal literal"},
		{"CSV", ".,0\n", "bad decimal literal"},
		{"CSV", "a,0\n", "bad decimal literal"},
	} {
		said := s.into(t, "d", c.format, c.rows)
		require.Contains(t, said, c.says, c.rows)
		require.Equal(t, c.says == "", said == "", said)
	}
	require.Equal(t, [][]any{
		{"999.99", "0.000000000000000001"}, {"-0.05", nil}, {"12.35", "-0.500000000000000000"}, {"-12.35", "0.100000000000000000"},
		{"-999.99", "0.100000000000000000"},
	}, s.Rows("d"))
	for _, impossible := range []string{"DECIMAL(0, 0)", "DECIMAL(77, 2)", "DECIMAL(3, 4)"} {
		require.NotNil(t, s.query(t, "CREATE TABLE other (p "+impossible+")").Error, impossible)
	}
}

// A timestamp as a number is its microseconds; it is compared with texts in any form that it may be written in.
func TestTimestampsAsKeys(t *testing.T) {
	s := newServer(t, databend.Options{})
	s.query(t, "CREATE TABLE h (ts TIMESTAMP NOT NULL, v BIGINT NOT NULL)")
	require.Empty(t, s.into(t, "h", "CSV", "2026-01-01 00:00:00,0\n2026-01-01 00:00:00.000001,1\n2026-01-01T00:00:00.000002,2\n2026-01-01 00:00:01,9\n"))
	count := func(condition string) string {
		t.Helper()
		a := s.query(t, "SELECT COUNT(*) FROM h WHERE "+condition)
		require.Nil(t, a.Error, condition)
		return *a.Data[0][0]
	}
	require.Equal(t, "3", count("ts BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.999999'"))
	require.Equal(t, "2", count("ts BETWEEN '2026-01-01 00:00:00' AND '2026-01-01 00:00:00.000001'"))
	require.Equal(t, "1", count("(CAST(ts AS BIGINT) - 1767225600000000) BETWEEN 2 AND 999999"))
	require.NotNil(t, s.query(t, "SELECT COUNT(*) FROM h WHERE ts BETWEEN 'a' AND 'b'").Error)
	require.NotNil(t, s.query(t, "SELECT COUNT(*) FROM h WHERE v BETWEEN '0' AND '1'").Error)
	require.NotNil(t, s.query(t, "SELECT COUNT(*) FROM h WHERE ts BETWEEN 0 AND 1").Error)

	a := s.query(t, "SELECT (CAST(ts AS BIGINT) - 1767225600000000), CAST(ts AS BIGINT), v FROM h WHERE ts IN ('2026-01-01 00:00:00.000002','2026-01-01 00:00:01.000000')")
	require.Nil(t, a.Error)
	require.Equal(t, [][]*string{cells("2", "1767225600000002", "2"), cells("1000000", "1767225601000000", "9")}, a.Data)

	s.query(t, "DELETE FROM h WHERE ts BETWEEN '2026-01-01 00:00:00.000000' AND '2026-01-01 00:00:00.000001'")
	require.Len(t, s.Rows("h"), 2)
}

func cells(values ...string) (all []*string) {
	for i := range values {
		all = append(all, &values[i])
	}
	return all
}

// An emptied table is the same table, and takes files again that it had loaded.
func TestTruncate(t *testing.T) {
	s := newServer(t, databend.Options{})
	id := "SELECT table_id, engine, comment FROM system.tables WHERE database = 'default' AND name = 't'"
	was := *s.query(t, id).Data[0][0]
	kind, body := form("upload", "rows.csv", "1,a\n")
	status, _ := s.request(t, http.MethodPut, "/v1/upload_to_stage", http.Header{"Content-Type": {kind}, "X-Databend-Stage-Name": {"~"}}, body)
	require.Equal(t, http.StatusOK, status)
	load := "COPY INTO t (id, s) FROM @~ FILES = ('rows.csv') FILE_FORMAT = (type = CSV) ON_ERROR = abort"
	for range 2 {
		require.Nil(t, s.query(t, load).Error)
		require.Len(t, s.Rows("t"), 1, "a file is loaded once")
	}
	require.Nil(t, s.query(t, "TRUNCATE TABLE t").Error)
	require.Empty(t, s.Rows("t"))
	require.Nil(t, s.query(t, load).Error)
	require.Len(t, s.Rows("t"), 1)
	require.Equal(t, was, *s.query(t, id).Data[0][0])
}
