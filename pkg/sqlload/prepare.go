package sqlload

import (
	"cmp"
	"context"
	"time"

	"github.com/terapush/terapush/pkg/loader"
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
func (t *Table) prepare(ctx context.Context, c Conn, s *State) (table loader.Table, err error) {
	found, err := t.Locate(ctx, c, s)
	if err != nil {
		return table, err
	}

	table.Created = found == nil || s.Want.Create == loader.CreateRecreate
	switch {
	case table.Created:
		found, err = t.make(ctx, c, s, found)
	case s.claims() && s.Want.Resume: // it needs its claim table before anything else is looked at
		err = t.ensureClaims(ctx, c, s)
	}
	if err != nil {
		return table, err
	}

	if err := t.Fits(ctx, c, s, found); err != nil {
		return table, err
	}
	s.use(found)
	table.Numbered, table.Moved = s.numbered(found.Columns)
	if err := t.lookForRows(ctx, c, s, &table); err != nil {
		return table, err
	}
	if s.claims() {
		if err := t.ensureClaims(ctx, c, s); err != nil {
			return table, err
		}
	}

	empties := s.Want.Create == loader.CreateTruncate && !table.Created
	if t.begins(s) && !table.Created {
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

// begins reports whether Prepare begins the run, by its row.
func (t *Table) begins(s *State) bool { return s.Want.Begin != nil && t.Claims != nil }

// use replaces the planned names by those of an existing table.
func (s *State) use(r *Relation) {
	s.Relation, s.Table, s.Own = r, r.Table, r.Own
	s.Claims, s.OtherClaims = r.Claims, ""
	if s.UUID != nil {
		key := s.find(r.Columns, s.Schema.Key().Name)
		s.RawUUID = key != nil && key.Is.Name == "binary" // 16 bytes, where a UUID fits
	}
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
