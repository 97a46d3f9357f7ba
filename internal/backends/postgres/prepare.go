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
	r := &ready{run: p.Run, asked: name, statements: statementsFor(name, p.Schema, l.method, l.options, l.flavour)}
	r.primaryKey = p.PrimaryKey || p.Contract.Dedup == loader.DedupRange
	if p.Silent {
		l.ready.Store(r)
		return loader.Table{Name: name}, nil
	}
	var table loader.Table
	err := l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) (err error) {
		if _, err := rowsOf(ctx, c, r.sessionSetup(l.target)); err != nil {
			return failed("set up the session", err)
		}
		if table, err = r.target(ctx, c, p); err != nil {
			return err
		}
		if p.Contract.Dedup == loader.DedupTx {
			return r.makeClaims(ctx, c)
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
	if found != nil && p.Create == loader.CreateRecreate {
		if err := r.drop(ctx, c, found, p.MayDrop); err != nil {
			return loader.Table{}, err
		}
		found = nil
	}
	created := found == nil
	if created {
		if p.Create == loader.CreateNever {
			return loader.Table{}, &loader.Error{
				Op: "prepare", Applied: loader.No, Err: fmt.Errorf("table %s does not exist", r.Table), Hint: "--create if-missing makes it",
			}
		}
		if found, err = r.make(ctx, c); err != nil {
			return loader.Table{}, err
		}
	}
	if err := r.fits(ctx, c, found, p); err != nil {
		return loader.Table{}, err
	}
	r.Table = qualified(found.schema, found.name)
	r.unlogged = found.persistence == "u"
	r.Claims = claimsTable(found.schema, r.unlogged)
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

// make creates the table. Two processes that start together may both try; the later one takes the other's.
func (r *ready) make(ctx context.Context, c *pgconn.PgConn) (*relation, error) {
	for _, statement := range [...]string{r.createTable(), r.markTable()} {
		if _, err := rowsOf(ctx, c, statement); err != nil && !exists(err) {
			e := describe("create the table "+r.Table, err)
			if is(err, "42501") {
				e.Hint = "GRANT CREATE ON SCHEMA … TO this user, or make the table with the statements of --dry-run and use --create never"
			}
			return nil, e
		}
	}
	found, err := r.locate(ctx, c)
	if err == nil && found == nil {
		err = fmt.Errorf("table %s is gone right after it was made", r.Table)
	}
	return found, err
}

// drop removes a table that terapush made, or that the user names.
func (r *ready) drop(ctx context.Context, c *pgconn.PgConn, found *relation, mayDrop string) error {
	if found.comment != madeBy && mayDrop != r.asked && mayDrop != found.schema+"."+found.name {
		return &loader.Error{
			Op: "recreate", Applied: loader.No,
			Err:  fmt.Errorf("table %s.%s was not made by terapush, and will not be dropped", found.schema, found.name),
			Hint: "drop it yourself, or choose another --table",
		}
	}
	_, err := rowsOf(ctx, c, "DROP TABLE "+qualified(found.schema, found.name))
	return failed("drop the table", err)
}

// makeClaims makes the claim table if it is missing, or checks that this user may use it. CREATE TABLE IF NOT EXISTS
// wants the privilege to create even where the table exists, so it is not asked first.
func (r *ready) makeClaims(ctx context.Context, c *pgconn.PgConn) error {
	may := fmt.Sprintf("SELECT has_table_privilege(t, 'SELECT') AND has_table_privilege(t, 'INSERT') AND has_table_privilege(t, 'DELETE') "+
		"FROM (SELECT to_regclass(%s)::oid AS t) AS c WHERE t IS NOT NULL", literal(r.Claims))
	found, err := rowsOf(ctx, c, may)
	if err != nil {
		return failed("look for the claim table", err)
	}
	if len(found) == 0 {
		if _, err := rowsOf(ctx, c, r.createClaims()); err != nil && !exists(err) {
			e := describe("create the claim table "+r.Claims, err)
			if is(err, "42501") {
				e.Hint = "GRANT CREATE ON SCHEMA … TO this user, or do without exactly once: --delivery at-least-once"
			}
			return e
		}
	} else if found[0][0] != "t" {
		return &loader.Error{
			Op: "prepare", Applied: loader.No, Err: fmt.Errorf("this user may not use the claim table %s", r.Claims),
			Hint: fmt.Sprintf("GRANT SELECT, INSERT, DELETE ON %s TO this user, or do without exactly once: --delivery at-least-once", r.Claims),
		}
	}
	return nil
}

// exists tells that something could not be made because it is there: table or type exist, or, with IF NOT EXISTS in
// two sessions at once, the catalog's own unique key.
func exists(err error) bool { return is(err, "42P07") || is(err, "42710") || is(err, "23505") }

func is(err error, code string) bool {
	said := (*pgconn.PgError)(nil)
	return errors.As(err, &said) && said.Code == code
}
