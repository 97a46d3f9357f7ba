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
	const either = -1 // the answer and the end of the wait come at the same moment
	body := func(r *http.Request) bool {
		_, err := io.Copy(io.Discard, r.Body)
		return err == nil
	}
	for name, c := range map[string]struct {
		wait   time.Duration
		answer func(c net.Conn, r *http.Request, number int64) (takes bool)
		asked  int // of 17 requests, and the first
		silent int64
	}{
		"no answer": {time.Millisecond, func(_ net.Conn, r *http.Request, _ int64) bool { return body(r) }, 1, 1},
		"an answer": {patience, func(c net.Conn, r *http.Request, _ int64) bool {
			_, _ = io.WriteString(c, asks)
			return body(r)
		}, 17, 0},
		"too late": {time.Millisecond, func(c net.Conn, r *http.Request, number int64) bool {
			if number == 1 {
				_, _ = r.Body.Read(make([]byte, 1)) // the client's wait is over
			}
			_, _ = io.WriteString(c, asks)
			return body(r)
		}, 18, either},
		"a refusal": {patience, func(c net.Conn, r *http.Request, number int64) bool {
			if number == 1 {
				return false
			}
			_, _ = io.WriteString(c, asks)
			return body(r)
		}, 18, 0},
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
				status := "200 OK"
				if !c.answer(conn, r, requests.Add(1)) {
					status = "403 Forbidden"
				}
				say(conn, status+"\r\nConnection: close", "")
				return false
			})
			client := httpload.NewClient(httpload.Options{
				Dial: new(net.Dialer).DialContext, Connections: 4, ExpectContinue: c.wait, Silent: func() { silent.Add(1) },
			})
			defer client.Close()
			send := func(want int) error {
				g := newGuarded(1 << 10)
				r := request(t.Context(), t, "http://"+s.address, g)
				r.Header.Set("Expect", "100-continue")
				answer, err := client.Do(r)
				g.released(t)
				if err == nil && answer.Status != want {
					err = fmt.Errorf("status %d", answer.Status)
				}
				return err
			}
			first := map[string]int{"too late": http.StatusOK, "a refusal": http.StatusForbidden}[name]
			if first != 0 { // of which the server makes a difference
				require.NoError(t, send(first))
			}
			var all sync.WaitGroup
			for range 4 {
				all.Go(func() {
					for range 4 {
						assert.NoError(t, send(http.StatusOK))
					}
				})
			}
			all.Wait()
			require.NoError(t, send(http.StatusOK))
			if first != 0 {
				requests.Add(-1)
			}
			require.EqualValues(t, 17, requests.Load())
			require.Equal(t, c.asked, asked)
			if c.silent != either {
				require.Equal(t, c.silent, silent.Load())
			}
		})
	}
}
