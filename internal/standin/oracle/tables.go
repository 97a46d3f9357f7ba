package oracle

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/standin"
)

// table is a table. Rows are those that are committed.
type table struct {
	*standin.Table
	id, data int64 // TRUNCATE changes the second
	key      []int // the columns of the primary key; nil: none
	taken    map[string]*transaction
	fast     bool // MEMOPTIMIZE FOR WRITE
}

// keyOf returns the row's primary key. taken has it with the transaction that has inserted or removed it, or with nil.
func (t *table) keyOf(row standin.Row) string {
	key := make([]string, len(t.key))
	for i, column := range t.key {
		key[i] = fmt.Sprint(row.Values[column])
	}
	return strings.Join(key, ",")
}

func (t *table) column(name string) int {
	name = strings.ToUpper(strings.Trim(name, `"`))
	return slices.IndexFunc(t.Columns, func(c standin.Column) bool { return c.Name == name })
}

var (
	columnShape = regexp.MustCompile(`^"?(\w+)"? ([A-Z]\w+(?:\([^)]*\))?)(.*)$`)
	keyShape    = regexp.MustCompile(`^PRIMARY KEY \((.*)\)$`)
	lengthShape = regexp.MustCompile(`\((\d+)`)
)

// length returns the length in a type.
func length(of string) int {
	m := lengthShape.FindStringSubmatch(of)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return n
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
func (x *session) newTable(name, list string) (*table, error) {
	var columns []standin.Column
	t := &table{taken: make(map[string]*transaction)}
	key := ""
	for _, text := range definition.FindAllString(list, -1) {
		if m := keyShape.FindStringSubmatch(text); m != nil {
			key = m[1]
			continue
		}
		m := columnShape.FindStringSubmatch(text)
		if m == nil {
			return nil, Ora(900, "column "+text)
		}
		columns = append(columns, standin.Column{
			Name: strings.ToUpper(m[1]), Type: m[2],
			Nullable: !strings.Contains(m[3], "NOT NULL"), Default: strings.Contains(m[3], "DEFAULT"),
			Virtual: strings.Contains(m[3], "ALWAYS AS ("), Identity: identity(m[3]),
		})
	}
	t.Table = standin.NewTable(name, columns, claimsSchema, runsSchema)
	for name := range strings.SplitSeq(key, ", ") {
		if key != "" {
			t.key = append(t.key, t.column(name))
		}
	}
	if slices.Contains(t.key, -1) {
		return nil, Ora(904, key)
	}
	x.server.object++
	t.id, t.data = x.server.object, x.server.object
	return t, nil
}

// create registers a table. DDL commits.
func (x *session) create(t *table) error {
	x.end(true)
	if _, other := x.server.options.Taken[t.Name]; other || x.server.tables[t.Name] != nil {
		return Ora(955)
	}
	x.server.tables[t.Name] = t
	return nil
}

func (x *session) createTable(m []string) (answer, error) {
	owner, name := x.names(m[1])
	if owner != x.server.options.Owner {
		return answer{}, Ora(1031)
	}
	t, err := x.newTable(strings.ToUpper(name), m[2])
	if err != nil {
		return answer{}, err
	}
	t.fast = strings.HasSuffix(m[3], "MEMOPTIMIZE FOR WRITE")
	return answer{}, x.create(t)
}

// define changes a table. One that is removed or emptied must not have uncommitted rows.
func (x *session) define(name string, remove bool, change func(*table)) error {
	x.end(true)
	t, err := x.table(name)
	if err != nil {
		return err
	}
	if remove && x.inTheWay(t, exclusive) != nil {
		return Ora(54)
	}
	change(t)
	return nil
}

func (x *session) truncate(m []string) (answer, error) {
	return answer{}, x.define(m[1], true, func(t *table) {
		x.server.object++
		t.Rows, t.taken, t.data = nil, make(map[string]*transaction), x.server.object
	})
}
