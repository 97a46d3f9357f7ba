package databend_test

import (
	"bufio"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	client "github.com/datafuselabs/databend-go"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/databend"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

func listen(t testing.TB, o sink.Options) *sink.Server { return sinktest.Open(t, databend.Listen, o) }

func open(t *testing.T, s *sink.Server, parameters string) *sql.DB {
	db, err := sql.Open("databend", "databend://me:secret@"+s.Addr()+"/db?sslmode=disable"+parameters)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestDriverInserts(t *testing.T) {
	for _, dropped := range []bool{false, true} {
		s := listen(t, sink.Options{Password: "secret", NoCount: dropped})
		db := open(t, s, "")
		require.NoError(t, db.PingContext(t.Context()))
		_, err := db.ExecContext(t.Context(), "CREATE TABLE t (a INT, b VARCHAR)")
		require.NoError(t, err)
		r, err := db.ExecContext(t.Context(), "INSERT INTO t VALUES (?, ?), (2, 'x'), (3, '),(')", 1, "it's \"a\" \\ 𝄞\n")
		require.NoError(t, err)
		n, err := r.RowsAffected()
		require.NoError(t, err)
		require.EqualValues(t, 3, n)

		large := strings.Repeat(",(1,'"+strings.Repeat(`x"\n`, 1000)+"')", 500) // half of it escapes in JSON
		_, err = db.ExecContext(t.Context(), "INSERT INTO t VALUES "+large[1:])
		require.NoError(t, err)
		require.EqualValues(t, 503, s.Stats().Rows)

		tx, err := db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		var version, one string
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT version(), 1").Scan(&version, &one))
		require.Contains(t, version, "terapush-sink")
		require.Equal(t, dropped, strings.Contains(version, "no-count"))
		require.ErrorIs(t, db.QueryRowContext(t.Context(), "SELECT a FROM t").Scan(&one), sql.ErrNoRows)
		require.NoError(t, db.QueryRowContext(t.Context(), "SELECT value FROM system.configs WHERE name = 'max_running_queries'").Scan(&one))
		require.Equal(t, "1024", one)
		_, err = db.ExecContext(t.Context(), "SELECT something()")
		require.ErrorContains(t, err, "what is 'something()'?")
	}
}

// A batch of the driver is a CSV file in a stage, put there over a presigned URL or through the node.
func TestDriverBatches(t *testing.T) {
	for _, parameters := range []string{"", "&presigned_url_disabled=1"} {
		s := listen(t, sink.Options{Password: "secret"})
		conn, err := open(t, s, parameters).Conn(t.Context())
		require.NoError(t, err)
		batch, err := client.PrepareBatch("INSERT INTO t (a, b) VALUES")
		require.NoError(t, err)
		rows := [][]driver.Value{{1, "x"}, {2, "two\nlines, and a \"quote\""}, {3, ""}}
		_, err = batch.ExecBatch(t.Context(), conn, rows)
		require.NoError(t, err)
		require.EqualValues(t, 3, s.Stats().Rows)
		require.NoError(t, conn.Close())
	}
}

func api(t *testing.T, s *sink.Server, change func(*client.Config)) *client.APIClient {
	c := &client.Config{Host: s.Addr(), User: "me", Password: "secret", Database: "db", SSLMode: client.SSL_MODE_DISABLE}
	if change != nil {
		change(c)
	}
	return client.NewAPIClientFromConfig(c)
}

func TestStages(t *testing.T) {
	table := sinktest.Parquet(t, 4321)

	s := listen(t, sink.Options{CRC: true})
	through := api(t, s, func(c *client.Config) { c.PresignedURLDisabled = true })
	upload := func(path, text string) {
		require.NoError(t, through.UploadToStage(t.Context(), &client.StageLocation{Name: "st", Path: path}, bufio.NewReader(strings.NewReader(text)), int64(len(text))))
	}
	upload("run/1.csv", "1,a\n2,\"b\nc\"\n")
	upload("run/2.csv", "h\n3,a")
	upload("run/3.parquet", table)
	require.Zero(t, s.Stats().Rows, "rows are acknowledged when they are loaded")

	for _, c := range []struct {
		sql  string
		want string
	}{
		{"COPY INTO `t` (`a`, `b`) FROM @st/run FILES = ('1.csv') FILE_FORMAT = (type = CSV, record_delimiter = '\\n') ON_ERROR = abort", "run/1.csv 2 0 - -"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv', 'run/2.csv') FILE_FORMAT = (type = NDJSON)", "run/1.csv 3 0 - -; run/2.csv 2 0 - -"},
		{"COPY INTO t FROM @st/run/ PATTERN = '.*[.]csv' FILE_FORMAT = (type = CSV skip_header = 1)", "run/1.csv 1 0 - -; run/2.csv 1 0 - -"},
		{"COPY INTO t FROM (SELECT $1 FROM @st/run/3.parquet) FILE_FORMAT = (type = 'parquet')", "run/3.parquet 4321 0 - -"},
		{"COPY INTO t FROM @st FILES = ('run/9.csv') FILE_FORMAT = (type = CSV)", "code: 3001"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = PARQUET)", "code: 1046"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV compression = gzip)", "code: 1002"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV field_delimiter = '|')", "code: 1002"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV quote = '')", "run/1.csv 3 0 - -"},
		{"COPY INTO t FROM @st FILES = ('run/1.csv') FILE_FORMAT = (type = CSV) SIZE_LIMIT = 1", "code: 1002"},
		{"COPY INTO t FROM (SELECT $1 FROM @st/run/3.parquet WHERE $1 > 1) FILE_FORMAT = (type = PARQUET)", "code: 1002"},
		{"INSERT INTO t SELECT number FROM numbers(10)", "code: 1002"},
		{"COPY INTO t FROM 's3://b/p'", "code: 1002"},
		{"LIST @st/run/1", "run/1.csv 12"},
		{"LIST @st PATTERN = '.*('", "code: 1005"},
		{"REMOVE @st/run/ PATTERN = '(1|2)[.]csv'", ""},
		{"LIST @st", fmt.Sprint("run/3.parquet ", len(table))},
		{"COPY INTO t FROM @st FILES = ('run/3.parquet') FILE_FORMAT = (type = PARQUET) PURGE = TRUE", "run/3.parquet 4321 0 - -"},
		{"LIST @st", ""},
		{"PRESIGN DOWNLOAD @st/x", "code: 1002"},
	} {
		answer, err := through.QuerySync(t.Context(), c.sql)
		if strings.HasPrefix(c.want, "code") {
			require.ErrorContains(t, err, c.want, c.sql)
			continue
		}
		require.NoError(t, err, c.sql)
		require.Equal(t, c.want, flat(answer.Data), c.sql)
	}
	require.EqualValues(t, 2+5+2+4321+3+4321, s.Stats().Rows)
}

func flat(rows [][]*string) string {
	var all []string
	for _, row := range rows {
		var values []string
		for _, v := range row {
			if v == nil {
				values = append(values, "-")
			} else {
				values = append(values, *v)
			}
		}
		all = append(all, strings.Join(values, " "))
	}
	return strings.Join(all, "; ")
}

func TestCurl(t *testing.T) {
	file := filepath.Join(t.TempDir(), "rows.csv")
	require.NoError(t, os.WriteFile(file, []byte(strings.Repeat("1,abcdefg\n", 100_000)), 0o600))
	for scheme, dropped := range map[string]bool{"http": false, "https": true} {
		t.Run(scheme, func(t *testing.T) {
			s := listen(t, sink.Options{TLS: sinktest.TLS(t), Password: "secret", NoCount: dropped, RowBytes: 10})
			curl := func(path string, args ...string) string {
				return sinktest.Curl(t, "", append(args, "--user", "me:secret", scheme+"://"+s.Addr()+path)...)
			}
			out := curl("/v1/streaming_load", "-X", "PUT", "-F", "upload=@"+file,
				"-H", "X-Databend-SQL: INSERT INTO t FROM @_databend_load FILE_FORMAT = (type = CSV)")
			require.Contains(t, out, `"rows":100000`)
			require.Contains(t, out, `"bytes":1000000`)

			out = curl("/v1/upload_to_stage", "-X", "PUT", "-H", "x-databend-stage-name: st", "-H", "x-databend-relative-path: a/b", "-F", "upload=@"+file)
			require.Contains(t, out, `"files":["rows.csv"]`)
			out = curl("/v1/query", "-d", `{"sql":"COPY INTO t FROM @st/a/b FILE_FORMAT = (type = CSV)"}`)
			require.Contains(t, out, `["a/b/rows.csv","100000","0",null,null]`)
			require.Equal(t, []int64{200_000, 2_000_000}, []int64{s.Stats().Rows, s.Stats().Bytes})
			if dropped {
				return
			}
			out = curl("/v1/upload_to_stage", "-X", "PUT", "-F", "a=b", "-F", "upload=@"+file+";filename=one", "-F", "upload=@"+file+";filename=two")
			require.Contains(t, out, `"files":["one","two"]`)
			require.EqualValues(t, 4_000_000, s.Stats().Bytes)
		})
	}
}

// form is a form with a file in it.
func form(body string) string { return part(body) + "--boundary--\r\n" }

func part(body string) string {
	return "--boundary\r\nContent-Disposition: form-data; name=\"upload\"; filename=\"f\"\r\n\r\n" + body + "\r\n"
}

// stream sends a form as a streaming load of this format, in one piece or in chunks of a byte, and returns the answer.
func stream(t *testing.T, s *sink.Server, format, form string, inChunks bool) string {
	head := "PUT /v1/streaming_load HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=boundary\r\n"
	if format != "" {
		head += "X-Databend-SQL: INSERT INTO t FROM @_databend_load FILE_FORMAT = " + format + "\r\n"
	}
	if !inChunks {
		return sinktest.Say(t, s, fmt.Sprintf("%sContent-Length: %d\r\n\r\n%s", head, len(form), form))
	}
	body := ""
	for i := range len(form) {
		body += "1\r\n" + form[i:i+1] + "\r\n"
	}
	return sinktest.Say(t, s, head+"Transfer-Encoding: chunked\r\n\r\n"+body+"0\r\n\r\n")
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
		"xml":                  {sql: "(type = XML)", body: "<a/>", want: "format XML"},
		"compressed":           {sql: "(type = CSV, compression = zstd)", body: "1\n", want: "compressed"},
		"delimiter in data":    {body: "\r\n--\r\n--b\r\r\n--boundarY\r\n", want: `"bytes":24`},
	} {
		t.Run(name, func(t *testing.T) {
			for _, inChunks := range []bool{false, true} {
				s := listen(t, sink.Options{})
				require.Contains(t, stream(t, s, c.sql, form(c.body), inChunks), c.want)
				if !strings.Contains(c.want, `"rows"`) && !strings.Contains(c.want, `"bytes"`) {
					require.Zero(t, s.Stats().Bytes)
				}
			}
		})
	}
}

