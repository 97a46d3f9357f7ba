package databend

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// result is what a statement gives.
type result struct {
	names, types []string
	rows         [][]*string
	written      int64 // rows
}

// plan is a statement that was understood: what is left is to carry it out, under Fake.mu.
type plan struct {
	kind  Kind
	write bool // takes a slot and heeds a label
	run   func() (result, error)
}

// Parts of statements. Names may be in backticks; the ones of terapush hold none.
const (
	namePart  = "(?:`[^`]+`|\\w+)"
	tablePart = "(" + namePart + "(?:\\." + namePart + ")?)"
	textPart  = `'((?:[^'\\]|\\.|'')*)'`
)

// rule is one shape of statement, and who makes a plan of its parts.
type rule struct {
	shape *regexp.Regexp
	kind  Kind
	write bool
	run   func(f *Fake, s session, m []string) (result, error)
}

// session is what a request brings along.
type session struct {
	database string
	settings map[string]string
	host     string // of the request, which presigned URLs lead to
}

func shape(text string) *regexp.Regexp {
	return regexp.MustCompile(`(?is)^\s*` + text + `\s*;?\s*$`)
}

// rules lists every statement that is understood. Loads are in copy.go, questions about rows in selects.go.
func rules() []rule {
	return append([]rule{
		{shape: shape(`SELECT version\(\)`), run: func(f *Fake, _ session, _ []string) (result, error) {
			return single("version()", "String", "Databend Query v"+f.options.Version+"-stand-in"), nil
		}},
		{shape: shape(`SELECT (\d+)`), run: func(_ *Fake, _ session, m []string) (result, error) {
			return single(m[1], "UInt8", m[1]), nil
		}},
		{shape: shape(`SELECT name, value FROM system\.settings WHERE name IN \((.*)\)`), run: (*Fake).settings},
		{shape: shape("SELECT value FROM system\\.configs WHERE `group` = 'query' AND name = 'max_running_queries'"),
			run: func(f *Fake, _ session, _ []string) (result, error) {
				return single("value", "String", strconv.Itoa(f.options.MaxRunning)), nil
			}},
		{shape: shape("SELECT `group`, name, value FROM system\\.configs WHERE `group` = 'query' AND name IN " +
			"\\('max_running_queries', 'max_active_sessions'\\) OR `group` = 'storage' AND name = 'type'"), run: (*Fake).configs},
		{shape: shape(`SELECT cluster, host FROM system\.clusters`), run: func(_ *Fake, s session, _ []string) (result, error) {
			host, _, _ := strings.Cut(s.host, ":")
			return result{names: []string{"cluster", "host"}, types: []string{"String", "String"}, rows: [][]*string{texts("stand-in/stand-in", host)}}, nil
		}},
		{shape: shape(`EXPLAIN (INSERT|CREATE TABLE) .*`), run: func(_ *Fake, _ session, m []string) (result, error) {
			return single("explain", "String", m[1]), nil
		}},
		{shape: shape(`SELECT (.*) FROM system\.tables WHERE database = ` + textPart + ` AND name = ` + textPart), run: (*Fake).tableInfo},
		{shape: shape("SELECT name, data_type, is_nullable = 'YES' OR default_kind <> '' FROM system\\.columns WHERE database = " +
			textPart + " AND `?table`? = " + textPart), run: (*Fake).columnInfo},
		{shape: shape(`SELECT id FROM system\.processes WHERE current_query_id IN \((.*)\)`), run: (*Fake).processes},
		{shape: shape(`KILL QUERY ` + textPart), kind: Kill, run: (*Fake).killQuery},
		{shape: shape(`CREATE DATABASE (?:IF NOT EXISTS )?(` + namePart + `)`), run: func(f *Fake, _ session, m []string) (result, error) {
			f.store.databases[bare(m[1])] = true
			return result{}, nil
		}},
		{shape: shape(`CREATE (OR REPLACE )?TABLE (IF NOT EXISTS )?` + tablePart + `\s*\((.*)\)(?:\s*COMMENT = ` + textPart + `)?`), run: (*Fake).createTable},
		{shape: shape(`DROP TABLE (IF EXISTS )?` + tablePart), run: (*Fake).dropTable},
		{shape: shape(`TRUNCATE TABLE ` + tablePart), run: (*Fake).truncate},
	}, append(stageRules(), append(loadRules(), selectRules()...)...)...)
}

