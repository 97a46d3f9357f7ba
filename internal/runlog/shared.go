package runlog

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/event"
)

// Shared is what the processes of a named run keep in a bucket, if the database does not know which batches are in:
//
//	_journals/<name>/run            a number that stands for the run's plan, and the run's id
//	_journals/<name>/preparing      a process that removes the table's rows first
//	_journals/<name>/<id>/shards    the number of the run's shards
//	_journals/<name>/<id>/<shard>/  the journal of a shard, in pieces
//
// A run exists as long as its announcement, the file run: whoever makes a piece looks for it before the piece counts.
//
// The id is the name and some random letters. Servers remember labels for days: a run that has the name of a forgotten
// one must not find its batches applied. No run's name begins with an underscore, so that no objects of a run are in
// the way.
type Shared struct {
	Files Files
	Name  string // of the run, as the user gave it
	ID    string // "" until Announce has returned a number above 0

	own string // what Prepare writes, to know its file again
}

func (s *Shared) folder() string { return "_journals/" + s.Name + "/" }

func (s *Shared) journal(shard config.Shard) pieces {
	return pieces{files: s.Files, folder: s.folder() + s.ID + "/" + FolderOf("shard", shard) + "/"}
}

const (
	announced = "run"
	preparing = "preparing"
)

// announcement is the content of the file run.
type announcement struct {
	Plan int64  `json:"plan"`
	Run  string `json:"run"`
}

// Announce keeps a number above 0 for the run's plan unless there is one, and returns the one that is kept. Given 0 it
// keeps none, and returns 0 if there is none.
func (s *Shared) Announce(number int64) (kept int64, err error) {
	var wanted, found announcement
	if number > 0 {
		wanted = announcement{Plan: number, Run: s.Name + "-" + strings.ToLower(rand.Text()[:6])}
	}
	if err = s.keep(announced, wanted, number > 0, &found); err == nil {
		s.ID = found.Run
	}
	return found.Plan, err
}

// Shards keeps the number of the shards of a run that is announced, as Announce does its plan.
func (s *Shared) Shards(number int64) (kept int64, err error) {
	err = s.keep(s.ID+"/shards", number, number > 0, &kept)
	return kept, err
}

// keep makes a file with a value, if it is given, unless there is such a file, and reads into found what is kept.
func (s *Shared) keep(name string, value any, given bool, found any) error {
	name = s.folder() + name
	if given {
		text, err := json.Marshal(value)
		if err != nil {
			return err
		}
		if err := create(s.Files, name, text); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}

	text, err := read(s.Files, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(text, found)
}

// ErrPreparing reports that another process began to remove the table's rows for the run.
var ErrPreparing = errors.New("another process empties or drops the table for the run; if it died, forget the run")

// Prepare keeps other processes from removing rows for the run, until Remove or GiveUp. It may be called again.
func (s *Shared) Prepare() error {
	if s.own == "" {
		s.own = rand.Text()
	}
	err := create(s.Files, s.folder()+preparing, []byte(s.own))
	if errors.Is(err, fs.ErrExist) {
		return ErrPreparing
	}
	return err
}

// GiveUp takes Prepare back, of a process that has removed nothing.
func (s *Shared) GiveUp() error { return s.Files.Remove(s.folder() + preparing) }

// Open begins a shard with a record, or takes it over from another process, which cannot write to its journal from now
// on. Then the journal is replayed through f.
func (s *Shared) Open(shard config.Shard, begin Record, f func(event.Event)) (l *Log, begun bool, err error) {
	l = &Log{pieces: s.journal(shard), exists: s.exists}
	if begun, err = l.take(&begin); err != nil {
		return nil, false, err
	}
	if err := s.checkConditional(l); err != nil {
		return nil, false, err
	}
	if err := l.pieces.replay(l.number, f); err != nil {
		return nil, false, err
	}
	return l.start(), begun, nil
}

// checkConditional returns an error if files can be made twice, as in stores that do not know If-None-Match.
func (s *Shared) checkConditional(l *Log) error {
	err := create(s.Files, l.name(l.number), []byte("terapush: this store replaces objects that it was told to keep\n"))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := s.exists(); err != nil { // the piece was gone with the run
		return err
	}
	return errors.New("the store replaces an object although it is told not to (If-None-Match): " +
		"two processes of a shard could not be kept apart; choose another store for --state-dir")
}

// exists returns ErrTakenOver if the run was forgotten since this process has found it.
func (s *Shared) exists() error {
	now := Shared{Files: s.Files, Name: s.Name}
	if _, err := now.Announce(0); err != nil {
		return err
	}
	if now.ID != s.ID {
		return takenOver(s.Name)
	}
	return nil
}

// Replay calls f with the events of a shard, and returns its newest record; nil if no process has begun it.
func (s *Shared) Replay(shard config.Shard, f func(event.Event)) (*Record, error) {
	journal := s.journal(shard)
	newest, err := journal.newest()
	if err != nil {
		return nil, err
	}
	r, err := journal.record(newest)
	if err != nil || r == nil {
		return nil, err
	}
	return r, journal.replay(newest, f)
}

// All returns the run's shards, none if no process has begun.
func (s *Shared) All() ([]config.Shard, error) {
	count, err := s.Shards(0)
	all := make([]config.Shard, count)
	for i := range all {
		if count > 1 {
			all[i] = config.Shard{Index: int64(i), Count: count}
		}
	}
	return all, err
}

// Record returns the record of a shard that was begun, nil if none was.
func (s *Shared) Record() (*Record, error) {
	all, err := s.All()
	if err != nil {
		return nil, err
	}
	for _, shard := range all {
		journal := s.journal(shard)
		newest, err := journal.newest()
		if err != nil {
			return nil, err
		}
		if r, err := journal.record(newest); r != nil || err != nil {
			return r, err
		}
	}
	return nil, nil
}

// Remove removes all that is kept of the run, and what an earlier Remove that was killed has left. What a process makes
// that comes late stays, and does not count.
func (s *Shared) Remove() error {
	// Another run of this name may be announced meanwhile, whose files are not among these: they have its id.
	names, err := s.Files.Names(s.folder())
	if err != nil {
		return err
	}
	if err := s.exists(); err != nil {
		return err
	}
	if err := s.Files.Remove(s.folder()+preparing, s.folder()+announced); err != nil {
		return err
	}
	return s.Files.Remove(slices.DeleteFunc(names, func(name string) bool {
		return name == s.folder()+preparing || name == s.folder()+announced
	})...)
}
