package batch_test

import (
	"encoding/binary"
	"slices"
	"testing"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

func columnsSchema() rows.Schema {
	return rows.Schema{Dataset: "d", Columns: []rows.Column{
		{Name: "key", Type: rows.Int64, Derived: true},
		{Name: "words", Type: rows.Text, MaxBytes: 5},
		{Name: "day", Type: rows.Date},
		{Name: "raw", Type: rows.Bytes, MaxBytes: 5},
		{Name: "at", Type: rows.Timestamp},
	}}
}

// newColumns has the rows (7, "a", −1, "xyz", 10), (8, "", −2, "", 20) and (9, "bcd", −3, "z", 30).
func newColumns() (b *batch.Batch, freed *int) {
	var encoded []byte
	ints := func(values ...int64) {
		for _, v := range values {
			encoded = binary.NativeEndian.AppendUint64(encoded, uint64(v))
		}
	}
	ends := func(values ...uint32) {
		for _, v := range values {
			encoded = binary.NativeEndian.AppendUint32(encoded, v)
		}
	}
	ints(7, 8, 9)
	ends(1, 1, 4, 0) // three, and what is left free
	ints(-1, -2, -3)
	ends(3, 3, 4, 0)
	ints(10, 20, 30)
	encoded = append(encoded, "abcdxyzz"...)
	freed = new(int)
	b = &batch.Batch{
		ID: batch.ID{Run: "r", Number: 4}, Format: batch.ColumnArrays, First: 7, Rows: 3,
		Encoded: encoded, Free: func() { *freed++ },
	}
	b.Hold()
	return b, freed
}

func TestColumnsAreViews(t *testing.T) {
	for skip := range int64(4) {
		b, _ := newColumns()
		b.Skip = skip
		c, err := b.Columns(columnsSchema())
		if err != nil {
			t.Fatal(err)
		}
		if c.From != int(skip) || c.Rows != 3 || len(c.Vectors) != 5 {
			t.Errorf("%d columns of rows %d to %d, want 5 of %d to 3", len(c.Vectors), c.From, c.Rows, skip)
		}
		for i, want := range map[int][]int64{0: {7, 8, 9}, 2: {-1, -2, -3}, 4: {10, 20, 30}} {
			if got := c.Vectors[i].Ints; !slices.Equal(got, want) {
				t.Errorf("column %d is %v, want %v", i, got, want)
			}
		}
		for i, want := range map[int][]string{1: {"a", "", "bcd"}, 3: {"xyz", "", "z"}} {
			for row, value := range want {
				if got := string(c.Vectors[i].Value(row)); got != value {
					t.Errorf("column %d of row %d is %q, want %q", i, row, got, value)
				}
			}
			// Who appends to a view must not write over the next column.
			if data := c.Vectors[i].Data; cap(data) != len(data) {
				t.Errorf("the view of column %d has room for %d bytes, and holds %d", i, cap(data), len(data))
			}
		}
		for i, column := range columnsSchema().Columns {
			if c.Vectors[i].Type != column.Type {
				t.Errorf("column %d has type %s, want %s", i, c.Vectors[i].Type, column.Type)
			}
		}
		copy(b.Encoded, make([]byte, 8))
		if c.Vectors[0].Ints[0] != 0 {
			t.Error("the numbers are a copy")
		}
		b.Encoded[len(b.Encoded)-8] = 'A'
		if string(c.Vectors[1].Value(0)) != "A" {
			t.Error("the texts are a copy")
		}
		_ = c.Close()
	}
}

func TestColumnsHoldTheBuffer(t *testing.T) {
	b, freed := newColumns()
	first, err := b.Columns(columnsSchema())
	if err != nil {
		t.Fatal(err)
	}
	second, err := b.Columns(columnsSchema())
	if err != nil {
		t.Fatal(err)
	}
	b.Release()
	_ = first.Close()
	_ = first.Close()
	if *freed != 0 {
		t.Fatal("freed under a reading")
	}
	if first.Vectors != nil || second.Vectors[0].Ints[2] != 9 {
		t.Error("a closed reading has its vectors still, or closed another")
	}
	_ = second.Close()
	_ = second.Close()
	if *freed != 1 {
		t.Errorf("freed %d times", *freed)
	}
}

func TestColumnsThatAreNone(t *testing.T) {
	words, key := columnsSchema(), columnsSchema()
	words.Columns, key.Columns = words.Columns[:2], key.Columns[:1]
	for name, c := range map[string]struct {
		change func(*batch.Batch)
		schema rows.Schema
		want   string
	}{
		"format": {
			func(b *batch.Batch) { b.Format = batch.TSV }, columnsSchema(), "batch: r/4 is encoded as tsv, not as columns",
		},
		"rows": {func(b *batch.Batch) { b.Rows = 0 }, columnsSchema(), "batch: r/4 is of columns and has no rows"},
		"nothing": {
			func(b *batch.Batch) { b.Encoded = nil }, columnsSchema(), "batch: r/4 has 0 bytes, too few for 3 rows of d",
		},
		"short": {
			func(b *batch.Batch) { b.Encoded = b.Encoded[:103] }, columnsSchema(),
			"batch: r/4 has 103 bytes, too few for 3 rows of d",
		},
		"first column cut": {
			func(b *batch.Batch) { b.Encoded = b.Encoded[:107] }, columnsSchema(), "batch: r/4 ends within the values of column words",
		},
		"last column cut": {
			func(b *batch.Batch) { b.Encoded = b.Encoded[:111] }, columnsSchema(), "batch: r/4 ends within the values of column raw",
		},
		"one byte more": {
			func(b *batch.Batch) { b.Encoded = append(b.Encoded, 'x') }, columnsSchema(), "batch: r/4 has 1 bytes after 3 rows of d",
		},
		"another schema":      {func(*batch.Batch) {}, words, "batch: r/4 has 68 bytes after 3 rows of d"},
		"schema without text": {func(*batch.Batch) {}, key, "batch: r/4 has 88 bytes after 3 rows of d"},
		"misaligned": {
			func(b *batch.Batch) { b.Encoded = append(make([]byte, 4), b.Encoded...)[4:] }, columnsSchema(),
			"batch: r/4 begins at no multiple of 8 bytes, so its numbers cannot be read in place",
		},
	} {
		b, freed := newColumns()
		c.change(b)
		got, err := b.Columns(c.schema)
		if got != nil || err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
		if b.Release(); *freed != 1 {
			t.Errorf("%s: the buffer is held for a reading that did not begin", name)
		}
	}
}

func TestColumnsNoteWhatHasPassed(t *testing.T) {
	b, _ := newColumns()
	b.Skip = 1
	said := 0
	b.AllRead = func() {
		if said++; b.Sent() != int64(len(b.Encoded)) {
			t.Errorf("said after %d of %d bytes", b.Sent(), len(b.Encoded))
		}
	}
	for reading := 1; reading <= 2; reading++ {
		c, err := b.Columns(columnsSchema())
		if err != nil {
			t.Fatal(err)
		}
		if b.Sent() != 0 {
			t.Errorf("reading %d begins with %d bytes sent", reading, b.Sent())
		}
		for _, step := range []struct{ row, sent, said int }{{1, 0, reading - 1}, {2, 56, reading - 1}, {3, 112, reading}, {3, 112, reading}} {
			c.Passed(step.row)
			if int(b.Sent()) != step.sent || said != step.said {
				t.Errorf("at row %d: %d bytes, said %d times, want %+v", step.row, b.Sent(), said, step)
			}
		}
		_ = c.Close()
		c.Passed(1)
		if b.Sent() != 112 {
			t.Error("a closed reading moves")
		}
	}
}

func TestColumnPlaces(t *testing.T) {
	for n, want := range map[int][]int{1: {0, 8, 16, 24, 32, 40}, 2: {0, 16, 24, 40, 48, 64}, 3: {0, 24, 40, 64, 80, 104}} {
		places, data := batch.ColumnPlaces(columnsSchema(), n)
		if got := append(places, data); !slices.Equal(got, want) {
			t.Errorf("%d rows: %v, want %v", n, got, want)
		}
	}
}
