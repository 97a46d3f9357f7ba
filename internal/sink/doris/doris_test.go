package doris_test

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql" // the client
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/doris"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func listen(t testing.TB, o sink.Options) *sink.Server {
	return sinktest.Open(t, new(doris.Cluster).Listen, o)
}

// result is what a client looks at.
type result struct {
	Status, Message, Label, TwoPhaseCommit string
	GroupCommit                            bool
	NumberTotalRows, NumberLoadedRows      int64
	LoadBytes                              int64
}

func read(t *testing.T, text string) (r result) {
	require.NoError(t, json.Unmarshal([]byte(text), &r), "%s", text)
	return r
}

func TestCurl(t *testing.T) {
	rows := strings.Repeat("1,abcdefg\n", 100_000)
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(file, []byte(rows), 0o600))
	for name, args := range map[string][]string{
		"asked by a frontend":     {"--location-trusted", "-H", "Expect: 100-continue", "-T", file},
		"straight to a backend":   {"-H", "Expect:", "-T", file},
		"of no length":            {"-H", "Expect:", "-T", "-"},
		"of no length, and asked": {"--location-trusted", "-H", "Expect: 100-continue", "-T", "-"},
	} {
		for scheme, dropped := range map[string]bool{"http": true, "https": false} {
			t.Run(name+", "+scheme, func(t *testing.T) {
				s := listen(t, sink.Options{TLS: sinktest.TLS(t), NoCount: dropped, RowBytes: 10})
				r := read(t, sinktest.Curl(t, rows, append(args, "--user", "root:secret", "-H", "label: l1", "-H", "column_separator: ,",
					scheme+"://"+s.Addr()+path)...))
				require.Equal(t, result{
					Status: "Success", Message: "OK", Label: "l1", TwoPhaseCommit: "false", NumberTotalRows: 100_000, NumberLoadedRows: 100_000,
					LoadBytes: int64(len(rows)),
				}, r)
				require.Equal(t, []int64{100_000, int64(len(rows))}, []int64{s.Stats().Rows, s.Stats().Bytes})
			})
		}
	}
}

func put(t *testing.T, s *sink.Server, path, body string, fields ...string) (*http.Response, string) {
	r, err := http.NewRequest(http.MethodPut, "http://"+s.Addr()+path, strings.NewReader(body))
	require.NoError(t, err)
	for i := 0; i+1 < len(fields); i += 2 {
		r.Header.Set(fields[i], fields[i+1])
	}
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer, string(text)
}

const path = "/api/db/t/_stream_load"

