package sqlload

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// begin makes the rows of a new run, before the table is made, dropped or emptied. anew reports whether the table will
// have no row of an earlier run.
func (t *Table) begin(ctx context.Context, c Conn, s *State, anew bool) error {
	if err := t.ensureRuns(ctx, c, s); err != nil {
		if !s.claims() && t.Classify(err).Class == loader.ClassPermission {
			t.Log.Debug("other runs cannot be kept off the table", "error", err)
			return nil
		}
		return err
	}
	mine := loader.RunRow{
		Name: s.Want.Run, Run: s.Want.Run, Part: cmp.Or(s.Want.Shard, loader.WholeRun), State: loader.RunOpen, Epoch: newEpoch(""),
		Table: s.bareTable(), Owner: s.Want.Owner, Changed: time.Now(), Appends: s.Want.Begin.Appends, Keys: loader.KeyRange{Last: -1},
	}
	if s.Want.Shard != "" {
		mine.Run += "-" + strings.ToLower(rand.Text()[:6])
	}
	// Most refusals need no fence, which would wait for the batches of the run that is open.
	if err := t.refuseOpen(ctx, c, s, mine); err != nil {
		return err
	}
	s.Row = mine // before the fence, whose answer may be lost: then Prepare gives back what may be there
	// No batch is waited for: whoever may still write to the table has a row that is open.
	err := t.fence(ctx, s, Fence{}, func(c Conn) error {
		return t.insertRuns(ctx, c, s, mine, anew)
	})
	if err != nil {
		return err
	}
	return t.sameEverywhere(ctx, s)
}

// replicationTime is how long another host of the same database may take to show a run's row.
const replicationTime = 5 * time.Second

