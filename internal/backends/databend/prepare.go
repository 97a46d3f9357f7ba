package databend

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Prepare makes the table, or checks the one that is there, and for a staged contract the stage.
//
// Databend has no primary keys and needs no claim table: Preparation.PrimaryKey means nothing here.
func (db *database) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	ready := &prepared{statements: newStatements(db.plan.name, p.Schema), contract: p.Contract, run: p.Run}
	if p.Contract.Staged() {
		ready.files = db.filesOf(p)
	}
	db.ready.Store(ready)
	t := loader.Table{Name: db.plan.name.String()}
	if p.Silent {
		return t, nil
	}
	if err := db.tryList(ctx, p); err != nil {
		return t, err
	}
	if ready.files != nil { // first: it needs the most privileges, and nothing is made or dropped yet
		if err := ready.files.open(ctx); err != nil {
			return t, failedBefore("make the stage", err)
		}
	}
	f, err := db.inspect(ctx)
	if err != nil {
		return t, failedBefore("prepare", err)
	}
	if f != nil && p.Create == loader.CreateRecreate {
		if err := db.mayRemove(f, p); err != nil {
			return t, err
		}
		if err := db.run(ctx, statement{sql: "DROP TABLE " + ready.Table}, nil); err != nil {
			return t, failedBefore("drop", err)
		}
		f = nil
	}
	if f == nil {
		if f, err = db.create(ctx, ready.statements, p); err != nil {
			return t, failedBefore("create", err)
		}
		t.Created = true
	}
	if err := db.checkColumns(ctx, p.Schema); err != nil {
		return t, &loader.Error{Op: "prepare", Applied: loader.No, Err: err,
			Hint: "name another table with --table, or drop this one"}
	}
	if p.Create == loader.CreateTruncate && !t.Created { // behind the check: what cannot take the rows keeps its own
		if err := db.mayRemove(f, p); err != nil {
			return t, err
		}
		if err := db.run(ctx, statement{sql: ready.truncateTable()}, nil); err != nil {
			return t, failedBefore("empty", err)
		}
	}
	ready.ours = t.Created || f.comment == loader.MadeBy
	t.Identity = "table id " + f.id
	one, err := db.value(ctx, "SELECT 1 FROM "+ready.Table+" LIMIT 1")
	t.HasRows = one != ""
	return t, failedBefore("look for rows", err)
}

// tryList asks once for what a lost answer makes necessary later, when it is too late to find out that the right to it is
// missing.
func (db *database) tryList(ctx context.Context, p loader.Preparation) error {
	if p.Contract.Dedup != loader.DedupKey {
		return nil
	}
	err := db.run(ctx, statement{sql: selectAtWork(queryIDs(ofBatch, batch.ID{Run: p.Run}, 1))}, nil)
	if err == nil {
		return nil
	}
	return &loader.Error{Op: "look at the list of processes", Applied: loader.No, Err: err,
		Hint: "before a batch is sent again its earlier queries are looked for in system.processes: allow the user to read it, or take --delivery at-least-once"}
}

func (db *database) mayRemove(f *found, p loader.Preparation) error {
	return p.MayRemove(db.plan.name.String(), f.comment, db.plan.name.String(), db.plan.name.table)
}

func (db *database) create(ctx context.Context, s statements, p loader.Preparation) (*found, error) {
	if p.Create == loader.CreateNever {
		return nil, p.Missing(db.plan.name.String())
	}
	if err := db.run(ctx, statement{sql: s.createTable()}, nil); err != nil {
		return nil, err
	}
	f, err := db.inspect(ctx)
	if err == nil && f == nil {
		err = fmt.Errorf("table %s was made and is not there: is this user allowed to SELECT from it?", db.plan.name)
	}
	return f, err
}
