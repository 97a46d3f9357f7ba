package sqlload

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// The run's row decides who may write. It stands in a second table beside the claims, and each claim is inserted from it:
// INSERT … SELECT … FROM the run's row, under this process's epoch and while the run is open. That costs no round trip. A
// process that has lost its run inserts nothing, which it sees before it commits.
//
// Whoever changes a row takes the claim table's lock for a moment (Claims.Fence), which waits for the transactions that
// have a claim already and keeps later ones out. Nothing changes a row while batches run.

// Fence says what Claims.Fence waits for.
type Fence struct {
	// Claims are claim tables, quoted: transactions that have a claim in one of them have to end. Without any a fence only
	// keeps those apart who change rows of runs.
	Claims     []string
	Run, Shard string // whose sessions may be ended if they do not; "": nobody's, or those of all shards
}

// How long a fence waits: for the batches of its run, before their sessions are ended, and in all.
const (
	fencePatience = 3 * time.Second
	fenceTime     = time.Minute
)

// AwaitFence tries to take a fence until it has it. Each try lasts as long as it is told: a second, so that other runs are not
// held up, and longer when that is not enough, since their batches may be longer. After fencePatience it lets end end the
// sessions of its run that are in the way, and describe those of others: a transaction that is frozen in the middle of a batch
// would hold it up for ever.
func AwaitFence(ctx context.Context, try func(wait time.Duration) (bool, error), end func() (others string, err error)) error {
	began, wait, ended := time.Now(), time.Second, false
	for {
		done, err := try(wait)
		if done || err != nil {
			return err
		}
		if !ended && time.Since(began) >= fencePatience {
			ended = true
			if _, err := end(); err != nil {
				return err
			}
		} else if ended {
			wait *= 2
		}
		if time.Since(began)+wait > fenceTime {
			return fenceLate(end)
		}
		if err := Wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

func fenceLate(end func() (string, error)) error {
	others, err := end()
	if err != nil {
		return err
	}
	return &loader.Error{
		Op: "wait for the batches of other runs", Applied: loader.No,
		Err:  fmt.Errorf("their transactions have held the claim table for %s: %s", fenceTime, cmp.Or(others, "by whom the server does not say")),
		Hint: "wait until they have ended; batches of fewer --batch-bytes are shorter",
	}
}

// newEpoch returns the epoch after another one; "" is none.
func newEpoch(after string) string {
	number, _, _ := strings.Cut(after, "-")
	n, _ := strconv.ParseInt(number, 10, 64)
	return fmt.Sprintf("%d-%s", n+1, strings.ToLower(rand.Text()[:10]))
}

// nextEpoch is the epoch after one's own. It has the same letters, so that who has lost the answer to a change knows it again.
func nextEpoch(own string) string {
	_, letters, _ := strings.Cut(own, "-")
	number, _, _ := strings.Cut(newEpoch(own), "-")
	return number + "-" + letters
}

// ours is the condition that finds the row of this process, unless another one has changed it.
func (s Statements) ours() string {
	return fmt.Sprintf("run = '%s' AND part = '%s' AND epoch = '%s'", s.Row.Run, s.Row.Part, s.Row.Epoch)
}

// every is ours for all shards, as long as no other process has taken one of them.
func (s Statements) every() string {
	return fmt.Sprintf("run = '%s' AND epoch = '%s'", s.Row.Run, s.Row.Epoch)
}

// here is the condition that finds the rows of all runs with the table.
func (s Statements) here() string { return "target = " + s.literal(s.bareTable()) }

func named(name string) string { return fmt.Sprintf("name = '%s'", name) }

// MayWrite finds one row if this process may write, and none otherwise. Claims are inserted from it.
func (s Statements) MayWrite() string {
	return fmt.Sprintf("FROM %s WHERE %s AND state = '%s'", s.Runs(), s.ours(), loader.RunOpen)
}

// SelectRuns reads rows of runs.
func (s Statements) SelectRuns(condition string) string {
	return fmt.Sprintf("SELECT name, run, part, state, epoch, target, owner, %s, %s, %s, %s, %s FROM %s WHERE %s",
		s.digits("appends"), s.digits("fingerprint"), s.digits("first_key"), s.digits("last_key"), s.digits("changed"), s.Runs(), condition)
}

// insertRun inserts a row.
func (s Statements) insertRun(r loader.RunRow) string {
	appends := 0
	if r.Appends {
		appends = 1
	}
	return fmt.Sprintf("INSERT INTO %s (name, run, part, state, epoch, target, owner, appends, fingerprint, first_key, last_key, changed) "+
		"VALUES ('%s', '%s', '%s', '%s', '%s', %s, %s, %d, %d, %d, %d, %d)",
		s.Runs(), r.Name, r.Run, r.Part, r.State, r.Epoch, s.literal(r.Table), s.literal(r.Owner),
		appends, r.Fingerprint, r.Keys.First, r.Keys.Last, r.Changed.Unix())
}

// updateRuns changes rows of runs.
func (s Statements) updateRuns(set, condition string) string {
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", s.Runs(), set, condition)
}

// signed is the part of an UPDATE that names who has changed a row, and when. The epoch makes it another row to everybody else.
func (s Statements) signed(epoch, owner string, at time.Time) string {
	return fmt.Sprintf("epoch = '%s', owner = %s, changed = %d", epoch, s.literal(owner), at.Unix())
}

// SelectActivity reads when a run has claimed its newest batch.
func (s Statements) SelectActivity(run string) string {
	return fmt.Sprintf("SELECT MAX(claimed_at) FROM %s WHERE run = '%s'", s.Claims, run)
}

// readRuns reads the rows of a query like SelectRuns.
func readRuns(ctx context.Context, c Conn, query string) (all []loader.RunRow, err error) {
	found, err := Rows(ctx, c, query)
	if err != nil {
		return nil, err
	}
	for _, row := range found {
		r := loader.RunRow{
			Name: row[0], Run: row[1], Part: row[2], State: loader.RunState(row[3]), Epoch: row[4], Table: row[5], Owner: row[6],
			Appends: row[7] == "1",
		}
		var changed int64
		for i, to := range []*int64{&r.Fingerprint, &r.Keys.First, &r.Keys.Last, &changed} {
			if *to, err = ParseNumber(row[8+i]); err != nil {
				return nil, err
			}
		}
		r.Changed = time.Unix(changed, 0)
		all = append(all, r)
	}
	return all, nil
}

// newest returns the rows of the run that a name stands for: the one that is not forgotten, or else the one that was
// changed last.
func newest(rows []loader.RunRow) []loader.RunRow {
	if len(rows) == 0 {
		return nil
	}
	alive := func(r loader.RunRow) int {
		switch r.State {
		case loader.RunForgotten:
			return 0
		case loader.RunGone:
			return 1
		}
		return 2
	}
	last := slices.MaxFunc(rows, func(a, b loader.RunRow) int {
		return cmp.Or(alive(a)-alive(b), a.Changed.Compare(b.Changed))
	})
	return slices.DeleteFunc(slices.Clone(rows), func(r loader.RunRow) bool { return r.Run != last.Run })
}

// Runs implements loader.Claims.
func (t ClaimedTable) Runs(ctx context.Context, name string) (found []loader.RunRow, err error) {
	err = t.do(ctx, "look for run "+name, func(c Conn, s *State) error {
		condition := named(name)
		if name == "" {
			condition = "1 = 1"
		}
		found, err = readRuns(ctx, c, s.SelectRuns(condition))
		if t.isMissing(err) {
			return nil
		}
		return err
	})
	if name == "" {
		return found, err
	}
	return newest(found), err
}

func (t *Table) isMissing(err error) bool {
	return err != nil && t.Classify(err).Class == loader.ClassMissing
}

// fence calls change while nobody else changes the rows of runs and no claim of claims is open.
func (t *Table) fence(ctx context.Context, s *State, f Fence, change func(Conn) error) error {
	return t.Claims.Fence(ctx, s, f, change)
}

// claimTables lists the claim tables of s that exist. Of a table that was not looked at there may be two.
func (t *Table) claimTables(ctx context.Context, c Conn, s *State) (there []string, err error) {
	for _, claims := range [...]string{s.Claims, s.OtherClaims} {
		if claims == "" {
			continue
		}
		if _, err := Rows(ctx, c, "SELECT 1 FROM "+claims+" WHERE 1 = 0"); t.isMissing(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		there = append(there, claims)
	}
	return there, nil
}

// begin makes the rows of a new run, before the table is made, dropped or emptied. anew reports whether the table will have no
// row of an earlier run.
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

// sameEverywhere checks that all hosts of the target are one database: of two that know nothing of each other one would get all
// rows, and the other one batches that nobody counts.
func (t *Table) sameEverywhere(ctx context.Context, s *State) error {
	if t.Elsewhere == nil {
		return nil
	}
	return t.Elsewhere(ctx, func(host string, c Conn, err error) error {
		if err != nil && t.Classify(err).Retry {
			t.Log.Debug("a host does not answer", "host", host, "error", err)
			return nil
		}
		if err != nil {
			return t.Failed("look for the run on "+host, err)
		}
		for began := time.Now(); ; {
			found, err := Rows(ctx, c, "SELECT 1 FROM "+s.Runs()+" WHERE "+s.ours())
			if len(found) > 0 {
				return nil
			}
			if err != nil && !t.isMissing(err) {
				return t.Failed("look for the run on "+host, err)
			}
			if time.Since(began) >= replicationTime {
				return &loader.Error{
					Op: "compare the hosts", Applied: loader.No,
					Err: fmt.Errorf("%s is another database than the first host of the target: it does not have the row of run %s in %s",
						host, s.Want.Run, s.Runs()),
					Hint: "name the hosts of one database only, and push into two databases by two runs",
				}
			}
			if err := Wait(ctx, 50*time.Millisecond); err != nil {
				return err
			}
		}
	})
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
	// Of an earlier call, whose answer was lost; or of a process that has died, or is frozen, before it announced the run.
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

// activity asks over a connection of its own: an error would end the transaction of the other, and a lock of tables is one on
// what may be asked.
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

// own stores the row of this process.
func (t *Table) own(s *State, row loader.RunRow) {
	changed := *s
	changed.Row = row
	t.state.Store(&changed)
}

// hasRow reports whether the run has a row. One without claims has none where its user may not make the table.
func (s *State) hasRow() bool { return s.Row.Epoch != "" }

// Reserve implements loader.Claims. Rows are looked for before the fence, since that may take a scan: whatever run has put
// rows into the table since has a row with its numbers.
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
			first, err = s.nextFree(ctx, c, rows, last)
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
		case behind:
			*first = max(*first, r.Keys.Last+1)
		case r.State == loader.RunOpen && r.Keys.First < *first+rows && *first <= r.Keys.Last:
			busy := t.busy(ctx, s, r)
			return fmt.Errorf("the keys from %d to %d are those of another run: %w", r.Keys.First, r.Keys.Last, busy)
		}
	}
	return nil
}

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

// owned returns an error if another process has the run. It keeps a process that has lost its run from ending the sessions of
// the one that has it.
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

// cut makes the rows of a run those of as many shards as this process says, and returns its own: terapush prepare knows no
// number, and a run may be finished with another one than it began with. All that had an old row have lost it.
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

// Settle implements loader.Claims. It needs no fence: the sessions of this process are closed, and those of earlier ones
// have another epoch.
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

// Owned implements loader.Claims.
func (t ClaimedTable) Owned(ctx context.Context) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.owned(ctx, s)
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
	if err == nil {
		t.own(s, loader.RunRow{})
	}
	return err
}

