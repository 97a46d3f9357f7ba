package encode_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Pages and values are written by this package, only the structures around them by parquet-go: its reader checks the
// former, and reads the latter as it would anyone's.

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

// TestParquetOfManyPages has columns whose pages end at different rows, the longest values and short ones, given in
// pieces of any size.
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
			e := newEncoder(t, batch.Parquet, s).(encode.PerBatch)
			noise := bytes.Repeat([]byte("0123456789abcdef"), 8)
			var records []record
			for i := range int64(n) {
				from := random.IntN(16)
				records = append(records, record{i, -i, string(noise[from:][:length()]), noise[:length()], i - 5000, i * 1e9, 5000 - i})
			}
			buf := make([]byte, 0, e.MaxBytes(n))
			w := e.ForBatch(n)
			file := w.AppendHead(buf)
			for from := 0; from < n; {
				piece := min(n-from, random.IntN(3000))
				file = w.AppendRows(file, blockOf(s, records[from:from+piece]...), nil)
				from += piece
			}
			file = w.AppendTail(file)
			require.Equal(t, &buf[:1][0], &file[0], "no other buffer was taken")
			requireRecords(t, records, parquetRecords(t, file))
		})
	}
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

// TestParquetSize: the bound is true for every number of rows, and near for the longest values.
func TestParquetSize(t *testing.T) {
	s := recordsSchema(batch.Parquet, 7)
	e := newEncoder(t, batch.Parquet, s)
	assert.Equal(t, 8+8+4+7+4+8+8+4+7, e.MaxRow())
	longest := record{words: "abcdefg", raw: []byte("abcdefg")}
	for _, n := range []int{1, 2, 63, 64, 65, 5000, 95_325, 95_326, 190_650, 300_000} {
		records := make([]record, n)
		for i := range records {
			records[i] = longest
		}
		file, _ := whole(e, blockOf(s, records...))
		most := int(e.(encode.PerBatch).MaxBytes(int64(n)))
		assert.LessOrEqual(t, len(file), most, "%d rows", n)
		assert.Greater(t, len(file), most-300, "%d rows", n)
	}
}

func TestParquetWrongUse(t *testing.T) {
	s := recordsSchema(batch.Parquet, 3)
	e := newEncoder(t, batch.Parquet, s)
	b := blockOf(s, record{id: 1}, record{id: 2})
	assert.Panics(t, func() { e.AppendRows(nil, b, nil) })
	assert.Panics(t, func() { e.AppendTail(nil) })
	for _, n := range []int{1, 3} { // more and fewer rows than were planned
		assert.Panics(t, func() {
			w := e.(encode.PerBatch).ForBatch(n)
			w.AppendTail(w.AppendRows(w.AppendHead(nil), b, nil))
		}, "%d", n)
	}
	assert.Panics(t, func() { whole(e, blockOf(s, record{sum: 1e18})) })
	assert.PanicsWithValue(t, "encode: a value of column words is longer than 3 bytes", func() {
		whole(e, blockOf(s, record{words: "abcd"}))
	})
}

// TestParquetAllocatesLittle: what a file takes besides its buffer depends on its columns and pages, not on its rows.
func TestParquetAllocatesLittle(t *testing.T) {
	s := rows.Schema{Dataset: "d", Columns: []rows.Column{
		{Name: "id", Type: rows.Int64, Derived: true}, {Name: "payload", Type: rows.Bytes, MaxBytes: 60, Plain: true},
	}}
	e := newEncoder(t, batch.Parquet, s).(encode.PerBatch)
	b := rows.NewBlock(s)
	b.Reset(1000)
	for range b.Rows {
		b.Columns[1].Data = append(b.Columns[1].Data, make([]byte, 60)...)
		b.Columns[1].Ends = append(b.Columns[1].Ends, uint32(len(b.Columns[1].Data)))
	}
	buf := make([]byte, 0, e.MaxBytes(16_000))
	assert.Less(t, testing.AllocsPerRun(10, func() {
		w := e.ForBatch(16_000)
		file := w.AppendHead(buf)
		for range 16 {
			file = w.AppendRows(file, b, nil)
		}
		w.AppendTail(file)
	}), 100.0)
}
