package mysql

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strconv"
	"sync"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// staged is the loader of method pipeline: sessions put objects into the run's folder, and one pipeline of
// SingleStore loads them as they come. It runs in the background: it then outlives the connection that started it, and
// reports every file. To commit a group is to wait for its files.
//
// The server knows a pipeline's files by their names as long as the pipeline lives, and loads none of them twice. So a
// pipeline that failed is started again, it is made only over an empty folder, and it is dropped only over one: at any
// other time its list of files is what tells which objects are in the table.
type staged struct {
	inner
	*objstore.Staging

	mu      sync.Mutex // of whoever starts, stops or drops the pipeline
	started *pipe      // by this process; nil before
}

// inner is opened, deeper than Staging.
type inner struct{ *opened }

func openStaged(ctx context.Context, l *opened, d loader.Deps) (loader.Loader, error) {
	staging, err := objstore.OpenStaging(ctx, l, l.target, d)
	if err != nil {
		return nil, err
	}
	return &staged{inner: inner{l}, Staging: staging}, nil
}

// Session starts the pipeline before the first object is put. Only the first one does: a pipeline that Resolve has
// stopped must stand still until the next Commit.
func (p *staged) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	session, err := p.Staging.Session(ctx, c)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started == nil {
		_, err = p.start(ctx)
	}
	return session, err
}

// pipe is the run's pipeline, before it has credentials.
func (p *staged) pipe() (*pipe, error) {
	s, err := p.State()
	if err != nil {
		return nil, err
	}
	return &pipe{
		statements: p.statements(s), options: p.options, l: p.opened, name: pipelineName(s.Want.Run), into: p.name.table,
		folder: p.Store.Run(s.Want.Run).Folder(),
	}, nil
}

// start starts the pipeline: a new one, or the one that an attempt or an earlier process has left. mu is held.
func (p *staged) start(ctx context.Context) (*pipe, error) {
	pipe, err := p.pipe()
	if err != nil {
		return nil, err
	}
	if pipe.access, err = p.Store.Access(ctx); err != nil {
		return nil, err
	}
	state, err := pipe.state(ctx)
	switch {
	case err != nil:
		return nil, unknown("look for the pipeline", err)
	case state == absent:
		if err := p.create(ctx, pipe); err != nil {
			return nil, err
		}
	case state == running && p.started != nil && p.started.access == pipe.access:
		return p.started, nil
	default: // it stands still, or its credentials may expire
		if err := pipe.repair(ctx); err != nil {
			return nil, unknown("repair the pipeline", err)
		}
	}
	if err := pipe.exec(ctx, pipe.start()); err != nil {
		return nil, unknown("start the pipeline", err)
	}
	p.started = pipe
	return pipe, nil
}

// create makes the pipeline over an empty folder: a new one would load again what another has loaded.
func (p *staged) create(ctx context.Context, pipe *pipe) error {
	objects, err := p.objects(ctx)
	switch {
	case err != nil:
		return err
	case objects > 0:
		return &loader.Error{
			Op: "look for the pipeline", Applied: loader.Unknown,
			Err: loader.Final(fmt.Errorf("pipeline %s is gone, and only it knew which of the %d objects in %s are loaded",
				pipe.name, objects, pipe.folder)),
			Hint: "verify says which rows are there; start a new run",
		}
	}
	if err := pipe.exec(ctx, pipe.create()); err != nil { // nothing is loaded before the start, whatever becomes of this
		return &loader.Error{Op: "create the pipeline", Applied: loader.No, Err: err, Hint: hint(err)}
	}
	return nil
}

// objects counts what is in the run's folder.
func (p *staged) objects(ctx context.Context) (n int, err error) {
	s, err := p.State()
	if err != nil {
		return 0, err
	}
	err = p.Objects(ctx, s.Want.Run, func(string, int64, int64) error { n++; return nil })
	return n, err
}

// Commit waits until the pipeline has loaded the group's objects. The caller commits one group at a time: see Resolve.
func (p *staged) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	p.mu.Lock()
	pipe, err := p.start(ctx)
	p.mu.Unlock()
	if err != nil {
		return loader.Ack{}, err
	}
	members, err := p.members(g.Ref)
	if err != nil {
		return loader.Ack{}, err
	}
	files, err := pipe.wait(ctx, members)
	if err == nil {
		err = p.compare(ctx, g.ID.Run, files)
	}
	if err != nil {
		return loader.Ack{}, err
	}
	rows, err := pipe.count(ctx, g.Ref)
	switch s, _ := p.State(); {
	case err != nil:
		return loader.Ack{}, err
	case rows != g.Rows && s.Want.Contract.Dedup != loader.DedupNone:
		return loader.Ack{}, &loader.Error{Op: "load by pipeline", Err: &loader.RowsError{Sent: g.Rows, Acknowledged: rows},
			Hint: "every object was loaded: look for others who write these keys"}
	case rows > g.Rows: // at least once: rows from before were not counted
		return loader.Ack{Rows: g.Rows, Detail: []string{fmt.Sprintf("the group's key range holds %d rows", rows)}}, nil
	}
	return loader.Ack{Rows: rows}, nil
}

