package sweep

import (
	"time"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/pkg/event"
)

// glance is how often a push is looked at before its rows move. Nobody looks while they do: looking takes time of the client.
const glance = 5 * time.Millisecond

// tellsOfLoad calls begun when rows begin to move, besides what another watch does, which may be nil.
func tellsOfLoad(other func(push.Watched) (func(), error), begun func(moving func() bool)) func(push.Watched) (func(), error) {
	return func(w push.Watched) (done func(), err error) {
		end := func() {}
		if other != nil {
			if end, err = other(w); err != nil {
				return nil, err
			}
		}
		over, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			awaitLoad(w.Snapshot, begun, over)
		}()
		return func() {
			close(over)
			<-ended
			end()
		}, nil
	}
}

func awaitLoad(look func() event.Snapshot, begun func(moving func() bool), over <-chan struct{}) {
	clock := time.NewTicker(glance)
	defer clock.Stop()
	for {
		select {
		case <-clock.C:
		case <-over:
			return
		}
		if s := look(); s.PhaseSeconds[event.Load]+s.PhaseSeconds[event.Stage] > 0 {
			begun(func() bool { return moving(look().Phase) })
			return
		}
	}
}

// moving tells whether the run is still sending or committing rows in the phase.
func moving(p event.Phase) bool { return p == event.Load || p == event.Stage || p == event.Commit }
