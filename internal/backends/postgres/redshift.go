package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// redshiftSetup has none of PostgreSQL's timeouts and keep-alives, which are not a session's to set here. The group
// marks the run's statements in the system views, and a queue may be chosen by it.
func redshiftSetup(t loader.Target) string {
	setup := "SET query_group TO 'terapush'"
	if set := sessionSettings(t.Settings); set != "" {
		setup += "; " + set
	}
	return setup
}

func (s statements) createRedshiftClaims() string {
	return "CREATE TABLE IF NOT EXISTS " + s.Claims +
		" (run varchar(64) NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL)"
}

// selectRedshiftClaims answers like selectClaimsTable, of which only the privileges can be in doubt.
func (s statements) selectRedshiftClaims() string {
	return "SELECT has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') AND has_table_privilege(c.oid, 'DELETE'), " +
		sqlload.Literal(durability(false)) + ", 't' " + fromCatalog(s.Claims)
}

func selectRedshiftSize(table string) string {
	schema, name := unquoted(table)
	return fmt.Sprintf(`SELECT COALESCE(SUM(size), 0) * 1048576 FROM svv_table_info WHERE LOWER("schema") = %s AND LOWER("table") = %s`,
		sqlload.Literal(strings.ToLower(schema)), sqlload.Literal(strings.ToLower(name)))
}

// fromCatalog finds a table by its quoted name; there is no to_regclass. Redshift writes names in small letters unless
// a session says otherwise.
func fromCatalog(table string) string {
	schema, name := unquoted(table)
	in := "current_schema()"
	if schema != "" {
		in = sqlload.Literal(strings.ToLower(schema))
	}
	return fmt.Sprintf("FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE LOWER(c.relname) = %s AND LOWER(n.nspname) = %s",
		sqlload.Literal(strings.ToLower(name)), in)
}

// unquoted undoes qualified.
func unquoted(table string) (schema, name string) {
	schema, name, both := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(table, `"`), `"`), `"."`)
	if !both {
		schema, name = "", schema
	}
	return strings.ReplaceAll(schema, `""`, `"`), strings.ReplaceAll(name, `""`, `"`)
}

// loadError is what Redshift has written down about a COPY that it could not read.
type loadError struct {
	err                        error
	file, line, column, reason string
}

func (e *loadError) Error() string {
	return fmt.Sprintf("%v; %s, line %s, column %s: %s", e.err, e.file, e.line, e.column, e.reason)
}

func (e *loadError) Unwrap() error { return e.err }

// whyNot adds the first bad row to the error of a COPY, which itself says only where to look. The session is the
// commit's own, so what the tables say of it is about this COPY.
func (s *session) whyNot(ctx context.Context, err error) error {
	said := (*pgconn.PgError)(nil)
	if s.flavour != redshift || s.conn.IsClosed() || !errors.As(err, &said) {
		return err
	}
	for _, query := range selectLoadErrors() {
		found, lost := rowsOf(ctx, s.conn, query)
		if lost != nil || len(found) == 0 {
			continue
		}
		e := describe("load", err)
		e.Err = &loadError{err: e.Err, file: found[0][0], line: found[0][1], column: found[0][2], reason: found[0][3]}
		return e
	}
	return err
}

// selectLoadErrors asks the log that every cluster has, and then the view that serverless workgroups have in its place and
// that knows of COPYs on concurrency scaling clusters, too (Amazon Redshift, "STL_LOAD_ERRORS", "SYS_LOAD_ERROR_DETAIL").
func selectLoadErrors() []string {
	return []string{
		"SELECT TRIM(filename), line_number, TRIM(colname), TRIM(err_reason) FROM stl_load_errors " +
			"WHERE session = pg_backend_pid() ORDER BY starttime DESC LIMIT 1",
		"SELECT TRIM(file_name), line_number, TRIM(column_name), TRIM(error_message) FROM sys_load_error_detail " +
			"WHERE session_id = pg_backend_pid() ORDER BY start_time DESC LIMIT 1",
	}
}