// Forget implements loader.Claims. The claims go after the fence, in pieces: nobody can add any.
func (t ClaimedTable) Forget(ctx context.Context, name string) (removed int64, known bool, err error) {
	s, err := t.State()
	if err != nil {
		return 0, false, err
	}
	op := "forget run " + name
	var claims, runs []string
	err = t.connect(ctx, func(c Conn) error {
		if s, err = t.find(ctx, c, s, name); err != nil || s == nil {
			return err
		}
		found, err := readRuns(ctx, c, s.SelectRuns(named(name)))
		if err != nil {
			return err
		}
		for _, r := range found {
			runs = append(runs, r.Run)
		}
		claims, err = t.claimTables(ctx, c, s)
		return err
	})
	if err != nil || len(runs) == 0 {
		return 0, false, t.Failed(op, err)
	}
	err = t.fence(ctx, s, Fence{Claims: claims, Run: name, Shard: ""}, func(c Conn) error {
		set := fmt.Sprintf("state = '%s', ", loader.RunForgotten) + s.signed(newEpoch(""), s.Want.Owner, time.Now())
		_, err := c.Exec(ctx, s.updateRuns(set, fmt.Sprintf("%s AND state <> '%s'", named(name), loader.RunForgotten)))
		return err
	})
	if err != nil {
		return 0, true, t.Failed(op, err)
	}
	slices.Sort(runs)
	err = t.connect(ctx, func(c Conn) error {
		for _, run := range slices.Compact(runs) {
			for _, table := range claims {
				n, err := deleteClaims(ctx, c, s, table, run)
				if removed += n; err != nil {
					return err
				}
			}
		}
		return nil
	})
	return removed, true, t.Failed(op, err)
}

