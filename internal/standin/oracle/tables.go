package oracle

import (
	"regexp"
	"strings"

	"github.com/terapush/terapush/internal/standin"
)

// table is a table. Rows are those that are committed.
type table struct {
	*standin.Table
	id, data int64 // TRUNCATE changes the second
	fast     bool  // MEMOPTIMIZE FOR WRITE
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
	columnShape = regexp.MustCompile(`^"?(\w+)"? ([A-Z]\w+(?:\([^)]*\))?)(.*)$`)
	keyShape    = regexp.MustCompile(`^PRIMARY KEY \((.*)\)$`)
)

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
	for _, text := range definition.FindAllString(list, -1) {
		if m := keyShape.FindStringSubmatch(text); m != nil {
			key = strings.Split(strings.ReplaceAll(m[1], `"`, ""), ", ")
			continue
		}
		m := columnShape.FindStringSubmatch(text)
		if m == nil {
			refuse(900, "column "+text)
		}
		columns = append(columns, standin.Column{
			Name: strings.ToUpper(m[1]), Type: m[2],
			Nullable: !strings.Contains(m[3], "NOT NULL"), Default: strings.Contains(m[3], "DEFAULT"),
			Virtual: strings.Contains(m[3], "ALWAYS AS ("), Identity: identity(m[3]),
		})
	}

	t := &table{Table: standin.NewTable(name, columns, key...)}
	t.HoldRowsOf(x.server.options.Schemas)
	for _, column := range key {
		t.column(column)
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
