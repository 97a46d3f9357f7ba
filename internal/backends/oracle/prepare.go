package oracle

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// What DDL may fail with.
const (
	codeNameTaken  = 955  // name is already used by an existing object
	codePrivileges = 1031 // insufficient privileges
	codeQuota      = 1950 // no privileges on a tablespace
)

// Prepare makes or checks the target, and the claim table where the contract needs one. At least once into a table that
// is not to be made asks for nothing, so it says nothing to the server either.
func (l *opened) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	name := l.target.Table
	if name == "" {
		name = p.Schema.Dataset
	}
	if err := carries(p.Schema); err != nil {
		return loader.Table{}, err
	}
	r := &ready{run: p.Run, asked: name, statements: statementsFor(name, p.Schema, l.method, l.options), contract: p.Contract, silent: p.Silent, user: l.target.User}
	r.primaryKey = p.PrimaryKey
	if p.Silent {
		l.ready.Store(r)
		return loader.Table{Name: name}, nil
	}
	var table loader.Table
	err := l.somewhere(ctx, func(k *link) (err error) {
		if table, err = r.target(ctx, k, p); err != nil {
			return err
		}
		if err := l.warnOfTriggers(ctx, k, r.Table); err != nil {
			return err
		}
		if p.Contract.Dedup == loader.DedupTx {
			return r.makeClaims(ctx, k, p.Resume)
		}
		return nil
	})
	if err != nil {
		return loader.Table{}, failed("prepare", err)
	}
	l.ready.Store(r)
	return table, nil
}

// target makes or checks the table, and learns its full name.
func (r *ready) target(ctx context.Context, k *link, p loader.Preparation) (loader.Table, error) {
	found, err := r.locate(ctx, k)
	if err != nil {
		return loader.Table{}, err
	}
	created := found == nil || p.Create == loader.CreateRecreate
	switch {
	case !created:
	case p.Create == loader.CreateNever:
		return loader.Table{}, p.Missing(r.Table)
	case r.options.partition != "":
		return loader.Table{}, &loader.Error{
			Op: "prepare", Applied: loader.No, Err: fmt.Errorf("option %s names a partition, and the tables that terapush makes have none", optionPartition),
			Hint: "make the table yourself, and use --create never",
		}
	case found != nil:
		found, err = r.replace(ctx, k, found, p)
	default:
		found, err = r.make(ctx, k)
	}
	if err != nil {
		return loader.Table{}, err
	}
	if err := r.fits(ctx, k, found, p); err != nil {
		return loader.Table{}, err
	}
	if p.Create == loader.CreateTruncate && !created {
		if found, err = r.empty(ctx, k, found, p); err != nil {
			return loader.Table{}, err
		}
	}
	r.Table, r.Claims = qualified(found.owner, found.name), claimsTable(found.owner)
	t := loader.Table{Name: found.String(), Identity: found.identity, Created: created}
	if !created {
		n, err := k.number(ctx, "look for rows in "+r.Table, r.selectAny())
		if err != nil {
			return loader.Table{}, err
		}
		t.HasRows = n > 0
	}
	return t, nil
}

