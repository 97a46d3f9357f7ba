package oracle_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/oracle"
)

// inBackground runs a statement that has to wait.
func inBackground(c *sql.Conn, text string, args ...any) <-chan error {
	done := make(chan error, 1)
	go func() {
		_, err := c.ExecContext(context.Background(), text, args...)
		done <- err
	}()
	return done
}

// taken lets the server take the statement; what it does meanwhile is none of the test's.
func taken(t *testing.T, s *oracle.Server, text string, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		seen := 0
		for _, st := range s.Log() {
			if st.Is(text) {
				seen++
			}
		}
		return seen >= n
	}, 10*time.Second, time.Millisecond)
}

func TestKeysAreWaitedFor(t *testing.T) {
	for end, code := range map[string]int{"COMMIT": 1, "ROLLBACK": 0} {
		s := start(t, oracle.Options{})
		a, b := connect(t, s), connect(t, s)
		exec(t, a, things)
		tx, err := a.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.Exec("INSERT INTO things (id) VALUES (1)")
		require.NoError(t, err)
		done := inBackground(b, "INSERT INTO things (id, name) VALUES (1, 'b')")
		taken(t, s, "'b'", 1)
		select {
		case err := <-done:
			t.Fatalf("it did not wait: %v", err)
		default:
		}
		if end == "COMMIT" {
			require.NoError(t, tx.Commit())
			refused(t, code, <-done)
		} else {
			require.NoError(t, tx.Rollback())
			require.NoError(t, <-done)
		}
		assert.Equal(t, 1, s.Rows("THINGS"))
	}
}

func TestDeadlock(t *testing.T) {
	s := start(t, oracle.Options{})
	a, b := connect(t, s), connect(t, s)
	exec(t, a, things)
	one, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	two, err := b.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = one.Exec("INSERT INTO things (id) VALUES (1)")
	require.NoError(t, err)
	_, err = two.Exec("INSERT INTO things (id) VALUES (2)")
	require.NoError(t, err)
	failed := make(chan error, 2)
	go func() {
		_, err := one.Exec("INSERT INTO things (id, name) VALUES (2, 'x')")
		failed <- err
		_ = one.Rollback()
	}()
	go func() {
		_, err := two.Exec("INSERT INTO things (id, name) VALUES (1, 'x')")
		failed <- err
		_ = two.Rollback()
	}()
	refused(t, 60, <-failed)
	require.NoError(t, <-failed, "the other one goes on")
}

func TestTableLocks(t *testing.T) {
	s := start(t, oracle.Options{})
	a, b := connect(t, s), connect(t, s)
	exec(t, a, things)
	tx, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO things (id) VALUES (1)")
	require.NoError(t, err)
	fails(t, b, 54, "LOCK TABLE things IN SHARE MODE NOWAIT")
	fails(t, b, 30006, "LOCK TABLE things IN EXCLUSIVE MODE WAIT 0")
	fails(t, b, 54, "DROP TABLE things PURGE")
	done := inBackground(b, "LOCK TABLE things IN SHARE MODE WAIT 90")
	taken(t, s, "WAIT 90", 1)
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)

	held, err := b.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = held.Exec("LOCK TABLE things IN SHARE MODE WAIT 1")
	require.NoError(t, err)
	done = inBackground(a, "INSERT INTO things (id) VALUES (2)")
	taken(t, s, "VALUES (2)", 1)
	assert.Equal(t, 1, s.Rows("THINGS"))
	require.NoError(t, held.Rollback())
	require.NoError(t, <-done)
}

func TestDirectPath(t *testing.T) {
	s := start(t, oracle.Options{})
	a, b := connect(t, s), connect(t, s)
	exec(t, a, "CREATE TABLE parts (id NUMBER(19)) PARTITION BY RANGE (id) (PARTITION low VALUES LESS THAN (10), PARTITION high VALUES LESS THAN (MAXVALUE))")
	tx, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT /*+ APPEND_VALUES */ INTO parts PARTITION (low) (id) VALUES (:1)", []int64{1, 2})
	require.NoError(t, err)
	_, err = tx.Exec("DELETE FROM parts")
	refused(t, 12838, err)
	_, err = tx.Query("SELECT id FROM parts")
	refused(t, 12838, err)
	exec(t, b, "INSERT INTO parts PARTITION (high) (id) VALUES (10)")
	fails(t, b, 14401, "INSERT INTO parts PARTITION (high) (id) VALUES (1)")
	done := inBackground(b, "INSERT INTO parts PARTITION (low) (id) VALUES (3)")
	taken(t, s, "VALUES (3)", 1)
	assert.Equal(t, 1, s.Rows("PARTS"))
	require.NoError(t, tx.Commit())
	require.NoError(t, <-done)
	assert.Equal(t, 4, s.Rows("PARTS"))

	goora := connect(t, start(t, oracle.Options{BatchErrors: true}))
	exec(t, goora, "CREATE TABLE t (id NUMBER)")
	fails(t, goora, 38910, "INSERT /*+ APPEND_VALUES */ INTO t VALUES (:1)", []int64{1, 2})
}
