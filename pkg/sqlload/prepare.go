package sqlload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Prepare creates table and claim table, or checks those that exist.
func (t *Table) Prepare(ctx context.Context, p loader.Preparation) (table loader.Table, err error) {
	s := t.Plan(p)
	if p.Silent {
		t.state.Store(s)
		return loader.Table{Name: cmp.Or(t.Name, p.Schema.Dataset)}, nil
	}
	err = t.connect(ctx, func(c Conn) (err error) {
		table, err = t.prepare(ctx, c, s)
		return err
	})
	t.state.Store(s)
	if err != nil {
		t.giveBack(ctx, s)
		t.state.Store(nil)
		return loader.Table{}, t.Failed("prepare", err)
	}
	if s.hasRow() {
		table.Row = s.Row
	}
	return table, nil
}

// giveBack removes the rows of a run whose table cannot be used. The message about a run that is open tells how to
// remove what a lost connection leaves.
func (t *Table) giveBack(ctx context.Context, s *State) {
	if !s.hasRow() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	if err := (ClaimedTable{Table: t}).GiveBack(ctx); err != nil {
		t.Log.Warn("the table may still belong to this run, which did not begin", "run", s.Want.Run, "error", err)
	}
}

// prepare drops or empties a table last, when nothing else can keep the run from starting.
func (t *Table) prepare(ctx context.Context, c Conn, s *State) (loader.Table, error) {
	found, err := t.Locate(ctx, c, s)
	if err != nil {
		return loader.Table{}, err
	}
	created := found == nil || s.Want.Create == loader.CreateRecreate
	if created && found != nil && s.isLike(found) {
		return loader.Table{}, Refuse("choose another --table",
			"%s is the table that the new one is to be like, and would be gone", found)
	}
	begins := s.Want.Begin != nil && t.Claims != nil
	// A resume needs its claim table, and one that cannot be made must not cost the user the old table.
	if s.claims() && (s.Want.Resume || created && (found != nil || begins)) {
		if err := t.ensureClaims(ctx, c, s); err != nil {
			return loader.Table{}, err
		}
	}
	if created && begins {
		if err := t.begin(ctx, c, s, true); err != nil {
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
	s.use(found)
	table := loader.Table{Created: created}
	table.Numbered, table.Moved = s.numbered(found.Columns)
	if err := t.lookForRows(ctx, c, s, &table); err != nil {
		return table, err
	}
	if s.claims() {
		if err := t.ensureClaims(ctx, c, s); err != nil {
			return table, err
		}
	}
	empties := s.Want.Create == loader.CreateTruncate && !created
	if begins && !created {
		if err := t.begin(ctx, c, s, empties); err != nil {
			return table, err
		}
	}
	if empties {
		if err := t.truncate(ctx, c, s); err != nil {
			return table, err
		}
		if err := t.lookForRows(ctx, c, s, &table); err != nil {
			return table, err
		}
	}
	if table.HasRows && !s.Want.Records {
		if s.longScan, err = t.scansLong(ctx, c, s); err != nil {
			return table, t.Failed("look for an index of "+s.Table, err)
		}
		table.LongScan = s.longScan
	}
	table.Name, table.Identity = s.Relation.String(), s.Relation.Identity
	return table, nil
}

// use replaces the planned names by those of an existing table.
func (s *State) use(r *Relation) {
	s.Relation, s.Table = r, r.Table
	s.Claims, s.OtherClaims = r.Claims, ""
}

// lookForRows sets table.HasRows. A new table may have rows: with CREATE TABLE IF NOT EXISTS it may be another run's.
// So may an emptied one, where the server keeps rows in memory.
func (t *Table) lookForRows(ctx context.Context, c Conn, s *State, table *loader.Table) error {
	one, err := Rows(ctx, c, s.SelectAny())
	table.HasRows = len(one) > 0
	return t.Failed("look for rows in "+s.Table, err)
}

// shortScan is the largest table, in bytes, that is scanned for a single row: it takes a fraction of a second.
const shortScan = 256 << 20

func (t *Table) scansLong(ctx context.Context, c Conn, s *State) (bool, error) {
	if t.Indexed == nil {
		return false, nil
	}
	indexed, err := t.Indexed(ctx, c, s)
	indexed = indexed && s.Schema.Ordered()
	if indexed || err != nil && !t.refused(err) {
		return false, err
	}
	size, err := t.stored(ctx, c, s)
	if err != nil && t.refused(err) {
		return true, nil
	}
	return size > shortScan, err
}

// Locate finds the table and refuses a relation that is none, or that may not be dropped or emptied. It returns nil if
// there is none and the run may create it, and can.
func (t *Table) Locate(ctx context.Context, c Conn, s *State) (*Relation, error) {
	found, err := t.Catalog.Locate(ctx, c, s)
	switch {
	case err != nil:
		return nil, t.Failed("look for table "+s.Table, err)
	case found == nil && s.Want.Create == loader.CreateNever:
		return nil, s.Want.Missing(s.Table)
	case found == nil:
		return nil, s.canMake()
	case found.Kind != "":
		return nil, notATable(found)
	}
	s.Relation, s.Table, s.Claims = found, found.Table, found.Claims
	if s.Want.Create == loader.CreateRecreate {
		s.Claims = cmp.Or(found.NextClaims, found.Claims)
	}
	if s.Want.Create == loader.CreateRecreate {
		if err := s.canMake(); err != nil {
			return nil, err
		}
	}
	if s.Want.Create == loader.CreateRecreate || s.Want.Create == loader.CreateTruncate {
		return found, t.mayRemove(s, found)
	}
	return found, nil
}

// canMake returns an error if a column of the table has no type that terapush makes here.
func (s *State) canMake() error {
	if err := s.incomplete(); err != nil {
		return err
	}

	var without []string
	for _, c := range s.Schema.Columns {
		if s.SQL(c) == "" {
			without = append(without, fmt.Sprintf("%s (%s of at most %d bytes)", c.Name, c.Type, c.MaxSize()))
		}
	}
	if len(without) == 0 {
		return nil
	}
	return Refuse("make the table yourself and use --create never",
		"table %s cannot be made: the back-end has no type for column %s", s.Table, strings.Join(without, ", "))
}

// mayRemove takes the table's name in full or as in the target.
func (t *Table) mayRemove(s *State, found *Relation) error {
	p, names := s.Want, []string{found.String(), cmp.Or(t.Name, s.Schema.Dataset)}
	if s.Upper { // names without quotation marks, which the server folds
		p.MayDrop = strings.ToUpper(p.MayDrop)
		for i, name := range names {
			names[i] = strings.ToUpper(name)
		}
	}
	return p.MayRemove(found.String(), found.Comment, names...)
}

// create creates the table, in the place of old unless that is nil.
func (t *Table) create(ctx context.Context, c Conn, s *State, old *Relation) (*Relation, error) {
	statements, err := t.Catalog.Create(ctx, c, s)
	if err != nil {
		return nil, t.Failed("create the table "+s.Table, err)
	}

	switch {
	case old != nil && s.AtomicDDL:
		if err := t.replace(ctx, c, s, statements); err != nil {
			return nil, err
		}
		return t.relocate(ctx, c, s)
	case old != nil: // if the new table cannot be made the old one is gone
		if _, err := t.guarded(ctx, c, s, s.DropTable()); err != nil {
			return nil, t.notDropped(ctx, c, s, err)
		}
	case s.AtomicDDL: // one message is one transaction: without its comment terapush would never drop the table
		statements = []string{strings.Join(statements, "; ")}
	}

	for _, statement := range statements {
		_, err := c.Exec(ctx, statement)
		if err != nil && t.Catalog.Exists(err) {
			break // another process was quicker, and marks the table: our mark would let a later run drop a table of others
		}
		if err != nil {
			return nil, t.notCreated(ctx, c, s, err)
		}
	}
	return t.relocate(ctx, c, s)
}

// replace drops the table and carries out the statements that create one in its place: all of it, or nothing.
func (t *Table) replace(ctx context.Context, c Conn, s *State, statements []string) error {
	done, err := t.guarded(ctx, c, s, append([]string{s.DropTable()}, statements...)...)
	switch {
	case err == nil:
		return nil
	case done == 0:
		return t.notDropped(ctx, c, s, err)
	default:
		return t.notCreated(ctx, c, s, err)
	}
}

func (t *Table) notCreated(ctx context.Context, c Conn, s *State, err error) error {
	hint := "make the table with the statements of --dry-run and use --create never"
	return t.denied(ctx, c, "create the table "+s.Table, err, "CREATE", s.Table, hint)
}

func (t *Table) notDropped(ctx context.Context, c Conn, s *State, err error) error {
	return t.denied(ctx, c, "drop the table "+s.Table, err, "", s.Table, "drop it yourself or choose another --table")
}

// guarded runs statements that drop or empty the table, while nobody else can take the run over: a server may carry
// them out long after their client has died, when the lock that they wait for is free. It returns how many were carried
// out before an error.
func (t *Table) guarded(ctx context.Context, c Conn, s *State, statements ...string) (done int, err error) {
	var g Guard
	if t.Claims != nil && s.hasRow() {
		g = t.Claims.Guard(s)
		g.Check = "SELECT 1 " + s.MayWrite() + g.Check
	} else if s.AtomicDDL {
		g.Before, g.After = "BEGIN", "COMMIT"
	}
	if g.Before != "" {
		if _, err := c.Exec(ctx, g.Before); err != nil {
			return 0, err
		}
		defer func() {
			after := g.After
			if err != nil {
				after = cmp.Or(g.Failed, after)
			}
			if _, ended := c.Exec(context.WithoutCancel(ctx), after); err == nil {
				err = ended
			}
		}()
	}
	if g.Check != "" {
		found, err := Rows(ctx, c, g.Check)
		if err != nil {
			return 0, err
		}
		if len(found) == 0 {
			return 0, t.whyNot(ctx, c, s)
		}
	}

	for done, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			return done, err
		}
	}
	return len(statements), nil
}

