package web_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

// take returns a handler that loads every PUT as lines and reads every POST.
func take(x *web.Exchange) error {
	switch x.Method {
	case http.MethodPut:
		load := x.Stream.Load(sink.NewDelimited(sink.Text{}))
		if _, err := x.Content.TakeAll(load); err != nil {
			load.GiveUp()
			return err
		}
		bytes, rows, err := load.End()
		if err != nil {
			return err
		}
		x.Count.Loaded(bytes, rows)
		return x.Answer(http.StatusOK, "text/plain", fmt.Appendf(nil, "%d rows, %d bytes", rows, bytes))
	case http.MethodPost:
		text, err := x.Content.Text(1000)
		if err != nil {
			return err
		}
		return x.Answer(http.StatusOK, "text/plain", text)
	}
	return x.Answer(http.StatusNotFound, "text/plain", []byte("not here"))
}

func listen(t testing.TB, o sink.Options) *sink.Server {
	s, err := sink.Listen("127.0.0.1:0", o, web.Talk(take))
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// say sends a text on a connection of its own and returns all that is answered.
func say(t testing.TB, s *sink.Server, text string) string {
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer c.Close()
	_, _ = io.WriteString(c, text) // the sink may close it in the middle
	_ = c.(*net.TCPConn).CloseWrite()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	out, err := io.ReadAll(c)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the sink did not close the connection")
	return string(out)
}

func TestBodies(t *testing.T) {
	for name, c := range map[string]struct{ request, want string }{
		"sized":            {"Content-Length: 3\r\n\r\n1\n2", "2 rows, 3 bytes"},
		"none":             {"\r\n", "0 rows, 0 bytes"},
		"chunked":          {"Transfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n1;x=y\r\n2\r\n0\r\nTrailer: x\r\n\r\n", "2 rows, 3 bytes"},
		"no chunks":        {"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "0 rows, 0 bytes"},
		"bare line feeds":  {"Content-Length: 2\n\n1\n", "1 rows, 2 bytes"},
		"both lengths":     {"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n0\r\n\r\n", "1 rows, 2 bytes"},
		"negative length":  {"Content-Length: -1\r\n\r\n", "400 Bad Request"},
		"two lengths":      {"Content-Length: 1\r\nContent-Length: 2\r\n\r\n", "400 Bad Request"},
		"length beyond":    {"Content-Length: 99999999999999999999\r\n\r\n", "400 Bad Request"},
		"other coding":     {"Transfer-Encoding: gzip\r\n\r\n", "400 Bad Request"},
		"negative chunk":   {"Transfer-Encoding: chunked\r\n\r\n-1\r\n", "400 Bad Request"},
		"huge chunk":       {"Transfer-Encoding: chunked\r\n\r\n8000000000000000\r\n", "400 Bad Request"},
		"no chunk":         {"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "400 Bad Request"},
		"endless chunk":    {"Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("0", 10_000), "400 Bad Request"},
		"longer chunk":     {"Transfer-Encoding: chunked\r\n\r\n1\r\n1\n2\r\n0\r\n\r\n", "400 Bad Request"},
		"endless trailers": {"Transfer-Encoding: chunked\r\n\r\n0\r\n" + strings.Repeat("a: "+strings.Repeat("b", 1000)+"\r\n", 100), "400 Bad Request"},
		"huge head":        {"X: " + strings.Repeat("x", 70_000) + "\r\n\r\n", "431 "},
		"old version":      {"\r\n", "0 rows, 0 bytes"},
	} {
		for _, dropped := range []bool{false, true} {
			t.Run(fmt.Sprint(name, dropped), func(t *testing.T) {
				s := listen(t, sink.Options{NoCount: dropped})
				head := "PUT / HTTP/1.1\r\nHost: x\r\n"
				if dropped {
					_, after, found := strings.Cut(c.want, " rows")
					if found {
						c.want = "0 rows" + after
					}
				}
				out := say(t, s, strings.Repeat(head+c.request, 2)) // one behind the other
				want := 1
				if strings.Contains(c.want, "rows") {
					want = 2
				}
				require.Equal(t, want, strings.Count(out, c.want), out)
				require.Equal(t, want, strings.Count(out, "HTTP/1.1 "), out)
			})
		}
	}
}

func TestGarbage(t *testing.T) {
	s := listen(t, sink.Options{})
	for request, want := range map[string]string{
		"nonsense\r\n\r\n":                             "HTTP/1.1 400 ",
		"\x16\x03\x01\x00\x05hello":                    "", // TLS, which this one was not given
		"\x00\x00\x00\x00":                             "",
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":             "HTTP/1.1 505 ",
		"GET / HTTP/1.0\r\n\r\nGET / HTTP/1.0\r\n\r\n": "HTTP/1.1 404 ",
		"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n" + strings.Repeat("x", 2000): "HTTP/1.1 413 ",
		"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n1\n":                              "",
	} {
		out := say(t, s, request)
		require.True(t, strings.HasPrefix(out, want) && (want != "" || out == ""), "%.40q: %q", request, out)
		require.LessOrEqual(t, strings.Count(out, "Server:"), 1)
	}
	require.Zero(t, s.Stats().Bytes, "a load that is cut off is none")
}

// A client that waits to be asked is asked where the body is wanted, and else told at once.
func TestExpect(t *testing.T) {
	s := listen(t, sink.Options{})
	c, err := net.Dial("tcp", s.Addr())
	require.NoError(t, err)
	defer c.Close()
	r := bufio.NewReader(c)
	_, err = io.WriteString(c, "PUT / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	require.NoError(t, err)
	asked, err := r.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "HTTP/1.1 100 Continue\r\n", asked)
	_, err = io.WriteString(c, "1\n")
	require.NoError(t, err)
	_, err = r.ReadString('\n')
	require.NoError(t, err)
	answer, err := http.ReadResponse(r, nil)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.Equal(t, "1 rows, 2 bytes", string(text))

	_, err = io.WriteString(c, "DELETE / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
	require.NoError(t, err)
	answer, err = http.ReadResponse(r, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusNotFound, answer.StatusCode)
	require.True(t, answer.Close)
}

// A body that is not wanted is dropped, so that the connection goes on.
func TestUnwantedBody(t *testing.T) {
	s := listen(t, sink.Options{})
	out := say(t, s, "DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n"+strings.Repeat("x", 1_000_000)+
		"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1\n")
	require.Contains(t, out, "not here")
	require.Contains(t, out, "1 rows, 2 bytes")
}

func TestPassword(t *testing.T) {
	for _, c := range []struct {
		want, user, given, bearer string
		right                     bool
	}{
		{right: true}, {given: "x", right: true}, {want: "x"}, {want: "x", given: "x", right: true}, {want: "x", given: "y"},
		{want: "x", bearer: "x", right: true}, {want: "x", bearer: "y"},
	} {
		r, err := http.NewRequest(http.MethodGet, "/", nil)
		require.NoError(t, err)
		if c.given != "" {
			r.SetBasicAuth("me", c.given)
		}
		if c.bearer != "" {
			r.Header.Set("Authorization", "Bearer "+c.bearer)
		}
		x := &web.Exchange{Request: r, Stream: &sink.Stream{Options: sink.Options{Password: c.want}}}
		require.Equal(t, c.right, x.Password(), c)
	}
}

// Whatever is said on the port, the sink neither falls nor goes on for ever.
func FuzzRequests(f *testing.F) {
	for _, text := range []string{
		"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n1\n2",
		"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n1\n\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 9223372036854775807\r\n\r\n",
		"HEAD / HTTP/1.0\n\n",
	} {
		f.Add(text)
	}
	s := listen(f, sink.Options{})
	f.Fuzz(func(t *testing.T, text string) {
		out := say(t, s, text)
		if out != "" && !strings.HasPrefix(out, "HTTP/1.1 ") {
			t.Errorf("%q", out)
		}
	})
}
