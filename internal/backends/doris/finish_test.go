package doris

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/standin/doris"
	"github.com/terapush/terapush/pkg/loader"
)

// Rows that are committed and cannot be read yet are applied. Finish looks for them, whatever this process was told.
func TestPublishTimeout(t *testing.T) {
	visible := make(chan struct{})
	s, db, b, _, err := oneBatch(t, methodStreamLoad, nil, firstOnly(fake.Load, fake.Fault{PublishTimeout: visible}))
	require.NoError(t, err)
	assert.Zero(t, s.Rows(db.name.table))
	found, err := db.Resolve(t.Context(), loader.RefOf(b))
	require.NoError(t, err)
	assert.Equal(t, loader.Yes, found.Applied, "committed is in, to be seen or not")

	db.finishTime = time.Millisecond
	notes, err := db.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "10 of 10 acknowledged rows cannot be read")
	close(visible)
	db.finishTime = time.Minute
	notes, err = db.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	assert.Empty(t, notes)
	assert.EqualValues(t, 10, s.Rows(db.name.table))
}

// Rows that a write-ahead log has lost are named, and are no error: verification says which they are.
func TestFinishGivesUp(t *testing.T) {
	_, db, _, _, err := oneBatch(t, methodStreamLoad, map[string]string{optGroupCommit: "async", optGroupInterval: "10"},
		func(fake.Request) fake.Fault { return fake.Fault{LoseWAL: true} })
	require.NoError(t, err)
	db.finishTime = time.Millisecond
	notes, err := db.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "10 of 10 acknowledged rows cannot be read")
	assert.Contains(t, notes[0], "write-ahead log")
}

func TestPatience(t *testing.T) {
	for options, want := range map[[2]string]time.Duration{
		{"off", ""}: time.Minute, {"async", ""}: time.Minute, {"async", "60000"}: 6 * time.Minute,
	} {
		_, db, _, _, err := oneBatch(t, methodStreamLoad, map[string]string{optGroupCommit: options[0], optGroupInterval: options[1]}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, db.patience(), options)
	}
}

// What is left in the write-ahead log is counted, of an async run alone, and who may not ask is told.
func TestFilesOfTheLogAreCounted(t *testing.T) {
	for mode, want := range map[string]map[string]float64{"async": {"wal_files": 1}, "off": nil} {
		s, db, _, _, err := oneBatch(t, methodStreamLoad, map[string]string{optGroupCommit: mode, optGroupInterval: "3600000"}, nil)
		require.NoError(t, err)
		cost, notes := db.Measured(t.Context())
		assert.Equal(t, want, cost)
		assert.Empty(t, notes)
		if want == nil {
			continue
		}
		s.Flush()
		cost, _ = db.Measured(t.Context())
		assert.Equal(t, map[string]float64{"wal_files": 0}, cost)

		fe := listen(t, says(`{"msg":"Unauthorized","code":401,"data":"Access denied","count":0}`))
		db.hosts.List[0].http.Host = fe.address()
		cost, notes = db.Measured(t.Context())
		assert.Empty(t, cost)
		require.Len(t, notes, 1)
		assert.Contains(t, notes[0], "Access denied")
		assert.Contains(t, notes[0], "NODE_PRIV")
	}
}

// How long rows take until they can be read is measured, so nothing else is waited for. Only where an attempt has failed,
// here or in an earlier process, a second copy of its rows may still be in the log, for an hour here.
func TestFinishWaitsForSecondCopies(t *testing.T) {
	for _, method := range []string{methodStreamLoad, methodInsert} {
		for _, doubt := range []string{"nothing failed", "an attempt failed", "an earlier process"} {
			t.Run(method+", "+doubt, func(t *testing.T) {
				script := func(r fake.Request) fake.Fault {
					return fake.Fault{CutAnswer: r.Loads() && doubt == "an attempt failed"}
				}
				s, db, _, _, err := oneBatch(t, method, map[string]string{optGroupCommit: "async", optGroupInterval: "3600000"}, script)
				require.Equal(t, doubt == "an attempt failed", err != nil)
				if doubt == "an earlier process" {
					p := loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: loader.CreateNever, Resume: true}
					_, err = db.Prepare(t.Context(), p)
					require.NoError(t, err)
				}
				s.Flush()
				ctx, cancel := t.Context(), context.CancelFunc(func() {})
				if doubt != "nothing failed" {
					ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
				}
				defer cancel()
				_, err = db.Finish(ctx, loader.KeyRange{Last: 9}, 10)
				require.Equal(t, doubt != "nothing failed", errors.Is(err, context.DeadlineExceeded), "%v", err)
			})
		}
	}
}