// relocate finds a table that was created or emptied.
func (t *Table) relocate(ctx context.Context, c Conn, s *State) (*Relation, error) {
	found, err := t.Catalog.Locate(ctx, c, s)
	if err == nil && found == nil {
		err = fmt.Errorf("table %s was made or emptied and cannot be found: may this user SELECT from it?", s.Table)
	}
	return found, t.Failed("look for table "+s.Table, err)
}

// truncate removes the rows. Some servers give the table a new identity.
func (t *Table) truncate(ctx context.Context, c Conn, s *State) error {
	if s.Flush != "" {
		_, _ = c.Exec(ctx, s.Flush) // some users may not; the proof finds rows that arrive later
	}
	if _, err := t.guarded(ctx, c, s, s.Truncate()); err != nil {
		return t.denied(ctx, c, "empty the table "+s.Table, err, "TRUNCATE", s.Table, "")
	}
	found, err := t.relocate(ctx, c, s)
	if err == nil {
		s.use(found)
	}
	return err
}

// denied returns the error of a statement. If a privilege is missing the hint grants it, or names an alternative.
func (t *Table) denied(ctx context.Context, c Conn, op string, err error, privileges, table, alternative string) error {
	if t.Classify(err).Class != loader.ClassPermission {
		return t.Failed(op, err)
	}
	hints := []string{alternative}
	if privileges != "" { // else only the owner may do it
		hints = slices.Insert(hints, 0, t.Catalog.Grant(ctx, c, privileges, table))
	}
	hints = slices.DeleteFunc(hints, func(hint string) bool { return hint == "" })
	return &loader.Error{Op: op, Applied: loader.No, Err: err, Hint: strings.Join(hints, ", or ")}
}

