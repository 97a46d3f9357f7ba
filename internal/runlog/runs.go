package runlog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gofrs/flock"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/event"
)

// Summary is a run of a state folder as it is at the moment.
type Summary struct {
	Record
	Running bool  // a process of this machine works on it
	Rows    int64 // that are in the table
	Bytes   int64 // of column data in them, by the average row; of files theirs
}

// Runs lists the runs of a state folder, the newest first. The error names those that cannot be read, which are left
// out.
func Runs(stateDir string) (all []Summary, problems error) {
	records, problems := Records(stateDir)
	for _, r := range records {
		s, err := summary(stateDir, r)
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		all = append(all, s)
	}
	return all, problems
}

// Records lists the records of the runs, as Runs does. It reads no journal and takes no lock.
func Records(stateDir string) (all []Record, problems error) {
	names, problems := folders(stateDir)
	for _, name := range names {
		r, err := Read(stateDir, name)
		if err == nil && r.Plan.BatchRows < 1 && r.Plan.Files == nil {
			err = fmt.Errorf("reading run %s: its record has no batches", name)
		}
		if err != nil {
			problems = errors.Join(problems, err)
			continue
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b Record) int { return b.Started.Compare(a.Started) })
	return all, problems
}

// folders lists the folders of runs by name. A state folder that is missing has none.
func folders(stateDir string) (names []string, err error) {
	entries, err := os.ReadDir(stateDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if !e.IsDir() || !isFolder(e.Name()) {
			continue
		}
		newest, unread := pieces{files: Folder(filepath.Join(stateDir, e.Name()))}.newest()
		err = errors.Join(err, unread)
		if newest > 0 {
			names = append(names, e.Name())
		}
	}
	return names, err
}

// summary reads a run without taking it over or changing anything.
func summary(stateDir string, r Record) (Summary, error) {
	dir, run := filepath.Join(stateDir, r.Folder()), r.Folder()
	s := Summary{Record: r, Running: isLocked(dir)}
	if err := s.cut(Folder(dir)); err != nil {
		return s, fmt.Errorf("reading run %s: %w", run, err)
	}
	if s.Stage != Loading {
		s.Rows = s.Plan.ShardRows()
		s.Bytes = s.Rows * s.Plan.RowBytes
		if s.Plan.Files != nil {
			s.Bytes = s.Plan.Cut.All()
		}
		return s, nil
	}
	var done Done
	add := func(e event.Event) {
		for n := e.Batch; e.Done() && n < e.Batch+max(e.Members, 1); n++ {
			if done.Add(n) {
				rows := s.Plan.BatchSize(n)
				s.Rows += rows
				s.Bytes += rows * s.Plan.RowBytes
				if s.Plan.Files != nil {
					s.Bytes += s.Plan.Cut.Bytes(n)
				}
			}
		}
	}
	journal := pieces{files: Folder(dir)}
	newest, err := journal.newest()
	if err == nil {
		err = journal.replay(newest, add)
	}
	if err != nil && !errors.As(err, new(*DamagedError)) { // a resume may do without that part, or says that it cannot
		return s, fmt.Errorf("reading run %s: %w", run, err)
	}
	return s, nil
}

// cut reads which batches a load of files has cut.
func (s *Summary) cut(dir Folder) error {
	if s.Plan.Files == nil {
		return nil
	}
	kept, _, err := readRanges(dir)
	s.Plan.Cut = new(source.Cut)
	for _, r := range kept {
		s.Plan.Cut.Add(r.Records, r.To-r.From)
	}
	return err
}

// isLocked reports whether a process works on a run.
func isLocked(dir string) bool {
	l := flock.New(filepath.Join(dir, lockFile), flock.SetFlag(os.O_RDONLY))
	free, err := l.TryRLock()
	if free {
		_ = l.Unlock()
	}
	return err == nil && !free
}

// Find returns the run that a user names by its id, by the beginning of its id, or by config.LastRun, which is the
// newest one that fits. For a part of a run of several tables it returns that run, unless it is named in full. A name
// that a user gave a run stands for that run alone: "nightly" is neither nightly-2 nor the shard of nightly in
// nightly-0-of-3. What fits no run is returned as it is, for Read to refuse.
func Find(stateDir, name string, fits func(Record) bool) (string, error) {
	names, err := folders(stateDir)
	if err != nil {
		return "", fmt.Errorf("looking for run %s: %w", name, err)
	}
	if slices.Contains(names, name) || config.IsRunName(name) {
		return name, nil
	}
	if name == config.LastRun {
		all, err := Records(stateDir)
		if len(all) == 0 {
			return "", errors.Join(fmt.Errorf("%w in %s", ErrNoRun, stateDir), err)
		}
		i := slices.IndexFunc(all, fits)
		if i < 0 {
			return "", errors.Join(fmt.Errorf("%w of this target in %s; terapush runs lists those of all targets", ErrNoRun, stateDir), err)
		}
		return wholeOf(all[i].Run), nil
	}
	for i := range names {
		names[i] = wholeOf(names[i])
	}
	names = slices.Compact(names)
	found := slices.DeleteFunc(names, func(n string) bool { return !IsID(n) || !strings.HasPrefix(n, name) })
	switch len(found) {
	case 0:
		return name, nil
	case 1:
		return found[0], nil
	}
	return "", fmt.Errorf("%d runs begin with %q: %s", len(found), name, strings.Join(found, ", "))
}

// wholeOf returns the run of several tables that a run is a part of, or itself.
func wholeOf(run string) string {
	if parent, _, is := config.ParentOf(run); is {
		return parent
	}
	return run
}

// SaveTables replaces the tables of a run, of which those that have begun are the same.
func SaveTables(stateDir, run string, tables *dataset.Tables) error {
	l, err := Open(stateDir, config.ChildOf(run, 0), func(event.Event) {}, func(Record) bool { return true })
	if err != nil {
		return err
	}
	r := l.Record()
	r.Tables = tables
	return errors.Join(l.Save(r), l.Close())
}

// ReadTables returns the record of the first part of a run of several tables, which has them; nil of any other run.
func ReadTables(stateDir, run string) (*Record, error) {
	if !isFolder(run) {
		return nil, nil
	}
	r, err := Read(stateDir, config.ChildOf(run, 0))
	if errors.Is(err, ErrNoRun) {
		return nil, nil
	}
	if err == nil && r.Tables == nil {
		err = fmt.Errorf("the record of run %s has no tables", r.Run)
	}
	return &r, err
}
