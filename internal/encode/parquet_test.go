package encode_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// parquetRecords reads a file of recordsSchema.
func parquetRecords(t testing.TB, file []byte) []record {
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	require.Len(t, f.RowGroups(), 1)
	reader := f.RowGroups()[0].Rows()
	defer reader.Close()
	var records []record
	for buf := make([]parquet.Row, 64); ; {
		n, err := reader.ReadRows(buf)
		for _, row := range buf[:n] {
			require.Len(t, row, 7)
			records = append(records, record{
				id: row[0].Int64(), n: row[1].Int64(), words: string(row[2].ByteArray()),
				day: int64(row[3].Int32()), at: row[4].Int64(), sum: row[5].Int64(),
				raw: bytes.Clone(row[6].ByteArray()),
			})
		}
		if errors.Is(err, io.EOF) {
			return records
		}
		require.NoError(t, err)
	}
}

func requireRecords(t testing.TB, want, got []record) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, normal(want[i]), normal(got[i]), "row %d", i)
	}
}

func FuzzParquet(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		requireRecords(t, records, parquetRecords(t, encoded(t, batch.Parquet, records)))
	})
}

// TestParquetOfManyPages has columns whose pages end at different rows, given in pieces of any size.
func TestParquetOfManyPages(t *testing.T) {
	const n = 20_000
	random := rand.New(rand.NewPCG(3, 4))
	for name, length := range map[string]func() int{
		"longest": func() int { return 100 },
		"shorter": func() int { return random.IntN(101) },
		"empty":   func() int { return 0 },
	} {
		t.Run(name, func(t *testing.T) {
			s := recordsSchema(batch.Parquet, 100)
			noise := bytes.Repeat([]byte("0123456789abcdef"), 8)
			var records []record
			for i := range int64(n) {
				from := random.IntN(16)
				records = append(records, record{i, -i, string(noise[from:][:length()]), noise[:length()], i - 5000, i * 1e9, 5000 - i})
			}
			var pieces []*rows.Block
			for rest := records; len(rest) > 0; {
				piece := min(len(rest), random.IntN(3000))
				pieces, rest = append(pieces, blockOf(s, rest[:piece]...)), rest[piece:]
			}
			file, _ := whole(newEncoder(t, batch.Parquet, s), pieces...)
			requireRecords(t, records, parquetRecords(t, file))
		})
	}
}

// TestParquetListsOfManyPages has lists whose pages end at different rows, beside a column that is stamped. Vectors without
// NULLs take the room that was planned.
func TestParquetListsOfManyPages(t *testing.T) {
	random := rand.New(rand.NewPCG(4, 2))
	vector := func(dims int, nulls bool) rows.Column {
		return rows.Column{Name: "v", Type: rows.Float32s, MaxBytes: dims * rows.FloatBytes, Nullable: nulls}
	}
	array := func(most int, of rows.Column, nulls bool) rows.Column {
		return rows.Column{Name: "v", Type: rows.Arrays, Of: &of, MaxBytes: most * int(4+of.MaxSize()), Nullable: nulls}
	}
	for name, c := range map[string]rows.Column{
		"vectors": vector(768, false), "vectors, NULLs": vector(200, true), "one number": vector(1, true),
		"bits":    array(300, rows.Column{Type: rows.Bool, Nullable: true}, true),
		"numbers": array(100, rows.Column{Type: rows.Int64}, false),
		"texts":   array(20, rows.Column{Type: rows.Text, MaxBytes: 9, Nullable: true}, true),
	} {
		t.Run(name, func(t *testing.T) {
			s := rows.Schema{Dataset: "d", Columns: []rows.Column{c, {Name: "id", Type: rows.Int64, Derived: true}}}
			n := min(3<<19/c.MaxBytes, 9000) // two pages or more
			var want, first [][]any
			for i := range int64(n) {
				value := randomList(random, c)
				want, first = append(want, []any{value, i}), append(first, []any{value, i % 7})
			}
			e := newEncoder(t, batch.Parquet, s)
			file, at := whole(e, backendtest.Block(s, first[:300]), backendtest.Block(s, first[300:301]), backendtest.Block(s, first[301:]))
			e.(encode.Stamper).Stamp(file, at, 0, backendtest.Block(s, want))
			requireTyped(t, s, want, readParquet(t, s, file))
			require.LessOrEqual(t, len(file), int(maxBytes(e, n)))
			if name == "vectors" {
				require.GreaterOrEqual(t, len(file)+300, int(maxBytes(e, n)))
			}
		})
	}
}

// randomList returns a value of a column of lists, or nil.
func randomList(random *rand.Rand, c rows.Column) any {
	if c.Nullable && random.IntN(4) == 0 {
		return nil
	}
	value := make([]byte, 0, c.MaxBytes)
	if c.Type == rows.Float32s {
		for range c.Dims() {
			value = binary.LittleEndian.AppendUint32(value, math.Float32bits(random.Float32()))
		}
		return value
	}

	of := backendtest.Block(rows.Schema{Columns: []rows.Column{*c.Of}}, [][]any{{int64(1)}, {int64(0)}, {nil}})
	if c.Of.Type == rows.Text {
		of = backendtest.Block(rows.Schema{Columns: []rows.Column{*c.Of}}, [][]any{{[]byte{}}, {[]byte("123456789")}, {nil}})
	}
	choices := 3
	if !c.Of.Nullable {
		choices = 2
	}
	for range random.IntN(c.MaxBytes/int(4+c.Of.MaxSize()) + 1) {
		value = rows.AppendElement(value, &of.Columns[0], random.IntN(choices))
	}
	return value
}

// TestParquetFile looks at what other readers go by.
func TestParquetFile(t *testing.T) {
	s := recordsSchema(batch.Parquet, 10)
	file, _ := whole(newEncoder(t, batch.Parquet, s), blockOf(s, record{id: 1, words: "a"}, record{id: 2, words: "bc"}))
	f, err := parquet.OpenFile(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	assert.Equal(t, `message schema {
	required int64 id (INT(64,true));
	required int64 n (INT(64,true));
	required binary words (STRING);
	required int32 day (DATE);
	required int64 at (TIMESTAMP(isAdjustedToUTC=false,unit=MICROS));
	required int64 sum (DECIMAL(18,5));
	required binary raw;
}`, f.Schema().String())
	meta := f.Metadata()
	require.Len(t, meta.RowGroups, 1)
	assert.EqualValues(t, 2, meta.RowGroups[0].NumRows)
	end := int64(4)
	for i, c := range meta.RowGroups[0].Columns {
		m := c.MetaData
		assert.Equal(t, end, m.DataPageOffset, "column %d follows the one before", i)
		end += m.TotalCompressedSize
		assert.Equal(t, m.TotalCompressedSize, m.TotalUncompressedSize)
		assert.Equal(t, format.Uncompressed, m.Codec)
		assert.EqualValues(t, []format.Encoding{format.Plain}, m.Encoding)
		assert.EqualValues(t, 2, m.NumValues)
		assert.Zero(t, m.DictionaryPageOffset)
	}
	assert.EqualValues(t, len(file), end+int64(binary.LittleEndian.Uint32(file[len(file)-8:]))+8, "the metadata follows the columns")
	assert.Equal(t, end-4, meta.RowGroups[0].TotalByteSize)
}
