package cli

import (
	"context"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
)

// watcher shows a run while it goes: progress on stderr, metrics on --metrics-addr.
type watcher struct {
	config   config.Push
	terminal *live.Terminal
	server   *live.Server // nil without --metrics-addr
	passing  bool         // a bar goes without a trace, since somebody else tells how the run ended
}

// newWatcher takes the metrics' address before anything of the run happens.
func newWatcher(ctx context.Context, c config.Push, t *live.Terminal) (*watcher, error) {
	w := &watcher{config: c, terminal: t}
	var err error
	if c.MetricsAddr != "" {
		w.server, err = live.Listen(ctx, c.MetricsAddr)
	}
	return w, err
}

func (w *watcher) watch(run push.Watched) (done func(), err error) {
	if w.server != nil {
		v := buildVersion()
		info := live.Info{
			Version: v.Version, Commit: v.Commit, Run: run.Run, Backend: run.Backend,
			Method: run.Plan.Method, Format: string(run.Plan.Format), Delivery: string(run.Plan.Delivery),
		}
		if err := w.server.Serve(live.NewMetrics(info, run.Snapshot)); err != nil {
			return nil, err
		}
	}
	p := live.StartProgress(live.ProgressOptions{
		Mode: live.Mode(w.config.Progress), Terminal: w.terminal, Snapshot: run.Snapshot, Transient: w.passing,
	})
	return p.Stop, nil
}

// linger keeps the metrics up after the end of the run; a signal ends it.
func (w *watcher) linger(s stop) {
	if w.server == nil || w.config.MetricsLinger == 0 {
		return
	}
	ctx, cancel := s.soft()
	defer cancel()
	w.server.Linger(ctx, w.config.MetricsLinger)
}

func (w *watcher) close() {
	if w.server != nil {
		_ = w.server.Close() // the run is over; a scrape cut off now has missed nothing
	}
}