// members names the group's objects, without their folder: what PIPELINES_FILES shows before it differs between
// versions.
func (p *staged) members(group loader.Ref) (names []string, err error) {
	s, err := p.State()
	if err != nil {
		return nil, err
	}
	c := s.Want.Contract
	first := group.ID.Number * c.GroupBatches
	for n := first; (n-first)*c.BatchRows < group.Rows; n++ {
		names = append(names, path.Base(p.Store.Run(group.ID.Run).Name(n, batch.TSV)))
	}
	return names, nil
}

// compare compares the lengths of loaded files with those of the objects. A repeated PUT has the same bytes. But the
// pipeline may have seen what some servers keep of a PUT whose connection broke, and it looks at no name again.
func (p *staged) compare(ctx context.Context, run string, files map[string]file) error {
	var wrong []error
	err := p.Objects(ctx, run, func(name string, number, bytes int64) error {
		f, of := files[path.Base(name)]
		switch {
		case number < 0: // it was not put by this run, and the pipeline loads whatever it finds
			wrong = append(wrong, fmt.Errorf("%s is no object of the run", name))
		case of && f.bytes != strconv.FormatInt(bytes, 10):
			wrong = append(wrong, fmt.Errorf("%s had %s bytes when the pipeline found it, and has %d", name, f.bytes, bytes))
		}
		return nil
	})
	if err = errors.Join(append(wrong, err)...); err != nil {
		return unknown("compare the pipeline's files with the objects", err)
	}
	return nil
}

// Resolve stops the pipeline, so that nothing is loaded after its answer, looks at the group's files and counts its
// rows. A group of which files are missing is not applied: Commit starts the pipeline again, which loads those only.
// With two groups at a time it would stop the pipeline under the other one's Commit.
func (p *staged) Resolve(ctx context.Context, group loader.Ref) (loader.Resolution, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	pipe, err := p.pipe()
	if err != nil {
		return loader.Resolution{}, err
	}
	members, err := p.members(group)
	if err != nil {
		return loader.Resolution{}, err
	}
	state, err := pipe.state(ctx)
	if err == nil && state != absent {
		err = pipe.stop(ctx)
	}
	if err != nil {
		return loader.Resolution{}, unknown("stop the pipeline", err)
	}
	files, err := pipe.files(ctx, members)
	if err != nil {
		return loader.Resolution{}, unknown("look at the pipeline's files", err)
	}
	if loaded, _ := progress(files); state != absent && loaded < len(members) {
		return loader.Resolution{Applied: loader.No}, nil
	}
	rows, err := pipe.count(ctx, group)
	switch {
	case err != nil:
		return loader.Resolution{}, err
	case rows == 0 && state == absent:
		return loader.Resolution{Applied: loader.No}, nil
	case rows != group.Rows:
		return loader.Resolution{Reason: fmt.Sprintf("group %s: %d rows of its %d keys from %d on are there",
			group.ID, rows, group.Rows, group.First)}, nil
	}
	if err := p.compare(ctx, group.ID.Run, files); err != nil {
		return loader.Resolution{Reason: loader.Explain(err)}, nil
	}
	return loader.Resolution{Applied: loader.Yes}, nil
}

// Forget drops the run's pipeline, and the credentials with it.
func (p *staged) Forget(ctx context.Context, run string) (int64, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, err := p.control.ExecContext(ctx, dropPipeline(pipelineName(run))); err != nil {
		return 0, false, failed("drop pipeline "+pipelineName(run), err)
	}
	p.started = nil
	return p.opened.Forget(ctx, run)
}

// Close ends the pipeline that this process has started, and closes the connections to server and store.
func (p *staged) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.started != nil {
		p.end(p.started)
	}
	return p.Staging.Close()
}

// end drops the pipeline if the folder is empty. Otherwise a resume needs its list of files, and it is stopped: it
// would go on by itself, with credentials.
func (p *staged) end(pipe *pipe) {
	ctx, cancel := afterwards(context.Background())
	defer cancel()
	objects, err := p.objects(ctx)
	if err == nil && objects == 0 {
		err = pipe.exec(ctx, dropPipeline(pipe.name))
	} else {
		err = errors.Join(err, pipe.stop(ctx))
	}
	if err != nil {
		p.log.Warn("the pipeline may still be running, with its credentials: STOP PIPELINE "+quote(pipe.name), "error", err)
	}
}
