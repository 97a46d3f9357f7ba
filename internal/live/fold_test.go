package live_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/live"
)

// lockedBuffer is written by timers.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(text []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(text)
}

func (b *lockedBuffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

func TestFold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lockedBuffer
		lines := func() string { return strings.ReplaceAll(out.take(), "level=", "") }
		noTime := func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}
		folding := live.Fold(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: noTime}))
		log := slog.New(folding).With("run", 1)

		for batch := range 4 {
			log.Warn("retry", "batch", batch)
		}
		log.Warn("other")
		log.Error("given up", "batch", 1)
		log.Error("given up", "batch", 2)
		require.Equal(t, "WARN msg=retry run=1 batch=0\nWARN msg=other run=1\n"+
			"ERROR msg=\"given up\" run=1 batch=1\nERROR msg=\"given up\" run=1 batch=2\n", lines())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "WARN msg=retry run=1 batch=3 times=3\n", lines())
		log.Warn("retry", "batch", 4)
		require.Empty(t, lines())
		time.Sleep(time.Second)
		synctest.Wait()
		require.Equal(t, "WARN msg=retry run=1 batch=4\n", lines())

		time.Sleep(time.Second) // without one
		synctest.Wait()
		log.Warn("retry", "batch", 5)
		require.Equal(t, "WARN msg=retry run=1 batch=5\n", lines())
		log.Warn("retry", "batch", 6)
		folding.Close()
		require.Equal(t, "WARN msg=retry run=1 batch=6\n", lines())
	})
}
