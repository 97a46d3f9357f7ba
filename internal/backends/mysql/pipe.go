package mysql

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// begin makes the pipeline, or mends the one that an earlier attempt has left, and starts it. false: the group is in.
func (p *pipe) begin(ctx context.Context, g loader.Group, known bool) (bool, error) {
	state, err := p.state(ctx)
	if err != nil {
		return false, unknown("look for the pipeline", err)
	}
	if state == absent && known {
		in, err := p.complete(ctx, g.Ref)
		if err != nil || in {
			return false, err
		}
	}
	switch state {
	case running:
	case absent:
		// Nothing is loaded before the start, whatever becomes of this.
		if err := p.exec(ctx, p.create(p.folder, p.access)); err != nil {
			return false, &loader.Error{Op: "create the pipeline", Applied: loader.No, Err: err, Hint: hint(err)}
		}
	default:
		if err := p.mend(ctx); err != nil {
			return false, unknown("mend the pipeline", err)
		}
	}
	if err := p.exec(ctx, "START PIPELINE IF NOT RUNNING "+quote(p.name)); err != nil {
		return false, unknown("start the pipeline", err)
	}
	return true, nil
}

// mend prepares a pipeline that stands still for another start: with credentials that have not expired, and without
// the memory of the files that it has given up.
func (p *pipe) mend(ctx context.Context) error {
	if err := p.exec(ctx, p.renew(p.access)); err != nil {
		return err
	}
	files, err := p.files(ctx)
	if err != nil {
		return err
	}
	for name, state := range files {
		if state == fileSkipped {
			if err := p.exec(ctx, fmt.Sprintf("ALTER PIPELINE %s DROP FILE %s", quote(p.name), literal(name))); err != nil {
				return err
			}
		}
	}
	return nil
}

// names are the last parts of the members' names: what PIPELINES_FILES says before them differs between versions.
func names(objects *objstore.Run, g loader.Group) []string {
	all := make([]string, len(g.Members))
	for i, m := range g.Members {
		all[i] = path.Base(objects.Name(m.ID.Number, batch.TSV))
	}
	return all
}

// wait looks at the files until all members are loaded, or the pipeline stands still before they are.
func (p *pipe) wait(ctx context.Context, members []string) error {
	for pause, before := 5*time.Millisecond, -1; ; pause = min(2*pause, time.Second) {
		// The state is asked for first: a pipeline that stands still has no file to come.
		state, err := p.state(ctx)
		if err != nil {
			return unknown("look at the pipeline", err)
		}
		files, err := p.files(ctx)
		if err != nil {
			return unknown("look at the pipeline's files", err)
		}
		loaded, failed := 0, state != running
		for name, state := range files {
			failed = failed || state == fileSkipped
			if state == fileLoaded {
				loaded++
			}
			if !slices.Contains(members, path.Base(name)) {
				return unknown("look at the pipeline's files", fmt.Errorf("it has found %s, which is no object of the group", name))
			}
		}
		if loaded != before {
			p.log.Debug("pipeline", "name", p.name, "loaded", loaded, "objects", len(members))
			before = loaded
		}
		if loaded == len(members) {
			return nil
		}
		if failed {
			return p.failure(ctx, state, loaded, len(members))
		}
		select {
		case <-ctx.Done():
			return unknown("wait for the pipeline", fmt.Errorf("%w; %w", ctx.Err(), p.soFar(ctx, state, loaded, len(members))))
		case <-time.After(pause):
		}
	}
}

// soFar tells of a pipeline that is still at work when ctx has ended. A bucket that it cannot read shows only here: it
// finds no file, and goes on looking.
func (p *pipe) soFar(ctx context.Context, state string, loaded, members int) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	said, err := p.errors(ctx)
	if err != nil {
		said = []string{"its errors cannot be read: " + err.Error()}
	}
	return &pipelineError{p.name, strings.ToLower(state), loaded, members, said}
}

// abandon stops the pipeline although ctx has ended: it runs on the server by itself, with credentials, and nobody may
// come back to it.
func (p *pipe) abandon(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	state, err := p.state(ctx)
	if err == nil && state == running {
		err = p.stop(ctx)
	}
	if err != nil {
		p.log.Warn("the pipeline may still be running, with its credentials: STOP PIPELINE "+quote(p.name), "error", err)
	}
}

// failure stops the pipeline and tells why it did not come to its end, in the server's words.
func (p *pipe) failure(ctx context.Context, state string, loaded, members int) error {
	said, err := p.errors(ctx)
	if err != nil {
		said = []string{"its errors cannot be read: " + err.Error()}
	}
	if err := p.stop(ctx); err != nil {
		said = append(said, "it cannot be stopped: "+err.Error())
	}
	failed := &loader.Error{Op: "load by pipeline", Err: &pipelineError{p.name, strings.ToLower(state), loaded, members, said}}
	if loaded == 0 && state != running { // it stood still before its files were looked at
		failed.Applied = loader.No
	}
	return failed
}

// pipelineError says how far a pipeline came that did not come to its end.
type pipelineError struct {
	name            string
	state           string
	loaded, members int
	said            []string
}

func (e *pipelineError) Error() string {
	text := fmt.Sprintf("pipeline %s is %s with %d of %d objects loaded", e.name, e.state, e.loaded, e.members)
	if len(e.said) > 0 {
		text += ": " + strings.Join(e.said, "; ")
	}
	return text
}
