package sqlload_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// executor is the connection of a conn.
type executor struct {
	sqlload.Conn
	c *conn
}

func (e executor) Exec(_ context.Context, statement string) (int64, error) {
	return 1, e.c.step(strings.ToLower(strings.TrimSuffix(statement, " terapush_part")))
}

// What is committed is what each part has put in, and the claim says how much that is. A part that was not undone is
// never committed, whatever the caller makes of its error.
func TestSift(t *testing.T) {
	for name, c := range map[string]struct {
		fail  map[string]error
		takes func(rows int64) bool // of a part; nil: all
		err   bool
		rows  int64
		steps string
	}{
		"all": {rows: 10, steps: "claim begin savepoint rows release savepoint savepoint rows release savepoint commit"},
		"some": {
			takes: func(rows int64) bool { return rows == 4 }, rows: 4,
			steps: "claim begin savepoint rows release savepoint savepoint rows rollback to savepoint unclaim claim 4 commit",
		},
		"none": {
			takes: func(int64) bool { return false },
			steps: "claim begin savepoint rows rollback to savepoint rows rollback to savepoint unclaim claim 0 commit",
		},
		"not undone": {
			takes: func(int64) bool { return false }, fail: map[string]error{"rollback to savepoint": errBroken}, err: true,
			steps: "claim begin savepoint rows rollback to savepoint rollback",
		},
		"not claimed again": {
			takes: func(int64) bool { return false }, fail: map[string]error{"claim 0": errBroken}, err: true,
			steps: "claim begin savepoint rows rollback to savepoint rows rollback to savepoint unclaim claim 0 rollback",
		},
	} {
		t.Run(name, func(t *testing.T) {
			session := &conn{fail: c.fail}
			s := sqlload.Sifting{
				Session: session, Conn: executor{c: session}, Begin: "begin", Release: true,
				Put: func(_ context.Context, part *batch.Batch) (int64, []string, error) {
					_ = session.step("rows")
					if c.takes != nil && !c.takes(part.Rows) {
						return part.Rows - 1, nil, nil // as a LOAD DATA that left one out
					}
					return part.Rows, nil, nil
				},
				Judge: func(_ context.Context, _ *batch.Batch, err error) error { return err },
				Again: func(ref loader.Ref) (unclaim, claim string) {
					return "unclaim", map[int64]string{0: "claim 0", 4: "claim 4"}[ref.Rows]
				},
			}
			ack, err := s.Sift(t.Context(), &batch.Batch{Rows: 10}, func(put func(context.Context, *batch.Batch) error) (rows int64, err error) {
				for _, n := range []int64{4, 6} {
					err := put(t.Context(), &batch.Batch{Rows: n})
					counted := (*loader.RowsError)(nil)
					require.True(t, err == nil || errors.As(err, &counted) || errors.Is(err, errBroken))
					if err == nil {
						rows += n
					}
				}
				return rows, nil
			})
			require.Equal(t, c.err, err != nil, "%v", err)
			require.Equal(t, c.rows, ack.Rows)
			require.Equal(t, c.steps, strings.Join(session.steps, " "))
		})
	}
}
