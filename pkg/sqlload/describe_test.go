package sqlload

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A column is read as the type of ours that keeps its values as they are, and by no other.
func TestOurs(t *testing.T) {
	types := Types{
		{Ours: rows.Int64, Name: "bigint"},
		{Ours: rows.Bytes, Name: "blob", Fits: LongEnough},
		{Ours: rows.Timestamp, Name: "datetime", Fits: SecondDigits(0)},
		{Ours: rows.TimestampTZ, Name: "timestamp", Fits: SecondDigits(6)},
		{Ours: rows.Decimal, Name: "decimal", Fits: SameScale}, {Ours: rows.Decimal, Name: "numeric", Fits: AnyScale},
		{Ours: rows.Text, Name: "varchar", Also: []string{"blob"}, Fits: LongEnough},
		{Ours: rows.Int32, Name: "int", Also: []string{"bigint"}, SQL: "INT"},
		{Ours: rows.Float32s, Name: "vector", SQL: "VECTOR(%d)", Fits: SameDims},
		{Ours: rows.Arrays, Name: "[]", SQL: "%s[]"},
	}
	for kind, want := range map[string]*rows.Column{
		"bigint(20)":    {Type: rows.Int64},
		"varchar(3)":    {Type: rows.Text, MaxBytes: 3, ASCII: true},
		"varchar":       {Type: rows.Text, ASCII: true},
		"blob":          {Type: rows.Bytes},
		"decimal(12,2)": {Type: rows.Decimal, Digits: 12, Scale: 2},
		"decimal":       nil,
		"decimal(10,0)": {Type: rows.Decimal, Digits: 10},
		"decimal(38)":   {Type: rows.Decimal, Digits: 18},
		"decimal(38,9)": {Type: rows.Decimal, Digits: 18, Scale: 9},
		"decimal(5,-2)": nil,
		"decimal(3,5)":  nil,
		"numeric":       {Type: rows.Decimal, Digits: 18, Scale: 2},
		"datetime":      {Type: rows.Timestamp, Scale: 6},
		"datetime(2)":   {Type: rows.Timestamp, Scale: 4},
		"timestamp":     {Type: rows.TimestampTZ},
		"timestamp(0)":  {Type: rows.TimestampTZ, Scale: 6},
		"timestamp(9)":  {Type: rows.TimestampTZ},
		"datetime(6)":   {Type: rows.Timestamp},
		"point":         nil,
		"vector(3)":     {Type: rows.Float32s, MaxBytes: 12},
		"vector":        nil,
		"int[]":         {Type: rows.Arrays, Of: &rows.Column{Type: rows.Int32}},
		"bigint[]":      nil, // elements of that type are not made here
		"vector(3)[]":   nil,
	} {
		got := types.ours(ColumnOf("c", kind))
		if want != nil {
			want.Name = "c"
		}
		assert.Equal(t, want, got, kind)
	}
}

// asked is a server's catalog that knows some answers, and refuses one question.
type asked struct {
	Catalog
	answers map[string][][]string
}

func (a asked) Exec(context.Context, string) (int64, error) { return 0, nil }
func (a asked) Close() error                                { return nil }

func (a asked) Query(_ context.Context, query string, each func([][]byte) error) error {
	found, known := a.answers[query]
	if !known {
		return errors.New("no such view")
	}
	for _, row := range found {
		values := make([][]byte, len(row))
		for i, text := range row {
			values[i] = []byte(text)
		}
		if err := each(values); err != nil {
			return err
		}
	}
	return nil
}

func (a asked) Plan(loader.Preparation) Statements {
	return Statements{Dialect: Dialect{Quote: `"`, Types: Types{{Ours: rows.Int64, Name: "int"}}}, Table: `"s"."t'"`}
}

func (a asked) Locate(context.Context, Conn, *State) (*Relation, error) {
	return &Relation{Schema: "s", Name: "t'", Table: `"s"."t'"`, ID: "7"}, nil
}

func (a asked) Columns(context.Context, Conn, *State, *Relation) ([]Column, error) {
	return []Column{ColumnOf("a", "int"), ColumnOf("b", "point")}, nil
}

// The rows of an answer that belong together become one key, one reference; what the server does not answer is named.
func TestDescribe(t *testing.T) {
	server := asked{answers: map[string][][]string{
		"keys of 's' 't''' 7": {
			{"pk", "PRIMARY KEY", "a", "", "0"}, {"pk", "PRIMARY KEY", "b", "", "0"}, {"u", "UNIQUE", "b", "the first 3 characters of b", "3"},
			{"e", "UNIQUE", "", "an expression", "0"},
		},
		"references": {{"f", "a", "p", "parent", "id"}, {"g", "a", "p", "two", "x"}, {"g", "b", "p", "two", "y"}},
		"costs":      {{"index", "i", "DROP INDEX i"}},
		"rows":       {{"-1"}},
		`SELECT COUNT(*), MIN("id"), MAX("id") FROM "p"."parent"`: {{"5", "1", "9"}},
	}}
	table := &Table{
		Catalog: server, Connect: func(context.Context) (Conn, error) { return server, nil },
		Failed:   func(_ string, err error) error { return err },
		Classify: func(error) loader.Verdict { return loader.Verdict{} },
		Lookups: &Lookups{
			Keys: "keys of $schema $table $id", References: "references", Checks: "refused", Costs: "costs", Rows: "rows",
		},
	}
	d, err := table.Describe(t.Context())
	require.NoError(t, err)
	assert.Equal(t, &loader.Description{
		Schema: "s", Table: "t'",
		Columns: []loader.Column{
			{Name: "a", Type: "int", Values: &rows.Column{Name: "a", Type: rows.Int64}}, {Name: "b", Type: "point"},
		},
		Keys: []loader.Key{
			{Name: "pk", Primary: true, Columns: []string{"a", "b"}},
			{Name: "u", Columns: []string{"b"}, Only: "the first 3 characters of b", Prefix: 3}, {Name: "e", Only: "an expression"},
		},
		References: []loader.Reference{
			{Name: "f", Columns: []string{"a"}, Schema: "p", Table: "parent", Of: []string{"id"}, Keys: &loader.ParentKeys{Min: 1, Max: 9, Count: 5}},
			{Name: "g", Columns: []string{"a", "b"}, Schema: "p", Table: "two", Of: []string{"x", "y"}},
		},
		Costs: []string{"index i"}, Hidden: []string{"CHECKs"},
	}, d)
}

// A parent has every pair of two ranges only if it has as many rows as these have pairs.
func TestGridOfParents(t *testing.T) {
	for row, want := range map[string][]loader.ParentKeys{
		"6 1 2 5 7": {{Min: 1, Max: 2, Count: 2}, {Min: 5, Max: 7, Count: 3}},
		"5 1 2 5 7": nil,
		"4 1 4 5 7": nil,
		"0    ":     nil,
		"2 -9223372036854775808 9223372036854775807 1 2": nil,
	} {
		r := loader.Reference{Of: []string{"a", "b"}}
		addParents(&r, strings.Split(row, " "))
		require.Equal(t, want, r.Grid, row)
	}
}
