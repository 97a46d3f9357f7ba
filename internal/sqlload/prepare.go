package sqlload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Table is the target table of a loader, from Prepare to the proof. Its methods are those of the loader's interfaces.
type Table struct {
	Name    string // as the target gives it; "" is the dataset's
	Catalog Catalog
	Claims  Claims // nil where there are none
	// Connect opens a connection to the first host that answers.
	Connect Connect
	// Failed says what was being done, with a hint; nil stays nil.
	Failed   func(op string, err error) error
	Classify func(error) loader.Verdict
	Log      *slog.Logger
	// MaxStatement is the longest statement that the server takes, in bytes; 0: there is no bound.
	MaxStatement int64

	state atomic.Pointer[State]
}

// State is what Prepare has settled about the table.
type State struct {
	Statements
	Want     loader.Preparation
	Relation *Relation // nil if the server was not asked
}

// State returns what Prepare has settled.
func (t *Table) State() (*State, error) {
	if s := t.state.Load(); s != nil {
		return s, nil
	}
	return nil, errors.New("the loader was not prepared")
}

// Format is that of the run's contract.
func (t *Table) Format() (batch.Format, error) {
	s, err := t.State()
	if err != nil {
		return "", err
	}
	return s.Want.Contract.Format, nil
}

// Plan is the state before the server was asked.
func (t *Table) Plan(p loader.Preparation) *State {
	return &State{Statements: t.Catalog.Plan(p), Want: p}
}

// claims reports whether the run claims its batches.
func (s *State) claims() bool { return s.Want.Contract.Dedup == loader.DedupTx }

// settle takes the names of what was found.
func (s *State) settle(r *Relation) {
	s.Relation, s.Table = r, r.Table
	s.Claims, s.OtherClaims = r.Claims, ""
}

// on calls f with a connection.
func (t *Table) on(ctx context.Context, f func(Conn) error) error {
	c, err := t.Connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	return f(c)
}

// Prepare makes the table and the claim table, or checks those that are there.
func (t *Table) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	s := t.Plan(p)
	if p.Silent {
		t.state.Store(s)
		return loader.Table{Name: cmp.Or(t.Name, p.Schema.Dataset)}, nil
	}
	var table loader.Table
	err := t.on(ctx, func(c Conn) (err error) {
		table, err = t.prepare(ctx, c, s)
		return err
	})
	if err != nil {
		return loader.Table{}, t.Failed("prepare", err)
	}
	t.state.Store(s)
	return table, nil
}

// prepare comes to what cannot be undone last: a table is dropped or emptied when nothing else can keep the run from
// starting.
func (t *Table) prepare(ctx context.Context, c Conn, s *State) (loader.Table, error) {
	found, err := t.Locate(ctx, c, s)
	if err != nil {
		return loader.Table{}, err
	}
	created := found == nil || s.Want.Create == loader.CreateRecreate
	// On a resume the claim table must be there; and one that cannot be had must not cost the user the old table.
	if s.claims() && (s.Want.Resume || created && found != nil) {
		if err := t.ensureClaims(ctx, c, s); err != nil {
			return loader.Table{}, err
		}
	}
	if created {
		if found, err = t.create(ctx, c, s, found); err != nil {
			return loader.Table{}, err
		}
	}
	if err := t.Fits(ctx, c, s, found); err != nil {
		return loader.Table{}, err
	}
	s.settle(found)
	table := loader.Table{Created: created}
	if err := t.lookForRows(ctx, c, s, &table); err != nil {
		return table, err
	}
	if s.claims() {
		if err := t.ensureClaims(ctx, c, s); err != nil {
			return table, err
		}
	}
	if s.Want.Create == loader.CreateTruncate && !created {
		if err := t.truncate(ctx, c, s); err != nil {
			return table, err
		}
		if err := t.lookForRows(ctx, c, s, &table); err != nil {
			return table, err
		}
	}
	table.Name, table.Identity = s.Relation.String(), s.Relation.Identity
	return table, nil
}

