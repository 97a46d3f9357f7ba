package databend

import (
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

var (
	stagePath   = regexp.MustCompile(`@(~|\w+)(?:/([^\s';)]*))?`)
	copySource  = regexp.MustCompile(`(?is)^COPY\s+INTO\s.*?\sFROM\s+(?:\(\s*SELECT\s.*?\sFROM\s+)?(@(?:~|\w+)(?:/[^\s';)]*)?)(.*)$`)
	copyFiles   = regexp.MustCompile(`(?is)\bFILES\s*=\s*\(((?:\s*'(?:[^'\\]|\\.|'')*'\s*,?)*)\)`)
	copyPattern = regexp.MustCompile(`(?is)\bPATTERN\s*=\s*'((?:[^'\\]|\\.|'')*)'`)
	copyChooses = regexp.MustCompile(`(?is)\bWHERE\b|\bSIZE_LIMIT\s*=`)
	copyPurge   = regexp.MustCompile(`(?is)\bPURGE\s*=\s*TRUE\b`)
	quotedText  = regexp.MustCompile(`'((?:[^'\\]|\\.|'')*)'`)
)

// splitPlace takes @stage/path apart.
func splitPlace(place string) (stage, path string, ok bool) {
	m := stagePath.FindStringSubmatch(place)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

// insertAttached loads the one file that an INSERT brings along.
func (r *request) insertAttached(q question) (result, error) {
	stage, path, ok := splitPlace(q.Attachment.Location)
	if !ok {
		return result{}, failed(codeSyntax, "the stage attachment has no location")
	}
	lower := map[string]string{}
	for name, value := range q.Attachment.Format {
		lower[strings.ToLower(name)] = value
	}
	if lower["type"] == "" {
		lower["type"] = "CSV" // the server's default for attachments
	}
	text, err := formatOf(lower)
	if err != nil {
		return result{}, err
	}
	rows, err := r.load(stage, path, text)
	if err != nil {
		return result{}, err
	}
	r.conn.Loaded(0, rows)
	return affected(rows), nil
}

// load returns the rows of a file.
func (r *request) load(stage, path string, text *sink.Text) (int64, error) {
	f, found := r.node.files.Find(stage + "/" + path)
	if !found {
		return 0, &queryError{http.StatusOK, codeFileMissing, "terapush sink: file @" + stage + "/" + path + " was not uploaded here, or is none of the last 10,000"}
	}
	return f.rowsAs(text)
}

// copyInto loads files by their names, or those below a path.
func (r *request) copyInto(sql string) (result, error) {
	m := copySource.FindStringSubmatch(sql)
	if m == nil {
		return result{}, failed(codeUnimplemented, "COPY INTO a table FROM a stage is all that can be copied here")
	}
	stage, path, _ := splitPlace(m[1])
	if copyChooses.MatchString(sql) {
		return result{}, failed(codeUnimplemented, "how many rows WHERE or SIZE_LIMIT leave cannot be known here")
	}
	text, err := format(m[2])
	if err != nil {
		return result{}, err
	}
	paths, err := r.named(stage, path, m[2])
	if err != nil {
		return result{}, err
	}
	out := table([]string{"File", "Rows_loaded Int32", "Errors_seen Int32", "First_error Nullable(String)", "First_error_line Nullable(Int32)"})
	for _, name := range paths {
		rows, err := r.load(stage, name, text)
		if err != nil {
			return result{}, err
		}
		none, count := "0", strconv.FormatInt(rows, 10)
		out.rows = append(out.rows, []*string{&name, &count, &none, nil, nil})
		out.written += rows
	}
	if copyPurge.MatchString(m[2]) {
		for _, name := range paths {
			r.node.files.Remove(stage + "/" + name)
		}
	}
	r.conn.Loaded(0, out.written)
	return out, nil
}

// named returns the paths of the files that a COPY means.
func (r *request) named(stage, path, options string) ([]string, error) {
	if m := copyFiles.FindStringSubmatch(options); m != nil {
		all := map[string]bool{}
		for _, f := range quotedText.FindAllStringSubmatch(m[1], -1) {
			name := unescape(f[1])
			if path != "" {
				name = strings.TrimSuffix(path, "/") + "/" + name
			}
			all[name] = true
		}
		return slices.Sorted(maps.Keys(all)), nil
	}
	found, err := r.matching(stage, path, options)
	var all []string
	for _, f := range found {
		all = append(all, f.path)
	}
	return all, err
}

// matching returns the files below a path whose names behind it match the pattern, if there is one.
func (r *request) matching(stage, path, options string) ([]*file, error) {
	all := r.node.below(stage, path)
	m := copyPattern.FindStringSubmatch(options)
	if m == nil {
		return all, nil
	}
	pattern, err := regexp.Compile("^(?:" + unescape(m[1]) + ")$")
	if err != nil {
		return nil, failed(codeSyntax, "the pattern cannot be read: "+err.Error())
	}
	return slices.DeleteFunc(all, func(f *file) bool {
		return !pattern.MatchString(strings.TrimPrefix(strings.TrimPrefix(f.path, path), "/"))
	}), nil
}

// ofStage answers what is asked about a stage.
func (r *request) ofStage(verb, sql string) (result, error) {
	stage, path, ok := splitPlace(sql)
	if !ok {
		return result{}, failed(codeSyntax, verb+" wants a stage: @name/path")
	}
	switch verb {
	case "PRESIGN":
		if !strings.Contains(strings.ToUpper(sql), "UPLOAD") || path == "" {
			return result{}, failed(codeUnimplemented, "files are counted and forgotten: there is PRESIGN UPLOAD only")
		}
		return table([]string{"method", "headers", "url"}, []string{http.MethodPut, "{}", r.presign(stage, path)}), nil
	case "LIST", "LS":
		out := table([]string{"name", "size"})
		found, err := r.matching(stage, path, sql)
		for _, f := range found {
			size := strconv.FormatInt(f.size, 10)
			out.rows = append(out.rows, []*string{&f.path, &size})
		}
		return out, err
	}
	found, err := r.matching(stage, path, sql)
	for _, f := range found {
		r.node.files.Remove(stage + "/" + f.path)
	}
	return table(nil), err
}
