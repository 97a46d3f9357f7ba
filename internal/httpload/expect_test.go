package httpload_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/httpload"
)

// Where nobody answers "Expect: 100-continue" one request waits for it, whoever else is sending, and no later one. A
// server that answers is asked each time, also one that was late the first time, or refused the first request.
func TestExpect(t *testing.T) {
	const asks = "HTTP/1.1 100 Continue\r\n\r\n"
	body := func(r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }
	for name, c := range map[string]struct {
		wait   time.Duration
		answer func(c net.Conn, r *http.Request, number int64)
		asked  int // of 20 requests
		silent int64
	}{
		"no answer": {time.Millisecond, func(_ net.Conn, r *http.Request, _ int64) { body(r) }, 1, 1},
		"an answer": {patience, func(c net.Conn, r *http.Request, _ int64) {
			_, _ = io.WriteString(c, asks)
			body(r)
		}, 20, 0},
		"too late": {time.Millisecond, func(c net.Conn, r *http.Request, number int64) {
			if number == 1 {
				_, _ = r.Body.Read(make([]byte, 1)) // the client's wait is over
			}
			_, _ = io.WriteString(c, asks)
			body(r)
		}, 20, 1},
		"a refusal": {patience, func(c net.Conn, r *http.Request, number int64) {
			if number > 1 {
				_, _ = io.WriteString(c, asks)
				body(r)
			}
		}, 20, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var requests, silent atomic.Int64
			var mu sync.Mutex
			asked := 0
			s := serve(t, func(conn net.Conn, r *http.Request) bool {
				if r.Header.Get("Expect") != "" {
					mu.Lock()
					asked++
					mu.Unlock()
				}
				c.answer(conn, r, requests.Add(1))
				say(conn, "200 OK\r\nConnection: close", "")
				return false
			})
			client := httpload.NewClient(httpload.Options{
				Dial: new(net.Dialer).DialContext, Connections: 4, ExpectContinue: c.wait, Silent: func() { silent.Add(1) },
			})
			defer client.Close()
			send := func() error {
				g := newGuarded(1 << 10)
				r := request(t.Context(), t, "http://"+s.address, g)
				r.Header.Set("Expect", "100-continue")
				answer, err := client.Do(r)
				g.released(t)
				if err == nil && answer.Status != http.StatusOK {
					err = fmt.Errorf("status %d", answer.Status)
				}
				return err
			}
			first := 1 // before the others, where what they find depends on the order
			if name == "no answer" {
				first = 0
			}
			for range first {
				require.NoError(t, send())
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 4 {
						assert.NoError(t, send())
					}
				})
			}
			all.Wait()
			for range 4 - first {
				require.NoError(t, send())
			}
			require.Equal(t, c.asked, asked)
			require.Equal(t, c.silent, silent.Load())
		})
	}
}
