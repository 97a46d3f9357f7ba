package doris

import (
	"context"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Objects is an object store as the backends see it.
type Objects interface {
	// List names the keys that begin with the prefix, in any order.
	List(ctx context.Context, at Location, prefix string) ([]string, error)
	// Open reads one object.
	Open(ctx context.Context, at Location, key string) (io.ReadCloser, error)
}

// Location is a bucket with what a statement says about how to reach it.
type Location struct {
	Endpoint, Region, Bucket         string
	AccessKey, SecretKey, SessionKey string
	PathStyle                        bool
}

// objectProperties are those that S3(…) has; Doris passes over unknown ones, the stand-in does not.
func objectProperties() []string {
	return []string{"uri", "s3.endpoint", "s3.region", "s3.access_key", "s3.secret_key", "s3.session_token", "use_path_style", "provider",
		"force_parsing_by_standard_uri", "format", "column_separator", "line_delimiter", "csv_schema", "trim_double_quotes", "skip_lines",
		"enclose", "escape", "read_json_by_line", "strip_outer_array", "compress_type", "empty_field_as_null"}
}

// readObjects executes FROM S3(…): the files that match the pattern, as rows of strings named c1, c2, … for CSV, or by
// csv_schema or the keys of the first object for JSON. No matching file is no row, which is no error by itself.
func (s *session) readObjects(properties map[string]string) ([]string, [][]value, error) {
	fail := func(format string, args ...any) ([]string, [][]value, error) {
		return nil, nil, fmt.Errorf("errCode = 2, detailMessage = "+format, args...)
	}
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if !slices.Contains(objectProperties(), name) {
			return fail("this stand-in does not know the property %s of S3()", name)
		}
	}
	for _, name := range []string{"uri", "s3.endpoint", "s3.region", "s3.access_key", "s3.secret_key", "format"} {
		if properties[name] == "" {
			return fail("Properties '%s' is required.", name)
		}
	}
	store := s.mysql.cluster.options.Objects
	if store == nil {
		return fail("this stand-in was started without an object store")
	}
	settings, err := objectSettings(properties)
	if err != nil {
		return fail("%w", err)
	}
	bucket, pattern, found := strings.Cut(strings.TrimPrefix(properties["uri"], "s3://"), "/")
	if !strings.HasPrefix(properties["uri"], "s3://") || !found {
		return fail("Invalid S3 URI: %s (this stand-in reads s3://bucket/key)", properties["uri"])
	}
	at := Location{Endpoint: properties["s3.endpoint"], Region: properties["s3.region"], Bucket: bucket, AccessKey: properties["s3.access_key"],
		SecretKey: properties["s3.secret_key"], SessionKey: properties["s3.session_token"], PathStyle: strings.EqualFold(properties["use_path_style"], "true")}
	ctx := context.Background()
	keys, err := matching(ctx, store, at, pattern)
	if err != nil {
		return fail("%w", err)
	}
	columns := schemaOf(properties["csv_schema"])
	var rows [][]value
	for _, key := range keys {
		data, err := fetchObject(ctx, store, at, key)
		if err != nil {
			return fail("reading %s: %w", key, err)
		}
		if columns, rows, err = settings.appendRows(columns, rows, data); err != nil {
			return fail("reading %s: %w", key, err)
		}
	}
	if columns == nil {
		// Without a file that has content nobody knows the columns, and naming one is an error
		// (ExternalFileTableValuedFunction.fillColumns).
		columns = []string{"__dummy_col"}
	}
	return columns, rows, nil
}

// objectSettings reads the properties that stream loads have as headers.
func objectSettings(properties map[string]string) (settings, error) {
	h := map[string][]string{}
	for _, name := range []string{"format", "column_separator", "line_delimiter", "trim_double_quotes", "skip_lines", "enclose", "escape",
		"read_json_by_line", "strip_outer_array", "empty_field_as_null"} {
		if v, given := properties[name]; given {
			h[strings.ToUpper(name[:1])+name[1:]] = []string{v}
		}
	}
	if c := strings.ToUpper(properties["compress_type"]); c != "" && c != "PLAIN" && c != "UNKNOWN" {
		return settings{}, fmt.Errorf("this stand-in does not read %s", c)
	}
	return readSettings(h)
}