// A form that says its length is read to its end, so that a second part would pass for rows of the first. Where nothing is
// counted it has to end where its length says.
func TestForms(t *testing.T) {
	counted, dropped := listen(t, sink.Options{}), listen(t, sink.Options{NoCount: true, RowBytes: 1})
	for _, inChunks := range []bool{false, true} {
		require.Contains(t, stream(t, counted, "", "--boundary--\r\n", inChunks), `"code":400`)
	}
	require.Contains(t, stream(t, counted, "", part("1\n")+form("2\n"), false), "has one part")
	require.Zero(t, counted.Stats().Rows)
	require.Contains(t, stream(t, dropped, "", form("1\n2\n"), false), `"rows":4`)
	require.Contains(t, stream(t, dropped, "", form("1\n2\n")+"epilogue", false), "does not end with its boundary")
	require.Contains(t, stream(t, dropped, "", "nonsense that is no form at all\r\n\r\n\r\n\r\n", false), "no part with a head")
	require.Contains(t, stream(t, dropped, "", "", true), "send Content-Length")
	require.EqualValues(t, 4, dropped.Stats().Rows)
}

func TestToldToFail(t *testing.T) {
	s := listen(t, sink.Options{Fail: 1})
	db := api(t, s, nil)
	_, err := db.QuerySync(t.Context(), "INSERT INTO t VALUES (1)")
	require.ErrorContains(t, err, "code: 2404")
	stage := &client.StageLocation{Name: "~", Path: "f"}
	require.ErrorContains(t, db.UploadToStageByAPI(t.Context(), stage, bufio.NewReader(strings.NewReader("1\n"))), "429")
	require.ErrorContains(t, db.UploadToStageByPresignURL(t.Context(), stage, bufio.NewReader(strings.NewReader("1\n")), 2), "SlowDown")
	_, err = db.QuerySync(t.Context(), "BEGIN")
	require.NoError(t, err, "what is no load does not fail")
	require.Zero(t, s.Stats().Rows)
}

