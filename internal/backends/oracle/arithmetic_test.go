package oracle

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
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// likeOracle is a connection to PostgreSQL. MOD, TRUNC, EXTRACT of an interval, TO_CHAR of a time and quoted names mean
// the same there; oracleFunctions add what is missing. VSIZE counts bytes, TO_CHAR of a number writes no trailing zeros,
// and Oracle has no empty text: it is NULL.
type likeOracle struct{ *pgconn.PgConn }

const oracleFunctions = `CREATE FUNCTION to_char(numeric) RETURNS text LANGUAGE sql AS 'SELECT CAST(trim_scale($1) AS text)';
	CREATE FUNCTION to_char(numeric, text, text) RETURNS text LANGUAGE sql AS 'SELECT CAST(trim_scale($1) AS text)';
	CREATE FUNCTION to_number(text) RETURNS numeric LANGUAGE sql AS 'SELECT CAST($1 AS numeric)';
	CREATE FUNCTION to_number(text, text) RETURNS numeric LANGUAGE sql AS 'SELECT CAST(CAST(CAST(''x0'' || $1 AS bit(64)) AS bigint) AS numeric)';
	CREATE FUNCTION substr(text, integer) RETURNS text LANGUAGE sql AS 'SELECT right($1, -$2)';
	CREATE FUNCTION vsize(text) RETURNS numeric LANGUAGE sql AS 'SELECT octet_length($1)';
	CREATE FUNCTION vsize(bytea) RETURNS numeric LANGUAGE sql AS 'SELECT octet_length($1)'`

func (c likeOracle) Exec(ctx context.Context, statement string) (int64, error) {
	_, err := c.PgConn.Exec(ctx, statement).ReadAll()
	return 0, err
}

func (c likeOracle) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	results, err := c.PgConn.Exec(ctx, query).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", query, err)
	}
	for _, row := range results[0].Rows {
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

func (c likeOracle) Close() error { return nil }

// proof is a table that is only asked.
type proof struct {
	sqlload.Catalog
	statements sqlload.Statements
}

func (p proof) Plan(loader.Preparation) sqlload.Statements { return p.statements }

// postgres makes types of Oracle those of PostgreSQL.
var postgres = strings.NewReplacer("NUMBER(", "numeric(", "VARCHAR2(", "varchar(", " BYTE)", ")", "DATE", "timestamp(0)")

// connectLikeOracle connects to a schema that ends with the test.
func connectLikeOracle(t *testing.T) (c likeOracle, exec func(statement string)) {
	t.Helper()
	conn, err := pgconn.Connect(t.Context(), backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(t, err)
	exec = func(statement string) {
		t.Helper()
		_, err := conn.Exec(context.Background(), statement).ReadAll()
		require.NoError(t, err, statement)
	}
	schema := fmt.Sprintf("oracle%x", time.Now().UnixNano())
	exec("CREATE SCHEMA " + schema + "; SET search_path = " + schema + ", pg_catalog; SET standard_conforming_strings = on; " + oracleFunctions)
	t.Cleanup(func() {
		exec("DROP SCHEMA " + schema + " CASCADE")
		_ = conn.Close(context.Background())
	})
	return likeOracle{conn}, exec
}

func TestArithmetic(t *testing.T) {
	conn, exec := connectLikeOracle(t)
	backendtest.Arithmetic(t, batch.PGValues, func(t *testing.T, d dataset.Dataset, batches ...*batch.Batch) backendtest.Proven {
		s := sqlload.Statements{Dialect: dialect(), Schema: d.Schema(), Table: sqlload.Qualified("", d.Schema().Dataset)}
		var columns []string
		for _, c := range s.Schema.Columns {
			columns = append(columns, s.Identifier(c.Name)+" "+postgres.Replace(s.SQL(c)))
		}
		exec("CREATE TABLE " + s.Table + " (" + strings.Join(columns, ", ") + ")")
		for _, b := range batches {
			exec("INSERT INTO " + s.Table + " VALUES " + string(b.Encoded))
		}
		table := &sqlload.Table{
			Catalog: proof{statements: s}, Failed: func(_ string, err error) error { return err },
			Connect: func(context.Context) (sqlload.Conn, error) { return conn, nil },
		}
		_, err := table.Prepare(t.Context(), loader.Preparation{Silent: true, Schema: s.Schema})
		require.NoError(t, err)
		return table
	})
}

// A CHAR that is longer than a UUID has blanks behind it, which PostgreSQL has in a text only.
func TestNumbersOfPaddedUUIDs(t *testing.T) {
	conn, _ := connectLikeOracle(t)
	s := rows.Schema{
		Columns: []rows.Column{{Name: "k", Type: rows.Char, MaxBytes: 36, Declared: 40, Derived: true}},
		Number:  []rows.Term{{Times: 1, Hex: true}},
	}
	from := ` FROM (SELECT CAST('0198a1b2-0000-4000-8fff-0000000000ff    ' AS text) AS "K") t`
	got, err := sqlload.Rows(t.Context(), conn, "SELECT TO_CHAR("+dialect().Number(s)+")"+from)
	require.NoError(t, err)
	require.Equal(t, [][]string{{strconv.Itoa(0xfff_0000_0000_00ff)}}, got)
}

// The sum of numbers that have as many digits as Oracle's type is exact, whatever their signs.
func TestSumsOfWideNumbers(t *testing.T) {
	conn, exec := connectLikeOracle(t)
	s := sqlload.Statements{Dialect: dialect(), Table: sqlload.Qualified("", "wide"), Schema: rows.Schema{
		Columns: []rows.Column{{Name: "id", Type: rows.Int64, Derived: true}, {Name: "tall", Type: rows.Wide, Digits: 38, Scale: 9}},
		Number:  []rows.Term{{Times: 1}},
	}}
	exec("CREATE TABLE " + s.Table + ` ("ID" numeric, "TALL" numeric(38,9))`)
	nines := strings.Repeat("9", 38)
	for _, c := range []struct {
		values []string // without their point
		want   string
	}{
		{[]string{nines, nines, nines, "1"}, "299999999999999999999999999999999999998"},
		{[]string{"-" + nines, "-" + nines, "5", "NULL"}, "-199999999999999999999999999999999999993"},
		{[]string{nines, "-" + nines, "-7"}, "-7"},
		{[]string{"NULL"}, "0"},
	} {
		exec("TRUNCATE " + s.Table)
		for i, v := range c.values {
			exec(fmt.Sprintf("INSERT INTO %s VALUES (%d, %s * 0.000000001)", s.Table, i, v))
		}
		table := &sqlload.Table{
			Catalog: proof{statements: s}, Failed: func(_ string, err error) error { return err },
			Connect: func(context.Context) (sqlload.Conn, error) { return conn, nil },
		}
		_, err := table.Prepare(t.Context(), loader.Preparation{Silent: true, Schema: s.Schema})
		require.NoError(t, err)
		g := loader.Grouping{KeyRange: loader.KeyRange{Last: 9}, Size: 10, Measures: true}
		require.NoError(t, table.Count(t.Context(), g, func(b loader.Bucket) error {
			require.Equal(t, c.want, b.Measures[0].String(), c.values)
			return nil
		}))
	}
}