// lookForRows looks into a new table, too: with CREATE TABLE IF NOT EXISTS it may be another run's, made just now. And where
// a server keeps rows in memory, an emptied table may get some.
func (t *Table) lookForRows(ctx context.Context, c Conn, s *State, table *loader.Table) error {
	one, err := Rows(ctx, c, s.SelectAny())
	table.HasRows = len(one) > 0
	return t.Failed("look for rows in "+s.Table, err)
}

// Locate finds the table, and refuses what the run must not touch: what is no table, and what may not be dropped or
// emptied. It is nil where there is none and the run may make it.
func (t *Table) Locate(ctx context.Context, c Conn, s *State) (*Relation, error) {
	found, err := t.Catalog.Locate(ctx, c, s)
	switch {
	case err != nil:
		return nil, t.Failed("look for table "+s.Table, err)
	case found == nil && s.Want.Create == loader.CreateNever:
		return nil, s.Want.Missing(s.Table)
	case found == nil:
		return nil, nil
	case found.Kind != "":
		return nil, noTable(found)
	}
	s.Relation, s.Table, s.Claims = found, found.Table, found.Claims
	if s.Want.Create == loader.CreateRecreate {
		s.Claims = cmp.Or(found.NextClaims, found.Claims)
	}
	if s.Want.Create == loader.CreateRecreate || s.Want.Create == loader.CreateTruncate {
		return found, t.mayRemove(s, found)
	}
	return found, nil
}

// mayRemove lets the user name the table in full, or as the target does.
func (t *Table) mayRemove(s *State, found *Relation) error {
	p, names := s.Want, []string{found.String(), cmp.Or(t.Name, s.Schema.Dataset)}
	if s.Upper { // as the server would, which is given them without quotation marks
		p.MayDrop = strings.ToUpper(p.MayDrop)
		for i, name := range names {
			names[i] = strings.ToUpper(name)
		}
	}
	return p.MayRemove(found.String(), found.Comment, names...)
}

// create makes the table, in the place of another where there is one.
func (t *Table) create(ctx context.Context, c Conn, s *State, old *Relation) (*Relation, error) {
	statements, err := t.Catalog.Create(ctx, c, s)
	if err != nil {
		return nil, t.Failed("create the table "+s.Table, err)
	}
	if old != nil {
		statements = append([]string{s.DropTable()}, statements...)
	}
	switch {
	case s.AtomicDDL && old != nil: // what keeps the new one from being made leaves the old one alone
		statements = slices.Concat([]string{"BEGIN"}, statements, []string{"COMMIT"})
	case s.AtomicDDL: // one message is one transaction: without its comment terapush would never drop the table
		statements = []string{strings.Join(statements, "; ")}
	}
	for _, statement := range statements {
		_, err := c.Exec(ctx, statement)
		if err != nil && (old == nil || !s.AtomicDDL) && t.Catalog.Exists(err) {
			break // whoever was quicker says what it is: to mark it as ours would let a later run drop somebody's table
		}
		if err != nil {
			hint := "make the table with the statements of --dry-run and use --create never"
			return nil, t.denied(ctx, c, "create the table "+s.Table, err, "CREATE", s.Table, hint)
		}
	}
	return t.again(ctx, c, s)
}

// again looks a table up that was made or emptied.
func (t *Table) again(ctx context.Context, c Conn, s *State) (*Relation, error) {
	found, err := t.Catalog.Locate(ctx, c, s)
	if err == nil && found == nil {
		err = fmt.Errorf("table %s was made or emptied and is not there: is this user allowed to SELECT from it?", s.Table)
	}
	return found, t.Failed("look for table "+s.Table, err)
}

// truncate removes the rows. To some servers the table is another one afterwards.
func (t *Table) truncate(ctx context.Context, c Conn, s *State) error {
	if s.Flush != "" {
		_, _ = c.Exec(ctx, s.Flush) // refused to some users; what comes in behind is found by the proof
	}
	if _, err := c.Exec(ctx, s.Truncate()); err != nil {
		return t.denied(ctx, c, "empty the table "+s.Table, err, "TRUNCATE", s.Table, "")
	}
	found, err := t.again(ctx, c, s)
	if err == nil {
		s.settle(found)
	}
	return err
}

