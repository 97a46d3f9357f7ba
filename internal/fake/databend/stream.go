package databend

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
)

// streamed is what /v1/streaming_load takes, and nothing else.
var streamed = shape(`INSERT INTO ` + tablePart + `(?:\s*\(([^()]*)\))?\s*(?:VALUES\s*)?FROM @_databend_load FILE_FORMAT\s*=\s*\((.*)\)`)

func (f *Fake) serveStream(w http.ResponseWriter, r *http.Request) {
	sql := r.Header.Get("X-Databend-Sql")
	state, err := queryContext(r)
	if err != nil || sql == "" {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, "Missing header X-Databend-SQL, or unreadable X-Databend-Query-Context")
		return
	}
	s := state.open(r)
	id, label := r.Header.Get("X-DATABEND-QUERY-ID"), labelOf(r, s)
	if id == "" {
		id = newID()
	}
	fault := f.next(Stream, sql, label, id, r.Header)
	if fault.Status != 0 {
		refuse(w, fault.Status, fault.Status, fault.words("refused by the script"))
		return
	}
	if fault.Late != nil {
		select {
		case <-fault.Late:
		case <-f.closed:
		}
	}
	m := streamed.FindStringSubmatch(sql)
	if m == nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, "the stand-in does not know this statement: "+sql)
		return
	}
	form, err := parseFormat(m[3])
	if err != nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	q := newQuery(id, s, fault)
	f.mu.Lock()
	f.running[q.session] = q
	_, err = f.store.table(s.full(m[1]))
	f.mu.Unlock()
	if err != nil {
		f.finish(q)
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	size := f.stream(w, r, q, label, func(data []byte, whole bool) (result, error) {
		t, err := f.store.table(s.full(m[1]))
		if err != nil {
			return result{}, err
		}
		rows, err := t.decode(data, form, names(m[2]), whole)
		if err != nil {
			return result{}, err
		}
		t.rows = append(t.rows, rows...)
		return inserted(len(rows)), nil
	})
	switch {
	case fault.Vanish: // nobody is there any more
	case fault.LoseAnswer:
		cut(w)
	case q.err != nil:
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, words(q.err))
	default:
		context, _ := json.Marshal(state)
		w.Header().Set("X-Databend-Query-Context", base64.URLEncoding.EncodeToString(context))
		send(w, http.StatusOK, map[string]any{"id": id, "stats": map[string]int64{"rows": q.result.written, "bytes": size}}, fault.Truncate)
	}
}

// words are what a streaming load says of an error: the code is lost on the way.
func words(err error) string {
	var form *formError
	if errors.As(err, &form) {
		return form.Error()
	}
	return "Query execution failed: " + err.Error()
}

// formError is a form that a streaming load does not take.
type formError struct{ message string }

func (e *formError) Error() string { return e.message }

func queryContext(r *http.Request) (state sessionState, err error) {
	if text := r.Header.Get("X-Databend-Query-Context"); text != "" {
		err = json.Unmarshal([]byte(text), &state)
	}
	return state, err
}

// stream carries a streaming load out, in the order of the server: a slot, the label, the body, the commit. It gives the
// bytes of the files.
func (f *Fake) stream(w http.ResponseWriter, r *http.Request, q *query, label string, apply func([]byte, bool) (result, error)) int64 {
	defer f.finish(q)
	if q.err = f.slot(q); q.err != nil {
		return 0
	}
	defer func() { <-f.slots }()
	if f.taken(label) {
		return 0 // the body is not read
	}
	data, whole, err := readStream(r)
	if err != nil {
		q.err = err
		return 0
	}
	if q.fault.Vanish {
		cut(w)
	}
	q.result, q.err = f.commit(q, label, func() (result, error) { return apply(data, whole) })
	return int64(len(data))
}

// readStream reads the files of a form. A connection that breaks off in a file is one that is over: the server's source
// hands what comes to the statement until there is no more, and does not ask why. Between files it does (read_multi_part
// in streaming_load.rs), and the statement fails.
func readStream(r *http.Request) (data []byte, whole bool, err error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, false, &formError{"Failed to parse multipart: " + err.Error()}
	}
	var all bytes.Buffer
	var broken error
	for parts := 0; broken == nil; parts++ {
		var part *multipart.Part
		if part, broken = form.NextPart(); broken != nil {
			if !errors.Is(broken, io.EOF) {
				return nil, false, &formError{"Failed to parse multipart data: " + broken.Error()}
			}
			whole = parts > 0
			break
		}
		if part.FormName() != "upload" || part.FileName() == "" {
			return nil, false, &formError{"a streaming load takes parts that are named 'upload' and have a file name"}
		}
		_, broken = io.Copy(&all, part)
	}
	return all.Bytes(), whole, nil
}

func (f *Fake) serveUpload(w http.ResponseWriter, r *http.Request) {
	stage := first(r.Header.Get("X-Databend-Stage-Name"), r.Header.Get("Stage_name"))
	folder := first(r.Header.Get("X-Databend-Relative-Path"), r.Header.Get("Relative_path"))
	fault := f.next(Upload, "", stage+"/"+folder, "", r.Header)
	if fault.Status != 0 {
		refuse(w, fault.Status, fault.Status, fault.words("refused by the script"))
		return
	}
	f.mu.Lock()
	url, err := f.store.stage(stage)
	f.mu.Unlock()
	if err != nil || url != "" {
		refuse(w, http.StatusBadRequest, 2501, "the stand-in uploads into its own stages only, not into "+stage)
		return
	}
	form, err := r.MultipartReader()
	if err != nil {
		refuse(w, http.StatusBadRequest, http.StatusBadRequest, err.Error())
		return
	}
	files := f.storeParts(form, stage, folder, fault.FewerFiles)
	if fault.LoseAnswer {
		cut(w)
		return
	}
	send(w, http.StatusOK, map[string]any{"id": newID(), "stage_name": stage, "state": "SUCCESS", "files": files}, fault.Truncate)
}

// storeParts stores the files of a form until it ends or breaks off, which is no error to the server.
func (f *Fake) storeParts(form *multipart.Reader, stage, folder string, none bool) []string {
	files := []string{}
	for {
		part, err := form.NextPart()
		if err != nil {
			return files
		}
		data, err := io.ReadAll(part)
		name := fileName(part)
		if err != nil || name == "" {
			return files
		}
		if none {
			continue
		}
		f.mu.Lock()
		f.store.files[stage+"/"+strings.TrimPrefix(strings.Trim(folder, "/")+"/"+name, "/")] = data
		f.mu.Unlock()
		files = append(files, name)
	}
}

// fileName is a part's file name as it was sent: databend-go puts a path there, of which part.FileName drops the folders.
func fileName(part *multipart.Part) string {
	_, values, err := mime.ParseMediaType(part.Header.Get("Content-Disposition"))
	if err != nil {
		return ""
	}
	return values["filename"]
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
