package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
)

func (s statements) createRedshiftClaims() string {
	return "CREATE TABLE IF NOT EXISTS " + s.Claims +
		" (run varchar(64) NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL)"
}

// selectRedshiftClaims is selectClaimsTable; only the privileges can be missing.
func (s statements) selectRedshiftClaims() string {
	return "SELECT " + mayClaim + ", " + sqlload.Literal(durability(false)) + ", 't' " + fromCatalog(s.Claims)
}

func selectRedshiftSize(table string) string {
	schema, name := unquoted(table)
	return fmt.Sprintf(`SELECT COALESCE(SUM(size), 0) * 1048576 FROM svv_table_info WHERE LOWER("schema") = %s AND LOWER("table") = %s`,
		sqlload.Literal(strings.ToLower(schema)), sqlload.Literal(strings.ToLower(name)))
}

// fromCatalog finds a table by its quoted name: Redshift has no to_regclass. It folds names to lower case unless a session
// changes that.
func fromCatalog(table string) string {
	schema, name := unquoted(table)
	in := "current_schema()"
	if schema != "" {
		in = sqlload.Literal(strings.ToLower(schema))
	}
	return fmt.Sprintf("FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE LOWER(c.relname) = %s AND LOWER(n.nspname) = %s",
		sqlload.Literal(strings.ToLower(name)), in)
}

// unquoted reverses qualified.
func unquoted(table string) (schema, name string) {
	schema, name, both := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(table, `"`), `"`), `"."`)
	if !both {
		schema, name = "", schema
	}
	return strings.ReplaceAll(schema, `""`, `"`), strings.ReplaceAll(name, `""`, `"`)
}

// loadError adds the first row that Redshift could not read to the error of its COPY.
type loadError struct {
	err error
	row string
}

func (e *loadError) Error() string { return e.err.Error() + "; " + e.row }
func (e *loadError) Unwrap() error { return e.err }

// addBadRow adds the first bad row to the error of a COPY, which itself says only where to look. The session is the commit's
// own, so its rows in the system tables are about this COPY.
func (s *session) addBadRow(ctx context.Context, err error) error {
	if s.flavour != redshift || s.conn.IsClosed() || !errors.As(err, new(*pgconn.PgError)) {
		return err
	}
	for _, query := range selectLoadErrors {
		found, queryErr := rowsOf(ctx, s.conn, query)
		if queryErr != nil || len(found) == 0 {
			continue
		}
		e, row := describe("load", err), found[0]
		e.Err = &loadError{e.Err, fmt.Sprintf("%s, line %s, column %s: %s", row[0], row[1], row[2], row[3])}
		return e
	}
	return err
}

// selectLoadErrors reads the log that every cluster has, and the view that serverless workgroups have instead and that
// includes COPYs on concurrency scaling clusters (Amazon Redshift, "STL_LOAD_ERRORS", "SYS_LOAD_ERROR_DETAIL").
var selectLoadErrors = [...]string{
	"SELECT TRIM(filename), line_number, TRIM(colname), TRIM(err_reason) FROM stl_load_errors " +
		"WHERE session = pg_backend_pid() ORDER BY starttime DESC LIMIT 1",
	"SELECT TRIM(file_name), line_number, TRIM(column_name), TRIM(error_message) FROM sys_load_error_detail " +
		"WHERE session_id = pg_backend_pid() ORDER BY start_time DESC LIMIT 1",
}
