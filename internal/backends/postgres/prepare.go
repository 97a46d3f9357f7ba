package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

// Prepare makes or checks the target, and the claim table where the contract needs one. At least once into a table
// that is not to be made asks for nothing, so it says nothing to the server either.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	name := l.target.Table
	if name == "" {
		name = p.Schema.Dataset
	}
	r := &ready{run: p.Run, asked: name, statements: statementsFor(name, p.Schema, l.method, l.options, l.flavour), contract: p.Contract}
	r.primaryKey = p.PrimaryKey || p.Contract.Dedup == loader.DedupRange
	if p.Silent {
		l.ready.Store(r)
		return loader.Table{Name: name}, nil
	}
	if err := l.hold(ctx, r, p); err != nil { // before anything is dropped
		return loader.Table{}, err
	}
	var table loader.Table
	err := l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) (err error) {
		if table, err = r.target(ctx, c, p); err != nil {
			return err
		}
		if p.Contract.Dedup == loader.DedupTx {
			return r.makeClaims(ctx, c, p.Resume)
		}
		return nil
	})
	if err != nil {
		return loader.Table{}, err
	}
	l.ready.Store(r)
	return table, nil
}

// target makes or checks the table, and learns its full name.
func (r *ready) target(ctx context.Context, c *pgconn.PgConn, p loader.Preparation) (loader.Table, error) {
	found, err := r.locate(ctx, c)
	if err != nil {
		return loader.Table{}, err
	}
	created := found == nil || p.Create == loader.CreateRecreate
	switch {
	case !created:
	case p.Create == loader.CreateNever:
		return loader.Table{}, p.Missing(r.Table)
	case found != nil:
		found, err = r.replace(ctx, c, found, p)
	default:
		found, err = r.make(ctx, c)
	}
	if err != nil {
		return loader.Table{}, err
	}
	if err := r.fits(ctx, c, found, p); err != nil {
		return loader.Table{}, err
	}
	if p.Create == loader.CreateTruncate && !created {
		if found, err = r.empty(ctx, c, found, p); err != nil {
			return loader.Table{}, err
		}
	}
	r.Table = qualified(found.schema, found.name)
	r.unlogged = found.persistence == "u"
	r.Claims = claimsTable(found.schema, r.unlogged)
	if r.flavour != redshift {
		r.persistence = durability(r.unlogged)
	}
	t := loader.Table{Name: found.schema + "." + found.name, Identity: found.identity, Created: created}
	if !created {
		rows, err := rowsOf(ctx, c, "SELECT 1 FROM "+r.Table+" LIMIT 1")
		if err != nil {
			return loader.Table{}, failed("look for rows in "+r.Table, err)
		}
		t.HasRows = len(rows) > 0
	}
	return t, nil
}

// make creates the table with its mark, in one message and so in one transaction: without the mark terapush would never
// drop it. Two processes that start together may both try; the later one takes the other's.
func (r *ready) make(ctx context.Context, c *pgconn.PgConn) (*relation, error) {
	if _, err := rowsOf(ctx, c, r.createTable()+"; "+r.markTable()); err != nil && !exists(err) {
		return nil, r.notMade(ctx, c, err)
	}
	return r.made(ctx, c)
}

func (r *ready) notMade(ctx context.Context, c *pgconn.PgConn, err error) error {
	e := describe("create the table "+r.Table, err)
	if is(err, "42501") {
		e.Hint = grantCreate(ctx, c, r.Table) + ", or make the table with the statements of --dry-run and use --create never"
	}
	return e
}

// grantCreate is the statement without which a table cannot be made. Where its name has no schema, search_path says which.
func grantCreate(ctx context.Context, c *pgconn.PgConn, table string) string {
	schema, _ := unquoted(table)
	if schema == "" {
		if found, err := rowsOf(ctx, c, "SELECT current_schema()"); err == nil && len(found) == 1 {
			schema = found[0][0]
		}
	}
	return fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s", qualified("", schema), grantee(c))
}

// grantee is the user of a connection as GRANT wants it: CURRENT_USER would be whoever grants.
func grantee(c *pgconn.PgConn) string {
	return qualified("", c.ParameterStatus("session_authorization"))
}

func (r *ready) made(ctx context.Context, c *pgconn.PgConn) (*relation, error) {
	found, err := r.locate(ctx, c)
	if err == nil && found == nil {
		err = fmt.Errorf("table %s is gone right after it was made or emptied", r.Table)
	}
	return found, err
}

