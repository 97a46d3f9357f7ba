package doris

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sink"
)

// result is a backend's answer to a load (StreamLoadContext::to_json).
type result struct {
	TxnID                int64 `json:"TxnId"`
	Label                string
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
	began := time.Now()
	a := result{
		TxnID: c.transactions.Add(1), Label: r.Header.Get("label"), TwoPhaseCommit: "false",
		Status: "Success", Message: "OK",
	}
	if mode := strings.ToLower(r.Header.Get("group_commit")); mode == "sync_mode" || mode == "async_mode" {
		a.GroupCommit, a.Label = true, fmt.Sprintf("group_commit_%d", a.TxnID)
	} else if a.Label == "" {
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
	}
	if err != nil {
		a.LoadBytes, a.NumberLoadedRows = 0, 0
	} else {
		conn.Loaded(a.LoadBytes, a.NumberLoadedRows)
		c.rows.Add(a.NumberLoadedRows)
	}
	a.NumberTotalRows = a.NumberLoadedRows
	a.LoadTimeMs = time.Since(began).Milliseconds()
	return answerJSON(http.StatusOK, a)
}

// refused are headers with which it cannot be known which rows are loaded, or whether they are.
var refused = []string{
	"where", "sql", "json_root", "strip_outer_array", "compress_type", "compression", "two_phase_commit",
}

// counter knows the rows of a load by its headers (Doris manual, "Stream Load").
func counter(h http.Header) (sink.RowCounter, error) {
	for _, name := range refused {
		if value := h.Get(name); value != "" && !strings.EqualFold(value, "false") && !strings.EqualFold(value, "plain") {
			return nil, fmt.Errorf("it does not count rows with the header %s: %s", name, value)
		}
	}

	switch format := strings.ToLower(h.Get("format")); format {
	case "", "csv":
		return lines(h)
	case "json":
		if !strings.EqualFold(h.Get("read_json_by_line"), "true") {
			return nil, errors.New("of JSON it counts one value in a line, by the header read_json_by_line: true")
		}
		return sink.NewDelimited(sink.Text{Filled: true, End: delimiter(h.Get("line_delimiter"))})
	case "parquet":
		return &sink.Parquet{}, nil
	default:
		return nil, errors.New("rows cannot be counted in format " + format +
			"; take csv, json or parquet, or start the sink with --no-count")
	}
}

func lines(h http.Header) (sink.RowCounter, error) {
	t := sink.Text{End: delimiter(h.Get("line_delimiter")), Separator: delimiter(h.Get("column_separator")), Filled: true}
	if t.Separator == "" {
		t.Separator = "\t"
	}
	quote, escape := h.Get("enclose"), delimiter(h.Get("escape"))
	if len(quote) > 1 || len(escape) > 1 {
		return nil, errors.New("enclose and escape are one byte")
	}
	t.Quote, t.Escape = (quote + "\x00")[0], (escape + "\x00")[0]

	if text := h.Get("skip_lines"); text != "" {
		var err error
		if t.Skip, err = strconv.ParseInt(text, 10, 32); err != nil || t.Skip < 0 {
			return nil, errors.New("skip_lines is a number")
		}
	}
	return sink.NewDelimited(t)
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
