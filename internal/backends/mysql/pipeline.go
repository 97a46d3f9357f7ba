package mysql

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// pipelines is the loader of method pipeline: sessions put objects, and a pipeline of SingleStore's own loads those of
// one commit group. It is started in the background and looked at, rather than in the foreground: it then outlives the
// connection that started it, and tells file by file how far it is.
//
// The server knows a pipeline's files by their names for as long as the pipeline lives, and loads none of them twice.
// So a pipeline that failed half way is started again and goes on where it was, and is dropped only when the rows of
// its group have been counted. A group whose pipeline is not there either was never begun or is complete, and a count
// of its keys tells which.
type pipelines struct {
	*database
	store *objstore.Store
	known atomic.Bool // whether the contract wants groups recognised that are in already
}

func openPipelines(ctx context.Context, db *database, d loader.Deps) (loader.Loader, error) {
	store, err := objstore.Open(ctx, *db.target.Via, d)
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return &pipelines{database: db, store: store}, nil
}

// Prepare is the table's; claims there are none.
func (p *pipelines) Prepare(ctx context.Context, want loader.Preparation) (loader.Table, error) {
	p.known.Store(want.Contract.Dedup != loader.DedupNone)
	return p.database.Prepare(ctx, want)
}

// CheckServer adds what is to be said of the store.
func (p *pipelines) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := p.database.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := p.store.CheckServer(ctx, i, p.Server().Product)
	return append(all, found...), err
}

// Close closes the connections to the store, too.
func (p *pipelines) Close() error {
	_ = p.store.Close()
	return p.database.Close()
}

// Session puts every batch into the folder of its group: a pipeline takes a folder, and no list of names.
func (p *pipelines) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	if c.GroupBatches < 1 {
		return nil, fmt.Errorf("mysql: method %s wants commit groups, and the contract has none", pipeline)
	}
	return objstore.GroupSession(p.store, c.GroupBatches), nil
}

// Commit lets the group's pipeline load its objects, and waits.
func (p *pipelines) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	s, err := p.prepared()
	if err != nil {
		return loader.Ack{}, err
	}
	access, err := p.store.Access(ctx)
	if err != nil {
		return loader.Ack{}, err
	}
	objects := p.store.Run(g.ID.Run).Group(g.ID.Number)
	pipe := p.pipe(s, g.ID)
	pipe.folder, pipe.access = objects.Folder(), access
	begun, err := pipe.begin(ctx, g, p.known.Load())
	if err == nil && begun {
		err = pipe.wait(ctx, names(objects, g))
	}
	switch {
	case err != nil && ctx.Err() != nil:
		pipe.abandon(ctx)
		return loader.Ack{}, err
	case err != nil:
		return loader.Ack{}, err
	case !begun:
		return loader.Ack{Rows: g.Rows, AlreadyApplied: true}, nil
	}
	rows, err := pipe.count(ctx, g.Ref)
	switch {
	case err != nil:
		return loader.Ack{}, unknown("count the group's rows", err)
	case rows != g.Rows && p.known.Load():
		return loader.Ack{}, &loader.Error{Op: "load by pipeline", Err: &loader.RowsError{Sent: g.Rows, Acknowledged: rows},
			Hint: "every object was loaded: look for others who write these keys; then DROP PIPELINE " + quote(pipe.name)}
	}
	ack := loader.Ack{Rows: rows}
	if rows > g.Rows { // at least once, and nobody has looked what was there before
		ack = loader.Ack{Rows: g.Rows, Detail: []string{fmt.Sprintf("the group's key range holds %d rows", rows)}}
	}
	pipe.drop(ctx)
	return ack, nil
}

func (p *pipelines) pipe(s statements, group batch.ID) *pipe {
	return &pipe{statements: s, name: pipelineName(group), database: p.target.Database, control: p.control, log: p.log}
}

// Resolve ends the group's pipeline and counts its rows. A pipeline that has loaded some objects only is not applied:
// Commit goes on with what is missing.
func (p *pipelines) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	s, err := p.prepared()
	if err != nil {
		return loader.Resolution{}, err
	}
	pipe := p.pipe(s, ref.ID)
	state, err := pipe.state(ctx)
	if err != nil {
		return loader.Resolution{}, unknown("look for the pipeline", err)
	}
	if state != absent {
		if err := pipe.stop(ctx); err != nil {
			return loader.Resolution{}, unknown("stop the pipeline", err)
		}
	}
	rows, err := pipe.count(ctx, ref)
	switch {
	case err != nil:
		return loader.Resolution{}, unknown("count the group's rows", err)
	case rows == 0, rows < ref.Rows && state != absent:
		return loader.Resolution{Applied: loader.No}, nil
	case rows != ref.Rows:
		return loader.Resolution{Reason: foreign(ref, rows).Error()}, nil
	}
	if state != absent {
		pipe.drop(ctx)
	}
	return loader.Resolution{Applied: loader.Yes}, nil
}

// Forget drops the pipelines that the run has left: with them the server forgets the credentials that they hold.
func (p *pipelines) Forget(ctx context.Context, run string) (int64, error) {
	all, err := column[string](ctx, p.control, "SELECT pipeline_name FROM information_schema.pipelines WHERE database_name = ?", p.target.Database)
	if err != nil {
		return 0, failed("look for the run's pipelines", err)
	}
	for _, name := range all {
		if !ofRun(name, run) {
			continue
		}
		if _, err := p.control.ExecContext(ctx, "DROP PIPELINE IF EXISTS "+quote(name)); err != nil {
			return 0, failed("drop pipeline "+name, err)
		}
	}
	return p.database.Forget(ctx, run)
}

// Discard removes the group's objects.
func (p *pipelines) Discard(ctx context.Context, g loader.Group) error {
	return p.store.Run(g.ID.Run).Group(g.ID.Number).Delete(ctx, g.Members, batch.TSV)
}

// Objects lists what lies in the run's folder.
func (p *pipelines) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	return p.store.Run(run).GroupObjects(ctx, f)
}

func unknown(op string, err error) error {
	return &loader.Error{Op: op, Applied: loader.Unknown, Err: err, Hint: hint(err)}
}
