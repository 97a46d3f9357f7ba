package doris_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
)

// waiting tells how many loads the backends were asked for.
func waitFor(t *testing.T, f func() bool) {
	t.Helper()
	require.Eventually(t, f, timeLimit, tick)
}

// Loads of a group share a label and a transaction, and sync_mode waits until it is over.
func TestSyncGroup(t *testing.T) {
	c, _ := start(t, doris.Options{})
	answers := make(chan answer, 2)
	var loads sync.WaitGroup
	for _, body := range []string{"1\ta\n", "2\tb\n"} {
		loads.Go(func() { answers <- mustPut(t, c, body, "group_commit:sync_mode") })
	}
	waitFor(t, func() bool { return c.Grouped("d.t") == 2 })
	assert.Zero(t, c.Rows("d.t"))
	select {
	case a := <-answers:
		t.Fatalf("answered before its interval was over: %+v", a)
	default:
	}
	c.Flush()
	loads.Wait()
	a, b := <-answers, <-answers
	assert.True(t, a.GroupCommit)
	assert.Regexp(t, "^group_commit_", a.Label)
	assert.Equal(t, "Success", a.Status)
	assert.Empty(t, a.TwoPhaseCommit)
	assert.Equal(t, []any{a.Label, a.TxnID}, []any{b.Label, b.TxnID})
	assert.Equal(t, map[string]int{"1": 1, "2": 1}, c.KeyCounts("d.t"))
}

// async_mode answers at once; the rows come with the interval's end, or are lost with the log.
func TestAsyncGroup(t *testing.T) {
	c, _ := start(t, doris.Options{})
	a := mustPut(t, c, "1\ta\n", "group_commit:async_mode")
	assert.True(t, a.GroupCommit)
	assert.Equal(t, int64(1), a.NumberLoadedRows)
	assert.Zero(t, c.Rows("d.t"))
	c.Flush()
	assert.Equal(t, int64(1), c.Rows("d.t"))
	mustPut(t, c, "2\ta\n3\tb\n", "group_commit:async_mode")
	assert.Equal(t, int64(2), c.LoseWAL())
	c.Flush()
	assert.Equal(t, int64(1), c.Rows("d.t"))

	c = scripted(t, doris.Load, doris.Fault{LoseWAL: true})
	assert.Equal(t, "Success", mustPut(t, c, "1\ta\n", "group_commit:async_mode").Status)
	c.Flush()
	assert.Zero(t, c.Rows("d.t"))
}

// The interval and the bytes are the table's.
func TestGroupEndsByItself(t *testing.T) {
	c, db := start(t, doris.Options{})
	for name, property := range map[string]string{"i": "'group_commit_interval_ms'='1'", "b": "'group_commit_data_bytes'='8'", "m": "'group_commit_mode'='async_mode','group_commit_interval_ms'='1'"} {
		exec1(t, db, "CREATE TABLE d."+name+" (id BIGINT, body STRING) DISTRIBUTED BY RANDOM PROPERTIES ('replication_num'='1',"+property+")")
	}
	a, err := put(t, c, "d/i", "1\ta\n", "group_commit:sync_mode")
	require.NoError(t, err)
	assert.Equal(t, "Success", a.Status)
	assert.Equal(t, int64(1), c.Rows("d.i"))

	_, err = put(t, c, "d/b", "1\ta\n", "group_commit:async_mode")
	require.NoError(t, err)
	assert.Zero(t, c.Rows("d.b"))
	_, err = put(t, c, "d/b", "2\ta\n", "group_commit:async_mode")
	require.NoError(t, err)
	assert.Equal(t, int64(2), c.Rows("d.b"))

	// group_commit_mode holds for loads without the header; the header wins.
	a, err = put(t, c, "d/m", "1\ta\n")
	require.NoError(t, err)
	assert.True(t, a.GroupCommit)
	a, err = put(t, c, "d/m", "1\ta\n", "group_commit:off_mode")
	require.NoError(t, err)
	assert.False(t, a.GroupCommit)
}

func TestSilentFallback(t *testing.T) {
	c := scripted(t, doris.Load, doris.Fault{NoGroup: true})
	a := mustPut(t, c, "1\ta\n", "group_commit:async_mode")
	assert.False(t, a.GroupCommit)
	assert.Equal(t, int64(1), c.Rows("d.t"))
}

// INSERT joins a group where the session says so, unless it has a label or computes something.
func TestInsertGroups(t *testing.T) {
	c, db := start(t, doris.Options{})
	exec1(t, db, "SET group_commit = async_mode")
	last := func() []string {
		_, rows := table(t, db, "SHOW LAST INSERT")
		return rows[0]
	}
	assert.Equal(t, int64(2), exec1(t, db, "INSERT INTO d.t VALUES (1,'a'),(2,'b')"))
	assert.Regexp(t, "^group_commit_", last()[1])
	assert.Equal(t, "PREPARE", last()[4])
	assert.Zero(t, c.Rows("d.t"))
	exec1(t, db, "INSERT INTO d.t WITH LABEL l VALUES (3,'c')")
	assert.Equal(t, []string{"l", "VISIBLE"}, []string{last()[1], last()[4]})
	exec1(t, db, "INSERT INTO d.t VALUES (1 + 3,'d')")
	assert.Regexp(t, "^label_", last()[1])
	assert.Equal(t, int64(2), c.Rows("d.t"))
	c.Flush()
	assert.Equal(t, map[string]int{"1": 1, "2": 1, "3": 1, "4": 1}, c.KeyCounts("d.t"))
}
