package loadertest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The rows of the runs, as package sqlload keeps them in a database.

// Runs returns the rows of all runs.
func (m *Memory) Runs() []loader.RunRow {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.runs)
}

func (m *Memory) epoch() string {
	m.epochs++
	return fmt.Sprintf("%d-memory", m.epochs)
}

// begin makes the run's rows.
func (l *memoryLoader) begin(p loader.Preparation) error {
	*l.row = loader.RunRow{Run: p.Run, Part: cmp.Or(p.Shard, loader.WholeRun)}
	l.shard, l.owner = p.Shard, p.Owner
	if p.Begin == nil {
		return nil
	}
	mine := loader.RunRow{
		Name: p.Run, Run: p.Run, Part: l.row.Part, State: loader.RunOpen, Epoch: l.epoch(), Table: memoryTable,
		Appends: p.Begin.Appends, Owner: p.Owner, Changed: time.Now(), Keys: loader.KeyRange{Last: -1},
	}
	if p.Shard != "" {
		mine.Run += "-" + strings.ReplaceAll(mine.Epoch, "-memory", "")
	}
	for i, r := range l.runs {
		switch {
		case r.Name == p.Run && r.State != loader.RunForgotten && r.Fingerprint != 0:
			return loader.ErrBegun
		case r.Name == p.Run:
			l.runs[i].State, l.runs[i].Epoch = loader.RunForgotten, l.epoch()
		case r.State == loader.RunOpen && (!r.Appends || !mine.Appends):
			return loader.Busy(&loader.BusyError{Table: memoryTable, Row: r})
		}
	}
	if p.Create == loader.CreateRecreate || p.Create == loader.CreateTruncate {
		for i := range l.runs {
			l.runs[i].State, l.runs[i].Epoch = loader.RunGone, l.epoch()
		}
	}
	count := max(p.Begin.Shards, 1)
	for i := range count {
		r := mine
		r.Part = fmt.Sprintf("%d/%d", i, count)
		l.runs = append(l.runs, r)
	}
	*l.row = mine
	return nil
}

// at finds the row of this process, or returns who has it.
func (m *Memory) at(row loader.RunRow) (*loader.RunRow, error) {
	i := slices.IndexFunc(m.runs, func(r loader.RunRow) bool { return r.Run == row.Run && r.Part == row.Part })
	if i < 0 {
		return nil, loader.Final(&loader.TakenOverError{Run: row.Name})
	}
	r := &m.runs[i]
	if r.Epoch != row.Epoch {
		return nil, loader.Final(&loader.TakenOverError{Run: row.Name, Row: r})
	}
	return r, nil
}

// mayWrite returns why a process may not write. One that Prepare was not told to begin a run for has no row.
func (m *Memory) mayWrite(row loader.RunRow) error {
	if row.Epoch == "" {
		return nil
	}
	_, err := m.at(row)
	return err
}

// claimant returns what the claim of a batch or group has: a name may have been used before. A label has the run's id.
func (l *memoryLoader) claimant(id batch.ID) batch.ID {
	if l.caps.Dedup == loader.DedupTx {
		id.Run = cmp.Or(l.row.Run, id.Run)
	}
	return id
}

func (l *memoryLoader) newest(name string) (found []loader.RunRow) {
	for _, r := range l.runs {
		if r.Name != name {
			continue
		}
		if len(found) > 0 && found[0].Run != r.Run {
			found = nil // rows are in the order of their runs
		}
		found = append(found, r)
	}
	return found
}

// The methods of loader.Claims.

func (l *memoryLoader) Runs(_ context.Context, name string) ([]loader.RunRow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if name == "" {
		return slices.Clone(l.runs), nil
	}
	return l.newest(name), nil
}

func (l *memoryLoader) Claimed(_ context.Context, run string, f func(number, rows int64) error) error {
	l.mu.Lock()
	var found []loader.Ref
	for id, c := range l.claims {
		if id.Run == run {
			found = append(found, c)
		}
	}
	l.mu.Unlock()
	for _, c := range found {
		if err := f(c.ID.Number, c.Rows); err != nil {
			return err
		}
	}
	return nil
}

