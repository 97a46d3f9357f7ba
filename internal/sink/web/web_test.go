package web_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

func TestLoads(t *testing.T) {
	for name, c := range map[string]struct {
		rowBytes int64
		rows     int64
	}{"counted": {0, 300_000}, "dropped": {10, 300_000}} {
		t.Run(name, func(t *testing.T) {
			s, err := web.ListenWith("127.0.0.1:0", sink.Options{RowBytes: c.rowBytes}, web.Answers{Load: `{"rows":{rows},"bytes":{bytes}}`, Query: func(string) string { return "hello" }})
			require.NoError(t, err)
			defer s.Close()
			client := &http.Client{Transport: &http.Transport{}}
			defer client.CloseIdleConnections()
			body := bytes.Repeat([]byte("123456789\n"), 300_000)
			for _, expect := range []string{"", "100-continue"} {
				r, err := http.NewRequest(http.MethodPut, "http://"+s.Addr()+"/a/b?c=d", bytes.NewReader(body))
				require.NoError(t, err)
				if expect != "" {
					r.Header.Set("Expect", expect)
				}
				assert.Equal(t, fmt.Sprintf(`{"rows":%d,"bytes":%d}`, c.rows, len(body)), said(t, client, r))
			}
			r, err := http.NewRequest(http.MethodGet, "http://"+s.Addr()+"/", nil)
			require.NoError(t, err)
			assert.Equal(t, "hello", said(t, client, r))
			assert.Equal(t, sink.Stats{Connections: 1, Statements: 3, Bytes: 2 * int64(len(body)), Rows: 2 * c.rows}, s.Stats())
		})
	}
}

// A form's rows are those of its part, and rows end where Doris is told they do.
func TestWhatCountsAsRows(t *testing.T) {
	form := func(rows string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n" + rows + "\r\n--b--\r\n"
	}
	for name, c := range map[string]struct {
		headers, body, want string
	}{
		"form":           {"Content-Type: multipart/form-data; boundary=b\r\n", form("1,a\n2,b\n"), "2 rows, 8 bytes"},
		"form, last row": {"Content-Type: multipart/form-data; boundary=b\r\n", form("1,a\n2,b"), "2 rows, 7 bytes"},
		"empty part":     {"Content-Type: multipart/form-data; boundary=b\r\n", form(""), "0 rows, 0 bytes"},
		"no part":        {"Content-Type: multipart/form-data; boundary=b\r\n", "--b--\r\n", "0 rows, 0 bytes"},
		"delimiter":      {"line_delimiter: \\x02\r\n", "1\x01a\x022\x01b\n\x02", "2 rows, 9 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := web.ListenWith("127.0.0.1:0", sink.Options{}, web.Answers{Load: "{rows} rows, {bytes} bytes"})
			require.NoError(t, err)
			defer s.Close()
			conn, err := net.Dial("tcp", s.Addr())
			require.NoError(t, err)
			defer conn.Close()
			answers := bufio.NewReader(conn)
			for range 2 { // the second finds the connection where a request begins
				_, err = fmt.Fprintf(conn, "PUT / HTTP/1.1\r\nHost: x\r\n%sContent-Length: %d\r\n\r\n%s", c.headers, len(c.body), c.body)
				require.NoError(t, err)
				answer, err := http.ReadResponse(answers, nil)
				require.NoError(t, err)
				text, err := io.ReadAll(answer.Body)
				require.NoError(t, err)
				assert.Equal(t, c.want, string(text))
			}
		})
	}
}

// Real drivers are held against these in bench's own test.
func TestSystems(t *testing.T) {
	s, err := web.ListenWith("127.0.0.1:0", sink.Options{RowBytes: 2}, web.Doris())
	require.NoError(t, err)
	defer s.Close()
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	ask := func(method, path, body string) *http.Response {
		r, err := http.NewRequest(method, "http://"+s.Addr()+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("label", "l1")
		answer, err := transport.RoundTrip(r)
		require.NoError(t, err)
		t.Cleanup(func() { _ = answer.Body.Close() })
		return answer
	}
	to := ask(http.MethodPut, "/api/d/t/_stream_load?x=y", "")
	assert.Equal(t, http.StatusTemporaryRedirect, to.StatusCode)
	assert.Equal(t, "http://"+s.Addr()+"/api/d/t/_stream_load?x=y", to.Header.Get("Location"))
	loaded, err := io.ReadAll(ask(http.MethodPut, "/be", "1\n2\n").Body)
	require.NoError(t, err)
	assert.Contains(t, string(loaded), `"Label":"l1"`)
	assert.Contains(t, string(loaded), `"NumberLoadedRows":2`)
	_, rows, ok := web.DorisSQL("SELECT @@version_comment")
	assert.True(t, ok)
	assert.Contains(t, rows[0][0], "doris")
	_, _, ok = web.DorisSQL("SELECT 1")
	assert.False(t, ok)

	for statement, want := range map[string]string{"SELECT version()": "Databend", "… max_running_queries …": "1024", "SELECT 1": `"data":[]`} {
		answer := web.Databend().Query(statement)
		assert.Contains(t, answer, want)
		assert.True(t, json.Valid([]byte(answer)), answer)
	}
}

func said(t *testing.T, client *http.Client, r *http.Request) string {
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return string(text)
}

func TestRefusals(t *testing.T) {
	s, err := web.Listen("127.0.0.1:0", sink.Options{})
	require.NoError(t, err)
	defer s.Close()
	for request, want := range map[string]string{
		"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n": "HTTP/1.1 411 ",
		"nonsense\r\n\r\n": "",
		"GET / HTTP/1.1\r\nHost: x\r\nLong: " + strings.Repeat("x", 70_000) + "\r\n\r\n": "",
	} {
		c, err := net.Dial("tcp", s.Addr())
		require.NoError(t, err)
		_, _ = io.WriteString(c, request) // it may hang up in the middle
		text, _ := io.ReadAll(c)
		assert.True(t, strings.HasPrefix(string(text), want) && (want != "" || len(text) == 0), "%.40q: %q", request, text)
		c.Close()
	}
	assert.Zero(t, s.Stats().Bytes)
}
