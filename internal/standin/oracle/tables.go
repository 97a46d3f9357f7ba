package oracle

import (
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/standin"
)

// table is a table. Rows are those that are committed.
type table struct {
	*standin.Table
	id, data int64 // TRUNCATE changes the second
	fast     bool  // MEMOPTIMIZE FOR WRITE
	constraints
}

// constraints are what a table has besides its columns and its primary key. They are shown, and not kept.
type constraints struct {
	unique  [][]string
	checks  []string
	foreign []foreign
	indexes []string // that are not unique
}

// foreign is a foreign key.
type foreign struct {
	columns []string
	parent  string
	of      []string
}

// column returns the place of a column.
func (t *table) column(name string) int {
	i := t.Index(strings.Trim(name, `"`))
	if i < 0 {
		refuse(904, name)
	}
	return i
}

var (
	columnShape = regexp.MustCompile(`^"?(\w+)"? ([A-Z]\w+(?:\([^)]*\))?(?: WITH TIME ZONE)?)(.*)$`)
	keyShape    = regexp.MustCompile(`^PRIMARY KEY \((.*)\)$`)
	uniqueShape = regexp.MustCompile(`^UNIQUE \((.*)\)$`)
	checkShape  = regexp.MustCompile(`\bCHECK \((.*)\)$`)
	parentShape = regexp.MustCompile(`^FOREIGN KEY \((.*)\) REFERENCES (\S+) \((.*)\)$`)
)

// namesOf reads a list of columns.
func namesOf(list string) []string { return strings.Split(strings.ReplaceAll(list, `"`, ""), ", ") }

// read adds what an element of a list says besides a column, and reports whether it is no column.
func (c *constraints) read(text string) (is bool) {
	if m := checkShape.FindStringSubmatch(text); m != nil {
		c.checks = append(c.checks, m[1])
		return strings.HasPrefix(text, "CHECK")
	}
	if m := uniqueShape.FindStringSubmatch(text); m != nil {
		c.unique = append(c.unique, namesOf(m[1]))
		return true
	}
	m := parentShape.FindStringSubmatch(text)
	if m != nil {
		c.foreign = append(c.foreign, foreign{namesOf(m[1]), strings.Trim(m[2], `"`), namesOf(m[3])})
	}
	return m != nil
}

// definition is an element of a list, up to a comma outside of parentheses.
var definition = regexp.MustCompile(`[^,\s](?:[^,(]|\([^)]*\))*`)

// identity returns how a column's sequence is used.
func identity(column string) string {
	how, _, is := strings.Cut(column, " AS IDENTITY")
	_, how, _ = strings.Cut(how, "GENERATED ")
	if !is {
		return ""
	}
	return strings.TrimSuffix(how, " ON NULL")
}

// newTable makes the table of a column list.
func (x *session) newTable(name, list string) *table {
	var columns []standin.Column
	var key []string
	var more constraints
	for _, text := range definition.FindAllString(list, -1) {
		if m := keyShape.FindStringSubmatch(text); m != nil {
			key = namesOf(m[1])
			continue
		}
		if more.read(text) {
			continue
		}
		m := columnShape.FindStringSubmatch(text)
		if m == nil {
			refuse(900, "column "+text)
		}
		columns = append(columns, standin.Column{
			Name: strings.ToUpper(m[1]), Type: m[2],
			Nullable: !strings.Contains(m[3], "NOT NULL") && identity(m[3]) == "", Default: strings.Contains(m[3], "DEFAULT"),
			Virtual: strings.Contains(m[3], "ALWAYS AS ("), Identity: identity(m[3]),
		})
	}

	t := x.tableOf(name, columns, key...)
	t.constraints = more
	return t
}

// tableOf makes the table of columns. Those of its key take no NULL.
func (x *session) tableOf(name string, columns []standin.Column, key ...string) *table {
	t := &table{Table: standin.NewTable(name, columns, key...)}
	t.HoldRowsOf(x.server.schemas)
	for _, column := range key {
		t.column(column)
		t.Column(column).Nullable = false
	}
	x.server.object++
	t.id, t.data = x.server.object, x.server.object
	return t
}

// createTable commits, as all DDL does.
func (x *session) createTable(m []string) answer {
	owner, name := x.names(m[1])
	if owner != x.server.options.Owner {
		refuse(1031)
	}
	t := x.newTable(strings.ToUpper(name), m[2])
	t.fast = strings.HasSuffix(m[3], "MEMOPTIMIZE FOR WRITE")
	return x.add(t)
}

// createLike makes a table of another's columns. A NOT NULL that only a key has does not go with them.
func (x *session) createLike(m []string) answer {
	_, name := x.names(m[1])
	of := x.table(m[3])
	var columns []standin.Column
	for _, column := range namesOf(m[2]) {
		c := of.Columns[of.column(column)]
		nullable := c.Nullable || slices.Contains(of.Key, c.Name)
		columns = append(columns, standin.Column{Name: c.Name, Type: c.Type, Nullable: nullable})
	}
	return x.add(x.tableOf(strings.ToUpper(name), columns))
}

// addKey adds a key to a table without rows.
func (x *session) addKey(m []string) answer {
	return x.define(m[1], false, func(t *table) {
		if m[2] == "UNIQUE" {
			t.unique = append(t.unique, namesOf(m[3]))
			return
		}
		comment := t.Comment
		t.Table = x.tableOf(t.Name, t.Columns, namesOf(m[3])...).Table
		t.Comment = comment
	})
}

func (x *session) add(t *table) answer {
	x.end(true)
	if _, other := x.server.options.Taken[t.Name]; other || x.server.tables[t.Name] != nil {
		refuse(955)
	}
	x.server.tables[t.Name] = t
	return answer{}
}

// define changes a table. One that is removed or emptied must not have uncommitted rows.
func (x *session) define(name string, remove bool, change func(*table)) answer {
	x.end(true)
	t := x.table(name)
	if remove && x.server.open.Blocker(t.Table, true, nil) != nil {
		refuse(54)
	}
	change(t)
	return answer{}
}

func (x *session) truncate(m []string) answer {
	return x.define(m[1], true, func(t *table) {
		x.server.object++
		t.Empty()
		t.data = x.server.object
	})
}
