package databend

import (
	"cmp"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/sink"
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

// usual is the CSV that files in a stage are counted as.
var usual = sink.Text{Quote: '"', Separator: ",", Filled: true}

// rowsAs returns how many rows a file has in a format.
func (f *file) rowsAs(t *sink.Text) (int64, error) {
	if f.dropped {
		return f.rows, nil
	}
	if (t == nil) != f.parquet {
		return 0, &queryError{http.StatusOK, codeBadBytes, "terapush sink: file " + f.path + " is of another format"}
	}
	if t == nil {
		return f.rows, nil
	}
	n, skip := f.rows, t.Skip
	plain := *t
	plain.Skip = 0
	switch {
	case plain == usual && f.quoted < 0:
		return 0, &queryError{http.StatusOK, codeBadBytes, "terapush sink: file " + f.path + ": a value in quotes has no end"}
	case plain == usual:
		n = f.quoted
	case t.Quote != 0 || t.End != "":
		return 0, &queryError{http.StatusOK, codeUnimplemented, "terapush sink: rows in a stage are counted before their format is known: " +
			"of CSV with commas, double quotes and line feeds, without ESCAPE, or without quotes (QUOTE = '')"}
	case t.Filled:
		n = f.filled
	}
	return max(0, n-skip), nil
}

// counts counts the rows of a file whose format is not known yet.
type counts struct {
	sink.Sniffed
	filled, quoted *sink.Delimited
}

func (c *counts) Write(p []byte) {
	c.Sniffed.Write(p)
	c.filled.Write(p)
	c.quoted.Write(p)
}

// takeFile takes a file into a stage.
func (r *request) takeFile(stage, path string, data io.Reader) error {
	if path == "" || len(stage)+len(path) > maxPath {
		return errors.New("a file has a name, of at most 1 KiB")
	}
	c := &counts{filled: sink.NewDelimited(sink.Text{Filled: true}), quoted: sink.NewDelimited(usual)}
	f := &file{stage: stage, path: path, dropped: r.conn.Options.NoCount}
	var err error
	if f.size, f.rows, err = r.conn.Take(data, c); err != nil {
		return err
	}
	f.parquet = c.Piece().Parquet()
	f.filled, _ = c.filled.Rows() // without quotes there is nothing to fail
	if f.quoted, err = c.quoted.Rows(); err != nil {
		f.quoted = -1
	}
	r.node.files.Put(stage+"/"+path, f)
	r.conn.Loaded(f.size, 0)
	return nil
}

// uploadToStage takes the files of a form. The older names of the headers are those that databend-go has.
func (r *request) uploadToStage() (any, error) {
	stage := cmp.Or(r.Header.Get("X-Databend-Stage-Name"), r.Header.Get("Stage_name"), "~")
	folder := strings.Trim(cmp.Or(r.Header.Get("X-Databend-Relative-Path"), r.Header.Get("Relative_path")), "/")
	var names []string
	err := r.files(false, func(name string, data io.Reader) error {
		names = append(names, name)
		return r.takeFile(stage, strings.TrimPrefix(folder+"/"+name, "/"), data)
	})
	if err == nil && len(names) == 0 {
		err = failed(http.StatusBadRequest, "the form has no file")
	}
	return map[string]any{"id": r.id(), "stage_name": stage, "state": "SUCCESS", "files": names}, err
}

// presigned is the path that presigned URLs begin with.
const presigned = "/terapush-sink-stage/"

// presign makes the address that a file may be put to without a password. It has no signature: there is nothing here
// to protect.
func (r *request) presign(stage, path string) string {
	u := url.URL{Scheme: "http", Host: r.Host, Path: presigned + stage + "/" + path}
	if r.conn.Encrypted() {
		u.Scheme = "https"
	}
	return u.String()
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
	}{Code: code, Message: "terapush sink: " + err.Error()})
	return sink.Answer{Status: status, Type: "application/xml", Body: text}
}

// below lists the files of a stage whose paths begin with prefix.
func (n *node) below(stage, prefix string) []*file {
	all := n.files.Where(func(f *file) bool { return f.stage == stage && strings.HasPrefix(f.path, prefix) })
	slices.SortFunc(all, func(a, b *file) int { return strings.Compare(a.path, b.path) })
	return all
}
