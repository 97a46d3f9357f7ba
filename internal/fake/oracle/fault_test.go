package oracle_test

import (
	"context"
	"database/sql/driver"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/oracle"
)

func TestScript(t *testing.T) {
	const insert = "INSERT INTO t (id) VALUES (1)"
	for name, c := range map[string]struct {
		at    string
		fault oracle.Fault
		rows  int  // committed afterwards
		lost  bool // the connection
	}{
		"statement fails":      {"INSERT", oracle.Fault{Fail: &oracle.Error{Code: 1653, Text: "full"}}, 0, false},
		"statement is dropped": {"INSERT", oracle.Fault{Drop: true}, 0, true},
		"its answer is lost":   {"INSERT", oracle.Fault{DropAfter: true}, 0, true},
		"commit fails":         {oracle.Commit, oracle.Fault{Fail: &oracle.Error{Code: 2091, Text: "transaction rolled back"}}, 0, false},
		"commit is dropped":    {oracle.Commit, oracle.Fault{Drop: true}, 0, true},
		"commit is lost":       {oracle.Commit, oracle.Fault{DropAfter: true}, 1, true},
		"commit says no":       {oracle.Commit, oracle.Fault{FailAfter: &oracle.Error{Code: 3113, Text: "end-of-file"}}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := start(t, oracle.Options{})
			k := connect(t, s)
			exec(t, k, "CREATE TABLE t (id NUMBER)")
			s.SetScript(oracle.At(c.at, 1, c.fault))
			tx, err := k.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.Exec(insert)
			if err == nil {
				err = tx.Commit()
			} else {
				_ = tx.Rollback()
			}
			require.Error(t, err)
			if c.lost {
				require.ErrorIs(t, err, driver.ErrBadConn)
			} else {
				said := (*oracle.Error)(nil)
				require.ErrorAs(t, err, &said)
				_ = tx.Rollback()
			}
			_ = k.Close()
			assert.Equal(t, c.rows, s.Rows("T"))
		})
	}
}

func TestMiscounts(t *testing.T) {
	for name, c := range map[string]struct {
		fault     oracle.Fault
		says      int64
		committed int
	}{
		"twice":   {oracle.Fault{Twice: true}, 3, 6},
		"lose":    {oracle.Fault{Lose: 2}, 3, 1},
		"counted": {oracle.Fault{Count: 5}, 5, 3},
	} {
		s := start(t, oracle.Options{Script: oracle.At("INSERT", 1, c.fault)})
		k := connect(t, s)
		exec(t, k, "CREATE TABLE t (id NUMBER)")
		assert.Equal(t, c.says, exec(t, k, "INSERT INTO t VALUES (:1)", []int64{1, 2, 3}), name)
		assert.Equal(t, c.committed, s.Rows("T"), name)
	}
}

// A client that says goodbye is done with its work: what it has not committed the server commits. One that is gone without
// a word has done nothing.
func TestGoodbyeCommits(t *testing.T) {
	for name, rows := range map[string]int{"goodbye": 1, "gone": 0} {
		s := start(t, oracle.Options{})
		exec(t, connect(t, s), "CREATE TABLE t (id NUMBER)")
		var line net.Conn
		c, err := s.Connector(func(ctx context.Context) (_ net.Conn, err error) {
			line, err = new(net.Dialer).DialContext(ctx, "tcp", s.Address())
			return line, err
		}).Connect(t.Context())
		require.NoError(t, err)
		_, err = c.(driver.ConnBeginTx).BeginTx(t.Context(), driver.TxOptions{})
		require.NoError(t, err)
		_, err = c.(driver.ExecerContext).ExecContext(t.Context(), "INSERT INTO t (id) VALUES (1)", nil)
		require.NoError(t, err)
		if name == "gone" {
			_ = line.Close()
		}
		_ = c.Close()
		require.Eventually(t, func() bool { return s.Open() == 0 }, 10*time.Second, time.Millisecond)
		assert.Equal(t, rows, s.Rows("T"), name)
	}
}

// A server that has not noticed that its client is gone keeps the transaction, and everybody waits.
func TestLinger(t *testing.T) {
	until := make(chan struct{})
	s := start(t, oracle.Options{})
	a, b := connect(t, s), connect(t, s)
	exec(t, a, "CREATE TABLE t (id NUMBER PRIMARY KEY)")
	s.SetScript(oracle.At("VALUES (1)", 1, oracle.Fault{DropAfter: true, Linger: until}))
	tx, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO t VALUES (1)")
	require.ErrorIs(t, err, driver.ErrBadConn)
	done := inBackground(b, "INSERT INTO t VALUES (1)")
	taken(t, s, "VALUES (1)", 2)
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	close(until)
	require.NoError(t, <-done)
}

// MAX_IDLE_BLOCKER_TIME ends a session that others wait for.
func TestIdleBlocker(t *testing.T) {
	s := start(t, oracle.Options{IdleBlocker: time.Millisecond})
	a, b := connect(t, s), connect(t, s)
	exec(t, a, "CREATE TABLE t (id NUMBER PRIMARY KEY)")
	tx, err := a.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	_, err = tx.Exec("INSERT INTO t VALUES (1)")
	require.NoError(t, err)
	exec(t, b, "INSERT INTO t VALUES (1)")
	_, err = tx.Exec("INSERT INTO t VALUES (2)")
	require.Error(t, err)
}

func TestHeldAndClosed(t *testing.T) {
	for _, cancels := range []bool{true, false} {
		s := start(t, oracle.Options{Cancels: cancels, Script: oracle.At("VALUES (1)", 1, oracle.Fault{Hold: make(chan struct{})})})
		k := connect(t, s)
		exec(t, k, "CREATE TABLE t (id NUMBER)")
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() {
			_, err := k.ExecContext(ctx, "INSERT INTO t VALUES (1)")
			done <- err
		}()
		taken(t, s, "VALUES (1)", 1)
		cancel()
		if !cancels {
			select {
			case err := <-done:
				t.Fatalf("contexts are none of its business: %v", err)
			default:
			}
			s.Close()
		}
		require.Error(t, <-done)
	}
}

func TestPanics(t *testing.T) {
	s := start(t, oracle.Options{Script: oracle.At("DUAL", 1, oracle.Fault{Panic: "index out of range"})})
	k := connect(t, s)
	require.PanicsWithValue(t, "index out of range", func() { _ = k.PingContext(t.Context()) })
}

func TestStatementsAreWrittenDown(t *testing.T) {
	s := start(t, oracle.Options{})
	k := connect(t, s)
	exec(t, k, "CREATE TABLE t (id NUMBER, name VARCHAR2(3))")
	ids, names := []int64{1, 2}, []string{"a", "b"}
	exec(t, k, "INSERT INTO t VALUES (:1, :2)", ids, names)
	ids[0], names[1] = 7, "z" // whoever reuses them changes nothing
	last := s.Log()[len(s.Log())-1]
	assert.Equal(t, "INSERT INTO t VALUES (:1, :2)", last.Text)
	assert.False(t, last.Explicit)
	require.Len(t, last.Binds, 2)
	assert.Equal(t, oracle.Numbers{1, 2}, last.Binds[0].Ints)
	assert.Equal(t, []string{"a", "b"}, last.Binds[1].Texts)
	assert.Equal(t, 2, last.Binds[1].Len())
	assert.Equal(t, "b", last.Binds[1].Value(1))
}
