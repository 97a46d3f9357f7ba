package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

// Redshift speaks PostgreSQL's protocol, with the catalog of PostgreSQL 8.0 and without most of what came later.
//
// Claims there need a lock. Redshift enforces no primary key and knows no ON CONFLICT, so a claim row keeps nobody out:
// under SNAPSHOT isolation, which new databases have, two transactions both find no claim, and the second INSERT waits
// for the first one's table lock only to add the same row. SERIALIZABLE would let one of them fail, but which of the two
// a database has is its owner's choice. So a claim begins with LOCK TABLE on the claim table, and holds it to the end.
// A transaction's snapshot is taken by its first SELECT, COPY or DML (Database Developer Guide, "Isolation levels in
// Amazon Redshift"), and LOCK is none of them: whoever has the lock sees all claims that were committed before it.
//
// The price is that groups of all runs with their claims in one schema are loaded one after the other. For one table
// that is no price: COPYs into it wait for each other anyway (the same guide, "Concurrent write examples").

// lookPatience bounds, in milliseconds, how long a look for a claim waits for whoever holds the lock.
const lookPatience = 5 * 60 * 1000

// redshiftSetup has none of PostgreSQL's timeouts and keep-alives, which are not a session's to set here. The group
// marks the run's statements in the system views, and a queue may be chosen by it.
func (s statements) redshiftSetup(t loader.Target) string {
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
		literal(durability(false)) + ", 't' " + fromCatalog(s.Claims)
}

func (s statements) selectRedshiftSize() string {
	schema, name := unquoted(s.Table)
	return fmt.Sprintf(`SELECT COALESCE(SUM(size), 0) * 1048576 FROM svv_table_info WHERE LOWER("schema") = %s AND LOWER("table") = %s`,
		literal(strings.ToLower(schema)), literal(strings.ToLower(name)))
}

func (s statements) lockClaims() string { return "LOCK TABLE " + s.Claims }

// fromCatalog finds a table by its quoted name; there is no to_regclass. Redshift writes names in small letters unless
// a session says otherwise.
func fromCatalog(table string) string {
	schema, name := unquoted(table)
	in := "current_schema()"
	if schema != "" {
		in = literal(strings.ToLower(schema))
	}
	return fmt.Sprintf("FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE LOWER(c.relname) = %s AND LOWER(n.nspname) = %s",
		literal(strings.ToLower(name)), in)
}

// unquoted undoes qualified.
func unquoted(table string) (schema, name string) {
	schema, name, both := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(table, `"`), `"`), `"."`)
	if !both {
		schema, name = "", schema
	}
	return strings.ReplaceAll(schema, `""`, `"`), strings.ReplaceAll(name, `""`, `"`)
}

// locateRedshift is locate. The oid alone is the identity: what the catalog calls file node is none.
func (r *ready) locateRedshift(ctx context.Context, c *pgconn.PgConn) (*relation, error) {
	found, err := rowsOf(ctx, c, "SELECT c.oid, n.nspname, c.relname, c.relkind, obj_description(c.oid, 'pg_class'), "+
		"has_table_privilege(c.oid, 'INSERT') "+fromCatalog(r.Table))
	if err != nil {
		return nil, failed("look for table "+r.Table, err)
	}
	if len(found) == 0 {
		return nil, nil
	}
	row := found[0]
	return &relation{
		oid: row[0], identity: row[0], schema: row[1], name: row[2], persistence: "p", kind: row[3], comment: row[4], mayInsert: row[5] == "t",
	}, nil
}

// lockAndLook begins a transaction that has the claim table for itself, and looks for the claim.
func (r *ready) lockAndLook(ctx context.Context, c *pgconn.PgConn, ref loader.Ref) (taken bool, rows int64, err error) {
	for _, statement := range [...]string{"BEGIN", r.lockClaims()} {
		if _, err := exec(ctx, c, statement); err != nil {
			return false, 0, err
		}
	}
	found, err := rowsOf(ctx, c, r.SelectClaim(ref.ID.Run, ref.ID.Number))
	if err != nil || len(found) == 0 {
		return false, 0, err
	}
	rows, err = parseInt(found[0][0])
	return true, rows, err
}

// claimedInRedshift is claimed. An earlier attempt that still runs holds the lock until it has committed or rolled back.
func (r *ready) claimedInRedshift(ctx context.Context, c *pgconn.PgConn, ref loader.Ref) (loader.Applied, error) {
	_, err := exec(ctx, c, fmt.Sprintf("SET statement_timeout TO %d", lookPatience))
	var taken bool
	if err == nil {
		taken, _, err = r.lockAndLook(ctx, c, ref)
	}
	if err != nil {
		return loader.Unknown, &loader.Error{
			Op: "look for the claim", Applied: loader.Unknown, Err: err,
			Hint: "an earlier attempt may still hold the claim table: SELECT pid FROM svv_transactions WHERE granted, then pg_terminate_backend(pid)",
		}
	}
	if taken {
		return loader.Yes, nil
	}
	return loader.No, nil // the connection ends with the look, and its transaction with it
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
