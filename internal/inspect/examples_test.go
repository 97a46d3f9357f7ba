package inspect

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// A type that only the server knows has values that it takes: all of these were pushed to PostgreSQL 15, MariaDB 10.11, MySQL 9.7
// and TiDB 8.4.
func TestExamples(t *testing.T) {
	const mysql, other = true, false
	for _, c := range []struct {
		kind   string
		mysql  bool
		sql    string
		values []string
	}{
		{"bit(3)", other, "bit(3)", []string{"000", "111"}},
		{"bit", other, "bit", []string{"0", "1"}},
		{"bit(3)", mysql, "bit(3)", []string{"\x01"}},
		{"bit varying(10)", other, "bit varying(10)", []string{"0", "1"}},
		{"time(3) without time zone", other, "time(3) without time zone", []string{"00:00:00", "12:34:56"}},
		{"numeric(3,5)", other, "numeric(3,5)", []string{"0"}},
		{"numeric(3,5)[]", other, "numeric(3,5)[]", []string{"{}"}},
		{"set('a','b''c')", mysql, "set('a','b''c')", []string{"a"}},
		{"varchar(20) of character set utf16", mysql, "varchar(20)", []string{"a", "b"}},
		{"point", mysql, "", nil},
		{"point", other, "point", []string{"(0,0)", "(1,2)"}},
		{`"char"`, other, "", nil},
		{"widget", other, "", nil},
	} {
		sql, values := exampleOf(c.kind, c.mysql)
		assert.Equal(t, c.sql, sql, c.kind)
		assert.Equal(t, c.values, values, c.kind)
	}
}

// A column of examples is in the file where it has to have a value, is no key, and is never thought to be unique.
func TestWriteExamples(t *testing.T) {
	inet := loader.Column{Name: "ip", Type: "inet"}
	d := loader.Description{Columns: []loader.Column{inet, bigint("id")}, Keys: []loader.Key{primary("id")}}
	want := "key: [id]\ncolumns:\n" +
		"  ip: {type: text, sql: \"inet\", values: [\"192.0.2.1\", \"2001:db8::1\"]}  # examples, since there is no type of ours for inet yet\n" +
		"  id: {type: bigint, sequence: {start: 1}}\n"
	assert.Equal(t, want, written(t, &d))

	d.Keys = append(d.Keys, unique("ip"))
	_, err := Write(&d, "Server 1", false)
	require.ErrorContains(t, err, `column "ip": no generator makes it different in every row, as UNIQUE u_ip wants`)
}
