package files_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
)

// Databend reads csv as this program's encoders write it. Its own reading differs: it skips empty lines, and a quote
// within a field is data. All files are loaded at once: a statement takes it long.
func TestOneMeaningInDatabend(t *testing.T) {
	address, err := url.Parse(backendtest.Server(t, "TERAPUSH_TEST_DATABEND"))
	require.NoError(t, err)
	send := func(t *testing.T, method, path, contentType, sql string, body io.Reader) (rows [][]*string, err error) {
		r, err := http.NewRequestWithContext(context.WithoutCancel(t.Context()), method, "http://"+address.Host+path, body)
		require.NoError(t, err)
		r.SetBasicAuth(address.User.Username(), "")
		r.Header.Set("Content-Type", contentType)
		if sql != "" {
			r.Header.Set("X-Databend-SQL", sql)
		}
		resp, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		var answer struct {
			Data  [][]*string
			Error json.RawMessage
		}
		if err := json.Unmarshal(text, &answer); err != nil || resp.StatusCode != http.StatusOK || string(answer.Error) > "null" {
			return nil, fmt.Errorf("%d %s", resp.StatusCode, text)
		}
		return answer.Data, nil
	}
	query := func(t *testing.T, sql string) [][]*string {
		text, err := json.Marshal(map[string]string{"sql": sql})
		require.NoError(t, err)
		rows, err := send(t, http.MethodPost, "/v1/query", "application/json", "", bytes.NewReader(text))
		require.NoError(t, err)
		return rows
	}

	for width, columns := range map[int]string{1: "a", 2: "a, b"} {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		part, err := w.CreateFormFile("upload", "batch")
		require.NoError(t, err)
		var want [][]*string
		for _, m := range meanings(t) {
			if m.width() != width {
				continue
			}
			batches, err := m.encoded(t, files.Config{Wire: batch.CSV, Rewrite: true}, 1)
			if m.Refused {
				require.Error(t, err, m.Says)
				continue
			}
			require.NoError(t, err, m.Says)
			_, err = part.Write(bytes.Join(batches, nil))
			require.NoError(t, err)
			want = append(want, m.Rows...)
		}
		require.NoError(t, w.Close())

		table := "meant_" + rand.Text()
		query(t, "CREATE TABLE "+table+" (a VARCHAR NULL, b VARCHAR NULL)")
		t.Cleanup(func() { query(t, "DROP TABLE "+table) })
		_, err = send(t, http.MethodPut, "/v1/streaming_load", w.FormDataContentType(), "INSERT INTO "+table+" ("+columns+
			") FROM @_databend_load FILE_FORMAT = (type = CSV, escape = '', empty_field_as = STRING, "+
			"error_on_column_count_mismatch = true)", &form)
		require.NoError(t, err)
		require.Equal(t, want, query(t, "SELECT "+columns+" FROM "+table))
	}
}

// A value that the server would take for another one is bad, and only that.
func TestFragileFields(t *testing.T) {
	file := "1,\"\",a\n,2,\"\"\n\"\",3,\n4,\"x\",\"\"\n5,\"0000-00-00 00:00:00\",0000-00-00\n6,2000-00-00,0000-00-00\n" +
		"1e38,7,\"\"\n1e39,8,\"\"\n"
	c := files.Config{
		Spec: files.NewSpec(files.CSV), Wire: batch.CSV, Rewrite: true, Fields: 3, BatchBytes: 1, Buffers: 2, Workers: 1,
		BufferBytes: 1 << 16, Parallel: 1, Skip: true,
		Columns: func(int) []files.Field {
			return []files.Field{{Column: "id", NoEmpty: true, FloatBits: 32}, {Column: "n", NoEmpty: true, NoZeroDay: true}, {Column: "must", NoNull: true}}
		},
	}
	var err error
	c.Spec.Files, err = files.Find([]string{write(t, "file", file)})
	require.NoError(t, err)
	from := open(t, c)
	var sent string
	var bad []string
	require.NoError(t, drain(from, 0, func(b *batch.Batch) {
		sent += string(b.Encoded)
		for _, one := range from.Bad(b.ID.Number) {
			bad = append(bad, fmt.Sprint(one.Line, " ", one.Why))
		}
	}))
	require.Equal(t, "\\N,2,\"\"\n4,x,\"\"\n6,2000-00-00,0000-00-00\n1e38,7,\"\"\n", sent)
	require.Len(t, bad, 4)
	require.Contains(t, bad[0], "1 an empty text for column n,")
	require.Contains(t, bad[1], "3 an empty text for column id,")
	require.Contains(t, bad[2], "5 0000-00-00 for column n:")
	require.Contains(t, bad[3], "8 a number beyond those of column id:")

	c.Skip = false
	for text, as := range map[string]files.Config{
		"1,2,\n":      {Spec: files.NewSpec(files.CSV), Wire: batch.CSV, Rewrite: true},
		"1,3,\n":      {Spec: files.NewSpec(files.CSV), Wire: batch.TSV},
		"1\t3\t\\N\n": {Spec: files.NewSpec(files.TSV), Wire: batch.TSV},
	} {
		c.Spec, c.Wire, c.Rewrite = as.Spec, as.Wire, as.Rewrite
		c.Spec.Files, err = files.Find([]string{write(t, "file", text)})
		require.NoError(t, err)
		require.ErrorContains(t, drain(open(t, c), 0, func(*batch.Batch) {}), "NULL for column must,")
	}
}
