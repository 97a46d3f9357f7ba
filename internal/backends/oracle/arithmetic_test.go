package oracle

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
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

func TestArithmetic(t *testing.T) {
	conn, err := pgconn.Connect(t.Context(), backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(t, err)
	exec := func(statement string) {
		_, err := conn.Exec(context.Background(), statement).ReadAll()
		require.NoError(t, err, statement)
	}
	schema := fmt.Sprintf("oracle%x", time.Now().UnixNano())
	exec("CREATE SCHEMA " + schema + "; SET search_path = " + schema + ", pg_catalog; SET standard_conforming_strings = on; " + oracleFunctions)
	t.Cleanup(func() {
		exec("DROP SCHEMA " + schema + " CASCADE")
		_ = conn.Close(context.Background())
	})
	postgres := strings.NewReplacer("NUMBER(", "numeric(", "VARCHAR2(", "varchar(", " BYTE)", ")", "DATE", "timestamp(0)")
	backendtest.Arithmetic(t, batch.PGValues, func(t *testing.T, d dataset.Dataset, rows ...*batch.Batch) backendtest.Proven {
		s := sqlload.Statements{Dialect: dialect(), Schema: d.Schema(), Table: sqlload.Qualified("", d.Schema().Dataset)}
		var columns []string
		for _, c := range s.Schema.Columns {
			columns = append(columns, s.Identifier(c.Name)+" "+postgres.Replace(s.SQL(c)))
		}
		exec("CREATE TABLE " + s.Table + " (" + strings.Join(columns, ", ") + ")")
		for _, b := range rows {
			exec("INSERT INTO " + s.Table + " VALUES " + string(b.Encoded))
		}
		table := &sqlload.Table{
			Catalog: proof{statements: s}, Failed: func(_ string, err error) error { return err },
			Connect: func(context.Context) (sqlload.Conn, error) { return likeOracle{conn}, nil },
		}
		_, err := table.Prepare(t.Context(), loader.Preparation{Silent: true, Schema: s.Schema})
		require.NoError(t, err)
		return table
	})
}