// Fits returns why the relation cannot take the run's rows; nil if it can.
func (t *Table) Fits(ctx context.Context, c Conn, s *State, found *Relation) error {
	if found.Kind != "" {
		return notATable(found)
	}
	if err := s.incomplete(); err != nil {
		return err
	}
	columns, err := t.Catalog.Columns(ctx, c, s, found)
	if err != nil {
		return t.Failed("read the columns of "+s.Table, err)
	}
	found.Columns = columns
	if wrong := s.differences(columns); len(wrong) > 0 {
		hint, rows := found.Elsewhere(), "rows of dataset "+s.Schema.Dataset
		if s.Want.Records {
			hint, rows = "choose the columns with --columns, or load into a table of the files' columns", "records of the files"
		}
		return Refuse(hint, "table %s cannot take the %s: %s", found, rows, strings.Join(wrong, "; "))
	}
	return t.Failed("check table "+found.String(), t.Catalog.Fits(ctx, c, s, found))
}

// differences lists why the columns cannot take the run's rows. More columns may exist if the server fills them. Of the
// records of files the server alone knows whether their values fit.
func (s *State) differences(have []Column) (wrong []string) {
	for _, w := range s.Schema.Columns {
		want := cmp.Or(s.SQL(w), w.Type.String())
		i := slices.IndexFunc(have, func(h Column) bool { return s.same(h.Name, w.Name) })
		switch {
		case i < 0 && s.Want.Records:
			wrong = append(wrong, fmt.Sprintf("column %s is missing", w.Name))
		case i < 0:
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is missing", w.Name, want))
		case have[i].Generated != "":
			wrong = append(wrong, fmt.Sprintf("column %s is generated: it holds what the server computes, and no row's value", w.Name))
		case s.Want.Records:
		case w.Nullable && !have[i].Nullable:
			wrong = append(wrong, fmt.Sprintf("column %s is NOT NULL, and some of the dataset's values are NULL", w.Name))
		case have[i].Is.without(w.Labels) != "":
			wrong = append(wrong, fmt.Sprintf("column %s is %s, which has no label %s", w.Name, have[i].Type, have[i].Is.without(w.Labels)))
		case !s.Types.Take(have[i].Is, w, s.computed(w)):
			if w.Type.Variable() && !strings.ContainsAny(want, "0123456789") {
				want += fmt.Sprintf(" with room for %d bytes", w.MaxBytes)
			}
			wrong = append(wrong, fmt.Sprintf("column %s is %s, want %s", w.Name, have[i].Type, want))
		}
	}
	for _, h := range have {
		known := slices.ContainsFunc(s.Schema.Names(), func(name string) bool { return s.same(h.Name, name) })
		if !known && !h.Optional() {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) %s and has no default", h.Name, h.Type, s.unknown()))
		}
	}
	return wrong
}

