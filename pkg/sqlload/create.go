package sqlload

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// make makes the table, in the place of old unless that is nil. The claim table comes first, and then the run's row:
// what cannot be made must not cost the user the old table.
func (t *Table) make(ctx context.Context, c Conn, s *State, old *Relation) (*Relation, error) {
	if old != nil && s.isLike(old) {
		return nil, Refuse("choose another --table",
			"%s is the table that the new one is to be like, and would be gone", old)
	}
	if old != nil {
		if err := t.losesNothing(ctx, c, s, old); err != nil {
			return nil, err
		}
	}
	begins := t.begins(s)
	if s.claims() && (old != nil || begins || s.Want.Resume) {
		if err := t.ensureClaims(ctx, c, s); err != nil {
			return nil, err
		}
	}
	if begins {
		if err := t.begin(ctx, c, s, true); err != nil {
			return nil, err
		}
	}
	return t.create(ctx, c, s, old)
}

// losesNothing refuses to drop a table that has what the new one would not have, and what somebody has made: it was
// made like another, or was given indexes, foreign keys or triggers since. Keys do not count, since terapush makes
// them.
// --allow-drop overrules it.
func (t *Table) losesNothing(ctx context.Context, c Conn, s *State, old *Relation) error {
	if allowed := *old; s.Want.MayDrop != "" {
		allowed.Comment = ""
		if t.mayRemove(s, &allowed) == nil {
			return nil
		}
	}
	hint := "--create truncate keeps the table; --allow-drop " + old.String() + " drops it nevertheless"
	like, _ := loader.IsMade(old.Comment)
	if like != "" && s.Want.Like.Name == "" {
		return Refuse("add --like "+like+"; "+hint,
			"table %s was made like %s, and the new one would not have its indexes, defaults and CHECKs", old, like)
	}

	has, err := t.extras(ctx, c, s, old)
	if err != nil || len(has) == 0 {
		return t.Failed("look for indexes of "+s.Table, err)
	}
	return Refuse(hint, "table %s has %s, which the new one would not have", old, strings.Join(has, ", "))
}

// extras lists the foreign keys and triggers of a table, and, unless the new one is like another, its indexes that are
// no keys.
func (t *Table) extras(ctx context.Context, c Conn, s *State, old *Relation) (all []string, err error) {
	if t.Lookups == nil || t.Lookups.Costs == "" {
		return nil, nil
	}
	costs, err := Rows(ctx, c, s.fill(t.Lookups.Costs, old))
	var keys [][]string
	if err == nil && len(costs) > 0 {
		keys, err = Rows(ctx, c, s.fill(t.Lookups.Keys, old))
	}
	if err != nil && t.refused(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}

	for _, row := range costs {
		isKey := slices.ContainsFunc(keys, func(key []string) bool { return key[0] == row[1] })
		counts := row[0] == "foreign key" || row[0] == "trigger" || row[0] == "index" && s.Want.Like.Name == "" && !isKey
		if counts {
			all = append(all, row[0]+" "+row[1])
		}
	}
	return all, nil
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

// relocate finds a table that was created or emptied.
func (t *Table) relocate(ctx context.Context, c Conn, s *State) (*Relation, error) {
	found, err := t.Catalog.Locate(ctx, c, s)
	if err == nil && found == nil {
		err = fmt.Errorf("table %s was made or emptied and cannot be found: may this user SELECT from it?", s.Table)
	}
	return found, t.Failed("look for table "+s.Table, err)
}

// guarded runs statements that drop or empty the table, while nobody else can take the run over: a server may carry
// them out long after their client has died, when the lock that they wait for is free. It returns how many were carried
// out before an error.
func (t *Table) guarded(ctx context.Context, c Conn, s *State, statements ...string) (done int, err error) {
	g := t.guard(s)
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

// guard is the Guard of a run with a row, which is then its check; without one a transaction, where that undoes DDL.
func (t *Table) guard(s *State) (g Guard) {
	switch {
	case t.Claims != nil && s.hasRow():
		g = t.Claims.Guard(s)
		g.Check = "SELECT 1 " + s.MayWrite() + g.Check
	case s.AtomicDDL:
		g.Before, g.After = "BEGIN", "COMMIT"
	}
	return g
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
