package doris

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// Prepare makes the table, or checks the one that is there. There are no claims: labels are the server's.
func (db *database) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	s := newStatements(db.name, p.Schema)
	s.run, s.format = p.Run, p.Contract.Format
	db.schema.Store(&s)
	if p.Resume {
		db.doubted.Store(true)
	}
	t := loader.Table{Name: db.name.String()}
	if err := refuseBytes(p.Schema); err != nil {
		return t, err
	}
	if p.Silent {
		return t, nil
	}
	f, err := db.inspect(ctx)
	if err != nil {
		return t, failed("prepare", err)
	}
	if p.Create == loader.CreateRecreate && f != nil {
		if err := db.mayRemove(f, p); err != nil {
			return t, err
		}
		if _, err := db.control.ExecContext(ctx, "DROP TABLE "+db.name.quoted()); err != nil {
			return t, failed("drop", err)
		}
		f = nil
	}
	if f == nil {
		if f, err = db.create(ctx, s, p); err != nil {
			return t, failed("create", err)
		}
		t.Created = true
	}
	return db.check(ctx, s, f, p, t)
}

// check compares columns and properties, empties the table if it is to, and looks for rows.
func (db *database) check(ctx context.Context, s statements, f *found, p loader.Preparation, t loader.Table) (loader.Table, error) {
	if err := db.checkColumns(ctx, p.Schema); err != nil {
		return t, &loader.Error{Op: "prepare", Applied: loader.No, Err: err, Hint: "name another table with --table, or drop this one"}
	}
	if err := db.checkProperties(ctx); err != nil {
		return t, failed("prepare", err)
	}
	if p.Create == loader.CreateTruncate && !t.Created { // behind the check: what cannot take the rows keeps its own
		if err := db.mayRemove(f, p); err != nil {
			return t, err
		}
		if _, err := db.control.ExecContext(ctx, s.truncateTable()); err != nil {
			return t, failed("empty", err)
		}
	}
	var err error
	if t.Identity, err = db.identity(ctx, f); err != nil {
		return t, failed("prepare", err)
	}
	one, err := shown(ctx, db.control, fmt.Sprintf("SELECT 1 FROM %s LIMIT 1", db.name.quoted()))
	t.HasRows = len(one) > 0
	return t, failed("look for rows", err)
}

func (db *database) mayRemove(f *found, p loader.Preparation) error {
	return p.MayRemove(db.name.String(), f.comment, db.name.String(), db.name.table)
}

func (db *database) create(ctx context.Context, s statements, p loader.Preparation) (*found, error) {
	if p.Create == loader.CreateNever {
		return nil, p.Missing(db.name.String())
	}
	h, err := db.shape(ctx, p)
	if err != nil {
		return nil, err
	}
	if _, err := db.control.ExecContext(ctx, s.createTable(h)); err != nil {
		return nil, err
	}
	f, err := db.inspect(ctx)
	if err == nil && f == nil {
		err = fmt.Errorf("table %s was made and is not there: is this user allowed to SELECT from it?", db.name)
	}
	return f, err
}
