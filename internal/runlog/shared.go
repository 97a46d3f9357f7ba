package runlog

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/event"
)

// Files keeps small files where every process of a run finds them, such as an object store.
type Files interface {
	// Create makes a file. If there is one of that name, it returns fs.ErrExist and changes nothing: of two processes that
	// make the same file one succeeds.
	Create(ctx context.Context, name string, content []byte) error
	// Read returns a file's content, fs.ErrNotExist if there is none.
	Read(ctx context.Context, name string) ([]byte, error)
	// Names calls each with the files in a folder, whose name ends with a slash, that sort behind after, in their order.
	Names(ctx context.Context, folder, after string, each func(name string) error) error
	// Remove removes a folder with its files.
	Remove(ctx context.Context, folder string) error
}

// Shared is what the processes of a named run keep in shared files, if the database does not know which batches are in:
//
//	_journals/<name>/run                        a number that stands for the run's plan, and the run's id
//	_journals/<name>/shards                     the number of its shards
//	_journals/<name>/preparing                  a process that removes the table's rows first
//	_journals/<name>/<id>/<shard>/000000000001  the journal of a shard, in pieces
//
// A piece is made once and never changed. So a process that makes the next piece knows that no other process has written
// to the journal. A process that takes a shard over makes the next piece too, and the one that had it fails when it
// comes to its own: it can announce no attempt any more. No clock is needed for that.
//
// The id is the name and some random letters. Servers remember labels for days: a run that has the name of a forgotten one
// must not find its batches applied. No run's name begins with an underscore, so that no objects of a run are in the way.
type Shared struct {
	Files Files
	Name  string // of the run, as the user gave it
	ID    string // "" until Announce has returned a number above 0
	// Ask calls f, and again while the files cannot be reached.
	Ask func(what string, f func(ctx context.Context) error) error
}

func (s *Shared) folder() string { return "_journals/" + s.Name + "/" }

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
	if err = s.keep("run", wanted, number > 0, &found); err == nil {
		s.ID = found.Run
	}
	return found.Plan, err
}

// Shards keeps the number of the run's shards, as Announce does its plan.
func (s *Shared) Shards(number int64) (kept int64, err error) {
	err = s.keep("shards", number, number > 0, &kept)
	return kept, err
}

// keep makes a file with a value, if it is given, unless there is such a file, and reads into found what is kept.
func (s *Shared) keep(name string, value any, given bool, found any) error {
	name = s.folder() + name
	if given {
		text, err := json.Marshal(value)
		if err == nil {
			err = s.create(name, text)
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	text, err := s.read(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, found)
	}
	return err
}

// ErrPreparing reports that another process began to remove the table's rows for the run.
var ErrPreparing = errors.New("another process empties or drops the table for the run; if it died, forget the run")

// Prepare keeps other processes from removing rows for the run, until Remove.
func (s *Shared) Prepare() error {
	err := s.create(s.folder()+"preparing", []byte(rand.Text()))
	if errors.Is(err, fs.ErrExist) {
		return ErrPreparing
	}
	return err
}

// create makes a file. One that is there with the same content is this process's own, whose answer was lost: a caller
// whose content two processes may have in common does not mind.
func (s *Shared) create(name string, content []byte) error {
	exists := error(nil)
	err := s.Ask(name, func(ctx context.Context) error {
		err := s.Files.Create(ctx, name, content)
		if errors.Is(err, fs.ErrExist) {
			exists, err = err, nil
		}
		return err
	})
	if err != nil || exists == nil {
		return err
	}
	if found, err := s.read(name); err != nil || bytes.Equal(found, content) {
		return err
	}
	return exists
}

func (s *Shared) read(name string) (content []byte, err error) {
	missing := error(nil)
	err = s.Ask(name, func(ctx context.Context) (err error) {
		if content, err = s.Files.Read(ctx, name); errors.Is(err, fs.ErrNotExist) {
			missing, err = err, nil
		}
		return err
	})
	return content, errors.Join(err, missing)
}

// Remove removes all that is kept of the run.
func (s *Shared) Remove() error {
	return s.Ask(s.folder(), func(ctx context.Context) error { return s.Files.Remove(ctx, s.folder()) })
}

// Journal is the shared journal of a shard, which belongs to this process.
type Journal struct {
	shared *Shared
	shard  config.Shard
	owner  string // tells pieces of two processes apart
	pieces int64  // that there are
}

// piece is the first line of a piece. The others are events.
type piece struct {
	Schema string  `json:"schema"`
	Owner  string  `json:"owner"`
	Record *Record `json:"record,omitempty"` // a newer one
}

const pieceSchema = "terapush.piece/v1"

// Take takes over the journal of a shard. Any other process of the shard cannot write to it from now on.
func (s *Shared) Take(shard config.Shard) (*Journal, error) {
	j := &Journal{shared: s, shard: shard, owner: rand.Text()}
	for {
		if err := j.count(); err != nil {
			return nil, err
		}
		err := j.add(nil, nil)
		if errors.Is(err, ErrTakenOver) { // the other process has just written
			j.pieces++
			continue
		}
		if err == nil {
			err = j.checkConditional()
		}
		return j, err
	}
}

// checkConditional returns an error if files can be made twice, as in stores that do not know If-None-Match.
func (j *Journal) checkConditional() error {
	err := j.shared.create(j.name(j.pieces), []byte("terapush: this store replaces objects that it was told to keep\n"))
	if err == nil {
		err = errors.New("the store replaces an object although it is told not to (If-None-Match): " +
			"two processes of a shard could not be kept apart; choose another store for --state-dir")
	}
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return err
}

func (j *Journal) folder() string {
	return j.shared.folder() + j.shared.ID + "/" + FolderOf("shard", j.shard) + "/"
}

func (j *Journal) name(number int64) string { return fmt.Sprintf("%s%012d", j.folder(), number) }

// count finds the newest piece.
func (j *Journal) count() error {
	return j.shared.Ask(j.folder(), func(ctx context.Context) error {
		return j.shared.Files.Names(ctx, j.folder(), j.name(j.pieces), func(name string) error {
			if next := j.name(j.pieces + 1); name != next {
				return fmt.Errorf("%s is missing: somebody removed a part of the run's journal", next)
			}
			j.pieces++
			return nil
		})
	})
}

// ErrTakenOver reports that a shard belongs to another process now.
var ErrTakenOver = errors.New("another process has taken over run")

// add makes the next piece. It returns ErrTakenOver if another process has made it.
func (j *Journal) add(r *Record, lines []byte) error {
	content, err := event.AppendLine(nil, piece{Schema: pieceSchema, Owner: j.owner, Record: r})
	if err == nil {
		err = j.shared.create(j.name(j.pieces+1), append(content, lines...))
	}
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w %s", ErrTakenOver, FolderOf(j.shared.Name, j.shard))
	}
	if err != nil {
		return fmt.Errorf("keeping the journal: %w", err)
	}
	j.pieces++
	return nil
}