// replace drops a table that terapush made, or that the user names, and makes it anew, in one transaction: what keeps the
// new one from being made leaves the old one alone. So does a missing privilege on the claim table, which comes first.
func (r *ready) replace(ctx context.Context, c *pgconn.PgConn, found *relation, p loader.Preparation) (*relation, error) {
	if err := r.mayRemove(found, p); err != nil {
		return nil, err
	}
	r.Table = qualified(found.schema, found.name) // a name alone could be made in another schema than it was found in
	if p.Contract.Dedup == loader.DedupTx {
		r.Claims = claimsTable(found.schema, r.options.unlogged)
		if err := r.makeClaims(ctx, c, p.Resume); err != nil {
			return nil, err
		}
	}
	for _, statement := range [...]string{"BEGIN", "DROP TABLE " + r.Table, r.createTable(), r.markTable(), "COMMIT"} {
		if _, err := exec(ctx, c, statement); err != nil {
			return nil, r.notMade(ctx, c, err) // the connection ends with the preparation, and the transaction with it
		}
	}
	return r.made(ctx, c)
}

func (r *ready) mayRemove(found *relation, p loader.Preparation) error {
	full := found.schema + "." + found.name
	return p.MayRemove(full, found.comment, full, r.asked)
}

// empty removes the rows of a table that fits. What else could keep the run from starting comes first, as in replace.
// The file node is another one afterwards, so the table is looked up again.
func (r *ready) empty(ctx context.Context, c *pgconn.PgConn, found *relation, p loader.Preparation) (*relation, error) {
	if err := r.mayRemove(found, p); err != nil {
		return nil, err
	}
	r.Table = qualified(found.schema, found.name)
	if p.Contract.Dedup == loader.DedupTx {
		r.unlogged = found.persistence == "u"
		r.Claims = claimsTable(found.schema, r.unlogged)
		if err := r.makeClaims(ctx, c, p.Resume); err != nil {
			return nil, err
		}
	}
	if _, err := exec(ctx, c, r.truncate()); err != nil {
		e := describe("empty the table "+r.Table, err)
		if is(err, "42501") {
			e.Hint = fmt.Sprintf("GRANT TRUNCATE ON %s TO %s", r.Table, grantee(c))
		}
		return nil, e
	}
	return r.made(ctx, c)
}

// makeClaims makes the claim table if it is missing, or checks that it is one and that this user may use it. CREATE
// TABLE IF NOT EXISTS wants the privilege to create even where the table exists, so it is not asked first. A run that is
// resumed has claims: an empty table in the place of theirs would call every batch lost.
func (r *ready) makeClaims(ctx context.Context, c *pgconn.PgConn, resume bool) error {
	found, err := rowsOf(ctx, c, r.selectClaimsTable())
	if err != nil {
		return failed("look for the claim table", err)
	}
	if len(found) == 0 && resume {
		return loader.NoClaims(r.Claims)
	}
	if len(found) == 0 {
		if _, err := rowsOf(ctx, c, r.createClaims()); err != nil && !exists(err) {
			e := describe("create the claim table "+r.Claims, err)
			if is(err, "42501") {
				e.Hint = grantCreate(ctx, c, r.Claims) + ", or do without exactly once: --delivery at-least-once"
			}
			return e
		}
		return nil
	}
	return r.claimsFit(found[0], grantee(c))
}

// claimsFit checks a row of selectClaimsTable.
func (r *ready) claimsFit(row []string, user string) error {
	may, persistence, keyed := row[0], row[1], row[2]
	const another = "drop it if no run needs it any more, and the next one makes it anew"
	switch {
	case may != "t":
		return refusedClaims(fmt.Sprintf("GRANT SELECT, INSERT, DELETE ON %s TO %s, or do without exactly once: --delivery at-least-once", r.Claims, user),
			"this user may not use the claim table %s", r.Claims)
	case persistence != durability(r.unlogged):
		return refusedClaims(another, "the claim table %s is %s and the table %s %s: a crash would empty one of them alone",
			r.Claims, persistence, r.Table, durability(r.unlogged))
	case keyed != "t":
		return refusedClaims("ALTER TABLE "+r.Claims+" ADD PRIMARY KEY (run, batch), or "+another,
			"the claim table %s has no unique key on exactly (run, batch): a batch could be claimed twice", r.Claims)
	}
	return nil
}

func refusedClaims(hint, format string, values ...any) error {
	return &loader.Error{Op: "prepare", Applied: loader.No, Err: fmt.Errorf(format, values...), Hint: hint}
}

// exists tells that something could not be made because it is there: table or type exist, or, with IF NOT EXISTS in
// two sessions at once, the catalog's own unique key.
func exists(err error) bool { return is(err, "42P07") || is(err, "42710") || is(err, "23505") }

func is(err error, code string) bool {
	said := (*pgconn.PgError)(nil)
	return errors.As(err, &said) && said.Code == code
}