// denied is the error of a statement, with the privilege that it takes where that is what is missing.
func (t *Table) denied(ctx context.Context, c Conn, op string, err error, privileges, table, or string) error {
	if t.Classify(err).Class != loader.ClassPermission {
		return t.Failed(op, err)
	}
	hint := t.Catalog.Grant(ctx, c, privileges, table)
	switch {
	case hint == "":
		hint = or
	case or != "":
		hint += ", or " + or
	}
	return &loader.Error{Op: op, Applied: loader.No, Err: err, Hint: hint}
}

// Fits says why the relation cannot take the run's rows.
func (t *Table) Fits(ctx context.Context, c Conn, s *State, found *Relation) error {
	if found.Kind != "" {
		return noTable(found)
	}
	columns, err := t.Catalog.Columns(ctx, c, s, found)
	if err != nil {
		return t.Failed("read the columns of "+s.Table, err)
	}
	if wrong := s.differences(columns); len(wrong) > 0 {
		return refuse("choose another --table, or use --create recreate", "table %s cannot take the rows of dataset %s: %s",
			found, s.Schema.Dataset, strings.Join(wrong, "; "))
	}
	return t.Failed("check table "+found.String(), t.Catalog.Fits(ctx, c, s, found))
}

// differences lists what keeps the dataset's rows out of a table. More columns may be there where the server fills them.
func (s *State) differences(have []Column) (wrong []string) {
	same := func(have, name string) bool {
		if s.Upper {
			return have == strings.ToUpper(name)
		}
		return have == name || s.Fold && strings.EqualFold(have, name)
	}
	for _, w := range s.Schema.Columns {
		i := slices.IndexFunc(have, func(h Column) bool { return same(h.Name, w.Name) })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is missing", w.Name, s.Type(w)))
		} else if !have[i].Takes(w) {
			wrong = append(wrong, fmt.Sprintf("column %s is %s, want %s", w.Name, have[i].Type, s.Type(w)))
		}
	}
	for _, h := range have {
		known := slices.ContainsFunc(s.Schema.Names(), func(name string) bool { return same(h.Name, name) })
		if !known && !h.Optional {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is unknown to the dataset and has no default", h.Name, h.Type))
		}
	}
	return wrong
}

func noTable(found *Relation) error {
	return refuse("choose another --table", "%s is a %s, and rows go into tables", found, found.Kind)
}

// refuse is the error of a table that the run cannot use.
func refuse(hint, format string, values ...any) error {
	return &loader.Error{Op: "prepare", Applied: loader.No, Err: fmt.Errorf(format, values...), Hint: hint}
}

// ensureClaims makes the claim table if it is missing, or checks the one that is there. CREATE TABLE IF NOT EXISTS asks
// for the privilege even where there is nothing to do, so it is not asked first. A run that is resumed has claims: an empty
// table in the place of theirs would call every batch lost.
func (t *Table) ensureClaims(ctx context.Context, c Conn, s *State) error {
	claims := s.Claims
	there, err := t.Claims.CheckClaims(ctx, c, s)
	switch {
	case err != nil:
		return t.Failed("check the claim table "+claims, err)
	case there:
		return nil
	case s.Want.Resume:
		return loader.NoClaims(claims)
	}
	_, err = c.Exec(ctx, t.Claims.CreateClaims(s))
	if err != nil && t.Catalog.Exists(err) { // another process was quicker, or something that this user cannot see has the name
		if there, wrong := t.Claims.CheckClaims(ctx, c, s); there || wrong != nil {
			return t.Failed("check the claim table "+claims, wrong)
		}
		hint := t.Catalog.Grant(ctx, c, "SELECT, INSERT, DELETE", claims) + ", if it is a claim table of another user"
		return &loader.Error{Op: "create the claim table " + claims, Applied: loader.No, Err: err, Hint: hint}
	}
	if err != nil {
		return t.denied(ctx, c, "create the claim table "+claims, err, "CREATE, SELECT, INSERT, DELETE", claims,
			"do without exactly once: --delivery at-least-once")
	}
	return nil
}
