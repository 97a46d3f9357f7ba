package databend

import (
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// file is what is remembered of a file in a stage.
type file struct {
	path       string
	size, rows int64
	format     format
	dropped    bool // nothing was counted
}

// rowsAs returns how many rows a file has in the format of the statement that loads it.
func (f *file) rowsAs(as format) (int64, error) {
	if f.dropped {
		return f.rows, nil
	}
	skip := as.text.Skip
	as.text.Skip = 0
	if as != f.format {
		return 0, failed(codeUnimplemented, "rows in a stage are counted before a statement tells their format: those of "+
			f.path+" by its name, of CSV with commas, double quotes and line feeds, without ESCAPE")
	}
	return max(0, f.rows-skip), nil
}

// takeFile takes a file into a stage.
func (r *request) takeFile(stage, path string, data io.Reader) error {
	f := &file{path: path, dropped: r.conn.Options.NoCount}
	var count sink.RowCounter
	var err error
	if f.format, err = formatOfName(path); err == nil {
		count, err = f.format.counter()
	}
	if err != nil && !f.dropped {
		return err
	}

	if f.size, f.rows, err = r.conn.Take(data, count); err != nil {
		return err
	}
	r.node.files.Put(stage+"/"+path, f)
	r.conn.Loaded(f.size, 0)
	return nil
}

// uploadToStage takes the file of a form.
func (r *request) uploadToStage() (any, error) {
	file, err := r.form()
	if err != nil {
		return nil, err
	}
	stage := r.Header.Get("X-Databend-Stage-Name")
	folder := strings.Trim(r.Header.Get("X-Databend-Relative-Path"), "/")
	err = r.takeFile(stage, strings.TrimPrefix(folder+"/"+file.name, "/"), file)
	if known := (*queryError)(nil); err != nil && !errors.As(err, &known) {
		err = loadError(err)
	}
	if err != nil {
		return nil, err
	}
	if err := file.close(); err != nil {
		return nil, err
	}
	return map[string]any{"id": r.id(), "stage_name": stage, "state": "SUCCESS", "files": []string{file.name}}, nil
}

// presigned is the path that presigned URLs begin with.
const presigned = "/terapush-sink-stage/"

// presign makes the address that a file may be put to. It has no signature: there is nothing here to protect.
func (r *request) presign(sql string) (result, error) {
	stage, path, err := place(sql)
	if err != nil || !strings.Contains(strings.ToUpper(sql), "UPLOAD") || path == "" {
		return table(nil), failed(codeUnimplemented,
			"files are counted and forgotten: there is PRESIGN UPLOAD of @stage/path only")
	}
	u := url.URL{Scheme: "http", Host: r.Host, Path: presigned + stage + "/" + path}
	if r.conn.Encrypted() {
		u.Scheme = "https"
	}
	return table([]string{"method", "headers", "url"}, []string{http.MethodPut, "{}", u.String()}), nil
}

// putPresigned takes a file as the object store behind the stage does.
func (r *request) putPresigned() sink.Answer {
	stage, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, presigned), "/")
	err := r.takeFile(stage, path, r.Body)
	if err == nil {
		return sink.Answer{Status: http.StatusOK, Header: []string{"ETag", `"0"`}}
	}
	status, code := http.StatusBadRequest, "InvalidRequest"
	if errors.Is(err, sink.ErrTold) {
		status, code = http.StatusServiceUnavailable, "SlowDown"
	}
	text, _ := xml.Marshal(struct { // of texts alone, which cannot fail
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: err.Error()})
	return sink.Answer{Status: status, Type: "application/xml", Body: text}
}

var (
	stagePath = regexp.MustCompile(`@(~|\w+)(?:/([^\s';)]*))?`)
	copyStage = regexp.MustCompile(`(?is)^COPY\s+INTO\s+[^\s(]+\s*(?:\([^()]*\)\s*)?FROM\s+@(~|\w+)\s+` +
		`FILES\s*=\s*\(((?:\s*'[^'\\]*'\s*,?)+)\)(.*)$`)
	copySome   = regexp.MustCompile(`(?i)\b(?:SIZE_LIMIT|PATTERN)\s*=`)
	patternOf  = regexp.MustCompile(`(?is)\bPATTERN\s*=\s*'([^'\\]*)'`)
	quotedText = regexp.MustCompile(`'([^']*)'`)
)

// place takes @stage/path out of a statement.
func place(sql string) (stage, path string, err error) {
	m := stagePath.FindStringSubmatch(sql)
	if m == nil {
		return "", "", failed(codeSyntax, "a stage is expected: @name/path")
	}
	return m[1], m[2], nil
}

// load returns the rows of a file.
func (r *request) load(stage, path string, as format) (int64, error) {
	f, found := r.node.files.Find(stage + "/" + path)
	if !found {
		return 0, failed(codeFileMissing, "file @"+stage+"/"+path+" was not uploaded here, or was removed")
	}
	return f.rowsAs(as)
}

// insert loads the one file that an INSERT brings along.
func (r *request) insert(q question) (result, error) {
	if q.Attachment == nil {
		return table(nil), failed(codeUnimplemented,
			"INSERT brings a file of a stage here (stage_attachment), and no rows in its text")
	}
	stage, path, err := place(q.Attachment.Location)
	if err != nil {
		return table(nil), err
	}
	as, err := formatOf(q.Attachment.Format)
	if err != nil {
		return table(nil), err
	}
	rows, err := r.load(stage, path, as)
	if err != nil {
		return table(nil), err
	}
	r.conn.Loaded(0, rows)
	out := table([]string{"number of rows inserted"}, []string{strconv.FormatInt(rows, 10)})
	out.written = rows
	return out, nil
}

// copyInto loads files by their names.
func (r *request) copyInto(sql string) (result, error) {
	m := copyStage.FindStringSubmatch(sql)
	if m == nil || copySome.MatchString(sql) {
		return table(nil), failed(codeUnimplemented,
			"COPY INTO a table FROM @stage FILES = ('path', …), all of their rows, is all that can be copied here")
	}
	stage := m[1]
	as, err := formatOfSQL(m[3])
	if err != nil {
		return table(nil), err
	}

	out := table([]string{"File", "Rows_loaded", "Errors_seen", "First_error", "First_error_line"})
	for _, quoted := range quotedText.FindAllStringSubmatch(m[2], -1) {
		rows, err := r.load(stage, quoted[1], as)
		if err != nil {
			return table(nil), err
		}
		out.rows = append(out.rows, []string{quoted[1], strconv.FormatInt(rows, 10), "0", "", ""})
		out.written += rows
	}
	r.conn.Loaded(0, out.written)
	return out, nil
}

// stageFiles lists or forgets the files below a path, or those whose names behind it match a pattern.
func (r *request) stageFiles(verb, sql string) (result, error) {
	stage, path, err := place(sql)
	if err != nil {
		return table(nil), err
	}
	pattern := ".*"
	if m := patternOf.FindStringSubmatch(sql); m != nil {
		pattern = m[1]
	}
	is, err := regexp.Compile("^/?(?:" + pattern + ")$")
	if err != nil {
		return table(nil), failed(codeSyntax, "the pattern cannot be read: "+err.Error())
	}

	out := table([]string{"name", "size"})
	below := stage + "/" + path
	for _, name := range r.node.files.Below(below) {
		f, found := r.node.files.Find(name)
		if !found || !is.MatchString(name[len(below):]) {
			continue
		}
		if verb == "REMOVE" {
			r.node.files.Remove(name)
			continue
		}
		out.rows = append(out.rows, []string{f.path, strconv.FormatInt(f.size, 10)})
	}
	return out, nil
}
