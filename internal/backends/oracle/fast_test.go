package oracle

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Rows that the memory of Fast Ingest loses or doubles are found by the count, and nothing calls them in.
func TestFastIsCounted(t *testing.T) {
	const rows = 10
	for label, c := range map[string]struct {
		fault     fake.Fault
		noKey     bool
		wantRows  int64
		wantError bool
	}{
		"as it should be": {fake.Fault{}, true, 10, false},
		"lost":            {fake.Fault{Lose: 3}, true, 7, false},
		"doubled":         {fake.Fault{Twice: true}, true, 20, false},
		"miscounted":      {fake.Fault{Count: 9}, true, 10, true},
	} {
		t.Run(label, func(t *testing.T) {
			o := oneBatch(t, way{contract: contractOf(methodFast, rows)}, rows)
			o.SetScript(fake.At("MEMOPTIMIZE_WRITE", 1, c.fault))
			session, err := o.loader.Session(t.Context(), o.contract)
			require.NoError(t, err)
			_, err = load(t.Context(), session, o.batch)
			require.Equal(t, c.wantError, err != nil, "%v", err)
			if err != nil {
				assert.Equal(t, loader.Unknown, o.standIn.backend.Classify(err).Applied, "the memory knows no rollback")
			}
			require.NoError(t, session.Close())
			notes, err := o.loader.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: rows - 1}, rows)
			require.NoError(t, err)
			assert.Empty(t, notes)
			assert.Equal(t, c.wantRows, o.counted(t, rows))
		})
	}
}

func (o *one) counted(t *testing.T, rows int64) (n int64) {
	t.Helper()
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: rows - 1}, Size: rows}
	require.NoError(t, o.loader.(loader.Counter).Count(t.Context(), g, func(b loader.Bucket) error {
		n += b.Rows
		return nil
	}))
	return n
}

// A crash loses what was acknowledged and lies in memory: that is what fast's guarantee says, and the count.
func TestCrashLosesFastRows(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodFast, 10)}, 10)
	ack, err := o.attempt(t.Context(), t)
	require.NoError(t, err)
	assert.EqualValues(t, 10, ack.Rows)
	o.Crash()
	_, err = o.loader.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	assert.Zero(t, o.counted(t, 10))
}

// A hint that is not heeded is a conventional insert: it is committed like one, and said.
func TestFastThatIsNot(t *testing.T) {
	d := documents(t)
	c := contractOf(methodFast, 10)
	s := startStandIn(t, false, fake.Options{NoFastIngest: true})
	target := s.table(methodFast)
	l := s.open(t, target, d, c)
	session, err := l.Session(t.Context(), c)
	require.NoError(t, err)
	_, err = load(t.Context(), session, encoded(t, d, c.Format, batch.ID{Run: "r"}, 0, 10))
	require.NoError(t, err)
	require.NoError(t, session.Close())
	s.exact(t, target, 10)
	notes, err := l.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	assert.Contains(t, strings.Join(notes, " "), "conventionally")
	assert.Equal(t, 1, s.requests("WRITES_FLUSH"), "an earlier process may have left rows in memory")
}

// Without privileges there is less to report, and nothing fails.
func TestWithoutPrivileges(t *testing.T) {
	d := documents(t)
	c := contractOf(methodFast, 10)
	s := startStandIn(t, false, fake.Options{
		DrainRows: 10, Lacks: []string{"OPTIMIZER_IGNORE_HINTS"},
		Denied: map[string]int{"V$MYSTAT": 942, "V$STATNAME": 942, "V$PARAMETER": 942, "DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH": 6550},
	})
	target := s.table(methodFast)
	l := s.open(t, target, d, c)
	for n := range int64(2) {
		session, err := l.Session(t.Context(), c)
		require.NoError(t, err)
		_, err = load(t.Context(), session, encoded(t, d, c.Format, batch.ID{Run: "r", Number: n}, 10*n, 10))
		require.NoError(t, err)
		require.NoError(t, session.Close())
	}
	notes, err := l.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: 19}, 20)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "GRANT EXECUTE ON DBMS_MEMOPTIMIZE_ADMIN")
	s.exact(t, target, 20)
	cost, notes := l.(loader.Measurer).Measured(t.Context())
	assert.Empty(t, cost)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "GRANT SELECT ON V_$MYSTAT")
	asked := 0
	for _, st := range s.Log() {
		if st.Is("v$mystat") {
			asked++
		}
	}
	assert.Equal(t, 1, asked, "a refusal is asked for once")
}

func TestMeasured(t *testing.T) {
	o := oneBatch(t, way{contract: contractOf(methodArray, 10)}, 10)
	session, err := o.loader.Session(t.Context(), o.contract)
	require.NoError(t, err)
	_, err = load(t.Context(), session, o.batch)
	require.NoError(t, err)
	require.NoError(t, session.Close())
	cost, notes := o.loader.(loader.Measurer).Measured(t.Context())
	assert.Empty(t, notes)
	assert.EqualValues(t, 1, cost["commits"])
	assert.Greater(t, cost["redo_bytes"], 10*256.0)
	assert.Greater(t, cost["received_bytes"], 10*256.0)
	assert.Greater(t, cost["round_trips"], 2.0)
	assert.Contains(t, cost, "cpu_seconds")
}