// make creates the table with its mark, without which terapush would never drop it. Each is a transaction of its own, as
// all of Oracle's DDL is. Two processes that start together may both try; the later one takes the other's.
func (r *ready) make(ctx context.Context, k *link) (*relation, error) {
	taken := false
	for _, statement := range [...]string{r.createTable(), r.markTable()} {
		err := k.run(ctx, "create the table "+r.Table, statement)
		if taken = k.is(err, codeNameTaken); taken {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	found, err := r.locate(ctx, k)
	switch {
	case err != nil || found != nil:
		return found, err
	case taken:
		return nil, r.inTheWay(ctx, k, r.Table)
	}
	return nil, fmt.Errorf("table %s is gone right after it was made", r.Table)
}

// inTheWay says why a table cannot be made where no table can be found: something else has its name, or something that
// this user cannot see.
func (r *ready) inTheWay(ctx context.Context, k *link, table string) error {
	found, err := k.texts(ctx, "look for what is in the way of "+table, selectNamesakes(table))
	if err != nil {
		return err
	}
	what := "something that this user cannot see"
	if len(found) > 0 {
		what = "a " + strings.ToLower(found[0][0])
	}
	return &loader.Error{
		Op: "create the table " + table, Applied: loader.No, Err: fmt.Errorf("its name is taken by %s (ORA-00955)", what),
		Hint: "rename or drop that, choose another schema, or GRANT SELECT, INSERT, DELETE ON " + table + " TO " + r.user + " if it is the table itself",
	}
}

// selectNamesakes reads the types of all that shares one namespace with a table of that name. Indexes do not.
func selectNamesakes(table string) string {
	schema, name := unquoted(table)
	return "SELECT o.object_type FROM all_objects o WHERE o.owner = " + ownerOf(schema) + " AND o.object_name = " + literal(name) +
		" AND o.object_type IN ('FUNCTION', 'MATERIALIZED VIEW', 'OPERATOR', 'PACKAGE', 'PROCEDURE', 'SEQUENCE', 'SYNONYM', 'TABLE', 'TYPE', 'VIEW')"
}

// makeClaims makes the claim table if it is missing, or checks that it is one. A run that is resumed has claims: an
// empty table in the place of theirs would call every batch lost.
func (r *ready) makeClaims(ctx context.Context, k *link, resume bool) error {
	found, err := k.texts(ctx, "look for the claim table", r.selectClaimsTable())
	if err != nil {
		return err
	}
	refuse := func(hint, format string, values ...any) error {
		return &loader.Error{Op: "prepare", Applied: loader.No, Err: fmt.Errorf(format, values...), Hint: hint}
	}
	if len(found) == 0 && resume {
		return loader.NoClaims(r.Claims)
	}
	if len(found) == 0 {
		err := k.run(ctx, "create the claim table "+r.Claims, r.createClaims())
		switch {
		case err == nil:
			return nil
		case k.is(err, codeNameTaken): // by another process just now, or by what is none
			if found, err = k.texts(ctx, "look for the claim table", r.selectClaimsTable()); err != nil {
				return err
			}
			if len(found) == 0 {
				return r.inTheWay(ctx, k, r.Claims)
			}
		case k.is(err, codePrivileges, codeQuota):
			return &loader.Error{
				Op: "create the claim table " + r.Claims, Applied: loader.No, Err: errors.Unwrap(err),
				Hint: "GRANT CREATE TABLE and a quota to the user, or do without exactly once: --delivery at-least-once",
			}
		default:
			return err
		}
	}
	keyed, err := k.number(ctx, "look for the key of the claim table", selectKeyed(&relation{owner: found[0][0], name: found[0][1]}, "run", "batch"))
	if err != nil {
		return err
	}
	if keyed == 0 {
		return refuse("drop it if no run needs it any more, and the next one makes it anew",
			"the claim table %s has no unique key on exactly (run, batch) that is checked at once: a batch could be claimed twice", r.Claims)
	}
	return nil
}

// selectClaimsTable reads schema and name of the claim table if it is there.
func (s statements) selectClaimsTable() string {
	schema, name := unquoted(s.Claims)
	return "SELECT t.owner, t.table_name FROM all_tables t WHERE t.owner = " + ownerOf(schema) + " AND t.table_name = " + literal(name)
}

// selectAny counts one row if there is any.
func (s statements) selectAny() string {
	return "SELECT TO_CHAR(COUNT(*)) FROM " + s.Table + " WHERE ROWNUM = 1"
}

// Reserve holds the claim table to itself from the first look to the commit, so that of two runs one comes behind the
// other.
func (l *opened) Reserve(ctx context.Context, runID string, rows, last int64) (first int64, err error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	err = l.somewhere(ctx, func(k *link) error {
		if err := r.makeClaims(ctx, k, false); err != nil { // missing where the run itself needs no claims
			return err
		}
		if l.method == methodFast { // what other runs have in memory counts, and is not seen there
			_, _ = k.exec(ctx, flushWrites)
		}
		first, err = r.reserve(ctx, k, runID, rows, last)
		return err
	})
	return first, failed("reserve row numbers", err)
}

func (r *ready) reserve(ctx context.Context, k *link, runID string, rows, last int64) (first int64, err error) {
	const op = "reserve row numbers"
	if err := k.begin(ctx); err != nil {
		return 0, failed(op, err)
	}
	defer func() { _ = k.rollback(ctx) }() // undoes nothing behind a commit
	if err := k.run(ctx, op, r.lockClaims()); err != nil {
		return 0, err
	}
	found, err := k.texts(ctx, op, r.SelectReservation(runID))
	if err != nil {
		return 0, err
	}
	if len(found) > 0 {
		return strconv.ParseInt(found[0][0], 10, 64)
	}
	if first, err = k.number(ctx, op, r.SelectNextFree()); err != nil {
		return 0, err
	}
	if err := loader.Fits(first, rows, last); err != nil {
		return 0, &loader.Error{Op: op, Applied: loader.No, Err: err}
	}
	if err := k.run(ctx, op, r.InsertReservation(runID, first, rows)); err != nil {
		return 0, err
	}
	return first, failed(op, k.commit(ctx))
}
