package cli

import (
	"context"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/live"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/sweep"
)

// trials makes pushes to be measured whose progress goes to this terminal.
func (a *app) trials(from sweep.Sources, state string, targets []string, process config.Push) *sweep.Trials {
	if process.Progress == string(live.Auto) && !a.terminal.Interactive() {
		process.Progress = string(live.None) // a log gets one line a push
	}
	return &sweep.Trials{
		Sources: from, State: state, Targets: targets, Process: process, Log: sweep.Once(a.log()),
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

// leave closes trials, and says what they could not forget.
func (a *app) leave(trials *sweep.Trials) {
	if err := trials.Close(); err != nil {
		a.log().Warn(err.Error())
	}
}
