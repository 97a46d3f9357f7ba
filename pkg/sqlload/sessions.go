package sqlload

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// EndTimeout is how long the sessions of one host may take to end: they roll back first, and may be in the middle of a
// disk write.
const EndTimeout = 30 * time.Second

// Pauses between two looks at sessions that have not ended.
const (
	endPause    = 5 * time.Millisecond
	endMaxPause = time.Second
)

// EndSessions ends the sessions that list names, and waits until it names none: a server shows one until its
// transaction has ended. end is called after every look, and takes a session that is gone for ended. nil: they end by
// themselves.
func EndSessions(
	ctx context.Context, list func(context.Context) ([]string, error), end func(ctx context.Context, id string) error,
) error {
	var left []string
	for range Poll(ctx, endPause, endMaxPause) {
		var err error
		left, err = list(ctx)
		if err != nil || len(left) == 0 {
			return err
		}
		if end == nil {
			continue
		}
		for _, id := range left {
			if err := end(ctx, id); err != nil {
				return err
			}
		}
	}
	return &loader.Error{
		Op: "end earlier sessions", Applied: loader.Unknown, // they may still commit
		Err:  fmt.Errorf("sessions %s do not end: %w", strings.Join(left, ", "), ctx.Err()),
		Hint: "end the process that has them, or the sessions as an administrator, and try again",
	}
}

// Uncommitted returns the sessions whose claims are not committed, where a claim names its session (InsertClaimBy): the
// last values of those rows that dirty sees, which reads what is not committed, and committed does not see. The session
// of a committed claim has gone on to other batches, or is another's by now.
func Uncommitted(ctx context.Context, dirty, committed Conn, query string) (sessions []string, err error) {
	seen, err := Rows(ctx, dirty, query) // first: what is committed meanwhile is among both
	if err != nil || len(seen) == 0 {
		return nil, err
	}
	done, err := Rows(ctx, committed, query)
	if err != nil {
		return nil, err
	}
	for _, row := range seen {
		if !slices.ContainsFunc(done, func(other []string) bool { return slices.Equal(row, other) }) {
			sessions = append(sessions, row[len(row)-1])
		}
	}
	return sessions, nil
}
