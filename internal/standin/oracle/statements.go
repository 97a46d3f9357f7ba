package oracle

import (
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// shape is the form of a statement, and what it does, or else panics with. The first that fits is the statement's.
type shape struct {
	pattern *regexp.Regexp
	run     func(x *session, m []string) answer
	stays   bool // what it has done before an error
}

// known are the matches of statements, by their texts: tests send the same ones thousands of times.
var known sync.Map

type match struct {
	shape
	parts []string // nil: no shape fits
}

// shapeOf returns the shape of a statement, and what its pattern finds in it.
func shapeOf(statement string) (m match) {
	if m, is := known.Load(statement); is {
		return m.(match)
	}

	for _, m.shape = range shapes {
		if m.parts = m.pattern.FindStringSubmatch(statement); m.parts != nil {
			break
		}
	}
	known.Store(statement, m)
	return m
}

// like returns the pattern of a statement in which ? and … stand for anything. What ? stands for is used.
func like(statement string) *regexp.Regexp {
	anything := strings.NewReplacer(`\?`, "(.*?)", "…", ".*?")
	return regexp.MustCompile("(?s)^" + anything.Replace(regexp.QuoteMeta(statement)) + "$")
}

// into is an INSERT up to its table, with its hint.
const into = `^INSERT (?:/\*\+ (\w+) \*/ )?INTO (\S+)`

var shapes = slices.Concat(questions(), ownShapes, []shape{
	{pattern: like("ALTER SESSION SET ? = ?"), run: func(x *session, m []string) answer {
		x.settings[strings.ToUpper(m[1])] = strings.ToUpper(m[2])
		return answer{}
	}},
	{pattern: regexp.MustCompile(`^CREATE TABLE (\S+) \((.*)\)([A-Z ]*)$`), run: (*session).createTable},
	{pattern: like("CREATE TABLE ? AS SELECT ? FROM ? WHERE 1 = 0"), run: (*session).createLike},
	{pattern: regexp.MustCompile(`^ALTER TABLE (\S+) ADD (PRIMARY KEY|UNIQUE) \((.*)\)$`), run: (*session).addKey},
	{pattern: like("CREATE INDEX ? ON ? (…)"), run: func(x *session, m []string) answer {
		return x.define(m[2], false, func(t *table) { t.indexes = append(t.indexes, m[1]) })
	}},
	{pattern: like("COMMENT ON TABLE ? IS '?'"), run: func(x *session, m []string) answer {
		return x.define(m[1], false, func(t *table) { t.Comment = m[2] })
	}},
	{pattern: regexp.MustCompile(`^DROP TABLE (\S+)(?: PURGE)?$`), run: func(x *session, m []string) answer {
		return x.define(m[1], true, func(t *table) { delete(x.server.tables, t.Name) })
	}},
	{pattern: like("TRUNCATE TABLE ?"), run: (*session).truncate},
	{pattern: like("LOCK TABLE ? IN EXCLUSIVE MODE WAIT …"), run: func(x *session, m []string) answer {
		x.lock(x.table(m[1]), true)
		return answer{}
	}},
	{pattern: regexp.MustCompile(into + ` \((.*?)\) VALUES \((.*)\)$`), run: (*session).insert, stays: true},
	{pattern: like("BEGIN DBMS_MEMOPTIMIZE_ADMIN.WRITES_FLUSH; END;"), run: func(x *session, _ []string) answer {
		x.server.drain(len(x.server.memory))
		return answer{}
	}},

	// The target.
	{pattern: like("SELECT MAX(?) FROM ?"), run: func(x *session, m []string) answer {
		t := x.table(m[2])
		var all []any
		for _, r := range t.Rows {
			all = append(all, t.text(r, t.column(m[1])))
		}
		return answer{cells: [][]any{{outermost(all, true)}}}
	}},
	{pattern: like("SELECT TO_CHAR(COUNT(*)), TO_CHAR(MIN(?)), TO_CHAR(MAX(?)) FROM ?"), run: func(x *session, m []string) answer {
		t := x.table(m[3])
		var all []any
		for _, r := range t.Rows {
			all = append(all, t.text(r, t.column(m[1])))
		}
		return answer{cells: [][]any{{str(int64(len(all))), outermost(all, false), outermost(all, true)}}}
	}},
	{pattern: like("SELECT 1 FROM ? WHERE ROWNUM = 1"), run: func(x *session, m []string) answer {
		return answer{cells: slices.Repeat([][]any{{"1"}}, min(1, len(x.table(m[1]).Rows)))}
	}},
	{pattern: like("SELECT TO_CHAR(COALESCE(…, -1) + 1) FROM ?"), run: func(x *session, m []string) answer {
		free := int64(0)
		for _, r := range x.table(m[1]).Rows {
			free = max(free, r.Number+1)
		}
		return answer{cells: [][]any{{str(free)}}}
	}},
	{pattern: like("SELECT ? FROM ?"), run: func(x *session, _ []string) answer {
		find := func(name string) (*standin.Table, error) { return x.table(name).Table, nil }
		cells, known, err := standin.Select(x.SQL, find, show)
		if err != nil || !known {
			refuse(900, "the stand-in does not know the query ", x.SQL, err)
		}
		return answer{cells: cells}
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
	case rows.Float64:
		return fmt.Sprintf("x%016X", value)
	case rows.Float32:
		return fmt.Sprintf("x%016X", math.Float64bits(float64(math.Float32frombits(uint32(value.(int64))))))
	case rows.Char:
		return fmt.Sprintf("%-*s", c.MaxBytes, text)
	}
	return text
}

// hint returns the hint of a statement that the server obeys.
func (x *session) hint(text string) string {
	if x.settings["OPTIMIZER_IGNORE_HINTS"] == "TRUE" {
		return ""
	}
	return text
}

// value is what VALUES has for a column: a bind, by its place, which may be converted or divided, or a literal.
type value struct {
	column  int // of the table
	bind    int // -1: a literal
	convert string
	divide  *big.Int
	literal any
}

// valueShape is one of a list of values, in which a text may have commas, and what is in parentheses.
var valueShape = regexp.MustCompile(`'(?:[^']|'')*'|[^,\s(](?:[^,(]|\((?:[^()]|\([^()]*\))*\))*`)

var bindShape = regexp.MustCompile(`^(?:(TO_NUMBER|NULLIF\(UTL_RAW\.CAST_TO_BINARY_(?:DOUBLE|FLOAT))\()?:(\d+)\)?` +
	`(?:, BINARY_(?:DOUBLE|FLOAT)_NAN\))?(?: / (1?0*))?$`)

func valueOf(text string) value {
	one := big.NewInt(1)
	if m := bindShape.FindStringSubmatch(text); m != nil {
		bind, _ := strconv.Atoi(m[2])
		v := value{bind: bind - 1, convert: m[1], divide: one}
		if m[3] != "" {
			v.divide, _ = new(big.Int).SetString(m[3], 10)
		}
		return v
	}
	if strings.HasPrefix(text, "'") {
		return value{bind: -1, literal: standin.Literal(text)}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		refuse(900, text)
	}
	return value{bind: -1, literal: n, divide: one}
}

// values reads the column list and the values of an INSERT.
func (x *session) values(t *table, columns, list string) (all []value) {
	names, texts := strings.Split(columns, ", "), valueShape.FindAllString(list, -1)
	if len(names) != len(texts) {
		refuse(900, x.SQL)
	}
	for i, name := range names {
		v := valueOf(texts[i])
		v.column = t.column(name)
		if v.bind >= len(x.Binds) {
			refuse(1008)
		}
		all = append(all, v)
	}
	return all
}

// insert is INSERT … VALUES. What has been inserted before an error stays in the transaction.
func (x *session) insert(m []string) (a answer) {
	hint, t := x.hint(m[1]), x.table(m[2])
	values := x.values(t, m[3], m[4])
	bound := 0
	for _, v := range values {
		if v.bind >= 0 {
			bound++
		}
	}
	if bound != len(x.Binds) {
		refuse(1008)
	}
	n := 1
	if len(x.Binds) > 0 {
		n = elements(x.Binds[0])
	}
	fast := hint == "MEMOPTIMIZE_WRITE" && t.fast && !x.server.options.NoFastIngest
	if !fast {
		x.lock(t, hint == "APPEND_VALUES")
	}

	var first *Error
	for i := range n {
		err := try(func() {
			row := x.row(t, values, i)
			if fast {
				x.remember(t, row)
			} else {
				x.put(t, row)
			}
		})
		bad := (*Error)(nil)
		switch {
		case !errors.As(err, &bad):
			a.rows++
		case x.server.options.Native || n == 1 || bad.Code == 28:
			panic(bad)
		case first == nil:
			first = bad
		}
	}
	if first != nil {
		panic(&Error{Code: 24381, Text: "error(s) in array DML", First: first})
	}
	return a
}

// row makes the row of the n-th execution.
func (x *session) row(t *table, values []value, n int) standin.Row {
	row := make([]any, len(t.Schema.Columns))
	for _, v := range values {
		given := v.literal
		if v.bind >= 0 {
			given = element(x.Binds[v.bind], n)
		}
		row[v.column] = t.fit(v.column, v.converted(given), v.divide)
	}
	return t.complete(row)
}

// complete makes a row of its values, and fills columns that have a default: the time.
func (t *table) complete(row []any) standin.Row {
	for i, c := range t.Schema.Columns {
		switch of := t.Column(c.Name); {
		case row[i] != nil:
		case of.Default:
			row[i] = time.Now().UnixMicro()
		case !of.Nullable:
			refuse(1400, c.Name)
		}
	}
	r, err := t.Row(row)
	if err != nil {
		refuse(932, err)
	}
	return r
}

// converted is what the function around a bind makes of it. A NULL is nil.
func (v value) converted(given any) any {
	if n, is := given.(sql.NullInt64); is {
		if !n.Valid {
			return nil
		}
		return n.Int64
	}
	raw, _ := given.([]byte)
	name, of, _ := strings.Cut(v.convert, ".CAST_TO_BINARY_")
	switch text, isText := given.(string); {
	case isText && text == "":
		return nil
	case name == "":
		return given
	case name == "TO_NUMBER":
		n, is := new(big.Int).SetString(text, 10)
		if !is {
			refuse(1722, given)
		}
		return n
	case of == "DOUBLE" && len(raw) == 8:
		if f := math.Float64frombits(binary.BigEndian.Uint64(raw)); !math.IsNaN(f) {
			return f
		}
		return nil
	case of == "FLOAT" && len(raw) == 4:
		if f := math.Float32frombits(binary.BigEndian.Uint32(raw)); !math.IsNaN(float64(f)) {
			return f
		}
		return nil
	}
	refuse(6502, v.convert, " of ", given)
	return nil
}

// fit converts a value to a column. An empty text is NULL.
func (t *table) fit(column int, v any, divide *big.Int) any {
	c := t.Schema.Columns[column]
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		return t.fit(column, []byte(v), divide)
	case []byte:
		most := t.Column(c.Name).Length()
		if len(v) == 0 {
			return nil
		}
		if (c.Type.Variable() || c.Type == rows.UUID) && len(v) > most {
			refuse(12899, c.Name, ": ", len(v), " of ", most)
		}
		if c.Type.Variable() {
			return v
		}
		if c.Type == rows.UUID {
			return parsed(c, string(v))
		}
	case int64:
		return t.fit(column, big.NewInt(v), divide)
	case *big.Int:
		if c.Type.IsInteger() || c.Type.IsDecimal() || c.Type == rows.Bool {
			const most = 38 // digits behind the point
			exact := new(big.Rat).SetFrac(v, divide).FloatString(most)
			whole, _, _ := strings.Cut(strings.TrimLeft(exact, "-0"), ".")
			if m := numberShape.FindStringSubmatch(t.Column(c.Name).Type); m != nil && len(whole) > digits(m) {
				refuse(1438, c.Name)
			}
			return parsed(c, strings.TrimSuffix(strings.TrimRight(exact, "0"), "."))
		}
	case float64:
		if c.Type == rows.Float64 {
			return int64(math.Float64bits(v + 0)) // −0 is 0
		}
	case float32:
		if c.Type == rows.Float32 {
			return int64(math.Float32bits(v + 0))
		}
	case time.Time: // without its zone
		if v.IsZero() {
			return nil
		}
		_, offset := v.Zone()
		switch seconds := v.Unix() + int64(offset); c.Type {
		case rows.Date:
			return seconds / (24 * 60 * 60)
		case rows.Timestamp:
			return seconds*1e6 + int64(v.Nanosecond()/1000)
		}
	}
	panic(Ora(932, fmt.Sprintf("a %T for column %s", v, c.Name)))
}

// digits are those before the point of a NUMBER.
func digits(m []string) int {
	all, _ := strconv.Atoi(m[1])
	scale, _ := strconv.Atoi(m[2])
	return all - scale
}

func parsed(c rows.Column, text string) any {
	v, err := standin.Parse(c, text)
	if err != nil {
		refuse(1438, err)
	}
	return v
}

// pooled is a row in the memory of Fast Ingest: acknowledged, in no transaction, and not seen.
type pooled struct {
	table    *table
	row      standin.Row
	sequence int64
}

// remember writes a row to memory.
func (x *session) remember(t *table, row standin.Row) {
	s := x.server
	s.sequence++
	x.written = s.sequence
	s.memory = append(s.memory, pooled{t, row, s.sequence})
}

// drain writes the oldest n rows. Those that no table takes are lost: their client has gone on.
func (s *Server) drain(n int) {
	n = min(n, len(s.memory))
	for _, p := range s.memory[:n] {
		if s.tables[p.table.Name] == p.table {
			tx := s.open.Begin(nil)
			_, _ = tx.Insert(p.table.Table, p.row)
			tx.End(true)
		}
	}
	s.memory = s.memory[n:]
}

// applied returns the highest number up to which all rows are on disk.
func (x *session) applied() int64 {
	s := x.server
	s.drain(s.options.DrainRows)
	if len(s.memory) > 0 {
		return s.memory[0].sequence - 1
	}
	return s.sequence
}
