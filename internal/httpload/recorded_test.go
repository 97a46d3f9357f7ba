package httpload_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
)

// A dry run must neither connect nor keep a batch's buffer, nor show a header that it was not told to.
func TestRecorded(t *testing.T) {
	var sent string
	c := httpload.Recorded(func(r *http.Request) httpload.Response {
		sent = httpload.WithHeaders(r.Method+" "+r.URL.Path, r, "label", "missing")
		return httpload.Response{Status: http.StatusTeapot, Header: http.Header{"Location": {"/there"}}, Body: []byte("text")}
	})
	freed := false
	b := &batch.Batch{Encoded: []byte("rows"), Free: func() { freed = true }}
	b.Hold()

	r, err := http.NewRequest(http.MethodPut, "http://nowhere.invalid/path?token=secret", nil)
	require.NoError(t, err)
	r.Header.Set("Label", "batch 1")
	r.SetBasicAuth("user", "secret")
	httpload.Attach(r, nil, b, nil)
	got, err := c.Do(r)
	require.NoError(t, err)
	b.Release()

	assert.True(t, freed)
	assert.Equal(t, "PUT /path\nlabel: batch 1", sent)
	assert.Equal(t, http.StatusTeapot, got.Status)
	assert.Equal(t, "/there", got.Header.Get("Location"))
	assert.Equal(t, "text", string(got.Body))
}
