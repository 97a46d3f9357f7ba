package databend

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"net/http"
	"regexp"
	"strings"

	"github.com/terapush/terapush/internal/standin"
)

func (s *Server) serveStream(w http.ResponseWriter, r *http.Request) {
	sql := r.Header.Get("X-Databend-Sql")
	if sql == "" {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, "Missing required header X-DATABEND-SQL in request")
		return
	}
	id, label := tagsOf(r)
	fault, refused := s.next(w, Request{Kind: Stream, SQL: sql, Label: label, QueryID: id})
	if refused {
		return
	}
	if fault.Late != nil {
		select {
		case <-fault.Late:
		case <-s.closing:
		}
	}
	m := streamed.FindStringSubmatch(sql)
	if m == nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, unknown(sql).Error())
		return
	}
	q := newQuery(id, fault)
	s.mu.Lock()
	s.running[q.session] = q // before a byte of the body is read
	s.mu.Unlock()
	s.stream(w, r, q, label, m)
	_, message := words(q.err)
	switch {
	case fault.Cut:
	case fault.CutAnswer:
		cut(w)
	case q.err != nil:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, "Query execution failed: "+message) // without the code
	default:
		send(w, http.StatusOK, map[string]any{"id": q.id, "stats": map[string]int64{"rows": q.result.written}}, fault.Truncate)
	}
}

// stream runs a streaming load in the order of the server: the label, the body, the commit.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, q *query, label string, m []string) {
	defer s.finish(q)
	if s.taken(label) {
		return // the body is not read
	}
	data, whole, err := readForm(r)
	if q.err = err; err != nil {
		return
	}
	if q.fault.Cut {
		cut(w)
	}
	s.commit(q, label, statement{kind: Stream, run: func() (result, error) {
		options := parseFormat(m[3])
		if !whole {
			data = complete(data, options)
		}
		return s.insert(m[1], m[2], options, data)
	}})
}

// readForm reads the rows of a form. To the server a connection that breaks within a file is the end of the rows: it passes on
// what comes and does not ask why there is no more. Between files it does ask, and the statement fails (read_multi_part in
// streaming_load.rs).
func readForm(r *http.Request) (data []byte, whole bool, err error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, false, err
	}
	part, err := form.NextPart()
	switch {
	case err != nil:
		return nil, false, err
	case part.FormName() != "upload" || part.FileName() == "":
		return nil, false, errors.New("a streaming load takes parts that are named 'upload' and have a file name")
	}
	data, broken := io.ReadAll(part)
	if broken == nil {
		_, err = form.NextPart()
	}
	return data, errors.Is(err, io.EOF), nil
}

// complete leaves out the last row of a body that broke off, where it is unfinished. Nothing is left of a Parquet file, whose
// end says what is in it.
func complete(data []byte, options map[string]string) []byte {
	end := bytes.LastIndexByte(data, '\n')
	for options["type"] == "CSV" && bytes.Count(data[:end+1], []byte{'"'})%2 != 0 { // it is within quotes
		end = bytes.LastIndexByte(data[:end], '\n')
	}
	if options["type"] == "PARQUET" {
		return nil
	}
	return data[:end+1]
}

// formats are the only options of files that are taken, those that terapush sends.
func formats() map[string]map[string]string {
	return map[string]map[string]string{
		"CSV": {
			"type": "CSV", "field_delimiter": ",", "record_delimiter": "\n", "quote": `"`, "escape": "", "skip_header": "0",
			"empty_field_as": "STRING", "error_on_column_count_mismatch": "true", "compression": "NONE",
		},
		"NDJSON":  {"type": "NDJSON", "null_field_as": "NULL", "missing_field_as": "ERROR", "compression": "NONE"},
		"PARQUET": {"type": "PARQUET", "missing_field_as": "ERROR"},
	}
}

var formatOption = regexp.MustCompile(`(\w+) = ('[^']*'|\w+)`)

// parseFormat reads the options as SQL has them.
func parseFormat(text string) map[string]string {
	options := make(map[string]string)
	for _, m := range formatOption.FindAllStringSubmatch(text, -1) {
		options[m[1]] = unquote(m[2])
	}
	return options
}

// decode reads the rows of a file.
func decode(t *table, columns string, options map[string]string, data []byte) ([]standin.Row, error) {
	if !maps.Equal(options, formats()[options["type"]]) {
		return nil, failed(1006, "Invalid option in %q: the stand-in takes those that terapush sends", options)
	}
	format := standin.Format{Kind: standin.CSV, Comma: ",", Newline: "\n", Quote: '"', Hex: true}
	switch options["type"] {
	case "NDJSON":
		format = standin.Format{Kind: standin.NDJSON, Hex: true}
	case "PARQUET":
		format = standin.Format{Kind: standin.Parquet}
		if len(data) == 0 {
			return nil, nil
		}
	}
	found, err := t.Decode(format, strings.Split(strings.ReplaceAll(columns, "`", ""), ", "), data)
	if err != nil {
		return nil, failed(1046, "%v", err)
	}
	return found, nil
}