// understand finds the rule for a statement. The statement itself runs later, under Fake.mu.
func (f *Fake) understand(sql string, s session) (plan, error) {
	for _, r := range f.rules {
		if m := r.shape.FindStringSubmatch(sql); m != nil {
			kind := r.kind
			if kind == "" {
				kind = Control
			}
			return plan{kind: kind, write: r.write, run: func() (result, error) { return r.run(f, s, m) }}, nil
		}
	}
	return plan{kind: Control}, failed(1005, "the stand-in does not know this statement: %s", sql)
}

// single is a result of one value.
func single(name, kind, value string) result {
	return result{names: []string{name}, types: []string{kind}, rows: [][]*string{{&value}}}
}

func texts(values ...string) []*string {
	row := make([]*string, len(values))
	for i := range values {
		row[i] = &values[i]
	}
	return row
}

// bare is a name without its quotes.
func bare(name string) string { return strings.Trim(name, "`") }

// full is a table's name with its database.
func (s session) full(name string) string {
	parts := strings.Split(strings.ReplaceAll(name, "`", ""), ".")
	if len(parts) == 1 {
		return s.database + "." + parts[0]
	}
	return strings.Join(parts, ".")
}

var quotedText = regexp.MustCompile(`'(?:[^'\\]|\\.|'')*'`)

// list reads a list of literals.
func list(text string) []string {
	all := quotedText.FindAllString(text, -1)
	for i, t := range all {
		all[i] = unquote(t)
	}
	return all
}

func (f *Fake) settings(s session, m []string) (result, error) {
	known := map[string]string{
		"input_read_buffer_size": "4194304", "load_file_metadata_expire_hours": "24", "max_threads": "2",
		"statement_queued_timeout_in_seconds": "0", "timezone": "UTC", "max_execute_time_in_seconds": "0",
		"http_handler_result_timeout_secs": "60",
	}
	r := result{names: []string{"name", "value"}, types: []string{"String", "String"}}
	for _, name := range list(m[1]) {
		value, ok := known[name]
		if set, is := s.settings[name]; is {
			value = set
		}
		if ok {
			r.rows = append(r.rows, texts(name, value))
		}
	}
	return r, nil
}

// configs are those of a node: the statements at a time, the sessions that a real one takes by default, and its storage,
// where "fs" stands for one that knows no presigned URLs.
func (f *Fake) configs(_ session, _ []string) (result, error) {
	storage := "fs"
	if f.options.Presign {
		storage = "s3"
	}
	return result{names: []string{"group", "name", "value"}, types: []string{"String", "String", "String"}, rows: [][]*string{
		texts("query", "max_running_queries", strconv.Itoa(f.options.MaxRunning)), texts("query", "max_active_sessions", "256"),
		texts("storage", "type", storage),
	}}, nil
}

func (f *Fake) tableInfo(_ session, m []string) (result, error) {
	t := f.store.tables[unquote("'"+m[2]+"'")+"."+unquote("'"+m[3]+"'")]
	r := result{}
	switch m[1] {
	case "table_id, engine, comment":
		r.names, r.types = []string{"table_id", "engine", "comment"}, []string{"UInt64", "String", "String"}
		if t != nil {
			r.rows = [][]*string{texts(strconv.Itoa(t.id), "FUSE", t.comment)}
		}
	case "COALESCE(data_compressed_size, 0) + COALESCE(index_size, 0)":
		r.names, r.types = []string{"size"}, []string{"UInt64"}
		if t != nil {
			r.rows = [][]*string{texts(strconv.Itoa(100 * len(t.rows)))}
		}
	default:
		return r, failed(1005, "the stand-in does not know these columns of system.tables: %s", m[1])
	}
	return r, nil
}

