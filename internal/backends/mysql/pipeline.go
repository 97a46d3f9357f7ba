package mysql

import (
	"context"
	"fmt"
	"path"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// pipelines is the loader of method pipeline: sessions put objects, and SingleStore's pipelines load those of one
// commit group each. A pipeline runs in the background: it then outlives the connection that started it, and reports
// every file.
//
// The server knows a pipeline's files by their names as long as the pipeline lives, and loads none of them twice. So a
// pipeline that failed half way is started again, and is dropped only when the rows of its group have been counted. A
// group without a pipeline was never begun or is complete, and a count of its keys tells which.
type pipelines struct {
	*opened
	*objstore.Staging // a pipeline takes a folder, and no list of names
}

func openPipelines(ctx context.Context, l *opened, d loader.Deps) (loader.Loader, error) {
	store, err := objstore.Open(ctx, *l.target.Via, d)
	if err != nil {
		_ = l.Close()
		return nil, err
	}
	return &pipelines{opened: l, Staging: &objstore.Staging{Store: store, Folders: true, Format: l.Format}}, nil
}

// CheckServer checks the store, too.
func (p *pipelines) CheckServer(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	all, err := p.opened.CheckServer(ctx, i)
	if err != nil {
		return all, err
	}
	found, err := p.Store.CheckServer(ctx, i, p.Server().Product)
	return append(all, found...), err
}

// Close closes the connections to the store, too.
func (p *pipelines) Close() error {
	_ = p.Store.Close()
	return p.opened.Close()
}

// Commit has the group's pipeline load its objects, and waits.
func (p *pipelines) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	pipe, err := p.pipe(g.ID)
	if err != nil {
		return loader.Ack{}, err
	}
	if pipe.access, err = p.Store.Access(ctx); err != nil {
		return loader.Ack{}, err
	}
	objects := p.Place(g.ID)
	pipe.folder = objects.Folder()
	begun, err := pipe.begin(ctx, g.Ref)
	if err == nil && begun {
		members := make([]string, len(g.Members))
		for i, m := range g.Members {
			members[i] = path.Base(objects.Name(m.ID.Number, batch.TSV))
		}
		err = pipe.wait(ctx, members)
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
		return loader.Ack{}, err
	case rows != g.Rows && pipe.dedup:
		return loader.Ack{}, &loader.Error{Op: "load by pipeline", Err: &loader.RowsError{Sent: g.Rows, Acknowledged: rows},
			Hint: "every object was loaded: look for others who write these keys; then DROP PIPELINE " + quote(pipe.name)}
	}
	ack := loader.Ack{Rows: rows}
	if rows > g.Rows { // at least once: rows from before were not counted
		ack = loader.Ack{Rows: g.Rows, Detail: []string{fmt.Sprintf("the group's key range holds %d rows", rows)}}
	}
	pipe.drop(ctx)
	return ack, nil
}

func (p *pipelines) pipe(group batch.ID) (*pipe, error) {
	s, err := p.State()
	if err != nil {
		return nil, err
	}
	return &pipe{
		statements: p.statements(s), l: p.opened, name: pipelineName(group), into: p.name.table,
		dedup: s.Want.Contract.Dedup != loader.DedupNone,
	}, nil
}

// Resolve stops the group's pipeline and counts its rows. A pipeline that has loaded only some objects is not applied:
// Commit loads what is missing.
func (p *pipelines) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	pipe, err := p.pipe(ref.ID)
	if err != nil {
		return loader.Resolution{}, err
	}
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
		return loader.Resolution{}, err
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

// Forget drops the pipelines that the run has left, and the credentials with them.
func (p *pipelines) Forget(ctx context.Context, run string) (int64, error) {
	found, err := p.rows(ctx, "SELECT pipeline_name FROM information_schema.pipelines"+
		" WHERE database_name = "+literal(p.target.Database))
	if err != nil {
		return 0, failed("look for the run's pipelines", err)
	}
	for _, name := range firsts(found) {
		if !ofRun(name, run) {
			continue
		}
		if _, err := p.control.ExecContext(ctx, dropPipeline(name)); err != nil {
			return 0, failed("drop pipeline "+name, err)
		}
	}
	return p.opened.Forget(ctx, run)
}
