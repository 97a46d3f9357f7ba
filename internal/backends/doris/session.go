package doris

import (
	"context"

	"github.com/terapush/terapush/pkg/loader"
)

// Session opens one worker, on the next frontend.
func (l *opened) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := l.State()
	if err != nil {
		return nil, err
	}
	if err := l.alterTable(ctx); err != nil {
		return nil, err
	}
	text, labels := statements{s.Statements}, c.Dedup == loader.DedupKey
	if l.method.Name == methodInsert {
		return l.openInsert(ctx, text, labels)
	}
	return &streamSession{opened: l, text: text, labels: labels, first: l.hosts.Turn()}, nil
}