func TestSessions(t *testing.T) {
	s := listen(t, sink.Options{Password: "secret"})
	for _, c := range []struct{ request, want string }{
		{"POST /v1/session/login", `"session_id"`},
		{"POST /v1/session/logout", "{}"},
		{"POST /v1/session/heartbeat", "queries_to_remove"},
		{"POST /v1/verify", `"user":"me"`},
		{"GET /v1/health", "pass"},
		{"GET /v1/query/x/page/1", "404"},
		{"DELETE /", "404"},
	} {
		out := sinktest.Say(t, s, c.request+" HTTP/1.1\r\nHost: x\r\nAuthorization: Basic bWU6c2VjcmV0\r\nContent-Length: 2\r\n\r\n{}")
		require.Contains(t, out, c.want)
		require.Contains(t, sinktest.Say(t, s, c.request+" HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n"), "401 Unauthorized")
	}
	wrong := api(t, s, func(c *client.Config) { c.Password = "other" })
	require.ErrorContains(t, wrong.Verify(t.Context()), "AuthenticateFailure")
	for _, body := range []string{"", "{}", "[", `{"sql":""}`, `{"sql":"SELECT 1; SELECT 2"}`, `{"sql":1}`} {
		out := sinktest.Say(t, s, fmt.Sprintf("POST /v1/query HTTP/1.1\r\nHost: x\r\nAuthorization: Basic bWU6c2VjcmV0\r\nContent-Length: %d\r\n\r\n%s", len(body), body))
		require.Contains(t, out, `"error":{"code":`, "%.100q", body)
	}
}
