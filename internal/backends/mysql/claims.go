package mysql

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateClaims implements sqlload.Claims.
func (l catalog) CreateClaims(s *sqlload.State) string { return l.statements(s).createClaims() }

// CheckClaims implements sqlload.Claims. Without the key a batch could be claimed twice; without transactions claims
// stay after a rollback.
func (l catalog) CheckClaims(ctx context.Context, c sqlload.Conn, s *sqlload.State) (there bool, err error) {
	found, err := sqlload.Rows(ctx, c, l.selectTable(l.name.claimsTable()))
	if err != nil || len(found) == 0 {
		return false, err
	}
	if traits := found[0][2:]; traits[traitTransactional] != "YES" {
		return true, s.RefuseClaims("ENGINE = InnoDB", "engine %q keeps rows after a rollback", traits[traitEngine])
	}
	return l.CheckKeys(ctx, c, s, l.name.schema)
}

// ResolveBatch implements sqlload.Claims by a locking read, which waits for a session that has inserted the claim and
// neither committed nor rolled back: only then is "not there" final. OceanBase's does not see what is not committed;
// its key does.
func (l catalog) ResolveBatch(ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	if l.server.flavour == oceanBase {
		return s.WaitForClaim(ctx, c, ref, mysqlconn.Taken)
	}
	if _, err := c.Exec(ctx, "START TRANSACTION"); err != nil {
		return loader.Resolution{}, err
	}
	defer func() { // the connection goes back to the pool; a ROLLBACK that times out closes it
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loader.ConnectTimeout)
		defer cancel()
		_, _ = c.Exec(ctx, "ROLLBACK")
	}()
	return s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number)+" FOR UPDATE", ref)
}

// createClaims creates the claim table. Its column connection is for Resolve: who inserted the claim.
func (s statements) createClaims() string {
	return s.createOwn(s.Claims, sqlload.ClaimColumns("VARCHAR(64)", "BIGINT", "TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP",
		"connection BIGINT NOT NULL DEFAULT 0"))
}

// createOwn creates a table of terapush's own. SingleStore's default is a column store, made for scans; these rows are
// looked up one by one, by their key.
func (s statements) createOwn(table string, columns []string) string {
	create := "CREATE TABLE"
	if s.flavour == singleStore {
		create = "CREATE ROWSTORE TABLE"
	}
	return fmt.Sprintf("%s IF NOT EXISTS %s (\n  %s\n)%s COMMENT = '%s'",
		create, table, strings.Join(columns, ",\n  "), s.engine(), loader.MadeBy)
}

// insertClaim is sqlload's, with the number of the connection.
func (s statements) insertClaim(r loader.Ref, connection int64) string {
	return s.InsertClaimBy(r, "connection", strconv.FormatInt(connection, 10))
}

// selectHolder reads the connection of a batch's claim, for a session with dirtyReads.
func (s statements) selectHolder(r loader.Ref) string {
	return fmt.Sprintf("SELECT connection FROM %s WHERE run = '%s' AND batch = %d", s.Claims, cmp.Or(s.Row.Run, r.ID.Run), r.ID.Number)
}
