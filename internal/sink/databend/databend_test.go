package databend_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/databend"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func listen(t testing.TB, o sink.Options) *sink.Server { return sinktest.Open(t, databend.Listen, o) }

// ask asks for a statement and returns its rows, with blanks between values, or the error.
func ask(t *testing.T, s *sink.Server, sql string, attachment any) string {
	t.Helper()
	body, err := json.Marshal(map[string]any{"sql": sql, "stage_attachment": attachment, "session": map[string]string{"database": "db"}})
	require.NoError(t, err)
	r, err := http.NewRequest(http.MethodPost, "http://"+s.Addr()+"/v1/query", bytes.NewReader(body))
	require.NoError(t, err)
	r.SetBasicAuth("me", "secret")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	var said struct {
		Data    [][]string
		Error   *struct{ Message string }
		Session struct{ Database string }
	}
	require.NoError(t, json.NewDecoder(answer.Body).Decode(&said))
	require.Equal(t, "db", said.Session.Database)
	if said.Error != nil {
		require.Empty(t, said.Data)
		return said.Error.Message
	}
	var rows []string
	for _, row := range said.Data {
		rows = append(rows, strings.TrimSpace(strings.Join(row, " ")))
	}
	return strings.Join(rows, "; ")
}

func TestStages(t *testing.T) {
	table := sinktest.Parquet(t, 4321)
	s := listen(t, sink.Options{CRC: true})
	upload := func(path, text string) {
		url := ask(t, s, "PRESIGN UPLOAD @st/"+path, nil)
		r, err := http.NewRequest(http.MethodPut, url[strings.LastIndexByte(url, ' ')+1:], strings.NewReader(text))
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	upload("run/1.csv", "1,a\n2,\"b\nc\"\n")
	upload("run/2.csv", "h\n3,a")
	upload("run/3.parquet", table)
	upload("run/4.ndjson", "{\"a\":\"\\\"\"}\n\n{}\n")
	require.Zero(t, s.Stats().Rows, "rows are acknowledged when they are loaded")

	const csv = `(type = CSV, field_delimiter = ',', record_delimiter = '\n', quote = '"', escape = '', compression = NONE)`
	one := func(path, kind string, more ...string) map[string]any {
		options := map[string]string{"type": kind, "skip_header": "1"}
		for i := 0; i+1 < len(more); i += 2 {
			options[more[i]] = more[i+1]
		}
		return map[string]any{"location": "@st/" + path, "file_format_options": options}
	}
	for _, c := range []struct {
		sql  string
		file any
		want string
	}{
		{"COPY INTO `t` (`a`, `b`) FROM @st FILES = ('run/1.csv') FILE_FORMAT = " + csv + " ON_ERROR = abort", nil, "run/1.csv 2 0"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv', 'run/2.csv') FILE_FORMAT = (type = CSV skip_header = 1)", nil, "run/1.csv 1 0; run/2.csv 1 0"},
		{"COPY INTO t FROM @st FILES = ('run/3.parquet') FILE_FORMAT = (type = 'parquet')", nil, "run/3.parquet 4321 0"},
		{"COPY INTO t FROM @st FILES = ('run/9.csv') FILE_FORMAT = (type = CSV)", nil, "was not uploaded here"},
		{"INSERT INTO t VALUES", one("run/4.ndjson", "NDJSON"), "1"},
		{"INSERT INTO t VALUES", one("run/2.csv", "CSV"), "1"},

		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = PARQUET)", nil, "by its name"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = NDJSON)", nil, "by its name"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV field_delimiter = '|')", nil, "by its name"},
		{"INSERT INTO t VALUES", one("run/1.csv", "CSV", "quote", ""), "by its name"},
		{"INSERT INTO t VALUES", one("run/1.csv", "CSV", "escape", "\\"), "by its name"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV compression = gzip)", nil, "compressed (gzip)"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV) SIZE_LIMIT = 1", nil, "all that can be copied"},
		{"COPY INTO t FROM @st PATTERN = '.*' FILE_FORMAT = (type = CSV)", nil, "all that can be copied"},
		{"COPY INTO t FROM (SELECT $1 FROM @st FILES = ('run/1.csv')) FILE_FORMAT = (type = CSV)", nil, "all that can be copied"},
		{"COPY INTO t FROM 's3://b/p'", nil, "all that can be copied"},
		{"INSERT INTO t SELECT number FROM numbers(10)", nil, "no rows in its text"},
		{"INSERT INTO t VALUES (1)", nil, "no rows in its text"},
		{"MERGE INTO t USING s", nil, "what rows MERGE brings"},

		{"LIST @st/run/1", nil, "run/1.csv 12"},
		{"LIST @st PATTERN = '.*('", nil, "the pattern cannot be read"},
		{"REMOVE @st/run/ PATTERN = '(1|2|4)[.](csv|ndjson)'", nil, ""},
		{"LIST @st", nil, fmt.Sprint("run/3.parquet ", len(table))},
		{"PRESIGN DOWNLOAD @st/x", nil, "PRESIGN UPLOAD"},
	} {
		require.Contains(t, ask(t, s, c.sql, c.file), c.want, c.sql)
	}
	require.EqualValues(t, 2+1+1+4321+1+1, s.Stats().Rows)
}

