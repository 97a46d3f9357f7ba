package cli

import (
	"context"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/trial"
)

// lab makes trials whose progress goes to this terminal.
func (a *app) lab(from trial.Sources, state string, targets []string, process config.Push) *trial.Lab {
	if process.Progress == string(live.Auto) && !a.terminal.Interactive() {
		process.Progress = string(live.None) // a log gets one line a push
	}
	return &trial.Lab{
		Sources: from, State: state, Targets: targets, Process: process, Log: trial.Once(a.log()),
		Watch: func(ctx context.Context, c config.Push) (func(push.Watched) (func(), error), func(), error) {
			w, err := newWatcher(ctx, c, a.terminal)
			if err != nil {
				return nil, nil, err
			}
			w.passing = true
			return w.watch, w.close, nil
		},
	}
}

// leave closes a lab, and says what it could not forget.
func (a *app) leave(lab *trial.Lab) {
	if err := lab.Close(); err != nil {
		a.log().Warn(err.Error())
	}
}
