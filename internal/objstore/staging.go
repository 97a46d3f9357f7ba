package objstore

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Group is the folder of one commit group within the run's, <prefix>/<run>/g<group, 12 digits>/: for databases that
// load by a prefix and take no list of names.
func (r *Run) Group(number int64) *Run {
	return &Run{store: r.store, folder: fmt.Sprintf("%sg%0*d/", r.folder, digits, number), err: r.err}
}

// probeGroup is the group of a probe's objects. No run has as many groups.
const probeGroup = 999_999_999_999

// inGroup reads group and batch from a name within Group; ok is false for any other name.
func (r *Run) inGroup(name string) (group, batch int64, ok bool) {
	rest, inside := strings.CutPrefix(name, r.folder+"g")
	text, _, found := strings.Cut(rest, "/")
	group, err := strconv.ParseInt(text, 10, 64)
	if !inside || !found || err != nil || group < 0 {
		return -1, -1, false
	}
	batch = r.Group(group).number(name)
	return group, batch, batch >= 0
}

// Session puts batches into the run's folder, where the objects are the goal.
func Session(r *Run) loader.Session {
	return session{folder: func(*batch.Batch) *Run { return r }}
}

type session struct {
	folder func(*batch.Batch) *Run
	staged bool
}

func (s session) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if err := s.folder(b).Put(ctx, b); err != nil {
		return loader.Ack{}, err
	}
	return loader.Ack{Stored: s.staged, Rows: b.Rows}, nil
}

func (session) Close() error { return nil }

// Staging does all but Commit and Probe for a method that puts its batches into a store first. A back-end embeds it
// beside its loader of the database, and that one level deeper: of methods that both have, Staging's are then promoted.
type Staging struct {
	Store *Store
	// Folders gives every commit group a folder of its own: see Run.Group.
	Folders bool

	database Database
}

// Database is the loader of the database that reads the objects.
type Database interface {
	loader.Loader
	loader.Checker
	// Format is that of the run's contract.
	Format() (batch.Format, error)
}

// OpenStaging opens the store of a target. Staging closes the database with it, and so does an error.
func OpenStaging(ctx context.Context, database Database, t loader.Target, d loader.Deps) (*Staging, error) {
	store, err := Open(ctx, *t.Via, d)
	if err != nil {
		_ = database.Close()
		return nil, err
	}
	return &Staging{Store: store, database: database}, nil
}

// RecordStaging is OpenStaging with a store of Recorded.
func RecordStaging(database Database, t loader.Target, write func(request string)) *Staging {
	return &Staging{Store: Recorded(*t.Via, write), database: database}
}

// Close closes the connections to the database and to the store.
func (s *Staging) Close() error { return errors.Join(s.database.Close(), s.Store.Close()) }

// CheckServer adds the store's findings to the database's.
func (s *Staging) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := s.database.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := s.Store.CheckServer(ctx, i, s.database.Server().Product)
	return append(all, found...), err
}

// Session puts batches where Commit finds them.
func (s *Staging) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	if c.GroupBatches < 1 {
		return nil, fmt.Errorf("method %s needs commit groups, and the contract has none", c.Method)
	}
	return session{staged: true, folder: func(b *batch.Batch) *Run {
		return s.Place(batch.ID{Run: b.ID.Run, Number: b.ID.Number / c.GroupBatches})
	}}, nil
}

// Place is the folder of a group's objects.
func (s *Staging) Place(group batch.ID) *Run {
	run := s.Store.Run(group.Run)
	if s.Folders {
		return run.Group(group.Number)
	}
	return run
}

// Discard implements loader.Committer.
func (s *Staging) Discard(ctx context.Context, g loader.Group) error {
	f, err := s.database.Format()
	if err != nil {
		return err
	}
	return s.Place(g.ID).Delete(ctx, g.Members, f)
}

// Objects implements loader.Inventory. A probe's object is no batch.
func (s *Staging) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	r := s.Store.Run(run)
	return r.List(ctx, func(o Object) error {
		if s.Folders {
			group, number, ok := r.inGroup(o.Name)
			if o.Number = number; !ok || group == probeGroup {
				o.Number = -1
			}
		}
		return f(o.Name, o.Number, o.Bytes)
	})
}

// Try puts a probe's batch into probeGroup and calls f with that folder, so that the probe also shows whether the
// server can read the bucket. An object that cannot be removed is listed at the run's end.
func (s *Staging) Try(ctx context.Context, b *batch.Batch, f func(*Run) (loader.Proof, error)) (loader.Proof, error) {
	folder := s.Store.Run(b.ID.Run).Group(probeGroup)
	if err := folder.Put(ctx, b); err != nil {
		return loader.Proof{}, err
	}
	defer func() { _ = folder.Delete(context.WithoutCancel(ctx), []loader.Ref{loader.RefOf(b)}, b.Format) }()
	return f(folder)
}
