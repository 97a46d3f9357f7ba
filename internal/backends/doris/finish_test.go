package doris

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/fake/doris"
	"github.com/terapush/terapush/pkg/loader"
)

func TestPublishTimeout(t *testing.T) {
	visible := make(chan struct{})
	s, db, b, _, err := oneBatch(t, streamLoad, nil, firstOnly(fake.Load, fake.Fault{PublishTimeout: visible}))
	require.NoError(t, err)
	assert.Zero(t, s.Rows(db.name.String()))
	found, err := db.Resolve(t.Context(), loader.RefOf(b))
	require.NoError(t, err)
	assert.Equal(t, loader.Yes, found.Applied, "committed is in, to be seen or not")

	text, err := db.prepared()
	require.NoError(t, err)
	n, err := db.awaitRows(t.Context(), text, loader.KeyRange{Last: 9}, 10, 0)
	require.NoError(t, err)
	assert.Zero(t, n)
	close(visible)
	notes, err := db.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	assert.Empty(t, notes)
	assert.EqualValues(t, 10, s.Rows(db.name.String()))
}

// What an earlier process was told to wait for, this one was not: it looks.
func TestFinishOfAnotherProcess(t *testing.T) {
	visible := make(chan struct{})
	s, db, _, c, err := oneBatch(t, streamLoad, nil, firstOnly(fake.Load, fake.Fault{PublishTimeout: visible}))
	require.NoError(t, err)
	target := s.target
	target.Method, target.Table = streamLoad, db.name.table
	second := s.open(t, target, documents(t), c)
	second.most = time.Millisecond
	notes, err := second.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "10 of 10 acknowledged rows cannot be read")
	close(visible)
	second.most = time.Minute
	notes, err = second.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	assert.Empty(t, notes)
	assert.EqualValues(t, 10, s.Rows(db.name.String()))
}

// Rows that a write-ahead log has lost are named, and are no error: verification says which they are.
func TestFinishGivesUp(t *testing.T) {
	_, db, _, _, err := oneBatch(t, streamLoad, map[string]string{optGroupCommit: "async", optGroupInterval: "10"},
		func(fake.Request) fake.Fault { return fake.Fault{LoseWAL: true} })
	require.NoError(t, err)
	db.most = time.Millisecond
	notes, err := db.Finish(t.Context(), loader.KeyRange{Last: 9}, 10)
	require.NoError(t, err)
	require.Len(t, notes, 1)
	assert.Contains(t, notes[0], "10 of 10 acknowledged rows cannot be read")
	assert.Contains(t, notes[0], "write-ahead log")
}

func TestPatience(t *testing.T) {
	db := &database{options: options{group: groupOff}}
	assert.Equal(t, time.Minute, db.patience())
	db.options.group = groupAsync
	assert.Equal(t, time.Minute, db.patience())
	db.groupInterval.Store(60_000)
	assert.Equal(t, 6*time.Minute, db.patience())
}
