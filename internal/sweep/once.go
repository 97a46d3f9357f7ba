package sweep

import (
	"context"
	"log/slog"
	"sync"
)

// Once is a log for many pushes that say the same: every message is passed on once.
func Once(out *slog.Logger) *slog.Logger {
	return slog.New(onceHandler{out.Handler(), &said{texts: map[string]bool{}}})
}

type said struct {
	mu    sync.Mutex
	texts map[string]bool
}

func (s *said) before(text string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	was := s.texts[text]
	s.texts[text] = true
	return was
}

type onceHandler struct {
	slog.Handler
	said *said
}

// Handle implements slog.Handler.
func (h onceHandler) Handle(ctx context.Context, r slog.Record) error {
	if h.said.before(r.Message) {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}
