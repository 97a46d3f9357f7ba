package doris

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/terapush/terapush/internal/standin"
)

var (
	castShape     = regexp.MustCompile(`CAST\(([^() ]+) AS `)
	propertyShape = regexp.MustCompile(`(?s)"([^"]+)" = "((?:[^"\\]|\\.)*)"`)
)

// readProperties reads "name" = "value", ….
func readProperties(list string) map[string]string {
	all := map[string]string{}
	for _, m := range propertyShape.FindAllStringSubmatch(list, -1) {
		all[m[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`).Replace(m[2])
	}
	return all
}

// readObjects reads the rows of SELECT CAST(c1 AS …), … FROM S3(…). Objects that are missing have no rows, which is no
// error.
func (s *session) readObjects(t *table, columns []string, query string) (all []standin.Row) {
	m := queryShape.FindStringSubmatch(query)
	if m == nil {
		unknown(query)
	}
	of := readProperties(m[2])
	names := objectColumns(m[1], columns, of["format"])
	bucket, pattern, _ := strings.Cut(strings.TrimPrefix(of["uri"], "s3://"), "/")
	for _, key := range alternatives(pattern) {
		data, err := readObject(of, bucket, key)
		if missing := (*types.NoSuchKey)(nil); errors.As(err, &missing) {
			continue
		}
		var loaded []standin.Row
		if err == nil {
			loaded, err = t.decode(format(of["format"], of["column_separator"], of["line_delimiter"]), names, data)
		}
		if err != nil {
			refuse(1105, "reading %s: %v", key, err)
		}
		all = append(all, loaded...)
	}
	return all
}

// objectColumns returns which column each field of a CSV object goes to: they are c1, c2, …. Those of Parquet have
// names.
func objectColumns(list string, columns []string, format string) []string {
	names := make([]string, len(columns))
	for i, m := range castShape.FindAllStringSubmatch(list, -1) {
		field, err := strconv.Atoi(strings.TrimPrefix(m[1], "c"))
		switch {
		case i >= len(columns):
			unknown(list)
		case format == "parquet" && m[1] == "`"+columns[i]+"`":
			names[i] = columns[i]
		case format == "csv" && err == nil && 0 < field && field <= len(names):
			names[field-1] = columns[i]
		default:
			refuse(1105, "Unknown column '%s' in 'table list'", m[1])
		}
	}
	return names
}

// alternatives expands folder{a,b,…}; a name without braces is one.
func alternatives(pattern string) (keys []string) {
	folder, names, found := strings.Cut(strings.TrimSuffix(pattern, "}"), "{")
	if !found {
		return []string{pattern}
	}
	for name := range strings.SplitSeq(names, ",") {
		keys = append(keys, folder+name)
	}
	return keys
}

// readObject reads an object as a backend does: by what the statement says.
func readObject(of map[string]string, bucket, key string) ([]byte, error) {
	endpoint := of["s3.endpoint"]
	store := s3.New(s3.Options{
		BaseEndpoint: &endpoint, Region: of["s3.region"], UsePathStyle: of["use_path_style"] == "true",
		Credentials: credentials.NewStaticCredentialsProvider(of["s3.access_key"], of["s3.secret_key"], of["s3.session_token"]),
	})
	got, err := store.GetObject(context.Background(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	if err != nil {
		return nil, fmt.Errorf("s3://%s/%s: %w", bucket, key, err)
	}
	defer got.Body.Close()
	return io.ReadAll(got.Body)
}
