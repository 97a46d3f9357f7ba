package mysql

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Prepare makes the table and the claim table, or checks those that are there.
func (db *database) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	s := newStatements(db.name, db.server.flavour, p.Schema)
	db.schema.Store(&s)
	t := loader.Table{Name: db.name.String()}
	// Not in Open: CheckServer is to name this among everything else that is wrong.
	if db.method.Name == loadData {
		if err := db.server.localInfile(); err != nil {
			return t, err
		}
	}
	if p.Silent {
		return t, nil
	}
	if err := db.hold(ctx, p); err != nil { // before anything is dropped
		return t, err
	}
	f, err := db.inspect(ctx)
	if err != nil {
		return t, failed("prepare", err)
	}
	recreate := p.Create == loader.CreateRecreate && f != nil
	truncate := p.Create == loader.CreateTruncate && f != nil
	if recreate || truncate {
		if err := p.MayRemove(db.name.String(), f.comment, db.name.String(), db.name.table); err != nil {
			return t, err
		}
	}
	claims := p.Contract.Dedup == loader.DedupTx
	// A claim table that cannot be had must not cost the user the old table, nor leave a new one behind on a resume.
	early := claims && (recreate || p.Resume)
	if early {
		if err := db.ensureClaims(ctx, s, p.Resume); err != nil {
			return t, err
		}
	}
	if recreate {
		if _, err := db.control.ExecContext(ctx, "DROP TABLE "+s.Table); err != nil {
			return t, failed("drop", err)
		}
		f = nil
	}
	if f == nil {
		if err := db.create(ctx, s, p); err != nil {
			return t, failed("create", err)
		}
		t.Created = true
		if f, err = db.inspect(ctx); err != nil || f == nil {
			return t, failed("prepare", orMissing(err, db.name))
		}
	}
	if err := db.checkColumns(ctx, p.Schema); err != nil {
		return t, &loader.Error{Op: "prepare", Applied: loader.No, Err: err, Hint: otherTable}
	}
	if claims && !early {
		if err := db.ensureClaims(ctx, s, p.Resume); err != nil {
			return t, err
		}
	}
	if claims {
		db.signHold(ctx, s, p.Run)
	}
	if truncate { // last, when nothing else can keep the run from starting
		if f, err = db.empty(ctx, s); err != nil {
			return t, err
		}
	}
	if t.Identity, err = db.identity(ctx, f); err != nil {
		return t, failed("prepare", err)
	}
	err = db.control.QueryRowContext(ctx, fmt.Sprintf("SELECT EXISTS (SELECT 1 FROM %s LIMIT 1)", s.Table)).Scan(&t.HasRows)
	return t, failed("look for rows", err)
}

const otherTable = "name another table with --table, or drop this one"

// empty removes the rows, and looks the table up again: to some servers it is another one afterwards.
func (db *database) empty(ctx context.Context, s statements) (*found, error) {
	if _, err := db.control.ExecContext(ctx, s.truncate()); err != nil {
		return nil, failed("truncate", err)
	}
	f, err := db.inspect(ctx)
	if err != nil || f == nil {
		return nil, failed("prepare", orMissing(err, db.name))
	}
	return f, nil
}

func (db *database) create(ctx context.Context, s statements, p loader.Preparation) error {
	if p.Create == loader.CreateNever {
		return p.Missing(db.name.String())
	}
	_, err := db.control.ExecContext(ctx, s.createTable(p.PrimaryKey))
	return err
}

// ensureClaims makes the claim table, unless somebody with more privileges has: CREATE TABLE IF NOT EXISTS asks for
// the privilege even when there is nothing to do. On a resume it must be there: an empty one would call every batch
// lost.
func (db *database) ensureClaims(ctx context.Context, s statements, resume bool) error {
	var there bool
	err := db.control.QueryRowContext(ctx, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		db.name.schema, sqlload.ClaimsTable).Scan(&there)
	switch {
	case err != nil:
	case there:
		return db.checkClaims(ctx, s)
	case resume:
		return loader.NoClaims(s.Claims)
	default:
		_, err = db.control.ExecContext(ctx, s.createClaims())
	}
	if is(err, accessDenied...) {
		account, unknown := db.account(ctx)
		if unknown != nil {
			return errors.Join(failed("make the claim table", err), unknown)
		}
		return &loader.Error{Op: "make the claim table", Applied: loader.No, Err: err, Hint: fmt.Sprintf(
			"GRANT CREATE, SELECT, INSERT, DELETE ON %s TO %s, or take --delivery at-least-once, which claims nothing", s.Claims, account)}
	}
	return failed("make the claim table", err)
}

// checkClaims refuses a claim table that would let a batch in twice: without its key a second claim meets no first one,
// and where a rollback keeps rows, claims of batches stay that are not in.
func (db *database) checkClaims(ctx context.Context, s statements) error {
	const op = "check the claim table"
	var engine string
	err := db.control.QueryRowContext(ctx,
		"SELECT COALESCE(engine, '') FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
		db.name.schema, sqlload.ClaimsTable).Scan(&engine)
	if err != nil {
		return failed(op, err)
	}
	transactional, err := db.transactional(ctx, engine)
	if err != nil {
		return failed(op, err)
	}
	// A part of a column, or an expression, which has no name, is not the column.
	keys, err := column[string](ctx, db.control, `SELECT GROUP_CONCAT(CONCAT(COALESCE(column_name, 'an expression'),`+
		` COALESCE(CONCAT('(', sub_part, ')'), '')) ORDER BY seq_in_index SEPARATOR ', ') FROM information_schema.statistics`+
		` WHERE table_schema = ? AND table_name = ? AND non_unique = 0 GROUP BY index_name`,
		db.name.schema, sqlload.ClaimsTable)
	if err != nil {
		return failed(op, err)
	}
	var wrong, repairs []string
	if !slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, "run, batch") }) {
		wrong = append(wrong, "no primary or unique key is (run, batch)")
		repairs = append(repairs, "ADD UNIQUE KEY (run, batch)")
	}
	if !transactional {
		wrong = append(wrong, fmt.Sprintf("engine %q keeps rows after a rollback", engine))
		repairs = append(repairs, "ENGINE = InnoDB")
	}
	if len(wrong) == 0 {
		return nil
	}
	return &loader.Error{Op: op, Applied: loader.No,
		Err: fmt.Errorf("claims in %s cannot be relied on: %s", s.Claims, strings.Join(wrong, "; ")),
		Hint: fmt.Sprintf("ALTER TABLE %s %s; or drop it if no unfinished run needs its claims, and terapush makes it anew",
			s.Claims, strings.Join(repairs, ", "))}
}

func orMissing(err error, name tableName) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("table %s was made or emptied and is not there: is this user allowed to SELECT from it?", name)
}