// read returns the newest record, nil if there is none, and the lines of all events.
func (j *Journal) read() (r *Record, lines []byte, err error) {
	texts := make([][]byte, j.pieces)
	var all errgroup.Group
	all.SetLimit(32)
	for i := range texts {
		all.Go(func() (err error) {
			texts[i], err = j.shared.read(j.name(int64(i) + 1))
			return err
		})
	}
	if err := all.Wait(); err != nil {
		return nil, nil, err
	}
	for i, text := range texts {
		head, events, _ := bytes.Cut(text, []byte("\n"))
		var p piece
		if err := json.Unmarshal(head, &p); err != nil || p.Schema != pieceSchema {
			return nil, nil, fmt.Errorf("%s is no piece of a journal that this terapush can read: schema %q", j.name(int64(i)+1), p.Schema)
		}
		if p.Record != nil {
			r = p.Record
		}
		lines = append(lines, events...)
	}
	return r, lines, nil
}

// Restore writes the journal into a state folder, for Open. It reports whether an earlier process had begun the shard.
func (j *Journal) Restore(stateDir string) (bool, error) {
	r, lines, err := j.read()
	if err != nil || r == nil {
		return false, err
	}
	l, err := create(stateDir, *r, lines)
	if err != nil {
		return false, fmt.Errorf("restoring the run's state folder: %w", err)
	}
	return true, l.Close()
}

// Replay calls f with the events of a shard, and returns its newest record; nil if no process has begun it.
func (s *Shared) Replay(shard config.Shard, f func(event.Event)) (*Record, error) {
	j := &Journal{shared: s, shard: shard}
	if err := j.count(); err != nil {
		return nil, err
	}
	r, lines, err := j.read()
	if err != nil || r == nil {
		return nil, err
	}
	head, err := event.AppendLine(nil, event.NewHeader(r.Run))
	if err == nil {
		err = readEvents(bytes.NewReader(append(head, lines...)), r.Run, f)
	}
	return r, err
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
func (s *Shared) Record() (r *Record, err error) {
	all, err := s.All()
	for i := 0; err == nil && r == nil && i < len(all); i++ {
		r, err = s.Replay(all[i], func(event.Event) {})
	}
	return r, err
}

// ShareIn copies record and journal into j, from now on and before Sync returns. Earlier events are there.
func (l *Log) ShareIn(j *Journal) error {
	l.syncing.Lock()
	defer l.syncing.Unlock()
	l.mu.Lock()
	l.shared = j
	l.mu.Unlock()
	return j.add(&l.record, nil)
}
