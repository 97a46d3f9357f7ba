package inspect

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// examples are texts that servers read as values of types for which there is none of ours, by the type's name; a column
// of them is sent as text, with sql.
var examples = []struct {
	types  string // names, with blanks for those of several words
	values []string
}{
	{"time,time without time zone", []string{"00:00:00", "12:34:56"}},
	{"time with time zone", []string{"00:00:00+00", "12:34:56+00"}},
	{"interval", []string{"1 day", "02:00:00"}},
	{"year", []string{"2025", "2026"}},
	{"inet", []string{"192.0.2.1", "2001:db8::1"}},
	{"inet6", []string{"2001:db8::1", "::"}},
	{"inet4", []string{"192.0.2.1", "192.0.2.2"}},
	{"cidr", []string{"192.0.2.0/24", "2001:db8::/32"}},
	{"macaddr", []string{"00:00:5e:00:53:01"}},
	{"macaddr8", []string{"00:00:5e:ef:10:00:00:01"}},
	{"money,float,float unsigned,double,double unsigned,oid,xid,cid", []string{"0", "1"}},
	{"numeric,decimal,decimal unsigned", []string{"0"}}, // numeric(3,5) has no 1
	{"tsvector,tsquery,ltree,name,citext,varchar,char,tinytext,text,mediumtext,longtext", []string{"a", "b"}},
	{"xml", []string{"<a/>"}},
	{"jsonpath", []string{"$.a"}},
	{"pg_lsn", []string{"0/0"}},
	{"bit varying", []string{"0", "1"}},
	{"point", []string{"(0,0)", "(1,2)"}},
	{"line", []string{"{1,2,3}"}},
	{"lseg,box,path", []string{"((0,0),(1,2))"}},
	{"polygon", []string{"((0,0),(1,2),(2,1))"}},
	{"circle", []string{"<(0,0),1>"}},
	{"int4range,int8range,numrange,tsrange,tstzrange,daterange", []string{"empty"}},
	{"int4multirange,int8multirange,nummultirange,tsmultirange,tstzmultirange,datemultirange", []string{"{}"}},
}

// typeName finds the name of a type as servers write it, without its parameters.
var typeName = regexp.MustCompile(`^([a-z][a-z0-9_]*(?: [a-z]+)*)(?:\(([^)]*)\))?((?: [a-z]+)*)$`)

// exampleOf returns the type of a column as sql has it, and some of its values; "" where none is known. Geometry of
// MySQL has none: it is made by functions alone. mysql tells its point, and its bits, from those of PostgreSQL.
func exampleOf(serverType string, mysql bool) (sql string, values []string) {
	if strings.HasSuffix(serverType, "[]") { // of whatever
		return serverType, []string{"{}"}
	}
	full, _, _ := strings.Cut(serverType, " of character set ")
	m := typeName.FindStringSubmatch(full)
	if m == nil {
		return "", nil
	}
	name, params := m[1]+m[3], m[2]
	if name == "bit" {
		return full, bits(params, mysql)
	}

	switch {
	case name == "point" && mysql:
		return "", nil
	case name == "set" && mysql:
		label, _, _ := strings.Cut(params, "','")
		return full, []string{strings.Trim(label, "'")}
	case name == "binary":
		return full, []string{"a"} // the server fills it with NUL
	}
	for _, e := range examples {
		for one := range strings.SplitSeq(e.types, ",") {
			if one == name {
				return full, e.values
			}
		}
	}
	return "", nil
}

// bits are values of bit(n): MySQL takes the bytes of a text for them, and PostgreSQL its digits.
func bits(n string, mysql bool) []string {
	if mysql {
		return []string{"\x01"}
	}
	width, err := strconv.Atoi(n)
	if err != nil {
		width = 1
	}
	return []string{strings.Repeat("0", width), strings.Repeat("1", width)}
}

// imitate makes a column one of examples, if there are some for its type, and reports whether it could. A column that
// the server fills by itself is left out, with the line that would fill it.
func (w *writer) imitate(c *column, why string) bool {
	sql, texts := exampleOf(c.Type, w.Escapes)
	generator := "values: " + values(texts)
	filled := entry{&column{Column: c.Column, kind: rows.Text.String(), sql: sql}, generator}
	if texts == nil || !w.accepted(nil, filled) {
		return false
	}
	if c.Optional() {
		c.omitted = why + "; to fill it write " + strings.TrimSpace(filled.line())
		return true
	}

	c.Values, c.kind = &rows.Column{Name: c.Name, Type: rows.Text}, filled.kind
	c.sql, c.examples = sql, texts
	c.notes = append(c.notes, "examples, since "+why)
	return true
}