func (f *Fake) columnInfo(_ session, m []string) (result, error) {
	r := result{names: []string{"name", "data_type", "optional"}, types: []string{"String", "String", "Boolean"}}
	if t := f.store.tables[unquote("'"+m[1]+"'")+"."+unquote("'"+m[2]+"'")]; t != nil {
		for _, c := range t.columns {
			r.rows = append(r.rows, texts(c.name, c.kind, map[bool]string{true: "1", false: "0"}[c.nullable]))
		}
	}
	return r, nil
}

func (f *Fake) processes(_ session, m []string) (result, error) {
	r := result{names: []string{"id"}, types: []string{"String"}}
	for _, id := range list(m[1]) {
		for _, q := range f.running {
			if q.id == id {
				r.rows = append(r.rows, texts(q.session))
			}
		}
	}
	return r, nil
}

func (f *Fake) killQuery(_ session, m []string) (result, error) {
	q := f.running[unquote("'"+m[1]+"'")]
	if q == nil {
		return result{}, failed(2303, "Unknown session id %s", m[1])
	}
	q.kill()
	return result{}, nil
}

var columnDefinition = regexp.MustCompile("(?i)^\\s*(" + namePart + ")\\s+(BIGINT|INT64|VARCHAR|STRING|BINARY|DATE|TIMESTAMP|DECIMAL\\((\\d+), ?(\\d+)\\))( NOT NULL| NULL)?\\s*$")

// definitions cuts a list of columns at the commas that are not a type's own.
var definitions = regexp.MustCompile(`[^,(]+(?:\([^)]*\)[^,(]*)?`)

// newColumn reads a column of CREATE TABLE.
func newColumn(text string) (column, error) {
	d := columnDefinition.FindStringSubmatch(text)
	if d == nil {
		return column{}, failed(1005, "the stand-in does not know this column: %s", text)
	}
	c := column{name: bare(d[1]), nullable: !strings.EqualFold(d[5], " NOT NULL")}
	c.kind = strings.NewReplacer("INT64", "BIGINT", "STRING", "VARCHAR").Replace(strings.ToUpper(d[2]))
	if d[3] == "" {
		return c, nil
	}
	c.digits, _ = strconv.Atoi(d[3])
	c.scale, _ = strconv.Atoi(d[4])
	c.kind = fmt.Sprintf("DECIMAL(%d, %d)", c.digits, c.scale)
	if c.digits < 1 || c.digits > 76 || c.scale > c.digits {
		return c, failed(1005, "%s: a decimal has 1 to 76 digits, of which its scale is a part", c.kind)
	}
	return c, nil
}

func (f *Fake) createTable(s session, m []string) (result, error) {
	name := s.full(m[3])
	database, _, _ := strings.Cut(name, ".")
	switch {
	case !f.store.databases[database]:
		return result{}, failed(1003, "Unknown database '%s'", database)
	case f.store.tables[name] != nil && m[2] != "":
		return result{}, nil
	case f.store.tables[name] != nil && m[1] == "":
		return result{}, failed(2302, "Table '%s' already exists", name)
	}
	t := &table{comment: unquote("'" + m[5] + "'"), loaded: map[string]time.Time{}}
	for _, text := range definitions.FindAllString(m[4], -1) {
		c, err := newColumn(text)
		if err != nil {
			return result{}, err
		}
		t.columns = append(t.columns, c)
	}
	f.store.lastTable++
	t.id = f.store.lastTable
	f.store.tables[name] = t
	return result{}, nil
}

func (f *Fake) dropTable(s session, m []string) (result, error) {
	_, err := f.store.table(s.full(m[2]))
	if err != nil && m[1] == "" {
		return result{}, err
	}
	delete(f.store.tables, s.full(m[2]))
	return result{}, nil
}

// truncate empties a table, which keeps its id and forgets which files it has loaded, as the engine does.
func (f *Fake) truncate(s session, m []string) (result, error) {
	t, err := f.store.table(s.full(m[1]))
	if err == nil {
		t.rows, t.loaded = nil, map[string]time.Time{}
	}
	return result{}, err
}
