package databend

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
)

// Errors of the storage end with a stack without names.
func TestErrorsWithoutTheServersStack(t *testing.T) {
	const stack = "\n\nBacktrace:\n   0: <unknown>\n   1: <unknown>"
	f := newFake(t)
	f.on("SELECT version()", say(failure(4000, "Unexpected at stat\n\nSource:\n   connection refused"+stack)))
	_, err := New().Open(t.Context(), f.target(stageLoad), testDeps())
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "server_endpoint")
	require.NotContains(t, err.Error(), "Backtrace")
	require.NotContains(t, err.Error(), "<unknown>")
}

func TestRefusalsOfProxiesAreShort(t *testing.T) {
	f := newFake(t)
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(make([]byte, 100<<10))
	}
	_, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.ErrorContains(t, err, "HTTP status 401")
	require.Less(t, len(err.Error()), 2*maxErrorText)
}
