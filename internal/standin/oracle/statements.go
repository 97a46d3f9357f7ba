package oracle

import (
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// shape is the form of a statement, and what it does. The first that fits is the statement's.
type shape struct {
	pattern *regexp.Regexp
	run     func(x *session, m []string) (answer, error)
}

// like returns the pattern of a statement in which ? and … stand for anything. What ? stands for is used.
func like(statement string) *regexp.Regexp {
	anything := strings.NewReplacer(`\?`, "(.*?)", "…", ".*?")
	return regexp.MustCompile("(?s)^" + anything.Replace(regexp.QuoteMeta(statement)) + "$")
}

// into is an INSERT up to its table, with its hint.
const into = `^INSERT (?:/\*\+ (\w+) \*/ )?INTO (\S+)`

var shapes = slices.Concat(questions(), ownShapes(), []shape{
	{like("ALTER SESSION SET ? = ?"), (*session).set},
	{regexp.MustCompile(`^CREATE TABLE (\S+) \((.*)\)([A-Z ]*)$`), (*session).createTable},
	{like("COMMENT ON TABLE ? IS '?'"), func(x *session, m []string) (answer, error) {
		return answer{}, x.define(m[1], false, func(t *table) { t.Comment = m[2] })
	}},
	{regexp.MustCompile(`^DROP TABLE (\S+)(?: PURGE)?$`), func(x *session, m []string) (answer, error) {
		return answer{}, x.define(m[1], true, func(t *table) { delete(x.server.tables, t.Name) })
	}},
	{like("TRUNCATE TABLE ?"), (*session).truncate},
	{regexp.MustCompile(`^LOCK TABLE (\S+) IN EXCLUSIVE MODE WAIT \d+$`), (*session).lockTable},
	{regexp.MustCompile(into + ` \((.*?)\) VALUES \((.*)\)$`), (*session).insert},
	{like("BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;"), (*session).flush},

	// The target.
	{like("SELECT MAX(?) FROM ?"), func(x *session, m []string) (answer, error) {
		t, err := x.table(m[2])
		if err != nil {
			return answer{}, err
		}
		largest, column := []byte(nil), t.column(m[1])
		for _, r := range t.Rows {
			if text, is := r.Values[column].([]byte); is && string(text) > string(largest) {
				largest = text
			}
		}
		if largest == nil {
			return answer{cells: [][]any{{nil}}}, nil
		}
		return answer{cells: [][]any{{string(largest)}}}, nil
	}},
	{like("SELECT 1 FROM ? WHERE ROWNUM = 1"), func(x *session, m []string) (a answer, err error) {
		t, err := x.table(m[1])
		if err == nil && len(t.Rows) > 0 {
			a.cells = [][]any{{"1"}}
		}
		return a, err
	}},
	{regexp.MustCompile(`(?s)^SELECT TO_CHAR\(COALESCE\(.*, -1\) \+ 1\) FROM (\S+)$`), func(x *session, m []string) (a answer, err error) {
		t, err := x.table(m[1])
		if err != nil {
			return a, err
		}
		free := int64(0)
		for _, r := range t.Rows {
			free = max(free, r.Number+1)
		}
		return answer{cells: [][]any{{str(free)}}}, nil
	}},
	{like("SELECT ? FROM ?"), func(x *session, _ []string) (answer, error) {
		cells, known, err := standin.Select(x.SQL, func(name string) (*standin.Table, error) {
			t, err := x.table(name)
			if err != nil {
				return nil, err
			}
			return t.Table, nil
		}, show)
		if err == nil && !known {
			err = Ora(900, "the stand-in does not know the query "+x.SQL)
		}
		return answer{cells: cells}, err
	}},
})

func str(n int64) string { return strconv.FormatInt(n, 10) }

// show writes a value as the server does in the formats that the statements ask for.
func show(c rows.Column, value any) any {
	text := standin.Text(c, value)
	switch c.Type {
	case rows.Bytes:
		return []byte(text)
	case rows.Date:
		return text + " 00:00:00"
	}
	return text
}

func (x *session) lockTable(m []string) (answer, error) {
	t, err := x.table(m[1])
	if err == nil {
		err = x.lock(t, exclusive)
	}
	return answer{}, err
}

func (x *session) set(m []string) (answer, error) {
	x.settings[strings.ToUpper(m[1])] = strings.ToUpper(m[2])
	return answer{}, nil
}

// hint returns the hint of a statement that the server obeys.
func (x *session) hint(text string) string {
	if x.settings["OPTIMIZER_IGNORE_HINTS"] == "TRUE" {
		return ""
	}
	return text
}

// value is what VALUES has for a column: a bind, by its place, which may be divided, or a literal.
type value struct {
	column  int // of the table
	bind    int // -1: a literal
	divide  int64
	literal any
}

// valueShape is one of a list of values, in which a text may have commas.
var valueShape = regexp.MustCompile(`'(?:[^']|'')*'|[^,\s](?:[^,]*[^,\s])?`)

var bindShape = regexp.MustCompile(`^:(\d+)(?: / (\d+))?$`)

func valueOf(text string) (value, error) {
	if m := bindShape.FindStringSubmatch(text); m != nil {
		bind, err := strconv.Atoi(m[1])
		divide, _ := strconv.ParseInt(m[2], 10, 64)
		return value{bind: bind - 1, divide: max(divide, 1)}, err
	}
	if strings.HasPrefix(text, "'") {
		return value{bind: -1, literal: literalOf(text)}, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return value{bind: -1, literal: n, divide: 1}, err
}

// values reads the column list and the values of an INSERT.
func (x *session) values(t *table, columns, list string) (all []value, err error) {
	names, texts := strings.Split(columns, ", "), valueShape.FindAllString(list, -1)
	if len(names) != len(texts) || len(t.Schema.Columns) == 0 {
		return nil, Ora(900, x.SQL)
	}
	binds := 0
	for i, name := range names {
		v, err := valueOf(texts[i])
		if err != nil {
			return nil, Ora(900, x.SQL)
		}
		if v.column = t.column(name); v.column < 0 {
			return nil, Ora(904, name)
		}
		binds = max(binds, v.bind+1)
		all = append(all, v)
	}
	if binds > len(x.Binds) {
		return nil, Ora(1008)
	}
	return all, nil
}

// insert is INSERT … VALUES. What has been inserted before an error stays in the transaction.
func (x *session) insert(m []string) (a answer, err error) {
	hint := x.hint(m[1])
	t, err := x.table(m[2])
	if err != nil {
		return a, err
	}
	values, err := x.values(t, m[3], m[4])
	if err != nil {
		return a, err
	}
	if bound := slices.DeleteFunc(slices.Clone(values), func(v value) bool { return v.bind < 0 }); len(bound) != len(x.Binds) {
		return a, Ora(1008)
	}
	n, native, mode := 1, x.server.options.Native, rowExclusive
	if len(x.Binds) > 0 {
		n = elements(x.Binds[0])
	}
	fast := hint == "MEMOPTIMIZE_WRITE" && t.fast && !x.server.options.NoFastIngest
	if hint == "APPEND_VALUES" {
		mode = exclusive
	}
	if !fast {
		if err = x.lock(t, mode); err != nil {
			return a, err
		}
	}
	var first *Error
	for i := range n {
		row, bad := x.row(t, values, i)
		if bad == nil && fast {
			x.remember(t, row)
		} else if bad == nil {
			bad = x.put(t, row)
		}
		switch {
		case bad == nil:
			a.rows++
		case native || n == 1 || bad.Code == 28:
			return a, bad
		case first == nil:
			first = bad
		}
	}
	if first != nil {
		return a, &Error{Code: 24381, Text: "error(s) in array DML", First: first}
	}
	return a, nil
}

// row makes the row of the n-th execution.
func (x *session) row(t *table, values []value, n int) (standin.Row, *Error) {
	row := make([]any, len(t.Schema.Columns))
	for _, v := range values {
		given := v.literal
		if v.bind >= 0 {
			given = element(x.Binds[v.bind], n)
		}
		fitted, err := t.fit(v.column, given, v.divide)
		if err != nil {
			return standin.Row{}, err
		}
		row[v.column] = fitted
	}
	return t.complete(row)
}

// complete makes a row of its values, and fills columns that have a default: the time.
func (t *table) complete(row []any) (standin.Row, *Error) {
	for i, v := range row {
		if v == nil && t.Columns[i].Default {
			row[i] = time.Now().UnixMicro()
			continue
		}
		if v == nil && !t.Columns[i].Nullable {
			return standin.Row{}, Ora(1400, t.Columns[i].Name)
		}
	}
	r, err := t.Row(row)
	if err != nil {
		return r, Ora(932, err)
	}
	return r, nil
}

// fit converts a value to a column. An empty text is NULL.
func (t *table) fit(column int, v any, divide int64) (any, *Error) {
	c := t.Schema.Columns[column]
	switch v := v.(type) {
	case string:
		return t.fit(column, []byte(v), divide)
	case []byte:
		switch most := length(t.Columns[column].Type); {
		case !c.Type.Variable():
		case len(v) == 0:
			return nil, nil
		case len(v) > most:
			return nil, Ora(12899, c.Name, ": ", len(v), " of ", most)
		default:
			return v, nil
		}
	case int64:
		switch c.Type {
		case rows.Int64:
			return v, nil
		case rows.Decimal:
			scaled, err := standin.Parse(c, new(big.Rat).SetFrac64(v, divide).FloatString(18))
			if err != nil {
				return nil, Ora(1438, err)
			}
			return scaled, nil
		}
	case time.Time: // without its zone
		_, offset := v.Zone()
		switch seconds := v.Unix() + int64(offset); c.Type {
		case rows.Date:
			return seconds / (24 * 60 * 60), nil
		case rows.Timestamp:
			return seconds*1e6 + int64(v.Nanosecond()/1000), nil
		}
	}
	return nil, Ora(932, fmt.Sprintf("a %T for column %s", v, c.Name))
}