func TestFormats(t *testing.T) {
	table := sinktest.Parquet(t, 12_345)
	for name, c := range map[string]struct {
		body   string
		fields []string
		rows   int64 // −1: refused
	}{
		"csv":                        {"1\ta\n2\tb", nil, 2},
		"delimiter in hex":           {"1\x01a\x022\x01b\n\x02", []string{"line_delimiter", `\x02`, "column_separator", `\x01`}, 2},
		"delimiter of two bytes":     {"1||\n2|\n3||\n", []string{"line_delimiter", `||\n`}, -1},
		"names":                      {"a\tb\n1\t2\n", []string{"format", "csv_with_names"}, -1},
		"skipped lines":              {"x\ny\n1\t2\n", []string{"skip_lines", "2"}, 1},
		"enclosed":                   {"1,\"a\nb\"\n2,\"c\"\"\n\"\n", []string{"enclose", `"`, "column_separator", ","}, 2},
		"json by line":               {"{\"a\":1}\n{\"a\":\"\\n\"}\n", []string{"format", "json", "read_json_by_line", "true"}, 2},
		"json array":                 {`[{"a":1}]`, []string{"format", "json", "strip_outer_array", "true"}, -1},
		"json objects":               {"{\"a\":\n1}\n{\"a\":2}", []string{"format", "json"}, -1},
		"json array by line":         {"[{\"a\":1}]\n", []string{"format", "json", "strip_outer_array", "true", "read_json_by_line", "true"}, -1},
		"no array":                   {"1\n2\n", []string{"strip_outer_array", "false"}, 2},
		"empty lines of json":        {"\n{}\n\n\n{}\n", []string{"format", "json", "read_json_by_line", "true"}, 2},
		"empty lines":                {"1\n\n2\n\n", nil, 2},
		"escaped":                    {"1,\"a\\\"\nb\"\n2,c\n", []string{"enclose", `"`, "escape", `\`, "column_separator", ","}, 2},
		"some of the rows":           {"1\n2\n", []string{"where", "a > 1"}, -1},
		"part of the json":           {`{"a":[1,2]}`, []string{"format", "json", "json_root", "$.a"}, -1},
		"parquet":                    {table, []string{"format", "parquet"}, 12_345},
		"no parquet":                 {"1\n2\n", []string{"format", "parquet"}, -1},
		"orc":                        {"ORC", []string{"format", "orc"}, -1},
		"compressed":                 {"\x1f\x8b", []string{"compress_type", "gz"}, -1},
		"compressed, in other words": {"\x1f\x8b", []string{"compression", "gz"}, -1},
		"two-phase":                  {"1\n", []string{"two_phase_commit", "true"}, -1},
		"skipping what is no number": {"1\n", []string{"skip_lines", "-2"}, -1},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, sink.Options{CRC: true})
			_, text := put(t, s, path, c.body, c.fields...)
			r := read(t, text)
			if c.rows < 0 {
				require.Equal(t, "Fail", r.Status)
				require.Contains(t, r.Message, "INTERNAL_ERROR")
				require.Zero(t, s.Stats().Bytes)
				return
			}
			require.Equal(t, "Success", r.Status, r.Message)
			require.Equal(t, c.rows, r.NumberLoadedRows)
			require.Equal(t, c.rows, s.Stats().Rows)
		})
	}
}

func TestFrontend(t *testing.T) {
	s := listen(t, sink.Options{})
	// Who sends no rows asks where they go; the connection stays.
	out := sinktest.Say(t, s, strings.Repeat("PUT "+path+"?x=y HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n", 2))
	require.Equal(t, 2, strings.Count(out, "HTTP/1.1 307 "), out)
	require.NotContains(t, out, "close")
	answer, _ := put(t, s, path+"?x=y", "", "Expect", "100-continue")
	require.Equal(t, http.StatusTemporaryRedirect, answer.StatusCode)
	_, text := put(t, s, answer.Header.Get("Location"), "1\n", "Expect", "100-continue", "group_commit", "async_mode")
	r := read(t, text)
	require.True(t, r.GroupCommit)
	require.EqualValues(t, 1, r.NumberLoadedRows)

	for request, want := range map[string]string{
		"GET /api/get_wal_size": "success", "GET /api/db/t/_schema": "404", "PUT /api/db/_stream_load_2pc": "404", "DELETE /": "404",
	} {
		out = sinktest.Say(t, s, request+" HTTP/1.1\r\nHost: h:80\r\nContent-Length: 0\r\n\r\n")
		require.Contains(t, out, want)
	}
}

func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 1})
	_, text := put(t, s, path, "1\n")
	r := read(t, text)
	require.Equal(t, "Fail", r.Status)
	require.Contains(t, r.Message, "[MEM_LIMIT_EXCEEDED]")
	require.Contains(t, r.Message, "told to fail")
	require.Zero(t, s.Stats().Rows)
}

func TestSQL(t *testing.T) {
	var c doris.Cluster
	s, statements := sinktest.Open(t, c.Listen, sink.Options{}), sinktest.Open(t, c.ListenSQL, sink.Options{})
	db, err := sql.Open("mysql", "root@tcp("+statements.Addr()+")/db")
	require.NoError(t, err)
	defer db.Close()
	var comment string
	require.NoError(t, db.QueryRowContext(t.Context(), "/* driver */ select @@version_comment limit 1").Scan(&comment))
	require.Equal(t, "Doris version doris-3.1.0-terapush-sink", comment)
	_, text := put(t, s, path, "1\n2\n")
	require.Equal(t, "Success", read(t, text).Status)
	_, err = db.ExecContext(t.Context(), "INSERT INTO t WITH LABEL l (a) VALUES (3), (4), (5)")
	require.NoError(t, err)
	var n int
	require.NoError(t, db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM `db`.`t` WHERE a BETWEEN 1 AND 5").Scan(&n))
	require.Equal(t, 5, n)
	require.ErrorIs(t, db.QueryRowContext(t.Context(), "SELECT a FROM t").Scan(&n), sql.ErrNoRows)
}

func FuzzLoad(f *testing.F) {
	f.Add("format: json\r\nread_json_by_line: true\r\n", "{}\n{}")
	f.Add("line_delimiter: \\x02\r\nenclose: \"\r\n", "\"\x01\x02\"\x01\x02")
	f.Add("format: parquet\r\n", "PAR1\x15\x02\x19\x0c\x16\x08\x00\x00\x00\x00PAR1")
	f.Add("Transfer-Encoding: chunked\r\n", "fffffffffffffff\r\nx")
	f.Add("Content-Length: -1\r\n", "")
	s := listen(f, sink.Options{})
	f.Fuzz(func(t *testing.T, fields, body string) {
		out := sinktest.Say(t, s, "PUT "+path+" HTTP/1.1\r\nHost: x\r\n"+fields+fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body))
		if out != "" && !strings.HasPrefix(out, "HTTP/1.1 ") {
			t.Errorf("%q", out)
		}
	})
}
