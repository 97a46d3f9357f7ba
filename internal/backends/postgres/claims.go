package postgres

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateClaims implements sqlload.Claims.
func (l catalog) CreateClaims(s *sqlload.State) string { return l.statements(s).createClaims() }

// CheckClaims implements sqlload.Claims.
func (l catalog) CheckClaims(ctx context.Context, c sqlload.Conn, s *sqlload.State) (bool, error) {
	st := l.statements(s)
	found, err := sqlload.Rows(ctx, c, st.selectClaimsTable())
	if err != nil || len(found) == 0 {
		return false, err
	}
	may, persistence, keyed := found[0][0], found[0][1], found[0][2]
	const drop = "drop it if no run needs it any more: the next run makes it again"
	switch {
	case may != "t":
		grant := l.Grant(ctx, c, "SELECT, INSERT, DELETE", s.Claims)
		return true, sqlload.Refuse(grant+", or do without exactly once: --delivery at-least-once",
			"this user may not use the claim table %s", s.Claims)
	case persistence != durability(st.unlogged):
		return true, sqlload.Refuse(drop,
			"the claim table %s is %s and the table %s %s: a crash would empty only one of them",
			s.Claims, persistence, s.Table, durability(st.unlogged))
	case keyed != "t":
		return true, sqlload.Refuse("ALTER TABLE "+s.Claims+" ADD PRIMARY KEY (run, batch), or "+drop,
			"the claim table %s has no unique key on exactly (run, batch): a batch could be claimed twice", s.Claims)
	}
	return true, nil
}

// ResolveBatch implements sqlload.Claims. It claims and rolls back, in one message: an uncommitted claim, which no
// SELECT shows, makes it wait up to lockWait.
func (l catalog) ResolveBatch(ctx context.Context, c sqlload.Conn, s *sqlload.State, ref loader.Ref) (loader.Resolution, error) {
	if l.flavour == redshift {
		return resolveInRedshift(ctx, c, s, ref)
	}

	results, err := exec(ctx, c.(conn).PgConn, begin+s.TryClaim(ref)+" ON CONFLICT DO NOTHING; ROLLBACK")
	if err != nil {
		return loader.Resolution{}, err
	}
	if len(results) != 3 {
		return loader.Resolution{}, fmt.Errorf("the server answered %d of 3 statements", len(results))
	}
	if results[1].CommandTag.RowsAffected() == 1 {
		return loader.Resolution{Applied: loader.No}, nil
	}
	found, err := s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number), ref)
	if err == nil && found.Applied == loader.No {
		err = sqlload.ErrClaimVanished
	}
	return found, err
}

func (s statements) createClaims() string {
	if s.flavour == redshift {
		return s.createRedshiftClaims()
	}
	columns := sqlload.ClaimColumns("text", "bigint", "timestamp with time zone NOT NULL DEFAULT now()")
	if s.flavour == yugabyteDB {
		columns[len(columns)-1] = "PRIMARY KEY ((run, batch) HASH)"
	}
	return create(s.unlogged) + "IF NOT EXISTS " + s.Claims + " (" + strings.Join(columns, ", ") + ")"
}

// selectClaimsTable reads whether this user may use the claim table, how durable it is, and whether it has a unique key
// on exactly (run, batch). indoption has an entry for each column of the key, and none for those of INCLUDE.
func (s statements) selectClaimsTable() string {
	if s.flavour == redshift {
		return s.selectRedshiftClaims()
	}
	return "SELECT " + mayClaim + ", CASE c.relpersistence WHEN 'p' THEN 'logged' WHEN 'u' THEN 'unlogged' ELSE 'temporary' END, " +
		"EXISTS (SELECT 1 FROM pg_index i WHERE i.indrelid = c.oid AND i.indisunique AND i.indimmediate AND i.indisvalid " +
		"AND i.indpred IS NULL AND i.indnatts = 2 AND array_length(i.indoption, 1) = 2 AND (SELECT count(*) FROM pg_attribute a " +
		"WHERE a.attrelid = c.oid AND a.attnum = ANY (i.indkey) AND a.attname IN ('run', 'batch')) = 2) " +
		"FROM pg_class c WHERE c.oid = to_regclass(" + sqlload.Literal(s.Claims) + ")"
}

// mayClaim is the condition that this user may use the claim table c.
const mayClaim = "has_table_privilege(c.oid, 'SELECT') AND has_table_privilege(c.oid, 'INSERT') " +
	"AND has_table_privilege(c.oid, 'DELETE')"

// durability is a column of selectClaimsTable.
func durability(unlogged bool) string {
	if unlogged {
		return "unlogged"
	}
	return "logged"
}

// begin begins a transaction that sees a claim which another session has just committed, where higher levels would
// fail.
const begin = "BEGIN ISOLATION LEVEL READ COMMITTED; "

// claim begins a transaction and claims, in one message. A claim that exists is an error.
func claim(s sqlload.Statements, r loader.Ref) string { return begin + s.InsertClaim(r) }

// preparedClaim is a name that no other process prepares: behind a pooler that pools transactions it may be missing,
// but is never the claim of another run.
func (s statements) preparedClaim() string { return s.Identifier("terapush " + s.Row.Epoch) }

// prepareClaim prepares a session for claimAndLoad. The session may be a pooler's, and have been another client's.
func (s statements) prepareClaim() string {
	return fmt.Sprintf("DEALLOCATE ALL; PREPARE %s (bigint, bigint, bigint) AS %s", s.preparedClaim(), s.InsertAnyClaim("$1", "$2", "$3"))
}
