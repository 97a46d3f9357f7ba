package doris_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/fake/doris"
)

// files is an object store of one bucket.
type files map[string]string

func (f files) List(_ context.Context, at doris.Location, prefix string) ([]string, error) {
	if at.SecretKey != "sk" || !at.PathStyle || at.Endpoint != "http://s3" || at.Bucket != "b" {
		return nil, fmt.Errorf("AccessDenied: %+v", at)
	}
	return slices.DeleteFunc(slices.Collect(maps.Keys(f)), func(k string) bool { return !strings.HasPrefix(k, prefix) }), nil
}

func (f files) Open(_ context.Context, _ doris.Location, key string) (io.ReadCloser, error) {
	return io.NopCloser(strings.NewReader(f[key])), nil
}

func TestObjects(t *testing.T) {
	c, db := start(t, doris.Options{Objects: files{
		"p/1.csv": "1\x01a\x022\x01b\x02", "p/2.csv": "3\x01c\x02", "p/10.csv": "10\x01\\N\x02", "p/bad.csv": "x\x01y\x02", "p/odd.csv": "1\x022\x01b\x02",
		"p/latin.csv": "1\x01\xff\x02", "p/1.json": "{\"body\":\"j\",\"id\":5}\n", "q/1.csv": "99\x01z\x02", "p/more.csv": "7\x01a\x01b\x02", "p/empty.csv": "",
	}})
	load := func(label, pattern, more string) (int64, error) {
		r, err := db.ExecContext(t.Context(), "INSERT INTO d.t WITH LABEL `"+label+"` (id, body) SELECT CAST(c1 AS BIGINT), CAST(c2 AS STRING) FROM "+
			`S3("uri"="s3://b/`+pattern+`","s3.endpoint"="http://s3","s3.region"="r","s3.access_key"="ak","s3.secret_key"="sk","use_path_style"="true",`+
			"\"format\"=\"csv\",\"column_separator\"=\"\x01\",\"line_delimiter\"=\"\x02\""+more+")")
		if err != nil {
			return 0, err
		}
		return r.RowsAffected()
	}
	for i, want := range []struct {
		pattern string
		rows    int64
		keys    string
	}{
		{"p/1.csv", 2, "1 2"}, {"p/{1,2}.csv", 3, "1 2 3"}, {"p/{1..3}.csv", 3, "1 2 3"}, {"p/?.csv", 3, "1 2 3"}, {"p/[12]*.csv", 4, "1 10 2 3"},
		{"p/more.csv", 1, "7"},
	} {
		exec1(t, db, "TRUNCATE TABLE d.t")
		n, err := load(fmt.Sprint("l", i), want.pattern, "")
		require.NoError(t, err, want.pattern)
		assert.Equal(t, want.rows, n, want.pattern)
		assert.Equal(t, want.keys, strings.Join(slices.Sorted(maps.Keys(c.KeyCounts("d.t"))), " "), want.pattern)
		assert.Equal(t, "VISIBLE", c.State("d", fmt.Sprint("l", i)))
	}
	_, err := load("l0", "p/2.csv", "")
	assert.ErrorContains(t, err, "Label [l0] has already been used")
	for pattern, words := range map[string]string{
		"p/bad.csv":   "values is null",
		"p/odd.csv":   "Unknown column 'c2'", // its first line has one field
		"p/none*.csv": "Unknown column 'c1'",
		"p/empty.csv": "Unknown column 'c1'",
		"p/latin.csv": "only support csv data in utf8 codec",
		"p/{1.csv":    "is not closed",
	} {
		_, err := load("wrong", pattern, "")
		assert.ErrorContains(t, err, words, pattern)
		assert.Equal(t, "ABORTED", c.State("d", "wrong"))
	}
	_, err = load("wrong", "p/1.csv", `,"colour"="red"`)
	assert.ErrorContains(t, err, "does not know the property colour")
	n, err := load("none", "p/none*.csv", `,"csv_schema"="c1:bigint;c2:string"`)
	require.NoError(t, err)
	assert.Zero(t, n, "a success without rows")
	_, rows := table(t, db, `SELECT id, body FROM S3("uri"="s3://b/p/1.json","s3.endpoint"="http://s3","s3.region"="r","s3.access_key"="ak","s3.secret_key"="sk","use_path_style"="true","format"="json")`)
	assert.Equal(t, "5|j", flat(rows))
}
