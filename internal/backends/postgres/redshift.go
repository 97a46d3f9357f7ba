package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Redshift stays in this package. 33 lines outside this file ask for the flavour; a package of its own would need the
// connection with its TLS, failover and libpq's settings, the session, the claims' statements, the fence and the fault
// table, which are PostgreSQL's, and so more lines than it would take away.

// Redshift speaks PostgreSQL's protocol, with the catalog of PostgreSQL 8.0.
//
// Claims there need a lock. Redshift enforces no primary key and has no ON CONFLICT, so a claim row keeps nobody out:
// under SNAPSHOT isolation, the default of new databases, two transactions both find no claim, and the second INSERT
// waits for the first one's table lock only to add the same row. SERIALIZABLE would let one of them fail, but the
// database's owner chooses the level. So a claim begins with LOCK TABLE on the claim table, and holds it to the end. A
// transaction's snapshot is taken by its first SELECT, COPY or DML (Database Developer Guide, "Isolation levels in
// Amazon Redshift"), and not by LOCK: the holder of the lock sees all claims that were committed before.
//
// So groups of all runs with their claims in one schema are loaded one after the other. For one table that costs
// nothing: COPYs into it wait for each other anyway (the same guide, "Concurrent write examples").

func lockClaims(s sqlload.Statements) string { return "LOCK TABLE " + s.Claims }

// claimLockTimeout bounds, in milliseconds, how long ResolveBatch waits for the lock on the claims.
const claimLockTimeout = 5 * 60 * 1000

// lockAndLook begins a transaction that has the claim table for itself, and looks for the claim.
func lockAndSelectClaim(ctx context.Context, c sqlload.Conn, s sqlload.Statements, ref loader.Ref) (rows [][]string, err error) {
	for _, statement := range [...]string{"BEGIN", lockClaims(s)} {
		if _, err := c.Exec(ctx, statement); err != nil {
			return nil, err
		}
	}
	return sqlload.Rows(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number))
}

// resolveInRedshift is ResolveBatch. An earlier attempt that still runs holds the lock until it has committed or rolled
// back. The caller closes the connection, which ends the transaction.
func resolveInRedshift(ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	_, err := c.Exec(ctx, fmt.Sprintf("SET statement_timeout TO %d", claimLockTimeout))
	var found [][]string
	if err == nil {
		found, err = lockAndSelectClaim(ctx, c, s.Statements, ref)
	}
	if err != nil {
		return loader.Resolution{}, &loader.Error{
			Op: "look for the claim", Applied: loader.Unknown, Err: err,
			Hint: "an earlier attempt may still hold the claim table: SELECT pid FROM svv_transactions WHERE granted, then pg_terminate_backend(pid)",
		}
	}
	return sqlload.ReadClaim(found, ref)
}

func (s statements) createRedshiftClaims() string {
	return "CREATE TABLE IF NOT EXISTS " + s.Claims +
		" (run varchar(64) NOT NULL, batch bigint NOT NULL, first_key bigint NOT NULL, row_count bigint NOT NULL, claimed_at timestamp DEFAULT SYSDATE)"
}

// selectRedshiftClaims is selectClaimsTable; only the privileges can be missing.
func (s statements) selectRedshiftClaims() string {
	return "SELECT " + mayClaim + ", " + sqlload.Literal(durability(false)) + ", 't' " + fromCatalog(s.Claims)
}

func selectRedshiftSize(table string) string {
	schema, name := sqlload.Unquoted(table)
	return fmt.Sprintf(`SELECT COALESCE(SUM(size), 0) * 1048576 FROM svv_table_info WHERE LOWER("schema") = %s AND LOWER("table") = %s`,
		sqlload.Literal(strings.ToLower(schema)), sqlload.Literal(strings.ToLower(name)))
}

// fromCatalog finds a table by its quoted name: Redshift has no to_regclass. It folds names to lower case unless a
// session changes that.
func fromCatalog(table string) string {
	schema, name := sqlload.Unquoted(table)
	in := "current_schema()"
	if schema != "" {
		in = sqlload.Literal(strings.ToLower(schema))
	}
	return fmt.Sprintf("FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE LOWER(c.relname) = %s AND LOWER(n.nspname) = %s",
		sqlload.Literal(strings.ToLower(name)), in)
}

// loadError adds the first row that Redshift could not read to the error of its COPY.
type loadError struct {
	err error
	row string
}

func (e *loadError) Error() string { return e.err.Error() + "; " + e.row }
func (e *loadError) Unwrap() error { return e.err }

// addBadRow adds the first bad row to the error of a COPY, which itself says only where to look. The session is the
// commit's own, so its rows in the system tables are about this COPY.
func (s *session) addBadRow(ctx context.Context, err error) error {
	if s.conn.IsClosed() || !errors.As(err, new(*pgconn.PgError)) {
		return err
	}
	for _, query := range selectLoadErrors {
		found, queryErr := sqlload.Rows(ctx, s.conn, query)
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
