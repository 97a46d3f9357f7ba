package doris

import (
	"context"
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
	s, db, b, _, err := oneBatch(t, streamLoad, nil, firstOnly(fake.Load, fake.Fault{PublishTimeout: visible}))
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
	_, db, _, _, err := oneBatch(t, streamLoad, map[string]string{optGroupCommit: "async", optGroupInterval: "10"},
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
		_, db, _, _, err := oneBatch(t, streamLoad, map[string]string{optGroupCommit: options[0], optGroupInterval: options[1]}, nil)
		require.NoError(t, err)
		assert.Equal(t, want, db.patience(), options)
	}
}

// How long rows take until they can be read is measured, so nothing else is waited for. Only where an attempt has failed,
// here or in an earlier process, a second copy of its rows may be in the log still, for an hour here.
func TestFinishWaitsForSecondCopies(t *testing.T) {
	for name, change := range map[string]func(*opened){
		"nothing failed":     nil,
		"an attempt failed":  func(db *opened) { db.doubted.Store(true) },
		"an earlier process": func(db *opened) { resumes(t, db) },
	} {
		t.Run(name, func(t *testing.T) {
			s, db, _, _, err := oneBatch(t, insert, map[string]string{optGroupCommit: "async", optGroupInterval: "3600000"}, nil)
			require.NoError(t, err)
			assert.False(t, db.doubted.Load())
			s.Flush()
			ctx := t.Context()
			if change != nil {
				change(db)
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 10*time.Millisecond)
				defer cancel()
			}
			notes, err := db.Finish(ctx, loader.KeyRange{Last: 9}, 10)
			assert.Empty(t, notes)
			if change == nil {
				require.NoError(t, err)
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
			}
		})
	}
}

func resumes(t *testing.T, db *opened) {
	_, err := db.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: documents(t).Schema(), Create: loader.CreateNever, Resume: true})
	require.NoError(t, err)
}

// An attempt that failed is remembered, whatever it came to.
func TestFailedAttemptsAreRemembered(t *testing.T) {
	for _, method := range []string{streamLoad, insert} {
		_, db, _, _, err := oneBatch(t, method, map[string]string{optGroupCommit: "async", optGroupInterval: "10"},
			func(r fake.Request) fake.Fault {
				return fake.Fault{CutAnswer: r.Loads()}
			})
		require.Error(t, err)
		assert.True(t, db.doubted.Load(), method)
	}
}
