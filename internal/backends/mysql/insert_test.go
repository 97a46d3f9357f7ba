package mysql

import (
	"bytes"
	"context"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// The conformance suite inserts out of the ring alone. Here are both ways, and where one ends; the server is another
// author's.
func TestInserts(t *testing.T) {
	const (
		head = "INSERT INTO t VALUES "
		full = 1<<24 - 1 - len("\x03"+head) // makes a packet that is followed by another one
	)
	for name, mode := range map[string]loader.TLSMode{"plain": loader.TLSOff, "TLS": loader.TLSRequire} {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewTLSServer(nil)
			defer web.Close()
			s := &fakeServer{tls: web.TLS}
			target := s.start(t, "mysql")
			target.TLS = mode
			all, err := endpoints(target, backendtest.Deps())
			require.NoError(t, err)
			conn, err := connector(all[0].loadingConfig(mySQL), setup{statements: []string{autocommit(true)}}, nil).Dial(t.Context())
			require.NoError(t, err)
			defer func() { _ = conn.Close() }()
			last := func() string { return s.statements()[len(s.statements())-1] }

			for _, size := range []int{1, full - 1, full, 1} {
				returned := 0
				b := &batch.Batch{Encoded: bytes.Repeat([]byte("rows"), size/4+1)[:size], Free: func() { returned++ }}
				b.Hold()
				_, err := conn.Insert(t.Context(), head, b)
				require.NoError(t, err, size)
				require.True(t, last() == head+string(b.Encoded), size)
				require.EqualValues(t, size, b.Sent())
				b.Release()
				require.Equal(t, 1, returned)
			}

			ended, cancel := context.WithCancel(t.Context())
			cancel()
			b := &batch.Batch{Encoded: []byte("rows")}
			b.Hold()
			_, err = conn.Insert(ended, head, b)
			require.ErrorIs(t, err, context.Canceled)
			_, err = conn.Exec(t.Context(), "ROLLBACK")
			require.NoError(t, err)
			require.Equal(t, "ROLLBACK", last(), "rows that were not sent do not follow another statement")
		})
	}
}
