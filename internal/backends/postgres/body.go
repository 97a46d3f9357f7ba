package postgres

import (
	"io"
	"sync"

	"github.com/terapush/terapush/pkg/batch"
)

// guarded is a body that can be closed while somebody still reads it. pgconn's CopyFrom returns from a broken
// connection without waiting for its reading goroutine, which then may ask for one more piece of a buffer that already
// belongs to another batch.
type guarded struct {
	mu     sync.Mutex
	body   *batch.Body
	closed bool
}

func (g *guarded) Read(p []byte) (int, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return 0, io.ErrClosedPipe
	}
	return g.body.Read(p)
}

func (g *guarded) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.closed = true
		_ = g.body.Close()
	}
}
