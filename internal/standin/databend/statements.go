package databend

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// statement is a statement that was recognised. run is called with the server locked.
type statement struct {
	kind Kind
	run  func() (result, error)
}

// writes reports whether the statement looks at its label and may be held.
func (s statement) writes() bool {
	return s.kind == Stream || s.kind == Insert || s.kind == Copy || s.kind == Delete
}

// shape is a statement that terapush sends.
type shape struct {
	pattern *regexp.Regexp
	kind    Kind // Control if empty
	run     func(s *Server, m []string) (result, error)
}

const (
	name    = "([`\\w.]+)"
	columns = ` \(([^()]*)\) `
	text    = `'((?:[^'\\]|\\.)*)'`
	place   = `@(~|\w+)`
	format  = `FILE_FORMAT = \((.*)\)`
)

func exactly(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?s)^` + pattern + `$`) }

var (
	// streamed is what a streaming load takes, and nothing else.
	streamed    = exactly(`INSERT INTO ` + name + columns + `FROM @_databend_load ` + format)
	insertShape = exactly(`INSERT INTO ` + name + columns + `VALUES`)
	textShape   = regexp.MustCompile(text)
	columnShape = regexp.MustCompile("`(\\w+)` ([A-Z]+(?:\\(\\d+, \\d+\\))?)( NOT NULL)?")
)

// says answers with one row.
func says(values ...string) func(*Server, []string) (result, error) {
	return func(*Server, []string) (result, error) { return row(values...), nil }
}

func row(values ...string) result {
	var one []any
	for _, v := range values {
		one = append(one, v)
	}
	return result{rows: [][]any{one}}
}

func number(n int) string { return strconv.Itoa(n) }

// shapes are all statements but those of verification, which package standin knows.
func shapes() []shape {
	return []shape{
		{pattern: exactly(`SELECT version\(\)`), run: func(s *Server, _ []string) (result, error) {
			return row("Databend Query v" + s.options.Version + "-stand-in"), nil
		}},
		{pattern: exactly(`SELECT name, value FROM system\.settings WHERE name IN \((.*)\)`), run: (*Server).settings},
		{pattern: exactly("SELECT value FROM system\\.configs WHERE `group` = 'query' AND name = 'max_running_queries'"),
			run: func(s *Server, _ []string) (result, error) { return row(number(s.options.MaxRunning)), nil }},
		{pattern: exactly("SELECT `group`, name, value FROM system\\.configs WHERE .*"), run: (*Server).configs},
		{pattern: exactly(`SELECT cluster, host FROM system\.clusters`), run: says("stand-in/stand-in", "127.0.0.1")},
		{pattern: exactly(`EXPLAIN (?:INSERT INTO|CREATE TABLE) .*`), run: says("a plan")},

		{pattern: exactly(`SELECT (.*) FROM system\.tables WHERE database = ` + text + ` AND name = ` + text), run: (*Server).describe},
		{pattern: exactly("SELECT name, data_type, is_nullable = 'YES' OR default_kind <> '' FROM system\\.columns WHERE database = " +
			text + " AND `table` = " + text), run: (*Server).describeColumns},
		{pattern: exactly(`SELECT 1 FROM ` + name + ` LIMIT 1`), run: func(s *Server, m []string) (result, error) {
			if t, err := s.table(m[1]); err != nil || len(t.Rows) == 0 {
				return result{}, err
			}
			return row("1"), nil
		}},
		{pattern: exactly(`CREATE TABLE IF NOT EXISTS ` + name + ` \((.*)\) COMMENT = ` + text), run: (*Server).createTable},
		{pattern: exactly(`DROP TABLE (?:IF EXISTS )?` + name), run: func(s *Server, m []string) (result, error) {
			delete(s.tables, qualified(m[1]))
			return result{}, nil
		}},
		// An emptied table is the same one, and has forgotten which files it has loaded, as in the engine.
		{pattern: exactly(`TRUNCATE TABLE ` + name), run: func(s *Server, m []string) (result, error) {
			t, err := s.table(m[1])
			if err == nil {
				t.Rows, t.loaded = nil, make(map[string]bool)
			}
			return result{}, err
		}},

		{pattern: exactly(`SELECT id FROM system\.processes WHERE current_query_id IN \((.*)\)`), run: (*Server).processes},
		{pattern: exactly(`KILL QUERY ` + text), kind: Kill, run: func(s *Server, m []string) (result, error) {
			q := s.running[m[1]]
			if q == nil {
				return result{}, failed(2303, "Unknown session id %s", m[1])
			}
			q.kill()
			return result{}, nil
		}},

		{pattern: exactly(`CREATE OR REPLACE STAGE (\w+) URL = ` + text + ` CONNECTION = \(.*\)`), run: func(s *Server, m []string) (result, error) {
			s.stages[m[1]] = m[2]
			return result{}, nil
		}},
		{pattern: exactly(`DROP STAGE IF EXISTS (\w+)`), run: func(s *Server, m []string) (result, error) {
			delete(s.stages, m[1])
			return result{}, nil
		}},
		{pattern: exactly(`DESC STAGE (\w+)`), run: func(s *Server, m []string) (result, error) {
			_, err := s.stage(m[1])
			return row(m[1]), err
		}},
		{pattern: exactly(`PRESIGN UPLOAD ` + place + `/(\S+)`), kind: Presign, run: func(s *Server, m []string) (result, error) {
			if !s.options.Presign {
				return result{}, failed(3902, "storage doesn't support presign operation")
			}
			return row("PUT", `{"`+presignedHeader+`":"signed"}`, s.URL+presignedPath+m[1]+"/"+m[2]+"?"+presignedQuery), nil
		}},
		{pattern: exactly(`LIST ` + place + `/(\S*)`), run: func(s *Server, m []string) (r result, _ error) {
			for _, path := range s.list(m[1], m[2]) {
				r.rows = append(r.rows, []any{path, number(len(s.files[m[1]+"/"+path])), nil})
			}
			return r, nil
		}},
		{pattern: exactly(`REMOVE ` + place + `/(\S+)(?: PATTERN = ` + text + `)?`), run: (*Server).remove},

		{pattern: exactly(`COPY INTO ` + name + columns + `FROM ` + place + ` FILES = \((.*?)\) ` + format + ` ON_ERROR = abort`),
			kind: Copy, run: (*Server).copyInto},
		{pattern: exactly(`(DELETE .*)`), kind: Delete, run: func(s *Server, m []string) (result, error) {
			n, known, err := standin.Delete(m[1], s.find)
			if !known {
				err = unknown(m[1])
			}
			return result{written: n}, err
		}},
	}
}

// recognise finds what a statement is.
func (s *Server) recognise(sql string, a *attachment) statement {
	if a != nil {
		return s.attached(sql, a)
	}
	for _, shape := range s.shapes {
		if m := shape.pattern.FindStringSubmatch(sql); m != nil {
			kind := shape.kind
			if kind == "" {
				kind = Control
			}
			return statement{kind, func() (result, error) { return shape.run(s, m) }}
		}
	}
	return statement{Control, func() (result, error) {
		answer, known, err := standin.Select(sql, s.find, show)
		if !known {
			err = unknown(sql)
		}
		return result{rows: answer}, err
	}}
}

// show writes a value as the back-end reads it: days, microseconds, hexadecimal digits.
func show(c rows.Column, value any) any {
	switch c.Type {
	case rows.Date, rows.Timestamp:
		return fmt.Sprint(value)
	case rows.Bytes:
		return fmt.Sprintf("%x", value)
	default:
		return standin.Text(c, value)
	}
}

// failure is the error of a statement.
type failure struct {
	code    int
	message string
}

func (f *failure) Error() string { return f.message }

func failed(code int, format string, values ...any) error {
	return &failure{code, fmt.Sprintf(format, values...)}
}

func unknown(sql string) error {
	return failed(1005, "the stand-in does not know this statement: %s", sql)
}

// words are an error's code and message.
func words(err error) (int, string) {
	var f *failure
	switch {
	case errors.As(err, &f):
		return f.code, f.message
	case err != nil:
		return 1001, err.Error()
	}
	return 0, ""
}

// qualified is a table's name without quotes and with its database.
func qualified(name string) string {
	name = strings.ReplaceAll(name, "`", "")
	if !strings.Contains(name, ".") {
		name = "default." + name
	}
	return name
}

