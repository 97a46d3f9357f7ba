package dataset_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/rows"
)

// A reference to the same table points to one of its first rows, whose own is NULL or themselves, wherever in the run a
// row is drawn; and what finds the parents of a row, for the probe, finds the ones that it has.
func TestReferencesToTheSameTable(t *testing.T) {
	const own = 40
	for key, at := range map[string]func(c *rows.Column, v *rows.Vector, i int) string{
		"{type: bigint, sequence: {start: 7, step: 1}}":            number,
		"{type: int, scatter: {start: 3, stride: 8}}":              number,
		"{type: uuid, uuid: v4}":                                   text,
		`{type: text(9), sequence: {format: "K{:06}", start: 12}}`: text,
	} {
		file := "version: 1\nname: staff\nrows: 400\nkey: [n]\ncolumns:\n  n: {type: bigint, sequence: {start: 1}}\n  id: " + key +
			"\n  boss: {ref: staff.id}\n  mentor: {ref: {column: id, rows: 25}, zipf: {s: 1}, nulls: 10%}\n"
		spec, err := dataset.ParseSpec("f.yaml", []byte(file), nil)
		require.NoError(t, err, key)
		d, err := spec.Compile(5)
		require.NoError(t, err)
		first, column := dataset.OwnParents(d)
		require.Equal(t, []any{int64(own), "boss"}, []any{first, column})

		block, none := rows.NewBlock(d.Schema()), 0
		d.Fill(block, 0, 400)
		d.Derive(block, 0)
		value := func(c, i int) string { return at(&d.Schema().Columns[c], &block.Columns[c], i) }
		one := rows.NewBlock(d.Schema())
		for i := range 400 {
			var keys []string
			for _, parent := range dataset.WithParents(d, []int64{int64(i)}) {
				require.True(t, parent < own || parent == int64(i))
				keys = append(keys, value(1, int(parent)))
			}
			require.Contains(t, keys, value(2, i), "%s, row %d", key, i)
			require.Equal(t, i < own, value(1, i) == value(2, i))
			if block.Columns[3].IsNull(i) {
				none++
			} else {
				require.Contains(t, keys, value(3, i))
			}
			require.True(t, i >= 25 || block.Columns[3].IsNull(i))

			d.Fill(one, int64(i), 1)
			require.Equal(t, value(2, i), at(&d.Schema().Columns[2], &one.Columns[2], 0))
		}
		require.Less(t, none, 150)
		require.Greater(t, none, 30)
	}
}

func number(c *rows.Column, v *rows.Vector, i int) string { return c.Text(v.Ints[i]) }

func text(c *rows.Column, v *rows.Vector, i int) string {
	if c.Type == rows.UUID {
		return fmt.Sprintf("%x", v.UUID(i))
	}
	return string(v.Value(i))
}

func TestReferencesToTheSameTableThatCannotBe(t *testing.T) {
	for column, want := range map[string]string{
		"{type: bigint, ref: other.id}":              "f.yaml:5: column boss: ref: other.id is for a file with tables, or for the table itself, which is staff",
		"{ref: staff.no}":                            "f.yaml:5: column boss: ref: column no: there is id, boss",
		"{ref: staff.boss}":                          "column boss of its own table is no sequence, uuid or scatter",
		"{type: bigint, ref: {column: id, step: 2}}": "of its own table only column, rows and with are said",
	} {
		_, err := dataset.ParseSpec("f.yaml", []byte("version: 1\nname: staff\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n  boss: "+column+"\n"), nil)
		require.ErrorContains(t, err, want)
	}
}