func TestQueries(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		s := listen(t, sink.Options{NoCount: dropped})
		version := ask(t, s, "SELECT version()", nil)
		require.Contains(t, version, "Databend Query v1.2.895-terapush-sink")
		require.Equal(t, dropped, strings.Contains(version, "no-count"))
		require.Equal(t, "1024", ask(t, s, "SELECT value FROM system.configs WHERE `group` = 'query' AND name = 'max_running_queries'", nil))
		for sql, want := range map[string]string{
			"CREATE TABLE t (a INT)": "", "SELECT a FROM t": "", "SELECT something()": "what is 'something()'?", "": "one statement",
			"SELECT 1; SELECT 2": "one statement",
		} {
			require.Contains(t, ask(t, s, sql, nil), want, sql)
		}
	}
}

func TestCurl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("1,abcdefg\n", 100_000)), 0o600))
	for scheme, dropped := range map[string]bool{"http": false, "https": true} {
		t.Run(scheme, func(t *testing.T) {
			s := listen(t, sink.Options{TLS: sinktest.TLS(t), NoCount: dropped, RowBytes: 10})
			curl := func(path string, args ...string) string {
				return sinktest.Curl(t, "", append(args, "--user", "me:secret", scheme+"://"+s.Addr()+path)...)
			}
			out := curl("/v1/streaming_load", "-X", "PUT", "-F", "upload=@"+file,
				"-H", "X-Databend-SQL: INSERT INTO t FROM @_databend_load FILE_FORMAT = (type = CSV)")
			require.Contains(t, out, `"rows":100000`)
			require.Contains(t, out, `"bytes":1000000`)

			out = curl("/v1/upload_to_stage", "-X", "PUT", "-H", "x-databend-stage-name: st", "-H", "x-databend-relative-path: a/b", "-F", "upload=@"+file)
			require.Contains(t, out, `"files":["rows.csv"]`)
			out = curl("/v1/query", "-d", `{"sql":"COPY INTO t FROM @st FILES = ('a/b/rows.csv') FILE_FORMAT = (type = CSV)"}`)
			require.Contains(t, out, `["a/b/rows.csv","100000","0","",""]`)
			require.Equal(t, []int64{200_000, 2_000_000}, []int64{s.Stats().Rows, s.Stats().Bytes})
			if dropped {
				return
			}
			for want, args := range map[string][]string{
				"has one part": {"-F", "upload=@" + file, "-F", "upload=@" + file}, "a file with a name": {"-F", "a=b"},
				"by the name of their file": {"-F", "upload=@" + file + ";filename=rows.gz"},
			} {
				require.Contains(t, curl("/v1/upload_to_stage", append([]string{"-X", "PUT"}, args...)...), want)
			}
			require.EqualValues(t, 2_000_000, s.Stats().Bytes)
		})
	}
}

// form is a form with a file in it.
func form(body string) string { return part(body) + "--boundary--\r\n" }

func part(body string) string {
	return "--boundary\r\nContent-Disposition: form-data; name=\"upload\"; filename=\"f\"\r\n\r\n" + body + "\r\n"
}

// stream sends a form as a streaming load of this format and returns the answer.
func stream(t *testing.T, s *sink.Server, format, form string) string {
	head := "PUT /v1/streaming_load HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=boundary\r\n"
	if format != "" {
		head += "X-Databend-SQL: INSERT INTO t FROM @_databend_load FILE_FORMAT = " + format + "\r\n"
	}
	return sinktest.Say(t, s, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(form), form))
}

