package files_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/files"
)

// databend reads csv as this program's encoders write it. Its own reading differs: it skips empty lines, and a quote within
// a field is data.
func databend(t *testing.T) database {
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

	table := "meant_" + rand.Text()
	query(t, "CREATE TABLE "+table+" (a VARCHAR NULL, b VARCHAR NULL)")
	t.Cleanup(func() { query(t, "DROP TABLE "+table) })
	return func(t *testing.T, columns []string, _ files.Spec, batches [][]byte) (rows [][]*string, err error) {
		names := strings.Join(columns, ", ")
		query(t, "TRUNCATE TABLE "+table)
		for _, b := range batches {
			var form bytes.Buffer
			w := multipart.NewWriter(&form)
			part, err := w.CreateFormFile("upload", "batch")
			require.NoError(t, err)
			_, err = part.Write(b)
			require.NoError(t, errors.Join(err, w.Close()))
			_, err = send(t, http.MethodPut, "/v1/streaming_load", w.FormDataContentType(), "INSERT INTO "+table+
				" ("+names+") FROM @_databend_load FILE_FORMAT = (type = CSV, escape = '', empty_field_as = STRING, "+
				"error_on_column_count_mismatch = true)", &form)
			if err != nil {
				return nil, err
			}
		}
		return query(t, "SELECT "+names+" FROM "+table), nil
	}
}
