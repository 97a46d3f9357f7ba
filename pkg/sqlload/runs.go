package sqlload

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// The run's row decides who may write. It stands in a second table beside the claims, and each claim is inserted from
// it: INSERT … SELECT … FROM the run's row, under this process's epoch and while the run is open. That costs no round
// trip. A process that has lost its run inserts nothing, which it sees before it commits.
//
// Whoever changes a row takes the claim table's lock for a moment (Claims.Fence), which waits for the transactions that
// have a claim already and keeps later ones out. Nothing changes a row while batches run.

// newEpoch returns the epoch after another one; "" is none.
func newEpoch(after string) string {
	number, _, _ := strings.Cut(after, "-")
	n, _ := strconv.ParseInt(number, 10, 64)
	return fmt.Sprintf("%d-%s", n+1, strings.ToLower(rand.Text()[:10]))
}

// nextEpoch is the epoch after one's own. It has the same letters, so that who has lost the answer to a change knows it
// again.
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

// selectOurs finds the row of this process, as long as no other one has changed it.
func (s Statements) selectOurs() string { return "SELECT 1 FROM " + s.Runs() + " WHERE " + s.ours() }

// lookForRuns fails where there is no table of the runs' rows.
func (s Statements) lookForRuns() string { return "SELECT 1 FROM " + s.Runs() + " WHERE 1 = 0" }

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

// RunColumns lists the columns of the table of the runs' rows, and its primary key, for CREATE TABLE. name is a type
// for at most 64 letters, digits, dashes and slashes, text one for names of tables, users and machines, number a 64-bit
// integer.
func RunColumns(name, text, number string) []string {
	var columns []string
	add := func(kind string, names ...string) {
		for _, name := range names {
			columns = append(columns, name+" "+kind+" NOT NULL")
		}
	}
	add(name, "name", "run", "part", "state", "epoch")
	add(text, "target", "owner")
	add(number, "appends", "fingerprint", "first_key", "last_key", "changed")
	return append(columns, "PRIMARY KEY (run, part)")
}

// ClaimColumns lists the columns of the claim table, and its primary key, as RunColumns does. at is a type that is a
// moment, with the present as its default; more are columns with defaults that a back-end adds.
func ClaimColumns(name, number, at string, more ...string) []string {
	columns := []string{"run " + name + " NOT NULL"}
	for _, column := range []string{"batch", "first_key", "row_count"} {
		columns = append(columns, column+" "+number+" NOT NULL")
	}
	columns = append(columns, more...)
	return append(columns, "claimed_at "+at, "PRIMARY KEY (run, batch)")
}

// SelectRunSchemas implements Claims.SelectRunSchemas over information_schema.
const SelectRunSchemas = "SELECT table_schema FROM information_schema.tables WHERE table_name = '" + RunsTable + "'"

// updateRuns changes rows of runs.
func (s Statements) updateRuns(set, condition string) string {
	return fmt.Sprintf("UPDATE %s SET %s WHERE %s", s.Runs(), set, condition)
}

// signed is the part of an UPDATE that names who has changed a row, and when. The epoch makes it another row to
// everybody else.
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

// ensureRuns makes the table of the runs' rows unless it is there.
func (t *Table) ensureRuns(ctx context.Context, c Conn, s *State) error {
	there := func() (bool, error) {
		_, err := Rows(ctx, c, s.lookForRuns())
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
