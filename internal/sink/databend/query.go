package databend

import (
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

type column struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// table makes a result of texts. columns are names, with the type behind a space where it is another than String.
func table(columns []string, rows ...[]string) result {
	r := result{columns: []column{}, rows: [][]*string{}}
	for _, c := range columns {
		name, kind, found := strings.Cut(c, " ")
		if !found {
			kind = "String"
		}
		r.columns = append(r.columns, column{name, kind})
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
	r := table([]string{"number_of_rows_inserted UInt64"}, []string{strconv.FormatInt(rows, 10)})
	r.columns[0].Name, r.written = "number of rows inserted", rows
	return r
}

func (r *request) run(q question) (result, error) {
	statements := sink.Split(q.SQL, sink.Backslash)
	if len(statements) != 1 {
		return result{}, failed(codeSyntax, "one statement is expected")
	}
	s := statements[0]
	sql := strings.TrimRight(sink.Plain(s.Text), " \t\r\n;")
	verb, _ := sink.Verb(sql)
	switch verb {
	case "INSERT", "REPLACE":
		if q.Attachment != nil {
			return r.insertAttached(q)
		}
		return r.insert(s)
	case "SELECT":
		return r.selects(sql)
	case "COPY":
		return r.copyInto(sql)
	case "PRESIGN", "LIST", "LS", "REMOVE", "RM":
		return r.ofStage(verb, sql)
	}
	// There are no tables: what makes or changes them is agreed to, and what asks about them has no rows.
	return table(nil), nil
}

func (r *request) insert(s sink.Statement) (result, error) {
	if s.Rows == 0 {
		return result{}, failed(codeUnimplemented, "it counts the rows of INSERT … VALUES (…), and has no tables to select from")
	}
	if err := r.conn.Settle(r.conn.Checksum(s.Text)); err != nil {
		return result{}, &queryError{http.StatusOK, codeNoResources, err.Error()}
	}
	r.conn.Loaded(int64(len(s.Text)), s.Rows)
	return affected(s.Rows), nil
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
			return r.user(), true
		}
		return "", false
	})
	switch unknown {
	case "":
		return table(columns, row), nil
	case sink.From:
		return table(nil), nil
	}
	return result{}, failed(codeSyntax, "what is '"+unknown+"'?")
}
