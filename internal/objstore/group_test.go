package objstore

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

func TestGroup(t *testing.T) {
	r := &Run{folder: "p/run-1/"}
	name := r.Group(7).Name(12, batch.CSV)
	assert.Equal(t, "p/run-1/g000000000007/000000000012.csv", name)
	group, number, ok := r.inGroup(name)
	assert.True(t, ok)
	assert.EqualValues(t, []int64{7, 12}, []int64{group, number})
	for _, name := range []string{
		"", "p/run-1/000000000012.csv", "p/run-1/g7/000000000012.csv", "p/run-1/g000000000007/12.csv", "p/run-1/g000000000007/",
		"p/run-10/g000000000007/000000000012.csv", "p/run-1/g-00000000001/000000000012.csv", "p/run-1/g000000000007/x/000000000012.csv",
	} {
		_, _, ok := r.inGroup(name)
		assert.False(t, ok, name)
	}
}

func TestGroupObjects(t *testing.T) {
	s := open(t, targetOf(t, "s3://bucket/p", fakeStore(t, nil).URL))
	r := s.Run("run")
	putAll(t, r.Group(0), "run", 3)
	putAll(t, r.Group(1), "run", 12)
	putAll(t, r.Group(probeGroup), "run", 0)
	putAll(t, r, "run", 5)
	staging := Staging{Store: s, Folders: true}
	found := map[string]int64{}
	require.NoError(t, staging.Objects(t.Context(), "run", func(name string, number, bytes int64) error {
		assert.EqualValues(t, len(textOf(t, s, name)), bytes)
		found[name] = number
		return nil
	}))
	assert.Equal(t, map[string]int64{
		"p/run/000000000005.csv": -1, "p/run/g000000000000/000000000003.csv": 3, "p/run/g000000000001/000000000012.csv": 12,
		"p/run/g999999999999/000000000000.csv": -1,
	}, found)
	stop := errors.New("enough")
	assert.ErrorIs(t, staging.Objects(t.Context(), "run", func(string, int64, int64) error { return stop }), stop)
}
