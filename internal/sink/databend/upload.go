package databend

import (
	"errors"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/web"
)

// streamingLoad takes the file of a form as the rows of a statement.
func (r *request) streamingLoad() error {
	sql := r.Header.Get("X-Databend-Sql")
	text, err := format(sql)
	if err != nil {
		return err
	}
	load, err := r.takeForm(func() sink.RowCounter {
		if text == nil {
			return &web.Parquet{}
		}
		return sink.NewDelimited(*text)
	})
	switch {
	case err != nil:
		return err
	case len(load) != 1 && sql == "":
		return refuse(http.StatusBadRequest, "the header x-databend-sql is missing")
	case len(load) != 1:
		return refuse(http.StatusBadRequest, "a streaming load is a form with one file in it, called upload")
	case load[0].Failed != nil:
		return failed(load[0].Failed)
	}
	r.Count.Loaded(load[0].Bytes, load[0].Rows)
	return r.json(http.StatusOK, map[string]any{
		"id": r.id(), "stats": map[string]int64{"rows": load[0].Rows, "bytes": load[0].Bytes},
	})
}

func (r *request) takeForm(open func() sink.RowCounter) ([]*web.File, error) {
	files, err := r.TakeForm(open)
	if errors.Is(err, web.ErrForm) {
		err = refuse(http.StatusBadRequest, err.Error())
	}
	return files, err
}

// failed returns why a load is none.
func failed(err error) error {
	if errors.Is(err, sink.ErrTold) {
		return injected()
	}
	return refuse(codeBadBytes, err.Error())
}

var (
	formatType   = regexp.MustCompile(`(?i)\btype\s*=\s*'?(\w+)'?`)
	formatOption = regexp.MustCompile(`(?i)\b(skip_header|record_delimiter|field_delimiter|quote|escape|compression)\s*=\s*(?:'((?:[^'\\]|\\.|'')*)'|(\w+))`)
)

// format reads FILE_FORMAT out of a statement; nil is Parquet. Without one rows are lines.
func format(sql string) (*sink.Text, error) {
	options := map[string]string{}
	_, rest, found := cutFold(sql, "FILE_FORMAT")
	if !found {
		return &sink.Text{}, nil
	}
	if m := formatType.FindStringSubmatch(rest); m != nil {
		options["type"] = m[1]
	}
	for _, m := range formatOption.FindAllStringSubmatch(rest, -1) {
		options[strings.ToLower(m[1])] = unescape(m[2]) + m[3]
	}
	return formatOf(options)
}

func cutFold(s, word string) (before, after string, found bool) {
	i := strings.Index(strings.ToUpper(s), word)
	if i < 0 || len(strings.ToUpper(s)) != len(s) {
		return s, "", false
	}
	return s[:i], s[i+len(word):], true
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
		return nil, refuse(codeUnimplemented, "rows cannot be counted in what is compressed ("+c+")")
	}
	t := &sink.Text{}
	switch kind := strings.ToUpper(options["type"]); kind {
	case "PARQUET":
		return nil, nil
	case "CSV":
		t.Quote, t.Separator, t.End = '"', ",", end(options["record_delimiter"])
		if q, given := options["quote"]; given && len(q) <= 1 {
			t.Quote = (q + "\x00")[0] // none, or another one
		}
		if s := options["field_delimiter"]; s != "" {
			t.Separator = s
		}
		if e := options["escape"]; e != "" {
			t.Escape = e[0]
		}
		t.Filled = true
	case "NDJSON":
		t.Filled = true
	case "TSV":
		t.End = end(options["record_delimiter"])
	case "":
	default:
		return nil, refuse(codeUnimplemented, "rows cannot be counted in format "+kind+"; take CSV, TSV, NDJSON or PARQUET")
	}
	if text := options["skip_header"]; text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return nil, refuse(codeSyntax, "skip_header is a number")
		}
		t.Skip = n
	}
	return t, nil
}

// end returns what ends a row: "" where that is a line feed, behind a carriage return or not.
func end(delimiter string) string {
	if delimiter == "\n" || delimiter == "\r\n" {
		return ""
	}
	return delimiter
}
