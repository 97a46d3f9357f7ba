package databend

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
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
	q := newQuery(id, fault)
	s.mu.Lock()
	s.running[q.session] = q // before a byte of the body is read
	taken := s.labels[label]
	s.mu.Unlock()
	if !taken {
		s.stream(w, r, q, sql, label)
	}
	s.finish(q)
	switch {
	case fault.Cut:
	case q.err != nil: // the answer is without the code
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, "Query execution failed: "+q.err.Error())
	default:
		send(w, http.StatusOK, map[string]any{"id": q.id, "stats": map[string]int64{"rows": q.written}})
	}
}

// stream reads the body of a streaming load and commits it.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, q *query, sql, label string) {
	m := streamed.FindStringSubmatch(sql)
	if m == nil {
		q.result = unknown(sql)
		return
	}
	data, whole, err := readForm(r)
	if q.err = err; err != nil {
		return
	}
	if q.fault.Cut {
		cut(w)
	}
	s.commit(q, label, statement{Stream, func() result {
		if !whole {
			data = complete(data, m[3])
		}
		return s.insert(m[1], m[2], m[3], data)
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
	if err != nil {
		return nil, false, err
	}
	data, broken := io.ReadAll(part)
	return data, broken == nil, nil
}

// complete leaves out the last row of a text that broke off, where it is unfinished.
func complete(data []byte, format string) []byte {
	end := bytes.LastIndexByte(data, '\n')
	for format == "CSV" && bytes.Count(data[:end+1], []byte{'"'})%2 != 0 { // it is within quotes
		end = bytes.LastIndexByte(data[:end], '\n')
	}
	return data[:end+1]
}

// decode reads the rows of a file. The statement's other options are those that explain shows.
func decode(t *table, columns, format string, data []byte) ([]standin.Row, error) {
	if len(data) == 0 {
		return nil, nil
	}
	kinds := map[string]standin.Kind{"CSV": standin.CSV, "NDJSON": standin.NDJSON, "PARQUET": standin.Parquet}
	found, err := t.Decode(standin.Format{Kind: kinds[format]}, strings.Split(strings.ReplaceAll(columns, "`", ""), ", "), data)
	if err != nil {
		return nil, failed(1046, "%v", err).err
	}
	return found, nil
}

// insert appends the rows of a file to a table, all or none.
func (s *Server) insert(name, columns, format string, data []byte) result {
	t, err := s.table(name)
	if err != nil {
		return result{err: err}
	}
	found, err := decode(t, columns, format, data)
	t.Rows = append(t.Rows, found...)
	return result{written: int64(len(found)), err: err}
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
		return statement{Insert, func() result { return unknown(sql) }}
	}
	path := strings.TrimPrefix(a.Location, "@~/")
	s.mu.Lock()
	data := s.files[path]
	s.mu.Unlock()
	return statement{Insert, func() result {
		r := s.insert(m[1], m[2], a.Format["type"], data)
		if r.err == nil && a.Copy["purge"] == "true" {
			delete(s.files, path)
		}
		return r
	}}
}

// copyInto loads files, all or none. A file whose name the table has loaded is left out without a word.
func (s *Server) copyInto(m []string) (r result) {
	t, err := s.table(m[1])
	if err != nil {
		return result{err: err}
	}
	var all []standin.Row
	for _, path := range texts(m[3]) {
		if t.loaded[path] {
			continue
		}
		data, found := s.files[path]
		if !found {
			return failed(3001, "NotFound (persistent) at stat, path: %s", path)
		}
		rows, err := decode(t, m[2], m[4], data)
		if err != nil {
			return result{err: err}
		}
		all = append(all, rows...)
		r.rows = append(r.rows, []any{path, strconv.Itoa(len(rows)), "0", nil, nil})
	}
	for _, file := range r.rows {
		t.loaded[file[0].(string)] = true
	}
	t.Rows = append(t.Rows, all...)
	r.written = int64(len(all))
	return r
}

// serveUpload stores the files of a form until it ends or breaks off, which is no error to the server.
func (s *Server) serveUpload(w http.ResponseWriter, r *http.Request) {
	stage, folder := r.Header.Get("X-Databend-Stage-Name"), r.Header.Get("X-Databend-Relative-Path")
	if _, refused := s.next(w, Request{Kind: Upload, Label: stage + "/" + folder}); refused {
		return
	}
	files := []string{}
	form, err := r.MultipartReader()
	for err == nil {
		var data []byte
		part, broken := form.NextPart()
		if err = broken; err == nil {
			data, err = io.ReadAll(part)
		}
		if err == nil {
			s.store(folder+"/"+part.FileName(), data)
			files = append(files, part.FileName())
		}
	}
	send(w, http.StatusOK, map[string]any{"stage_name": stage, "state": "SUCCESS", "files": files})
}

func (s *Server) store(path string, data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[path] = data
}

const (
	presignedPath  = "/presigned/"
	presignedQuery = "X-Amz-Signature=stand-in"
)

// servePresigned is the object store behind the server's own stages.
func (s *Server) servePresigned(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.Path, presignedPath)
	if _, refused := s.next(w, Request{Kind: Put, Label: "~/" + path}); refused {
		return
	}
	if r.Method != http.MethodPut || r.ContentLength < 0 || r.URL.RawQuery != presignedQuery ||
		r.Header.Get("X-Stand-In") != "signed" || r.Header.Get("Authorization") != "" {
		refuse(w, http.StatusForbidden, http.StatusForbidden, "the request is not the one that was signed")
		return
	}
	if body, err := io.ReadAll(r.Body); err == nil {
		s.store(path, body)
	}
}
