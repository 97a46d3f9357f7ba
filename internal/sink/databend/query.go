package databend

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/sink"
)

// result is what a statement comes to.
type result struct {
	columns []column
	rows    [][]*string
	written int64
}

// column is one of a result.
type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// table makes a result of texts.
func table(names []string, rows ...[]string) result {
	r := result{columns: []column{}, rows: [][]*string{}}
	for _, n := range names {
		r.columns = append(r.columns, column{n, "String"})
	}
	for _, row := range rows {
		values := make([]*string, len(row))
		for i := range row {
			values[i] = &row[i]
		}
		r.rows = append(r.rows, values)
	}
	return r
}

// affected returns the result of a statement that writes.
func affected(rows int64) result {
	r := table([]string{"number of rows inserted"}, []string{strconv.FormatInt(rows, 10)})
	r.columns[0].Type, r.written = "UInt64", rows
	return r
}

// query answers a statement.
func (r *request) query() error {
	b := newBody(r.Stream.Options.CRC)
	for {
		p, err := r.Content.Some(1 << 20)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		b.Write(p)
	}
	q, err := b.question()
	if err != nil {
		return refuse(http.StatusBadRequest, "the question cannot be read: "+err.Error())
	}
	out, err := r.run(b, q)
	var said *refusal
	if err != nil && !errors.As(err, &said) {
		return err
	}
	return r.page(q, out, said)
}

// progress is how far a part of a query has come.
type progress struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// page returns the one answer about a statement: what is not there are addresses to ask on.
func (r *request) page(q question, out result, said *refusal) error {
	type problem struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
		Detail  string `json:"detail"`
	}
	answer := map[string]any{
		"id": r.id(), "node_id": "sink", "session_id": "", "session": q.Session, "schema": out.columns, "data": out.rows, "state": "Succeeded",
		"error": nil, "affect": nil, "warnings": []string{}, "stats_uri": nil, "final_uri": nil, "next_uri": nil, "kill_uri": nil,
		"stats": map[string]any{
			"scan_progress": progress{}, "write_progress": progress{Rows: out.written}, "result_progress": progress{Rows: int64(len(out.rows))},
			"total_scan": progress{}, "running_time_ms": 0.0,
		},
	}
	if len(q.Session) == 0 {
		answer["session"] = nil
	}
	if said != nil {
		answer["state"], answer["error"] = "Failed", problem{Code: said.code, Message: said.message}
		answer["schema"], answer["data"] = []column{}, [][]*string{}
	}
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	return r.Answer(http.StatusOK, "application/json; charset=utf-8", text)
}

// run runs a statement.
func (r *request) run(b *body, q question) (result, error) {
	parts, _ := b.statement.Parts()
	if len(parts) != 1 {
		return result{}, refuse(codeSyntax, "one statement is expected")
	}
	sql := strings.TrimRight(sink.Plain(q.SQL), " \t\r\n;")
	verb, _ := sink.Verb(sql)
	switch verb {
	case "INSERT", "REPLACE":
		if q.Attachment != nil {
			return r.insertAttached(q)
		}
		return r.insert(parts[0])
	case "SELECT":
		return r.selects(sql)
	case "COPY", "PRESIGN", "LIST", "LS", "REMOVE", "RM":
		if b.bytes > int64(len(b.text)) {
			return result{}, refuse(codeUnimplemented, verb+" is longer than 4 MiB")
		}
	default:
		// There are no tables: what makes or changes them is agreed to, and what asks about them has no rows.
		return table(nil), nil
	}
	if verb == "COPY" {
		return r.copyInto(sql)
	}
	return r.ofStage(verb, sql)
}

func (r *request) insert(p sink.Part) (result, error) {
	if p.Rows == 0 {
		return result{}, refuse(codeUnimplemented, "it counts the rows of INSERT … VALUES (…), and has no tables to select from")
	}
	if r.Stream.Settle(p.CRC) != nil {
		return result{}, &refusal{http.StatusOK, codeNoResources, sink.ErrTold.Error()}
	}
	r.Count.Loaded(p.Bytes, p.Rows)
	return affected(p.Rows), nil
}

// maxRunning is the number of queries at a time that the sink announces: high enough that it limits no measurement.
const maxRunning = "1024"

var runningConfig = regexp.MustCompile(`(?is)\bFROM\s+system\.configs\b.*\bmax_running_queries\b`)

func (r *request) selects(sql string) (result, error) {
	if runningConfig.MatchString(sql) {
		return table([]string{"value"}, []string{maxRunning}), nil
	}
	columns, row, unknown := sink.Constants(sql, func(item string) (string, bool) {
		switch item {
		case "version()":
			return r.version(), true
		case "database()", "currentdatabase()", "current_database()":
			return "default", true
		case "user()", "currentuser()", "current_user()":
			return r.User(), true
		}
		return "", false
	})
	switch unknown {
	case "":
		return table(columns, row), nil
	case sink.From:
		return table(nil), nil
	}
	return result{}, refuse(codeSyntax, "what is '"+unknown+"'?")
}