func (s *Server) table(name string) (*table, error) {
	if t := s.tables[qualified(name)]; t != nil {
		return t, nil
	}
	return nil, failed(1025, "Unknown table %s", name)
}

func (s *Server) find(name string) (*standin.Table, error) {
	t, err := s.table(name)
	if err != nil {
		return nil, err
	}
	return t.Table, nil
}

func (s *Server) stage(name string) (url string, err error) {
	url, found := s.stages[name]
	if !found {
		err = failed(2501, "Stage '%s' does not exist", name)
	}
	return url, err
}

// unquote reads a literal.
func unquote(literal string) string {
	inside, quoted := strings.CutPrefix(literal, "'")
	if !quoted {
		return literal
	}
	return strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\'`, "'").Replace(strings.TrimSuffix(inside, "'"))
}

// texts reads a list of literals.
func texts(list string) []string {
	all := textShape.FindAllString(list, -1)
	for i, literal := range all {
		all[i] = unquote(literal)
	}
	return all
}

func (s *Server) settings(m []string) (r result, _ error) {
	known := map[string]string{
		"input_read_buffer_size": "4194304", "load_file_metadata_expire_hours": "24", "max_threads": "2",
		"statement_queued_timeout_in_seconds": "0", "max_execute_time_in_seconds": "0", "http_handler_result_timeout_secs": "60",
	}
	for _, name := range texts(m[1]) {
		r.rows = append(r.rows, []any{name, known[name]})
	}
	return r, nil
}

