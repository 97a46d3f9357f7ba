package sqlload

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// Which names are the same depends on how the server keeps those that nobody quotes. More columns may be there where the
// server fills them.
func TestDifferences(t *testing.T) {
	schema := rows.Schema{Columns: []rows.Column{{Name: "id", Type: rows.Int64}, {Name: "Body", Type: rows.Text}}}
	kind := func(c rows.Column) string { return map[rows.Type]string{rows.Int64: "int", rows.Text: "text"}[c.Type] }
	column := func(name, of string) Column {
		return Column{Name: name, Type: of, Takes: func(want rows.Column) bool { return kind(want) == of }}
	}
	for _, c := range []struct {
		dialect Dialect
		id      Column
		want    string
	}{
		{Dialect{}, column("id", "int"), ""},
		{Dialect{}, column("id", "text"), "column id is text, want int"},
		{Dialect{}, column("ID", "int"), "column id (int) is missing; column ID (int) is unknown to the dataset and has no default"},
		{Dialect{}, Column{Name: "more", Optional: true}, "column id (int) is missing"},
		{Dialect{Fold: true}, column("iD", "int"), ""},
		{Dialect{Upper: true}, column("ID", "int"), ""},
		{Dialect{Upper: true}, column("id", "int"), "column id (int) is missing; column id (int) is unknown to the dataset and has no default"},
	} {
		c.dialect.Type = kind
		body := "Body"
		if c.dialect.Upper {
			body = "BODY"
		}
		s := State{Statements: Statements{Dialect: c.dialect, Schema: schema}}
		require.Equal(t, c.want, strings.Join(s.differences([]Column{c.id, column(body, "text")}), "; "))
	}
}