func (l *memoryLoader) Reserve(_ context.Context, first, n, last int64) (int64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	behind := first < 0
	if behind {
		first = 0
		for _, a := range l.applied {
			first = max(first, a.First+a.Rows)
		}
	}
	for _, r := range l.runs {
		switch {
		case r.Run == l.row.Run || r.State == loader.RunGone || r.Keys.Last < r.Keys.First:
		case r.Name == l.row.Name && r.State == loader.RunOpen:
			return 0, loader.Final(&loader.TakenOverError{Run: r.Name, Row: &r})
		case behind:
			first = max(first, r.Keys.Last+1)
		case r.State == loader.RunOpen && r.Keys.First < first+n && first <= r.Keys.Last:
			return 0, loader.Busy(&loader.BusyError{Table: memoryTable, Row: r})
		}
	}
	if behind {
		if err := loader.Fits(first, n, last); err != nil {
			return 0, err
		}
	}
	return first, l.change(func(r *loader.RunRow) { r.Keys = loader.KeyRange{First: first, Last: first + n - 1} })
}

// change changes all rows of the run that have the epoch of this process.
func (l *memoryLoader) change(f func(*loader.RunRow)) error {
	if _, err := l.at(*l.row); err != nil {
		return err
	}
	was := *l.row
	for i := range l.runs {
		if r := &l.runs[i]; r.Run == was.Run && r.Epoch == was.Epoch {
			f(r)
		}
	}
	f(l.row)
	return nil
}

func (l *memoryLoader) Announce(_ context.Context, fingerprint int64) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.change(func(r *loader.RunRow) { r.Fingerprint = fingerprint })
}

func (l *memoryLoader) Take(_ context.Context, name string) (loader.RunRow, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	epoch, taken := l.epoch(), false
	l.cut(l.newest(name))
	for _, known := range l.newest(name) {
		if l.shard != "" && known.Part != l.shard {
			continue
		}
		r, err := l.at(known)
		if err != nil {
			return known, err
		}
		if r.State == loader.RunForgotten || r.State == loader.RunGone {
			return known, loader.Final(&loader.TakenOverError{Run: name, Row: r})
		}
		r.State, r.Epoch, r.Owner, r.Changed = loader.RunOpen, epoch, l.owner, time.Now()
		*l.row, taken = *r, true
	}
	if !taken {
		return loader.RunRow{}, loader.Final(fmt.Errorf("%w %s", loader.ErrUnknownRun, name))
	}
	return *l.row, nil
}

// cut makes the rows of a run those of as many shards as this process says, if it is one that the run was not begun
// with.
func (l *memoryLoader) cut(rows []loader.RunRow) {
	has := func(r loader.RunRow) bool { return r.Part == l.shard }
	if l.shard == "" || len(rows) == 0 || slices.ContainsFunc(rows, has) {
		return
	}
	l.runs = slices.DeleteFunc(l.runs, func(r loader.RunRow) bool { return r.Run == rows[0].Run })
	made := rows[0]
	var count int
	_, _ = fmt.Sscanf(l.shard[strings.Index(l.shard, "/")+1:], "%d", &count)
	for i := range count {
		made.Part, made.Epoch = fmt.Sprintf("%d/%d", i, count), l.epoch()
		l.runs = append(l.runs, made)
	}
}

func (l *memoryLoader) Settle(_ context.Context, state loader.RunState, keys loader.KeyRange) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.row.Epoch == "" {
		return nil
	}
	epoch := l.epoch()
	return l.change(func(r *loader.RunRow) { r.State, r.Keys, r.Epoch, r.Changed = state, keys, epoch, time.Now() })
}

func (l *memoryLoader) Owned(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mayWrite(*l.row)
}

func (l *memoryLoader) Forget(_ context.Context, name string) (int64, bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	before, known := len(l.claims), false
	for i := range l.runs {
		if r := &l.runs[i]; r.Name == name {
			known = true
			r.State, r.Epoch, r.Owner, r.Changed = loader.RunForgotten, l.epoch(), l.owner, time.Now()
			maps.DeleteFunc(l.claims, func(id batch.ID, _ loader.Ref) bool { return id.Run == r.Run })
		}
	}
	return int64(before - len(l.claims)), known, nil
}

func (l *memoryLoader) GiveBack(context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.runs = slices.DeleteFunc(l.runs, func(r loader.RunRow) bool { return r.Run == l.row.Run && r.Epoch == l.row.Epoch })
	*l.row = loader.RunRow{}
	return nil
}
