package sink

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

func parquetFile(t testing.TB, n int) string {
	var b bytes.Buffer
	type row struct {
		ID   int64
		Name string
		Tags map[string][]int32
	}
	w := parquet.NewGenericWriter[row](&b, parquet.KeyValueMetadata("who", "test"))
	_, err := w.Write(make([]row, n))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.String()
}

func TestParquet(t *testing.T) {
	for _, n := range []int{0, 1, 12_345} {
		file := parquetFile(t, n)
		for _, piece := range []int{1, 7, 100_000} {
			got, err := count(&Parquet{}, file, piece)
			require.NoError(t, err)
			require.EqualValues(t, n, got)
			got, err = count(&Parquet{}, strings.Repeat("\n", 2_000_000)+file, 300_000)
			require.NoError(t, err)
			require.EqualValues(t, n, got)
		}
		sniffed, err := count(&Sniffed{}, file, 3)
		require.NoError(t, err)
		require.EqualValues(t, n, sniffed)
	}
	for _, none := range []string{"", "PAR1", "PAR1PAR1", "PAR1\xff\xff\xff\xffPAR1", "xxxx\x00\x00\x00\x00PAR1"} {
		_, err := count(&Parquet{}, none, 3)
		require.ErrorIs(t, err, errFooter, "%q", none)
	}
}

func TestParquetIsBounded(t *testing.T) {
	c := &Parquet{}
	for range 50 {
		c.Write(make([]byte, 100_000))
	}
	require.LessOrEqual(t, cap(c.tail), 4*maxFooter)
}

func TestSniffed(t *testing.T) {
	file := parquetFile(t, 7)
	for text, want := range map[string]int64{"": 0, "a\n\nb": 3, "a\n": 1, "PA": 1, "PAR2\n": 1, file: 7, "PAR1\n": -1, file + "x": -1} {
		for _, piece := range []int{1, 3, 1000} {
			n, err := count(&Sniffed{}, text, piece)
			if want < 0 {
				require.ErrorIs(t, err, errFooter)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, want, n, "%.10q by %d", text, piece)
		}
	}
}

// Whatever a footer says, reading it ends, and no number is below zero.
func FuzzFooter(f *testing.F) {
	file := parquetFile(f, 3)
	f.Add([]byte(file[len(file)-400 : len(file)-8]))
	f.Add([]byte{0x15, 2, 0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x0f})
	f.Add([]byte{0x1b, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x11})
	f.Fuzz(func(t *testing.T, footer []byte) {
		n := uint32(min(len(footer), math.MaxInt32))
		c := &Parquet{tail: append(append(footer[:len(footer):len(footer)], byte(n), byte(n>>8), byte(n>>16), byte(n>>24)), magic...)}
		if rows, err := c.Rows(); err == nil && rows < 0 {
			t.Errorf("%d rows", rows)
		}
	})
}
