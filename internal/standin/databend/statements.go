package databend

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// statement is a statement that was recognised. run is called with the server locked.
type statement struct {
	kind Kind
	run  func() result
}

// result is what a statement returns: rows of texts, or nil for NULL.
type result struct {
	rows    [][]any
	written int64
	err     error
}

// writes reports whether the statement looks at its label and may be held.
func (s statement) writes() bool {
	return s.kind == Stream || s.kind == Insert || s.kind == Copy || s.kind == Delete
}

// shape is a statement that terapush sends. m has what its pattern has in parentheses.
type shape struct {
	kind    Kind
	pattern *regexp.Regexp
	run     func(s *Server, m []string) result
}

const (
	name    = "([`\\w.]+)"
	columns = ` \(([^()]*)\) `
	text    = `'([^']*)'`
	format  = `FILE_FORMAT = \(type = (\w+), .*\)`
)

func exactly(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?s)^` + pattern + `$`) }

var (
	// streamed is what a streaming load takes, and nothing else.
	streamed    = exactly(`INSERT INTO ` + name + columns + `FROM @_databend_load ` + format)
	insertShape = exactly(`INSERT INTO ` + name + columns + `VALUES`)
	textShape   = regexp.MustCompile(text)
	columnShape = regexp.MustCompile("`(\\w+)` ([A-Z]+(?:\\(\\d+, \\d+\\))?)( NOT NULL)?")
)

// shapes are all statements but those of verification, which package standin knows.
func shapes() []shape {
	control := func(pattern string, run func(*Server, []string) result) shape {
		return shape{Control, exactly(pattern), run}
	}
	return []shape{
		control(`SELECT version\(\)`, func(s *Server, _ []string) result { return row("Databend Query v" + s.options.Version) }),
		control(`SELECT name, value FROM system\.settings .*`, func(*Server, []string) result {
			return result{rows: [][]any{{"max_threads", "2"}, {"load_file_metadata_expire_hours", "24"}}}
		}),
		control(`SELECT value FROM system\.configs .*`, func(*Server, []string) result { return row("8") }),
		control("SELECT `group`, .* FROM system\\.configs .*", func(*Server, []string) result {
			return row("query", "max_running_queries", "8")
		}),
		control(`SELECT cluster, host FROM system\.clusters`, func(*Server, []string) result { return row("stand-in", "127.0.0.1") }),
		control(`EXPLAIN (?:INSERT INTO|CREATE TABLE) .*`, func(*Server, []string) result { return row("a plan") }),

		control(`SELECT (.*) FROM system\.tables WHERE database = `+text+` AND name = `+text, (*Server).describe),
		control(`SELECT name, data_type, .* FROM system\.columns WHERE database = `+text+" AND `table` = "+text, (*Server).describeColumns),
		control(`SELECT 1 FROM `+name+` LIMIT 1`, func(s *Server, m []string) result {
			if t, err := s.table(m[1]); err != nil || len(t.Rows) == 0 {
				return result{err: err}
			}
			return row("1")
		}),
		control(`CREATE TABLE IF NOT EXISTS `+name+` \((.*)\) COMMENT = `+text, (*Server).createTable),
		control(`DROP TABLE (?:IF EXISTS )?`+name, func(s *Server, m []string) result {
			delete(s.tables, qualified(m[1]))
			return result{}
		}),

		control(`SELECT id FROM system\.processes WHERE current_query_id IN \((.*)\)`, (*Server).processes),
		{Kill, exactly(`KILL QUERY ` + text), func(s *Server, m []string) result {
			q := s.running[m[1]]
			if q == nil {
				return failed(2303, "Unknown session id %s", m[1])
			}
			q.kill()
			return result{}
		}},

		{Presign, exactly(`PRESIGN UPLOAD @~/(\S+)`), func(s *Server, m []string) result {
			if !s.options.Presign {
				return failed(3902, "storage doesn't support presign operation")
			}
			return row("PUT", `{"X-Stand-In":"signed"}`, s.URL+presignedPath+m[1]+"?"+presignedQuery)
		}},
		control(`LIST @~/(\S*)`, func(s *Server, m []string) (r result) {
			for path, data := range s.files {
				if strings.HasPrefix(path, m[1]) {
					r.rows = append(r.rows, []any{path, strconv.Itoa(len(data)), nil})
				}
			}
			return r
		}),
		control(`REMOVE @~/(\S+?)(?:/ PATTERN = `+text+`)?`, (*Server).remove),

		{Copy, exactly(`COPY INTO ` + name + columns + `FROM @~ FILES = \((.*?)\) ` + format + ` ON_ERROR = abort`), (*Server).copyInto},
		{Delete, exactly(`DELETE .*`), func(s *Server, m []string) result {
			n, known, err := standin.Delete(m[0], s.find)
			if !known {
				return unknown(m[0])
			}
			return result{written: n, err: err}
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
			return statement{shape.kind, func() result { return shape.run(s, m) }}
		}
	}
	return statement{Control, func() result {
		answer, known, err := standin.Select(sql, s.find, show)
		if !known {
			return unknown(sql)
		}
		return result{rows: answer, err: err}
	}}
}

// show writes a value as the back-end reads it: days and microseconds as numbers.
func show(c rows.Column, value any) any {
	if c.Type == rows.Date || c.Type == rows.Timestamp {
		return fmt.Sprint(value)
	}
	return standin.Text(c, value)
}

func row(values ...any) result { return result{rows: [][]any{values}} }

// failure is the error of a statement.
type failure struct {
	code    int
	message string
}

func (f *failure) Error() string { return f.message }

func failed(code int, format string, values ...any) result {
	return result{err: &failure{code, fmt.Sprintf(format, values...)}}
}

func unknown(sql string) result {
	return failed(1005, "the stand-in does not know this statement: %s", sql)
}

// codeOf is the code of an error.
func codeOf(err error) int {
	var f *failure
	if errors.As(err, &f) {
		return f.code
	}
	return 1001
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
	return nil, failed(1025, "Unknown table %s", name).err
}

func (s *Server) find(name string) (*standin.Table, error) {
	t, err := s.table(name)
	if err != nil {
		return nil, err
	}
	return t.Table, nil
}

// texts reads a list of literals.
func texts(list string) (all []string) {
	for _, m := range textShape.FindAllStringSubmatch(list, -1) {
		all = append(all, m[1])
	}
	return all
}

func (s *Server) describe(m []string) result {
	t := s.tables[m[2]+"."+m[3]]
	switch {
	case t == nil:
		return result{}
	case strings.Contains(m[1], "size"):
		return row(strconv.Itoa(100 * len(t.Rows)))
	}
	return row(strconv.Itoa(t.id), "FUSE", t.Comment)
}

func (s *Server) describeColumns(m []string) (r result) {
	if t := s.tables[m[1]+"."+m[2]]; t != nil {
		for _, c := range t.Columns {
			r.rows = append(r.rows, []any{c.Name, c.Type, strconv.FormatBool(c.Nullable)})
		}
	}
	return r
}

func (s *Server) createTable(m []string) result {
	name := qualified(m[1])
	if s.tables[name] != nil {
		return result{}
	}
	var all []standin.Column
	for _, c := range columnShape.FindAllStringSubmatch(m[2], -1) {
		all = append(all, standin.Column{Name: c[1], Type: c[2], Nullable: c[3] == ""})
	}
	made := standin.NewTable(name, all, s.options.Schemas...)
	made.Comment = m[3]
	s.made++
	s.tables[name] = &table{Table: made, id: s.made, loaded: make(map[string]bool)}
	return result{}
}

func (s *Server) processes(m []string) (r result) {
	ids := texts(m[1])
	for session, q := range s.running {
		if slices.Contains(ids, q.id) {
			r.rows = append(r.rows, []any{session})
		}
	}
	return r
}

// remove removes one file, or those of a folder whose names match.
func (s *Server) remove(m []string) result {
	pattern, err := regexp.Compile("^" + regexp.QuoteMeta(m[1]) + "/(?:" + m[2] + ")$")
	maps.DeleteFunc(s.files, func(path string, _ []byte) bool {
		return path == m[1] || err == nil && m[2] != "" && pattern.MatchString(path)
	})
	return result{err: err}
}
