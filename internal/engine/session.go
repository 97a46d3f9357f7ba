package engine

import (
	"context"

	"github.com/terapush/terapush/pkg/loader"
)

// sessionHolder keeps a worker's session. It belongs to the worker's goroutine.
type sessionHolder struct {
	open func(context.Context) (loader.Session, error)
	now  loader.Session
}

func (h *sessionHolder) get(ctx context.Context) (loader.Session, error) {
	if h.now == nil {
		s, err := h.open(ctx)
		if err != nil {
			return nil, err
		}
		h.now = s
	}
	return h.now, nil
}

// close ends the session. What Close says of a connection that is dead or done is of no use to anybody.
func (h *sessionHolder) close() {
	if h.now != nil {
		_ = h.now.Close()
		h.now = nil
	}
}
