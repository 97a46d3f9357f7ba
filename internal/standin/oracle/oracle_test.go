package oracle_test

import (
	"context"
	"database/sql"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/standin/oracle"
)

const (
	table = "CREATE TABLE PAIRS (K NUMBER(19) NOT NULL, R NUMBER(19), S NUMBER(19), PRIMARY KEY (K))"
	into  = "INSERT INTO PAIRS (K, R, S) VALUES (:1, :2, :3)"
)

func start(t *testing.T, o oracle.Options) (*oracle.Server, func() *sql.Conn) {
	t.Helper()
	s, err := oracle.Start(o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	require.NoError(t, s.Run(table))
	pool := sql.OpenDB(s.Connector(false, func(context.Context) (net.Conn, error) { return net.Dial("tcp", s.Address()) }))
	t.Cleanup(func() { _ = pool.Close() })
	return s, func() *sql.Conn {
		c, err := pool.Conn(t.Context())
		require.NoError(t, err)
		return c
	}
}

// What the tests of faults rely on: keys are waited for, and what a client leaves is rolled back, unless it logs off.
func TestTransactions(t *testing.T) {
	s, connect := start(t, oracle.Options{})
	first, second := connect(), connect()
	tx, err := first.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	insert := func(e interface {
		ExecContext(context.Context, string, ...any) (sql.Result, error)
	}, k any) error {
		_, err := e.ExecContext(t.Context(), into, k, k, k)
		return err
	}
	require.NoError(t, insert(tx, int64(1)))
	assert.Zero(t, s.Rows("PAIRS"))
	waited := make(chan error)
	go func() { waited <- insert(second, int64(1)) }()
	require.Eventually(t, func() bool { return len(s.Requests()) == 4 }, time.Minute, time.Millisecond)
	assert.ErrorContains(t, s.Run("TRUNCATE TABLE PAIRS"), "ORA-00054")
	require.NoError(t, tx.Commit())
	assert.ErrorContains(t, <-waited, "ORA-00001")
	assert.Equal(t, map[int64]int{1: 1}, s.Counts("PAIRS"))

	// The good rows of an array stay in the transaction, and a logoff commits them.
	tx, err = second.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	assert.ErrorContains(t, insert(tx, []int64{1, 2, 1, 3}), "ORA-24381")
	assert.Equal(t, 1, s.Rows("PAIRS"))
	require.NoError(t, second.Raw(func(c any) error { return c.(interface{ Close() error }).Close() }))
	require.Eventually(t, func() bool { return s.Rows("PAIRS") == 3 }, time.Minute, time.Millisecond)

	// A session that is cut does not.
	s.SetScript(oracle.At("INSERT", 1, oracle.Fault{CutAnswer: true}))
	tx, err = first.BeginTx(t.Context(), nil)
	require.NoError(t, err)
	require.Error(t, insert(tx, int64(9)))
	_ = tx.Rollback()
	_ = first.Close()
	require.Eventually(t, s.Quiet, time.Minute, time.Millisecond)
	assert.Equal(t, 3, s.Rows("PAIRS"))
}

func TestRefuses(t *testing.T) {
	s, connect := start(t, oracle.Options{})
	c := connect()
	for text, says := range map[string]string{
		table:                                    "ORA-00955",
		"DROP TABLE OTHER PURGE":                 "ORA-00942",
		"SELECT K + 1 FROM PAIRS WHERE R LIKE 7": "ORA-00900",
		"INSERT INTO PAIRS (K, R, X) VALUES (1, 2, 3)":    "ORA-00904",
		"INSERT INTO PAIRS (R, S) VALUES (1, 2)":          "ORA-01400",
		"INSERT INTO PAIRS (K, R, S) VALUES ('a', 1, 1)":  "ORA-00932",
		"INSERT INTO PAIRS (K, R, S) VALUES (:1, :2, :3)": "ORA-01008",
	} {
		_, err := c.ExecContext(t.Context(), text)
		assert.ErrorContains(t, err, says, text)
	}
	_, err := c.ExecContext(t.Context(), into, []int64{1}, []int64{1, 2}, []int64{1})
	assert.ErrorContains(t, err, "arrays of 1 and of 2 values")
	assert.Zero(t, s.Rows("PAIRS"))
}
