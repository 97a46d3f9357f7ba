package cli

import (
	"context"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
)

// watcher shows a run's progress on stderr and its metrics on --metrics-addr.
type watcher struct {
	output   config.Output
	terminal *live.Terminal
	server   *live.Server // nil without --metrics-addr
	passing  bool         // the bar is removed at the end
}

// newWatcher listens on --metrics-addr, before the run begins.
func newWatcher(ctx context.Context, o config.Output, t *live.Terminal) (*watcher, error) {
	w := &watcher{output: o, terminal: t}
	var err error
	if o.MetricsAddr != "" {
		w.server, err = live.Listen(ctx, o.MetricsAddr)
	}
	return w, err
}

func (w *watcher) watch(run push.Watched) (done func(), err error) {
	if w.server != nil {
		v, shard := buildVersion(), run.Plan.Sends()
		info := live.Info{
			Version: v.Version, Commit: v.Commit, Run: run.Run, Shard: shard.String(), Backend: run.Backend,
			Method: run.Plan.Method, Format: string(run.Plan.Format), Delivery: string(run.Plan.Delivery),
		}
		if err := w.server.Serve(live.NewMetrics(info, run.Snapshot)); err != nil {
			return nil, err
		}
	}
	p := live.StartProgress(live.ProgressOptions{
		Mode: live.Mode(w.output.Progress), Terminal: w.terminal, Snapshot: run.Snapshot, Transient: w.passing,
	})
	return p.Stop, nil
}

// linger serves metrics after the end of the run; a signal ends it.
func (w *watcher) linger(s stop) {
	if w.server == nil || w.output.MetricsLinger == 0 {
		return
	}
	ctx, cancel := s.soft()
	defer cancel()
	w.server.Linger(ctx, w.output.MetricsLinger)
}

func (w *watcher) close() {
	if w.server != nil {
		_ = w.server.Close() // the run is over
	}
}
