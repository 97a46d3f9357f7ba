package sqlload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// own stores the row of this process.
func (t *Table) own(s *State, row loader.RunRow) {
	changed := *s
	changed.Row = row
	t.state.Store(&changed)
}

// hasRow reports whether the run has a row. One without claims has none where its user may not make the table.
func (s *State) hasRow() bool { return s.Row.Epoch != "" }

// change changes the rows of this process. If there are none any more, the error says who has them.
func (t *Table) change(ctx context.Context, c Conn, s *State, update string) error {
	n, err := c.Exec(ctx, update)
	if err != nil || n > 0 {
		return err
	}
	return t.whyNot(ctx, c, s)
}

// whyNot returns the error of a process that may not write: who has changed the run's row.
func (t *Table) whyNot(ctx context.Context, c Conn, s *State) error {
	found, err := readRuns(ctx, c, s.SelectRuns(fmt.Sprintf("run = '%s' AND part = '%s'", s.Row.Run, s.Row.Part)))
	if err != nil && !t.isMissing(err) {
		return err
	}
	e := &loader.TakenOverError{Run: s.Want.Run}
	if len(found) > 0 {
		e.Row = &found[0]
	}
	if e.Row != nil && e.Row.Epoch == s.Row.Epoch && e.Row.State == loader.RunOpen {
		return ErrClaimVanished
	}
	return loader.Final(e)
}

// WhyNot returns why a claim was not inserted from the run's row.
func (t ClaimedTable) WhyNot(ctx context.Context) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	err = t.connect(ctx, func(c Conn) error { return t.whyNot(ctx, c, s) })
	if errors.As(err, new(*loader.TakenOverError)) {
		return err
	}
	return t.Failed("ask whose the run is", err)
}

// owned returns an error if another process has the run. It keeps a process that has lost its run from ending the
// sessions of the one that has it.
func (t *Table) owned(ctx context.Context, s *State) error {
	if !s.hasRow() {
		return nil
	}
	return t.connect(ctx, func(c Conn) error {
		found, err := Rows(ctx, c, "SELECT 1 "+s.MayWrite())
		if err != nil || len(found) > 0 {
			return err
		}
		return t.whyNot(ctx, c, s)
	})
}

// Owned implements loader.Claims.
func (t ClaimedTable) Owned(ctx context.Context) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.owned(ctx, s)
}

// Take implements loader.Claims.
func (t ClaimedTable) Take(ctx context.Context, name string) (mine loader.RunRow, err error) {
	s, err := t.State()
	if err != nil {
		return mine, err
	}
	op := "take over run " + name
	known, err := t.Runs(ctx, name)
	if err != nil {
		return mine, err
	}
	if len(known) == 0 {
		return mine, t.unknown(s, name)
	}
	these := named(name) + fmt.Sprintf(" AND run = '%s'", known[0].Run)
	if s.Want.Shard != "" {
		these += fmt.Sprintf(" AND part = '%s'", s.Want.Shard)
	}
	var claims []string
	err = t.connect(ctx, func(c Conn) error { claims, err = t.claimTables(ctx, c, s); return err })
	if err != nil {
		return mine, t.Failed(op, err)
	}
	f := Fence{Claims: claims, Run: s.Want.Run, Shard: s.Want.Shard}
	if !slices.ContainsFunc(known, func(r loader.RunRow) bool { return r.Part == f.Shard }) {
		f.Shard = "" // the run is cut anew
	}
	err = t.fence(ctx, s, f, func(c Conn) error {
		found, err := readRuns(ctx, c, s.SelectRuns(these))
		if err == nil && len(found) == 0 && s.Want.Shard != "" {
			found, err = t.cut(ctx, c, s, known[0].Run)
		}
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return t.unknown(s, name)
		}
		mine = found[0]
		if mine.State == loader.RunForgotten || mine.State == loader.RunGone {
			return loader.Final(&loader.TakenOverError{Run: name, Row: &mine})
		}
		if err := t.refuseOpen(ctx, c, s, mine); err != nil {
			return err
		}
		mine.State, mine.Owner, mine.Changed, mine.Epoch = loader.RunOpen, s.Want.Owner, time.Now(), newEpoch(mine.Epoch)
		set := fmt.Sprintf("state = '%s', ", mine.State) + s.signed(mine.Epoch, mine.Owner, mine.Changed)
		_, err = c.Exec(ctx, s.updateRuns(set, these))
		return err
	})
	if err != nil {
		return mine, t.Failed(op, err)
	}
	t.own(s, mine)
	now, err := t.State()
	if err != nil {
		return mine, err
	}
	return mine, t.sameEverywhere(ctx, now)
}

// cut makes the rows of a run those of as many shards as this process says, and returns its own: terapush prepare knows
// no number, and a run may be finished with another one than it began with. All that had an old row have lost it.
func (t *Table) cut(ctx context.Context, c Conn, s *State, run string) ([]loader.RunRow, error) {
	these := named(s.Want.Run) + fmt.Sprintf(" AND run = '%s'", run)
	found, err := readRuns(ctx, c, s.SelectRuns(these))
	if err != nil || len(found) == 0 || found[0].State == loader.RunForgotten || found[0].State == loader.RunGone {
		return found, err
	}
	_, number, _ := strings.Cut(s.Want.Shard, "/")
	count, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	if _, err := c.Exec(ctx, "DELETE FROM "+s.Runs()+" WHERE "+these); err != nil {
		return nil, err
	}
	var mine []loader.RunRow
	r := found[0]
	r.Epoch = newEpoch(r.Epoch)
	for i := range count {
		r.Part = fmt.Sprintf("%d/%d", i, count)
		if _, err := c.Exec(ctx, s.insertRun(r)); err != nil {
			return nil, err
		}
		if r.Part == s.Want.Shard {
			mine = append(mine, r)
		}
	}
	return mine, nil
}

// unknown is the error of a run that the database does not have.
func (t *Table) unknown(s *State, name string) error {
	return &loader.Error{
		Op: "look for run " + name, Applied: loader.No,
		Err:  loader.Final(fmt.Errorf("%w %s: the table %s has no row of it", loader.ErrUnknownRun, name, s.Runs())),
		Hint: "is it the database that the run was pushed into? terapush runs lists the targets",
	}
}

// Settle implements loader.Claims. It needs no fence: the sessions of this process are closed, and those of earlier
// ones have another epoch.
func (t ClaimedTable) Settle(ctx context.Context, state loader.RunState, keys loader.KeyRange) error {
	s, err := t.State()
	if err != nil || !s.hasRow() {
		return err
	}
	mine := s.Row
	mine.State, mine.Keys, mine.Changed, mine.Epoch = state, keys, time.Now(), nextEpoch(mine.Epoch)
	set := fmt.Sprintf("state = '%s', first_key = %d, last_key = %d, ", state, keys.First, keys.Last) +
		s.signed(mine.Epoch, mine.Owner, mine.Changed)
	err = t.do(ctx, "close run "+s.Want.Run, func(c Conn, s *State) error {
		n, err := c.Exec(ctx, s.updateRuns(set, s.every()))
		if err != nil || n > 0 {
			return err
		}
		// The answer to the same statement may have been lost.
		again := *s
		again.Row = mine
		found, err := Rows(ctx, c, "SELECT 1 FROM "+s.Runs()+" WHERE "+again.every())
		if err != nil || len(found) > 0 {
			return err
		}
		return t.whyNot(ctx, c, s)
	})
	if err != nil {
		return err
	}
	t.own(s, mine)
	return nil
}