// insert appends the rows of a file to a table, all or none.
func (s *Server) insert(name, columns string, options map[string]string, data []byte) (result, error) {
	t, err := s.table(name)
	if err != nil {
		return result{}, err
	}
	found, err := decode(t, columns, options, data)
	if err != nil {
		return result{}, err
	}
	t.Rows = append(t.Rows, found...)
	return result{written: int64(len(found))}, nil
}

// attachment is a stage_attachment: a file whose rows are the values of an INSERT.
type attachment struct {
	Location string            `json:"location"`
	Format   map[string]string `json:"file_format_options"`
	Copy     map[string]string `json:"copy_options"`
}

// attached is an INSERT of the rows that the file has now, when the statement is planned: that it is removed while the statement
// runs changes nothing. A file that does not exist has no rows.
func (s *Server) attached(sql string, a *attachment) statement {
	m := insertShape.FindStringSubmatch(sql)
	if m == nil {
		return statement{kind: Insert, run: func() (result, error) { return result{}, unknown(sql) }}
	}
	path := strings.TrimPrefix(a.Location, "@")
	s.mu.Lock()
	data := s.files[path]
	s.mu.Unlock()
	return statement{kind: Insert, run: func() (result, error) {
		r, err := s.insert(m[1], m[2], a.Format, data)
		if err == nil && a.Copy["purge"] == "true" {
			delete(s.files, path)
		}
		return r, err
	}}
}

// copyInto loads files, all or none. A file whose name the table has loaded is left out without a word.
func (s *Server) copyInto(m []string) (r result, err error) {
	t, err := s.table(m[1])
	if err != nil {
		return r, err
	}
	var all []standin.Row
	var names []string
	for _, path := range texts(m[4]) {
		if t.loaded[path] {
			continue
		}
		data, err := s.staged(m[3], path)
		if err != nil {
			return result{}, err
		}
		found, err := decode(t, m[2], parseFormat(m[5]), data)
		if err != nil {
			return result{}, err
		}
		all, names = append(all, found...), append(names, path)
		r.rows = append(r.rows, []any{path, number(len(found)), "0", nil, nil})
	}
	t.Rows = append(t.Rows, all...)
	for _, path := range names {
		t.loaded[path] = true
	}
	r.written = int64(len(all))
	return r, nil
}

// staged reads a file of a stage.
func (s *Server) staged(stage, path string) ([]byte, error) {
	url, err := s.stage(stage)
	if err != nil {
		return nil, err
	}
	data, found := s.files[stage+"/"+path]
	if url != "" {
		data, err = s.options.Object(url + path)
		found = err == nil
	}
	if !found {
		return nil, failed(3001, "NotFound (persistent) at stat, path: %s", path)
	}
	return data, nil
}

// serveUpload stores the files of a form until it ends or breaks off, which is no error to the server.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	stage, folder := r.Header.Get("X-Databend-Stage-Name"), r.Header.Get("X-Databend-Relative-Path")
	fault, refused := s.next(w, Request{Kind: Upload, Label: stage + "/" + folder})
	if refused {
		return
	}
	form, err := r.MultipartReader()
	if err != nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	files := []string{}
	for {
		part, err := form.NextPart()
		var data []byte
		if err == nil {
			data, err = io.ReadAll(part)
		}
		if err != nil {
			break
		}
		s.store(stage+"/"+folder+"/"+part.FileName(), data)
		files = append(files, part.FileName())
	}
	send(w, http.StatusOK, map[string]any{"stage_name": stage, "state": "SUCCESS", "files": files}, fault.Truncate)
}

func (s *Server) store(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

const (
	presignedPath   = "/presigned/"
	presignedQuery  = "X-Amz-Signature=stand-in"
	presignedHeader = "X-Stand-In" // has to come with the request, as what else was signed
)

// servePresigned is the object store behind the server's own stages.
func (s *Server) servePresigned(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, presignedPath)
	if _, refused := s.next(w, Request{Kind: Put, Label: path}); refused {
		return
	}
	if r.Method != http.MethodPut || r.ContentLength < 0 || r.URL.RawQuery != presignedQuery ||
		r.Header.Get(presignedHeader) != "signed" || r.Header.Get("Authorization") != "" {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>SignatureDoesNotMatch</Code><Message>the request is not the one that was signed</Message></Error>")
		return
	}
	if body, err := io.ReadAll(r.Body); err == nil {
		s.store(path, body)
	}
}
