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
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// likeOracle is a connection to PostgreSQL. MOD, TRUNC, EXTRACT of an interval, TO_CHAR of a time and quoted names mean
// the same there; oracleFunctions add what is missing. VSIZE counts bytes, TO_CHAR of a number writes no trailing zeros,
// and Oracle has no empty text: it is NULL.
type likeOracle struct{ *pgconn.PgConn }

const oracleFunctions = `CREATE FUNCTION to_char(numeric) RETURNS text LANGUAGE sql AS 'SELECT CAST(trim_scale($1) AS text)';
	CREATE FUNCTION to_char(numeric, text, text) RETURNS text LANGUAGE sql AS 'SELECT CAST(trim_scale($1) AS text)';
	CREATE FUNCTION to_number(text) RETURNS numeric LANGUAGE sql AS 'SELECT CAST($1 AS numeric)';
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

func TestArithmetic(t *testing.T) {
	conn, err := pgconn.Connect(t.Context(), backendtest.Server(t, "TERAPUSH_TEST_POSTGRES"))
	require.NoError(t, err)
	exec := func(statement string) {
		_, err := conn.Exec(context.Background(), statement).ReadAll()
		require.NoError(t, err, statement)
	}
	schema := fmt.Sprintf("oracle%x", time.Now().UnixNano())
	exec("CREATE SCHEMA " + schema + "; SET search_path = " + schema + "; SET standard_conforming_strings = on; " + oracleFunctions)
	t.Cleanup(func() {
		exec("DROP SCHEMA " + schema + " CASCADE")
		_ = conn.Close(context.Background())
	})
	types := strings.NewReplacer("NUMBER(", "numeric(", "VARCHAR2(", "varchar(", " BYTE)", ")", "DATE", "timestamp(0)")
	backendtest.Stranger{
		Format: batch.PGValues, Exec: exec,
		Statements: func(s rows.Schema) sqlload.Statements { return planned(s.Dataset, s) },
		Column:     func(c rows.Column) string { return types.Replace(columnType(c)) },
		Connect:    func(context.Context) (sqlload.Conn, error) { return likeOracle{conn}, nil },
	}.Arithmetic(t)
}
