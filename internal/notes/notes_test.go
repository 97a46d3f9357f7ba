package notes_test

import (
	"bytes"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/notes"
)

// A long scan is logged when it begins and each minute, and not after its end.
func TestDuring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		n := notes.Notes{Log: slog.New(slog.NewTextHandler(&log, nil))}
		stop := n.During("scanning")
		time.Sleep(150 * time.Second)
		stop()
		synctest.Wait()
		time.Sleep(time.Hour)
		require.Equal(t, 3, bytes.Count(log.Bytes(), []byte("msg=scanning")))
		require.Contains(t, log.String(), "for=2m0s")
	})
}
