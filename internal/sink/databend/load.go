package databend

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// streamingLoad takes the file of a form as the rows of a statement.
func (r *request) streamingLoad() (any, error) {
	sql := r.Header.Get("X-Databend-Sql")
	text, err := format(sql)
	if err != nil {
		return nil, err
	}
	var count sink.RowCounter = &sink.Parquet{}
	if text != nil {
		count = sink.NewDelimited(*text)
	}
	var size, rows int64
	files := 0
	err = r.files(true, func(_ string, data io.Reader) (err error) {
		files++
		size, rows, err = r.conn.Take(data, count)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case files != 1 && sql == "":
		return nil, failed(http.StatusBadRequest, "the header x-databend-sql is missing")
	case files != 1:
		return nil, failed(http.StatusBadRequest, "a streaming load is a form with one file in it, called upload")
	}
	r.conn.Loaded(size, rows)
	return map[string]any{"id": r.id(), "stats": map[string]int64{"rows": rows, "bytes": size}}, nil
}

// maxPart bounds the head of a form's part, in bytes, and formBuffer is what a form is read by.
const (
	maxPart    = 4 << 10
	formBuffer = 256 << 10
)

// files has take read the files of a form, of which there is one, or any number.
func (r *request) files(one bool, take func(name string, data io.Reader) error) error {
	kind, options, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "multipart/form-data" || options["boundary"] == "" {
		return failed(http.StatusBadRequest, "the body is no multipart/form-data with a boundary")
	}
	if r.ContentLength >= 0 && (one || r.conn.Options.NoCount) {
		return r.onlyFile(options["boundary"], take)
	}
	if r.conn.Options.NoCount {
		return failed(http.StatusBadRequest, "where nothing is counted, a form has to say its length: send Content-Length, not chunks")
	}
	form := multipart.NewReader(bufio.NewReaderSize(r.Body, formBuffer), options["boundary"])
	for {
		part, err := form.NextRawPart()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failed(http.StatusBadRequest, "the form cannot be read: "+err.Error())
		}
		if name := fileName(part.Header); name != "" {
			if err := take(name, part); err != nil {
				return loadError(err)
			}
		}
	}
}

// onlyFile takes the file of a form that says its length: what lies between the head of its one part and its end. To look for
// boundaries in between as mime/multipart does would take more time than all else.
func (r *request) onlyFile(boundary string, take func(name string, data io.Reader) error) error {
	body := bufio.NewReaderSize(r.Body, maxPart)
	head, err := body.Peek(int(min(maxPart, r.ContentLength)))
	size := strings.Index(string(head), "\r\n\r\n") + 4
	if err != nil || size < 4 || !strings.HasPrefix(string(head), "--"+boundary) {
		return failed(http.StatusBadRequest, "the form has no part with a head of at most 4 KiB")
	}
	t := textproto.NewReader(bufio.NewReader(strings.NewReader(string(head[:size]))))
	_, _ = t.ReadLine() // the boundary
	fields, err := t.ReadMIMEHeader()
	if err != nil {
		return failed(http.StatusBadRequest, "the head of the form's part cannot be read: "+err.Error())
	}
	_, _ = body.Discard(size) // it was peeked at
	tail := "\r\n--" + boundary + "--\r\n"
	data := &onlyPart{Reader: io.LimitReader(body, r.ContentLength-int64(size+len(tail))), next: []byte("\r\n--" + boundary)}
	if r.conn.Options.NoCount {
		data.next = nil
	}
	if err := take(fileName(fields), data); err != nil {
		return loadError(err)
	}
	if end, err := io.ReadAll(body); err != nil || string(end) != tail {
		return failed(http.StatusBadRequest, "the form does not end with its boundary and a line end")
	}
	return nil
}

var errParts = errors.New("a form that says its length has one part: send several in chunks")

// onlyPart reads a part, and fails where another one follows.
type onlyPart struct {
	io.Reader
	next []byte // what another part begins with; nil where nobody looks
	last []byte // the end of what was read, in which that may have begun
}

func (p *onlyPart) Read(to []byte) (int, error) {
	n, err := p.Reader.Read(to)
	if p.next == nil || n == 0 {
		return n, err
	}
	keep := len(p.next) - 1
	p.last = append(p.last, to[:min(n, keep)]...)
	if bytes.Contains(p.last, p.next) || bytes.Contains(to[:n], p.next) {
		return n, errParts
	}
	p.last = append(p.last[:0], p.last[max(0, len(p.last)-keep):]...)
	if n > keep {
		p.last = append(p.last[:0], to[n-keep:n]...)
	}
	return n, err
}

// fileName returns the name that a part's head gives its file. FileName of mime/multipart would leave out the folders, which
// Databend's clients name there.
func fileName(h textproto.MIMEHeader) string {
	_, options, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
	return options["filename"]
}

var (
	formatType   = regexp.MustCompile(`(?i)\btype\s*=\s*'?(\w+)'?`)
	formatOption = regexp.MustCompile(`(?i)\b(skip_header|record_delimiter|field_delimiter|quote|escape|compression)\s*=\s*(?:'((?:[^'\\]|\\.|'')*)'|(\w+))`)
	fileFormat   = regexp.MustCompile(`(?is)\bFILE_FORMAT\b(.*)$`)
)

// format reads FILE_FORMAT out of a statement; nil is Parquet. Without one rows are lines.
func format(sql string) (*sink.Text, error) {
	m := fileFormat.FindStringSubmatch(sql)
	if m == nil {
		return &sink.Text{}, nil
	}
	options := map[string]string{}
	if t := formatType.FindStringSubmatch(m[1]); t != nil {
		options["type"] = t[1]
	}
	for _, o := range formatOption.FindAllStringSubmatch(m[1], -1) {
		options[strings.ToLower(o[1])] = unescape(o[2]) + o[3]
	}
	return formatOf(options)
}

// unescape undoes the escapes of a string in SQL.
func unescape(s string) string {
	s = strings.ReplaceAll(s, "''", "'")
	if plain, err := strconv.Unquote(`"` + strings.ReplaceAll(strings.ReplaceAll(s, `\'`, `'`), `"`, `\"`) + `"`); err == nil {
		return plain
	}
	return s
}

// formatOf reads options by their names (Databend manual, "Input & Output File Formats"); nil is Parquet.
func formatOf(options map[string]string) (*sink.Text, error) {
	if c := strings.ToLower(options["compression"]); c != "" && c != "none" && c != "auto" {
		return nil, failed(codeUnimplemented, "rows cannot be counted in what is compressed ("+c+")")
	}
	t := &sink.Text{}
	if end := options["record_delimiter"]; end != "\n" && end != "\r\n" {
		t.End = end
	}
	switch kind := strings.ToUpper(options["type"]); kind {
	case "PARQUET":
		return nil, nil
	case "CSV":
		t.Quote, t.Separator, t.Filled = '"', ",", true
		if q, given := options["quote"]; given && len(q) <= 1 {
			t.Quote = (q + "\x00")[0] // none, or another one
		}
		if s := options["field_delimiter"]; s != "" {
			t.Separator = s
		}
		if e := options["escape"]; e != "" {
			t.Escape = e[0]
		}
	case "NDJSON":
		t.End, t.Filled = "", true
	case "TSV", "":
	default:
		return nil, failed(codeUnimplemented, "rows cannot be counted in format "+kind+"; take CSV, TSV, NDJSON or PARQUET")
	}
	if _, err := fmt.Sscan(options["skip_header"]+" 0", &t.Skip); err != nil || t.Skip < 0 {
		return nil, failed(codeSyntax, "skip_header is a number")
	}
	return t, nil
}