func TestFormats(t *testing.T) {
	for name, c := range map[string]struct{ sql, body, want string }{
		"no statement":         {body: "1\n2", want: `"rows":2`},
		"no rows":              {want: `"rows":0`},
		"csv":                  {sql: "(type = CSV)", body: "1,\"a\n\"\n", want: `"rows":1`},
		"csv without quote":    {sql: "(type = CSV, quote = '')", body: "1,\"a\n\"\n", want: `"rows":2`},
		"csv with header":      {sql: "(type = 'csv', skip_header = 1, field_delimiter = '|')", body: "a|b\n1|\"\n\"\n", want: `"rows":1`},
		"crlf":                 {sql: `(type = CSV, record_delimiter = '\r\n')`, body: "1\r\n2\r\n", want: `"rows":2`},
		"other delimiter":      {sql: `(type = CSV, record_delimiter = '|')`, body: "1|2|\n", want: `"rows":3`},
		"ndjson":               {sql: "(type = NDJSON)", body: "{\"a\":\"\\\"\"}\n{}\n", want: `"rows":2`},
		"empty lines":          {sql: "(type = NDJSON)", body: "\n{}\n\n\n{}", want: `"rows":2`},
		"empty lines of csv":   {sql: "(type = CSV)", body: "1,\"\n\n\"\n\n2,\n", want: `"rows":2`},
		"escapes":              {sql: `(type = CSV, escape = '\\')`, body: "1,\"\\\"\n\"\n2,\n", want: `"rows":2`},
		"tsv of other ends":    {sql: `(type = TSV, record_delimiter = '|')`, body: "1\n|2|", want: `"rows":2`},
		"parquet that is none": {sql: "(type = PARQUET)", body: "1\n", want: "Parquet footer"},
		"xml":                  {sql: "(type = XML)", body: "<a/>", want: "format xml"},
		"ends of two bytes":    {sql: `(type = CSV, record_delimiter = '||')`, body: "1||", want: "rows end with one byte"},
		"compressed":           {sql: "(type = CSV, compression = zstd)", body: "1\n", want: "compressed"},
		"delimiter in data":    {body: "\r\n--\r\n--b\r\r\n--boundarY\r\n", want: `"bytes":24`},
	} {
		t.Run(name, func(t *testing.T) {
			s := listen(t, sink.Options{})
			require.Contains(t, stream(t, s, c.sql, form(c.body)), c.want)
			if !strings.Contains(c.want, `"rows"`) && !strings.Contains(c.want, `"bytes"`) {
				require.Zero(t, s.Stats().Bytes)
			}
		})
	}
}

// A form that says its length is read to its end, so that a second part would pass for rows of the first. Where nothing
// is counted it has to end where its length says.
func TestForms(t *testing.T) {
	counted, dropped := listen(t, sink.Options{}), listen(t, sink.Options{NoCount: true, RowBytes: 1})
	require.Contains(t, stream(t, counted, "", "--boundary--\r\n"), `"code":400`)
	require.Contains(t, stream(t, counted, "", part("1\n")+form("2\n")), "has one part")
	require.Contains(t, sinktest.Say(t, counted, "PUT /v1/streaming_load HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\n"+
		"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), "send Content-Length")
	require.Zero(t, counted.Stats().Rows)
	require.Contains(t, stream(t, dropped, "", form("1\n2\n")), `"rows":4`)
	require.Contains(t, stream(t, dropped, "", form("1\n2\n")+"epilogue"), "does not end with its boundary")
	require.Contains(t, stream(t, dropped, "", "nonsense that is no form at all\r\n\r\n\r\n\r\n"), "no part with a head")
	require.EqualValues(t, 4, dropped.Stats().Rows)
}

func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 1})
	require.Contains(t, stream(t, s, "", form("1\n")), "429")
	put := "PUT /terapush-sink-stage/st/f.csv HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n1\n"
	require.Contains(t, sinktest.Say(t, s, put), "SlowDown")
	require.Empty(t, ask(t, s, "BEGIN", nil), "what is no load does not fail")
	require.Zero(t, s.Stats().Rows)
}

func TestOtherPaths(t *testing.T) {
	s := listen(t, sink.Options{})
	for _, c := range []struct{ request, want string }{
		{"POST /v1/query", `"error":{"code":`},
		{"GET /v1/query/x/page/1", "404"},
		{"DELETE /", "404"},
	} {
		out := sinktest.Say(t, s, c.request+" HTTP/1.1\r\nHost: x\r\nAuthorization: Basic bWU6c2VjcmV0\r\nContent-Length: 2\r\n\r\n{}")
		require.Contains(t, out, c.want)
	}
}