// configs has "fs" for a storage without presigned URLs.
func (s *Server) configs([]string) (result, error) {
	storage := map[bool]string{true: "s3", false: "fs"}[s.options.Presign]
	return result{rows: [][]any{
		{"query", "max_running_queries", number(s.options.MaxRunning)}, {"query", "max_active_sessions", "256"}, {"storage", "type", storage},
	}}, nil
}

func (s *Server) describe(m []string) (result, error) {
	t := s.tables[m[2]+"."+m[3]]
	switch {
	case t == nil:
		return result{}, nil
	case m[1] == "table_id, engine, comment":
		return row(number(t.id), "FUSE", t.Comment), nil
	case m[1] == "COALESCE(data_compressed_size, 0) + COALESCE(index_size, 0)":
		return row(number(100 * len(t.Rows))), nil
	}
	return result{}, unknown(m[0])
}

func (s *Server) describeColumns(m []string) (r result, _ error) {
	if t := s.tables[m[1]+"."+m[2]]; t != nil {
		for _, c := range t.Columns {
			r.rows = append(r.rows, []any{c.Name, c.Type, map[bool]string{true: "1", false: "0"}[c.Nullable]})
		}
	}
	return r, nil
}

func (s *Server) createTable(m []string) (result, error) {
	name := qualified(m[1])
	if s.tables[name] != nil {
		return result{}, nil
	}
	var all []standin.Column
	for _, c := range columnShape.FindAllStringSubmatch(m[2], -1) {
		all = append(all, standin.Column{Name: c[1], Type: c[2], Nullable: c[3] == ""})
	}
	made := standin.NewTable(name, all, s.options.Schemas...)
	made.Comment = m[3]
	s.made++
	s.tables[name] = &table{Table: made, id: s.made, loaded: make(map[string]bool)}
	return result{}, nil
}

func (s *Server) processes(m []string) (r result, _ error) {
	for _, id := range texts(m[1]) {
		for _, q := range s.running {
			if q.id == id {
				r.rows = append(r.rows, []any{q.session})
			}
		}
	}
	return r, nil
}

// remove removes one file, or those of a folder whose names match.
func (s *Server) remove(m []string) (result, error) {
	path := regexp.QuoteMeta(m[2])
	if m[3] != "" {
		path = regexp.QuoteMeta(strings.TrimSuffix(m[2], "/")) + "/(?:" + unquote("'"+m[3]+"'") + ")"
	}
	pattern, err := regexp.Compile("^" + path + "$")
	if err != nil {
		return result{}, failed(1006, "pattern: %v", err)
	}
	for _, path := range s.list(m[1], "") {
		if pattern.MatchString(path) {
			delete(s.files, m[1]+"/"+path)
		}
	}
	return result{}, nil
}