// sameEverywhere checks that all hosts of the target are one database: of two that know nothing of each other one would
// get all rows, and the other one batches that nobody counts.
func (t *Table) sameEverywhere(ctx context.Context, s *State) error {
	if t.Others == nil {
		return nil
	}
	for _, other := range t.Others() {
		if err := t.sameOn(ctx, s, other); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) sameOn(ctx context.Context, s *State, other Other) error {
	op := "look for the run on " + other.Host
	c, err := other.Connect(ctx)
	switch {
	case err == nil:
		defer func() { _ = c.Close() }()
	case other.Unfit != nil && other.Unfit(err):
		return nil
	case t.Classify(err).Retry:
		t.Log.Debug("a host does not answer", "host", other.Host, "error", err)
		return nil
	default:
		return t.Failed(op, err)
	}

	for began := time.Now(); ; {
		found, err := Rows(ctx, c, s.selectOurs())
		if len(found) > 0 {
			return nil
		}
		if err != nil && !t.isMissing(err) {
			return t.Failed(op, err)
		}
		if time.Since(began) >= replicationTime {
			return &loader.Error{
				Op: "compare the hosts", Applied: loader.No,
				Err: fmt.Errorf("%s is another database than the first host of the target: it does not have the row of run %s in %s",
					other.Host, s.Want.Run, s.Runs()),
				Hint: "name the hosts of one database only, and push into two databases by two runs",
			}
		}
		if err := Wait(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

func (t *Table) insertRuns(ctx context.Context, c Conn, s *State, mine loader.RunRow, anew bool) error {
	if err := t.refuseOpen(ctx, c, s, mine); err != nil {
		return err
	}
	earlier, err := readRuns(ctx, c, s.SelectRuns(named(mine.Name)))
	if err != nil {
		return err
	}
	for _, r := range newest(earlier) {
		if r.State != loader.RunForgotten && r.Fingerprint != 0 {
			return loader.ErrBegun
		}
	}
	end := func(state loader.RunState, condition string) error {
		_, err := c.Exec(ctx, s.updateRuns(fmt.Sprintf("state = '%s', ", state)+s.signed(newEpoch(mine.Epoch), mine.Owner, mine.Changed), condition))
		return err
	}
	// Of an earlier call, whose answer was lost; or of a process that has died, or is frozen, before it announced the
	// run.
	if _, err := c.Exec(ctx, fmt.Sprintf("DELETE FROM %s WHERE run = '%s'", s.Runs(), mine.Run)); err != nil {
		return err
	}
	if err := end(loader.RunForgotten, named(mine.Name)+" AND fingerprint = 0"); err != nil {
		return err
	}
	if anew {
		if err := end(loader.RunGone, s.here()+fmt.Sprintf(" AND state IN ('%s', '%s')", loader.RunClosed, loader.RunProven)); err != nil {
			return err
		}
		// The keys of a tombstone are free again with the table.
		free := s.here() + fmt.Sprintf(" AND state = '%s'", loader.RunForgotten)
		if _, err := c.Exec(ctx, s.updateRuns("first_key = 0, last_key = -1", free)); err != nil {
			return err
		}
	}

	count := max(s.Want.Begin.Shards, 1)
	for i := range count {
		r := mine
		r.Part = fmt.Sprintf("%d/%d", i, count)
		if _, err := c.Exec(ctx, s.insertRun(r)); err != nil {
			return err
		}
	}
	return nil
}

// refuseOpen returns an error if another run is open that does not share the table.
func (t *Table) refuseOpen(ctx context.Context, c Conn, s *State, mine loader.RunRow) error {
	others, err := readRuns(ctx, c, s.SelectRuns(s.here()))
	if err != nil {
		return err
	}
	for _, r := range others {
		together := r.Appends && mine.Appends
		if r.State == loader.RunOpen && r.Name != mine.Name && !together {
			return t.busy(ctx, s, r)
		}
	}
	return nil
}

// busy returns the error about a run that is open. Its activity is only a help.
func (t *Table) busy(ctx context.Context, s *State, r loader.RunRow) error {
	b := &loader.BusyError{Table: s.bareTable(), Row: r}
	if len(s.Claims) > 0 {
		b.Activity = t.activity(ctx, s, r.Run)
	}
	return loader.Busy(b)
}

// activity asks over a connection of its own: an error would end the transaction of the other, and a lock of tables is
// one on what may be asked.
func (t *Table) activity(ctx context.Context, s *State, run string) (at string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_ = t.connect(ctx, func(c Conn) error {
		found, err := Rows(ctx, c, s.SelectActivity(run))
		if err == nil && len(found) == 1 {
			at = found[0][0]
		}
		return err
	})
	return at
}

// Reserve implements loader.Claims. Rows are looked for before the fence, since that may take a scan: whatever run has
// put rows into the table since has a row with its numbers.
func (t ClaimedTable) Reserve(ctx context.Context, first, rows, last int64) (int64, error) {
	s, err := t.State()
	if err != nil {
		return 0, err
	}
	behind := first < 0
	if behind {
		err = t.do(ctx, "look for the largest key", func(c Conn, s *State) (err error) {
			if s.Flush != "" {
				_, _ = c.Exec(ctx, s.Flush) // queries do not see what is in memory
			}
			first, err = t.nextFree(ctx, c, s, rows, last)
			return err
		})
		if err != nil {
			return 0, err
		}
	}
	if !s.hasRow() && behind {
		return 0, t.Failed("reserve row numbers", fmt.Errorf("this user may not make the table %s", s.Runs()))
	}
	if !s.hasRow() {
		return first, nil
	}
	from := first
	reserve := func(c Conn) error {
		first = from // it may be called again
		if err := t.findFree(ctx, c, s, &first, rows, behind); err != nil {
			return err
		}
		if behind {
			if err := loader.Fits(first, rows, last); err != nil {
				return err
			}
		}
		return t.change(ctx, c, s, s.updateRuns(fmt.Sprintf("first_key = %d, last_key = %d", first, first+rows-1), s.every()))
	}
	if s.Row.Appends {
		err = t.fence(ctx, s, Fence{}, reserve)
	} else {
		err = t.connect(ctx, reserve)
	}
	if err = t.Failed("reserve row numbers", err); err != nil {
		return 0, err
	}
	mine := s.Row
	mine.Keys = loader.KeyRange{First: first, Last: first + rows - 1}
	t.own(s, mine)
	return first, nil
}

// findFree moves first behind the numbers of other runs, or reports that an open one has some of them.
func (t *Table) findFree(ctx context.Context, c Conn, s *State, first *int64, rows int64, behind bool) error {
	others, err := readRuns(ctx, c, s.SelectRuns(s.here()))
	if err != nil {
		return err
	}
	for _, r := range others {
		switch {
		case r.Run == s.Row.Run || r.State == loader.RunGone || r.Keys.Last < r.Keys.First:
		case r.Name == s.Row.Name && r.State == loader.RunOpen:
			return loader.Final(&loader.TakenOverError{Run: r.Name, Row: &r})
		case behind:
			*first = max(*first, r.Keys.Last+1)
		case r.State == loader.RunOpen && r.Keys.First < *first+rows && *first <= r.Keys.Last:
			busy := t.busy(ctx, s, r)
			return fmt.Errorf("the keys from %d to %d are those of another run: %w", r.Keys.First, r.Keys.Last, busy)
		}
	}
	return nil
}

// Announce implements loader.Claims.
func (t ClaimedTable) Announce(ctx context.Context, fingerprint int64) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	err = t.do(ctx, "announce run "+s.Want.Run, func(c Conn, s *State) error {
		return t.change(ctx, c, s, s.updateRuns(fmt.Sprintf("fingerprint = %d", fingerprint), s.every()))
	})
	if err != nil {
		return err
	}
	mine := s.Row
	mine.Fingerprint = fingerprint
	t.own(s, mine)
	return nil
}

// GiveBack implements loader.Claims.
func (t ClaimedTable) GiveBack(ctx context.Context) error {
	s, err := t.State()
	if err != nil || !s.hasRow() {
		return err
	}
	err = t.do(ctx, "give the table back", func(c Conn, s *State) error {
		_, err := c.Exec(ctx, "DELETE FROM "+s.Runs()+" WHERE "+s.every())
		return err
	})
	if err != nil {
		return err
	}
	t.own(s, loader.RunRow{})
	return nil
}
