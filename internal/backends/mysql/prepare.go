package mysql

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/sqltx"
	"github.com/terapush/terapush/pkg/loader"
)

// Prepare makes the table and the claim table, or checks those that are there.
func (db *database) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	s := newStatements(db.name, db.server.flavour, p.Schema)
	db.schema.Store(&s)
	t := loader.Table{Name: db.name.String()}
	if p.Silent {
		return t, nil
	}
	f, err := db.inspect(ctx)
	if err != nil {
		return t, withHint("prepare", err)
	}
	if p.Create == loader.CreateRecreate && f != nil {
		if err := db.drop(ctx, s, f, p.MayDrop); err != nil {
			return t, withHint("drop", err)
		}
		f = nil
	}
	if f == nil {
		if err := db.create(ctx, s, p); err != nil {
			return t, withHint("create", err)
		}
		t.Created = true
		if f, err = db.inspect(ctx); err != nil || f == nil {
			return t, withHint("prepare", orMissing(err, db.name))
		}
	}
	if err := db.checkColumns(ctx, p.Schema); err != nil {
		return t, &loader.Error{Op: "prepare", Applied: loader.No, Err: err,
			Hint: "name another table with --table, or drop this one"}
	}
	if p.Contract.Dedup == loader.DedupTx {
		if err := db.ensureClaims(ctx, s); err != nil {
			return t, err
		}
	}
	if t.Identity, err = db.identity(ctx, f); err != nil {
		return t, withHint("prepare", err)
	}
	err = db.control.QueryRowContext(ctx, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM %s LIMIT 1)", s.Table)).Scan(&t.HasRows)
	return t, withHint("look for rows", err)
}

// drop removes a table that terapush made, or that the user has named in full.
func (db *database) drop(ctx context.Context, s statements, f *found, may string) error {
	if f.comment != mark && may != db.name.String() && may != db.name.table {
		return fmt.Errorf("table %s was not made by terapush (its comment does not say %q), so it is not dropped", db.name, mark)
	}
	_, err := db.control.ExecContext(ctx, "DROP TABLE "+s.Table)
	return err
}

func (db *database) create(ctx context.Context, s statements, p loader.Preparation) error {
	if p.Create == loader.CreateNever {
		return fmt.Errorf("table %s does not exist, and --create never forbids to make it", db.name)
	}
	_, err := db.control.ExecContext(ctx, s.createTable(p.PrimaryKey))
	return err
}

// ensureClaims makes the claim table, unless somebody with more privileges has: CREATE TABLE IF NOT EXISTS asks for
// the privilege even when there is nothing to do.
func (db *database) ensureClaims(ctx context.Context, s statements) error {
	var there bool
	err := db.control.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		db.name.schema, sqltx.ClaimsTable).Scan(&there)
	if err == nil && !there {
		_, err = db.control.ExecContext(ctx, s.createClaims())
	}
	if is(err, accessDenied...) {
		return &loader.Error{Op: "make the claim table", Applied: loader.No, Err: err, Hint: fmt.Sprintf(
			"GRANT CREATE, SELECT, INSERT, DELETE ON %s TO this user, or take --delivery at-least-once, which claims nothing", s.Claims)}
	}
	return withHint("make the claim table", err)
}

func orMissing(err error, name tableName) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("table %s was made and is not there: is this user allowed to SELECT from it?", name)
}