// find returns the state whose runs have the name: that of the target's schema, or of another one that this user sees; nil
// if there is none.
func (t *Table) find(ctx context.Context, c Conn, s *State, name string) (*State, error) {
	found, err := readRuns(ctx, c, s.SelectRuns(named(name)))
	if err == nil && len(found) > 0 {
		return s, nil
	}
	if err != nil && !t.isMissing(err) {
		return nil, err
	}
	schemas, err := Rows(ctx, c, t.Claims.SelectRunSchemas())
	if err != nil {
		return nil, err
	}
	for _, row := range schemas {
		in := *s
		in.Claims, in.OtherClaims = s.claimsIn(row[0], ClaimsTable), ""
		if s.OtherClaims != "" {
			in.OtherClaims = s.claimsIn(row[0], UnloggedClaims)
		}
		found, err := readRuns(ctx, c, in.SelectRuns(named(name)))
		if err == nil && len(found) > 0 {
			return &in, nil
		}
	}
	return nil, nil
}

// claimsPiece is the number of claims that one statement removes at most, so that no transaction becomes large.
const claimsPiece = 10_000

func deleteClaims(ctx context.Context, c Conn, s *State, claims, run string) (removed int64, err error) {
	in := s.Statements
	in.Claims = claims
	bounds, err := Rows(ctx, c, in.SelectBounds(run))
	if err != nil || len(bounds) == 0 || bounds[0][0] == "" {
		return 0, err
	}
	first, err := ParseNumber(bounds[0][0])
	if err != nil {
		return 0, err
	}
	last, err := ParseNumber(bounds[0][1])
	if err != nil {
		return 0, err
	}
	for ; first <= last; first += claimsPiece {
		n, err := c.Exec(ctx, in.DeleteClaims(run, first, min(first+claimsPiece-1, last)))
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// ensureRuns makes the table of the runs' rows unless it is there.
func (t *Table) ensureRuns(ctx context.Context, c Conn, s *State) error {
	there := func() (bool, error) {
		_, err := Rows(ctx, c, "SELECT 1 FROM "+s.Runs()+" WHERE 1 = 0")
		if t.isMissing(err) {
			return false, nil
		}
		return err == nil, t.Failed("check the table "+s.Runs(), err)
	}
	exists, err := there()
	if exists || err != nil {
		return err
	}
	op := "create the table " + s.Runs()
	_, err = c.Exec(ctx, t.Claims.CreateRuns(s))
	if err == nil {
		return nil
	}
	if t.Catalog.Exists(err) { // another process was quicker
		exists, err = there()
		if exists {
			return nil
		}
	}
	return t.denied(ctx, c, op, err, "CREATE, SELECT, INSERT, UPDATE, DELETE", s.Runs(), "")
}
