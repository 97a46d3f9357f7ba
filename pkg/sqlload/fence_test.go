package sqlload_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// script is a server whose statements fail once, and whose queries have other rows each time.
type script struct {
	fails map[string]error
	rows  [][][]byte
	said  []string
}

func (s *script) Exec(_ context.Context, statement string) (int64, error) {
	s.said = append(s.said, statement)
	err := s.fails[statement]
	delete(s.fails, statement)
	return 0, err
}

func (s *script) Query(_ context.Context, _ string, each func([][]byte) error) error {
	for _, row := range s.rows {
		if err := each(row); err != nil {
			return err
		}
	}
	return nil
}

func (*script) Close() error { return nil }

// A lock that is late is taken again; whatever else fails, the tables are free afterwards.
func TestTableLock(t *testing.T) {
	late, broken := errors.New("lock wait timeout"), errors.New("broken")
	whole := []string{"LOCK 1s a", "change", "COMMIT", "UNLOCK"}
	for name, c := range map[string]struct {
		fails map[string]error
		want  []string
		err   error
	}{
		"at once":            {want: whole},
		"a late lock":        {map[string]error{"LOCK 1s a": late}, append([]string{"LOCK 1s a", "ROLLBACK", "UNLOCK"}, whole...), nil},
		"a deadlock":         {map[string]error{"change": late}, append([]string{"LOCK 1s a", "change", "ROLLBACK", "UNLOCK"}, whole...), nil},
		"no change":          {map[string]error{"change": broken}, []string{"LOCK 1s a", "change", "ROLLBACK", "UNLOCK"}, broken},
		"no answer":          {map[string]error{"COMMIT": broken}, []string{"LOCK 1s a", "change", "COMMIT", "ROLLBACK", "UNLOCK"}, broken},
		"it is not unlocked": {map[string]error{"UNLOCK": broken}, whole, broken},
	} {
		s := &script{fails: c.fails}
		lock := sqlload.TableLock{
			Lock: func(wait time.Duration, tables []string) []string {
				return []string{"LOCK " + wait.String() + " " + tables[0]}
			},
			Late:   func(err error) bool { return errors.Is(err, late) },
			Unlock: "UNLOCK",
		}
		err := lock.Fence(t.Context(), s, []string{"a"}, func(c sqlload.Conn) error {
			_, err := c.Exec(t.Context(), "change")
			return err
		})
		require.ErrorIs(t, err, c.err, name)
		require.Equal(t, c.want, s.said, name)
	}
}

// A fence waits for as long as it says that it has waited: a killed process's transaction may take the whole of it to
// be rolled back.
func TestFenceWaitsItsWholeTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, ended := time.Now(), 0
		err := sqlload.AwaitFence(t.Context(),
			func(wait time.Duration) (bool, error) { time.Sleep(wait); return false, nil },
			func() (string, error) { ended++; return "", nil })
		require.ErrorContains(t, err, "their transactions have held the claim table for 1m0s: by whom the server does not say")
		require.InDelta(t, time.Minute, time.Since(began), float64(time.Second))
		require.Equal(t, 2, ended, "once to end the run's own sessions, once to name those of others")
	})
}

// Sessions are ended until none is left, and those that do not end are named.
func TestEndSessions(t *testing.T) {
	open := []string{"7", "8"}
	list := func(context.Context) ([]string, error) { return slices.Clone(open), nil }
	require.NoError(t, sqlload.EndSessions(t.Context(), list, func(_ context.Context, id string) error {
		open = slices.DeleteFunc(open, func(one string) bool { return one == id })
		return nil
	}))

	open = []string{"9"}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	err := sqlload.EndSessions(ctx, list, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "sessions 9 do not end")
	var known *loader.Error
	require.ErrorAs(t, err, &known)
	require.Equal(t, loader.Unknown, known.Applied)
}

// The session of a committed claim has gone on to other batches.
func TestUncommitted(t *testing.T) {
	claim := func(batch, session string) [][]byte { return [][]byte{[]byte("r"), []byte(batch), []byte(session)} }
	committed := &script{rows: [][][]byte{claim("1", "5")}}
	dirty := &script{rows: [][][]byte{claim("1", "5"), claim("2", "6")}}
	sessions, err := sqlload.Uncommitted(t.Context(), dirty, committed, "claims")
	require.NoError(t, err)
	require.Equal(t, []string{"6"}, sessions)
}
