package doris

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sink"
)

// result is a backend's answer to a load (StreamLoadContext::to_json).
type result struct {
	TxnID                int64 `json:"TxnId"`
	Label                string
	Comment              string
	TwoPhaseCommit       string
	GroupCommit          bool `json:",omitempty"`
	Status               string
	Message              string
	NumberTotalRows      int64
	NumberLoadedRows     int64
	NumberFilteredRows   int64
	NumberUnselectedRows int64
	LoadBytes            int64
	LoadTimeMs           int64
}

func (c *Cluster) streamLoad(conn *sink.Conn, r *http.Request) sink.Answer {
	// LoadAction looks at the header Expect, not at its value.
	if !r.URL.Query().Has(asBackend) && (r.Header.Get("Expect") != "" || r.ContentLength == 0) {
		return redirect(r)
	}
	began := time.Now()
	a := result{
		TxnID: c.transactions.Add(1), Label: r.Header.Get("label"), Status: "Success", Message: "OK",
		TwoPhaseCommit: strconv.FormatBool(strings.EqualFold(r.Header.Get("two_phase_commit"), "true")),
	}
	switch mode := strings.ToLower(r.Header.Get("group_commit")); {
	case mode == "sync_mode" || mode == "async_mode":
		a.GroupCommit, a.Label = true, fmt.Sprintf("group_commit_%d", a.TxnID)
	case a.Label == "":
		a.Label = fmt.Sprintf("terapush-sink-%d", a.TxnID)
	}
	count, err := counter(r.Header)
	if err == nil || conn.Options.NoCount {
		a.LoadBytes, a.NumberLoadedRows, err = conn.Take(r.Body, count)
	}
	switch {
	case errors.Is(err, sink.ErrTold): // of all failures one after which clients may retry
		a.Status, a.Message = "Fail", "[MEM_LIMIT_EXCEEDED]"+err.Error()
	case err != nil:
		a.Status, a.Message = "Fail", "[INTERNAL_ERROR]terapush sink: "+err.Error()
	default:
		conn.Loaded(a.LoadBytes, a.NumberLoadedRows)
		c.rows.Add(a.NumberLoadedRows)
	}
	if err != nil {
		a.LoadBytes, a.NumberLoadedRows = 0, 0
	}
	a.NumberTotalRows = a.NumberLoadedRows
	a.LoadTimeMs = time.Since(began).Milliseconds()
	return answerJSON(http.StatusOK, a)
}

// redirect sends the client to where its rows are taken: to this same server. The address has neither scheme nor host,
// so that it is right behind whatever address and encryption the client came by.
func redirect(r *http.Request) sink.Answer {
	to := url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath}
	parameters := r.URL.Query()
	parameters.Set(asBackend, "1")
	to.RawQuery = parameters.Encode()
	return sink.Answer{Status: http.StatusTemporaryRedirect, Header: []string{"Location", to.RequestURI()}}
}

// counter knows the rows of a load by its headers (Doris manual, "Stream Load").
func counter(h http.Header) (sink.RowCounter, error) {
	format := strings.ToLower(h.Get("format"))
	for _, name := range []string{"where", "sql", "json_root"} {
		if h.Get(name) != "" {
			return nil, errors.New("which rows are loaded cannot be known here with the header " + name)
		}
	}
	for _, name := range []string{"compress_type", "compression"} {
		if kind := h.Get(name); kind != "" && !strings.EqualFold(kind, "plain") {
			return nil, errors.New("rows cannot be counted in what is compressed (" + name + ": " + kind + ")")
		}
	}
	switch format {
	case "", "csv":
		return lines(h, 0)
	case "csv_with_names":
		return lines(h, 1)
	case "csv_with_names_and_types":
		return lines(h, 2)
	case "json":
		if isTrue(h, "strip_outer_array") { // also one in every line
			return &sink.JSON{Array: true}, nil
		}
		if isTrue(h, "read_json_by_line") {
			return sink.NewDelimited(sink.Text{End: delimiter(h.Get("line_delimiter")), Filled: true}), nil
		}
		return &sink.JSON{}, nil
	case "parquet":
		return &sink.Parquet{}, nil
	}
	return nil, errors.New("rows cannot be counted in format " + format + "; take csv, json or parquet, or start the sink with --no-count")
}

func isTrue(h http.Header, name string) bool { return strings.EqualFold(h.Get(name), "true") }

func lines(h http.Header, heads int64) (sink.RowCounter, error) {
	t := sink.Text{End: delimiter(h.Get("line_delimiter")), Separator: delimiter(h.Get("column_separator")), Skip: heads, Filled: true}
	if t.Separator == "" {
		t.Separator = "\t"
	}
	if quote := h.Get("enclose"); len(quote) > 1 {
		return nil, errors.New("enclose is one byte")
	} else if quote != "" {
		t.Quote = quote[0]
	}
	if escape := delimiter(h.Get("escape")); escape != "" {
		t.Escape = escape[0]
	}
	if text := h.Get("skip_lines"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 0 {
			return nil, errors.New("skip_lines is a number")
		}
		t.Skip = max(n, t.Skip)
	}
	return sink.NewDelimited(t), nil
}

// delimiter undoes what a header cannot hold: hexadecimal digits behind \x, and the escapes of C.
func delimiter(text string) string {
	if digits, found := strings.CutPrefix(strings.ReplaceAll(text, `\X`, `\x`), `\x`); found {
		if raw, err := hex.DecodeString(strings.ReplaceAll(digits, `\x`, "")); err == nil {
			return string(raw)
		}
	}
	if plain, err := strconv.Unquote(`"` + text + `"`); err == nil {
		return plain
	}
	return text
}