// same reports whether an existing column is the one of a name.
func (s *State) same(have, name string) bool {
	if s.Upper {
		return have == strings.ToUpper(name)
	}
	return have == name || s.Fold && strings.EqualFold(have, name)
}

// unknown says what a column is that gets no value.
func (s *State) unknown() string {
	if s.Want.Records {
		return "gets no field of the files"
	}
	return "is unknown to the dataset"
}

// computed reports whether row numbers are computed from a column and others.
func (s *State) computed(c rows.Column) bool {
	number := s.Schema.Number
	return !s.single() && slices.ContainsFunc(number, func(t rows.Term) bool { return s.Schema.Columns[t.Column].Name == c.Name })
}

func notATable(found *Relation) error {
	return Refuse("choose another --table", "%s is a %s, and rows go into tables", found, found.Kind)
}

// ensureClaims checks the claim table, or creates it. It checks first because CREATE TABLE IF NOT EXISTS requires the
// privilege even for a table that exists. A run that is resumed has claims: with an empty table in their place every
// batch would seem lost.
func (t *Table) ensureClaims(ctx context.Context, c Conn, s *State) error {
	claims := s.Claims
	exists, err := t.Claims.CheckClaims(ctx, c, s)
	switch {
	case err != nil:
		return t.Failed("check the claim table "+claims, err)
	case exists:
		return nil
	case s.Want.Resume:
		return loader.NoClaims(claims)
	}
	op := "create the claim table " + claims
	_, err = c.Exec(ctx, t.Claims.CreateClaims(s))
	if err != nil && t.Catalog.Exists(err) { // another process was quicker, or this user cannot see what has the name
		if exists, wrong := t.Claims.CheckClaims(ctx, c, s); exists || wrong != nil {
			return t.Failed("check the claim table "+claims, wrong)
		}
		hint := t.Catalog.Grant(ctx, c, "SELECT, INSERT, DELETE", claims) + ", if it is a claim table of another user"
		return &loader.Error{Op: op, Applied: loader.No, Err: err, Hint: hint}
	}
	if err != nil {
		return t.denied(ctx, c, op, err, "CREATE, SELECT, INSERT, DELETE", claims, "do without exactly once: --delivery at-least-once")
	}
	return nil
}
