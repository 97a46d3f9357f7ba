package databend

import (
	"encoding/xml"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

// maxPath bounds a file's name with its stage, in bytes.
const maxPath = 1024

// file is what is remembered of a file in a stage.
type file struct {
	stage, path string
	size        int64
	rows        int64 // lines, or what a Parquet footer says; where nothing is counted, bytes / the size of a row
	filled      int64 // lines that are not empty
	quoted      int64 // rows of CSV with commas and quotes; −1: it is none
	parquet     bool
	dropped     bool // nothing was counted
}

// rowsAs returns how many rows a file has in a format.
func (f *file) rowsAs(t *sink.Text) (int64, error) {
	switch {
	case f.dropped:
		return f.rows, nil
	case (t == nil) != f.parquet:
		return 0, &refusal{http.StatusOK, codeBadBytes, "terapush sink: file " + f.path + " is of another format"}
	case t == nil:
		return f.rows, nil
	}
	n := f.rows
	switch usual := (sink.Text{Quote: '"', Separator: ",", Filled: true, Skip: t.Skip}); {
	case *t == usual:
		if n = f.quoted; n < 0 {
			return 0, &refusal{http.StatusOK, codeBadBytes, "terapush sink: file " + f.path + ": a value in quotes has no end"}
		}
	case t.Quote != 0 || t.End != "":
		return 0, &refusal{http.StatusOK, codeUnimplemented, "terapush sink: rows in a stage are counted before their format is known: " +
			"of CSV with commas, double quotes and line feeds, without ESCAPE, or without quotes (QUOTE = '')"}
	case t.Filled:
		n = f.filled
	}
	return max(0, n-t.Skip), nil
}

// unread counts the rows of a file whose format is not known yet.
type unread struct {
	web.Sniffed
	filled, quoted *sink.Delimited
}

func newUnread() *unread {
	return &unread{
		filled: sink.NewDelimited(sink.Text{Filled: true}), quoted: sink.NewDelimited(sink.Text{Quote: '"', Separator: ",", Filled: true}),
	}
}

func (u *unread) Write(p []byte) {
	u.Sniffed.Write(p)
	u.filled.Write(p)
	u.quoted.Write(p)
}

// remembered makes what is remembered of it.
func (u *unread) remembered(f *file) {
	if u == nil {
		f.dropped = true
		return
	}
	f.parquet = u.Piece().Parquet()
	f.filled, _ = u.filled.Rows() // without quotes there is nothing to fail
	var err error
	if f.quoted, err = u.quoted.Rows(); err != nil {
		f.quoted = -1
	}
}

// files are the newest in all stages.
type files struct{ sink.Recent[*file] }

func (f *files) put(one *file)             { f.Put(one.stage+"/"+one.path, one) }
func (f *files) remove(stage, path string) { f.Remove(stage + "/" + path) }

func (f *files) find(stage, path string) (*file, bool) { return f.Find(stage + "/" + path) }

// below lists the files of a stage whose paths begin with prefix.
func (f *files) below(stage, prefix string) []*file {
	all := f.Where(func(one *file) bool { return one.stage == stage && strings.HasPrefix(one.path, prefix) })
	slices.SortFunc(all, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	return all
}

// uploadToStage takes the files of a form. The older names of the headers are those that databend-go has.
func (r *request) uploadToStage() error {
	stage := firstOf(r.Header.Get("X-Databend-Stage-Name"), r.Header.Get("Stage_name"), "~")
	folder := strings.Trim(firstOf(r.Header.Get("X-Databend-Relative-Path"), r.Header.Get("Relative_path")), "/")
	var counts []*unread
	loads, err := r.takeForm(func() sink.RowCounter {
		counts = append(counts, newUnread())
		return counts[len(counts)-1]
	})
	if err != nil {
		return err
	}
	if len(loads) == 0 {
		return refuse(http.StatusBadRequest, "the form has no file")
	}
	names := make([]string, len(loads))
	for i, l := range loads {
		names[i] = l.Name
		if l.Failed != nil {
			return failed(l.Failed)
		}
		if len(stage)+len(folder)+len(l.Name) > maxPath {
			return refuse(http.StatusBadRequest, "the name of a file is longer than 1 KiB")
		}
	}
	for i, l := range loads {
		one := &file{stage: stage, path: strings.TrimPrefix(folder+"/"+l.Name, "/"), size: l.Bytes, rows: l.Rows}
		var count *unread
		if r.Counting() {
			count = counts[i]
		}
		count.remembered(one)
		r.node.files.put(one)
		r.Count.Loaded(l.Bytes, 0)
	}
	return r.json(http.StatusOK, map[string]any{"id": r.id(), "stage_name": stage, "state": "SUCCESS", "files": names})
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// presigned is the path that presigned URLs begin with.
const presigned = "/terapush-sink-stage/"

// presign makes the address that a file may be put to without a password. It has no signature: there is nothing here
// to protect.
func (r *request) presign(stage, path string) string {
	u := url.URL{Scheme: "http", Host: r.Host, Path: presigned + stage + "/" + path}
	if r.Stream.Encrypted() {
		u.Scheme = "https"
	}
	return u.String()
}

// putPresigned takes a file as the object store behind the stage does.
func (r *request) putPresigned() error {
	stage, path, named := strings.Cut(strings.TrimPrefix(r.URL.Path, presigned), "/")
	if !named || path == "" || len(stage)+len(path) > maxPath {
		return r.storeError(http.StatusBadRequest, "InvalidArgument", "there is no file of that name")
	}
	var count *unread
	var counter sink.RowCounter
	if r.Counting() {
		count = newUnread()
		counter = count
	}
	load := r.Stream.Load(counter)
	if _, err := r.Content.TakeAll(load); err != nil {
		load.GiveUp()
		return err
	}
	one := &file{stage: stage, path: path}
	var err error
	one.size, one.rows, err = load.End()
	if errors.Is(err, sink.ErrTold) {
		return r.storeError(http.StatusServiceUnavailable, "SlowDown", err.Error())
	}
	if err != nil {
		return r.storeError(http.StatusBadRequest, "InvalidRequest", err.Error())
	}
	count.remembered(one)
	r.node.files.put(one)
	r.Count.Loaded(one.size, 0)
	return r.Answer(http.StatusOK, "", nil, "ETag", `"0"`)
}

func (r *request) storeError(status int, code, message string) error {
	text, err := xml.Marshal(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: "terapush sink: " + message})
	if err != nil {
		return err
	}
	return r.Answer(status, "application/xml", text)
}