func fetchObject(ctx context.Context, store Objects, at Location, key string) ([]byte, error) {
	body, err := store.Open(ctx, at, key)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

// matching lists the keys that match the pattern, which Doris reads as a glob.
func matching(ctx context.Context, store Objects, at Location, pattern string) ([]string, error) {
	prefix := pattern
	if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
		prefix = pattern[:i]
	}
	keys, err := store.List(ctx, at, prefix)
	if err != nil {
		return nil, err
	}
	form, err := globForm(pattern)
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return !form.MatchString(k) })
	slices.Sort(keys)
	return keys, nil
}

var numberRange = regexp.MustCompile(`^(\d+)\.\.(\d+)$`)

// globForm turns *, ?, [ab], {a,b} and {1..10} into a regular expression.
func globForm(pattern string) (*regexp.Regexp, error) {
	var b strings.Builder
	for i := 0; i < len(pattern); i++ {
		switch c := pattern[i]; c {
		case '*':
			b.WriteString("[^/]*")
		case '?':
			b.WriteString("[^/]")
		case '[', '{':
			closing := map[byte]string{'[': "]", '{': "}"}[c]
			n := strings.Index(pattern[i:], closing)
			if n < 0 {
				return nil, fmt.Errorf("a %c is not closed in %s", c, pattern)
			}
			inside := pattern[i+1 : i+n]
			i += n
			if c == '[' {
				b.WriteString("[" + inside + "]")
				continue
			}
			b.WriteString("(?:" + strings.Join(alternatives(inside), "|") + ")")
		default:
			b.WriteString(regexp.QuoteMeta(string(c)))
		}
	}
	return regexp.Compile("^" + b.String() + "$")
}

func alternatives(inside string) []string {
	var all []string
	for part := range strings.SplitSeq(inside, ",") {
		m := numberRange.FindStringSubmatch(part)
		if m == nil {
			all = append(all, regexp.QuoteMeta(part))
			continue
		}
		from, err1 := strconv.Atoi(m[1])
		to, err2 := strconv.Atoi(m[2])
		if err1 != nil || err2 != nil {
			continue // more digits than anybody means
		}
		for n := from; n <= to; n++ {
			all = append(all, strconv.Itoa(n))
		}
	}
	return all
}

// schemaOf reads "id:int;name:string": the names; the types are those of the target.
func schemaOf(text string) []string {
	var names []string
	for part := range strings.SplitSeq(text, ";") {
		if name, _, ok := strings.Cut(part, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// appendRows reads one file behind others. The first file decides how many columns there are, or what they are called.
func (s settings) appendRows(columns []string, rows [][]value, data []byte) ([]string, [][]value, error) {
	if columns == nil {
		switch s.format {
		case "json":
			columns = keysOf(data)
		case "parquet":
			var err error
			if columns, _, err = readParquet(data); err != nil {
				return nil, nil, err
			}
		}
	}
	records, err := s.read(data, columns)
	if err != nil {
		return nil, nil, err
	}
	for _, r := range records {
		if r.bad != "" { // outside of a stream load nothing is filtered
			return nil, nil, fmt.Errorf("%s", strings.TrimPrefix(r.bad, "Unable to display, "))
		}
		if columns == nil {
			for i := range r.fields {
				columns = append(columns, "c"+strconv.Itoa(i+1))
			}
		}
		// Only loads count the fields of a line; here what is too many is passed over, and what is missing NULL.
		fields := make([]value, len(columns))
		copy(fields, r.fields)
		rows = append(rows, fields)
	}
	return columns, rows, nil
}

// keysOf names the keys of a file's first object, in their order.
func keysOf(data []byte) []string {
	d := newDecoder(data)
	for {
		t, err := d.Token()
		if err != nil {
			return nil
		}
		if t == openBrace {
			break
		}
	}
	var names []string
	for d.More() {
		t, err := d.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return names
		}
		names = append(names, name)
		var skipped any
		if d.Decode(&skipped) != nil {
			return names
		}
	}
	return names
}
