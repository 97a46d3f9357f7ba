package objstore

import (
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Some servers write out what they have of a broken PUT when they notice, perhaps behind the PUT that repeats it.
func TestObjectsPutAgainAreMeasured(t *testing.T) {
	// What happens between the store's answer to a PUT and the look at the object.
	var between func()
	listings := 0
	server := fakeStore(t, func(_ http.ResponseWriter, r *http.Request) bool {
		if isListing(r) {
			listings++
			if do := between; do != nil {
				between = nil
				do()
			}
		}
		return false
	})
	s := open(t, targetOf(t, "s3://bucket/p", server.URL))
	run := s.Run("run")
	name := run.Name(7, batch.CSV)
	putForeign(t, s, name+".bak")
	again := func(attempt int) error {
		b := newBatch("run", 7, "0123456789")
		b.Attempt = attempt
		return put(t.Context(), t, run, b)
	}

	listings = 0
	require.NoError(t, again(1))
	assert.Zero(t, listings, "a first attempt has nothing behind it")
	require.NoError(t, again(2))
	assert.Equal(t, 1, listings)

	between = func() { putText(t, s, name, "01234") }
	err := again(2)
	assert.EqualError(t, err, "measure "+name+": 10 bytes were put, and the object has 5")
	retry := loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassConnection}
	v, ok := classify(err)
	assert.True(t, ok)
	assert.Equal(t, retry, v)

	between = func() { assert.NoError(t, run.Delete(t.Context(), refs(7), batch.CSV)) }
	err = again(3)
	assert.EqualError(t, err, "measure "+name+": 10 bytes were put, and no object is there")
	v, _ = classify(err)
	assert.Equal(t, retry, v)

	require.NoError(t, again(4))
	assert.Equal(t, "0123456789", textOf(t, s, name))
}

// An object that cannot be measured may well be there.
func TestMeasuringFails(t *testing.T) {
	var closed atomic.Bool
	server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
		if closed.Load() && isListing(r) {
			refuse(w, r, http.StatusServiceUnavailable, "SlowDown", "words of the server")
			return true
		}
		return false
	})
	run := open(t, targetOf(t, "s3://bucket/p", server.URL)).Run("run")
	closed.Store(true)
	b := newBatch("run", 7, "0123456789")
	b.Attempt = 2
	err := put(t.Context(), t, run, b)
	require.ErrorContains(t, err, "measure p/run/000000000007.csv: SlowDown: words of the server")
	v, _ := classify(err)
	assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassThrottled}, v)
}
