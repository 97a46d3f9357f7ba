package source

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// What Spans says of a batch agrees with rows that are dealt out one by one.
func TestSpans(t *testing.T) {
	for _, s := range []Spans{
		{FirstKey: 7, Rows: 45, BatchRows: 10},
		{FirstKey: 7, Rows: 40, BatchRows: 10},
		{FirstKey: 0, Rows: 3, BatchRows: 10},
		{FirstKey: 1 << 40, Rows: 1, BatchRows: 1},
	} {
		dealt := map[int64][]int64{}
		for row := range s.Rows {
			dealt[row/s.BatchRows] = append(dealt[row/s.BatchRows], s.FirstKey+row)
		}
		require.EqualValues(t, len(dealt), s.Batches())
		before := int64(0)
		for n := range s.Batches() {
			first, rows := s.Span(n)
			require.Equal(t, dealt[n][0], first)
			require.EqualValues(t, len(dealt[n]), rows)
			require.Equal(t, before, s.Before(n))
			before += rows
			from, last := s.Keys(n, n+1)
			require.Equal(t, []int64{first, first + rows - 1}, []int64{from, last})
			for _, key := range dealt[n] {
				require.Equal(t, n, s.BatchOf(key))
			}
			require.Equal(t, rows, s.RowsOf(1, n == s.Batches()-1))
		}
		require.Equal(t, s.Rows, before)
		require.Equal(t, s.Rows, s.Before(s.Batches()+2))
		require.Equal(t, s.Rows, s.RowsOf(s.Batches(), true))
		first, last := s.Keys(0, s.Batches()+2)
		require.Equal(t, []int64{s.FirstKey, s.FirstKey + s.Rows - 1}, []int64{first, last})
		first, last = s.Keys(s.Batches(), s.Batches())
		require.Less(t, last, first, "no batch")
		_, rows := s.Span(s.Batches() + 1)
		require.LessOrEqual(t, rows, int64(0), "behind the end")
	}
}

// The batches of a source that cuts them have the rows that it says, and how many there are is known at its end.
func TestCut(t *testing.T) {
	c := new(Cut)
	s := Spans{FirstKey: 7, Cut: c}
	first, rows := s.Span(0)
	require.Equal(t, []int64{7, 0}, []int64{first, rows}, "not cut yet")
	for i, rows := range []int64{3, 5, 1} {
		c.Add(rows, 10*rows)
		require.EqualValues(t, i+1, c.Len())
	}

	require.Greater(t, s.Batches(), int64(1)<<30, "the end is not known")
	first, rows = s.Span(1)
	require.Equal(t, []int64{10, 5}, []int64{first, rows})
	first, rows = s.Span(3)
	require.Equal(t, []int64{16, 0}, []int64{first, rows})
	require.EqualValues(t, 50, c.Bytes(1))
	require.EqualValues(t, 0, c.Bytes(3))
	require.EqualValues(t, 9, s.Before(1<<40))

	c.End(2)
	require.EqualValues(t, 2, s.Batches())
	require.EqualValues(t, 8, s.Before(1<<40))
}

func TestSpansJoined(t *testing.T) {
	s := Spans{FirstKey: 7, Rows: 45, BatchRows: 10}.Joined(3)
	require.EqualValues(t, 2, s.Batches())
	first, rows := s.Span(1)
	require.Equal(t, []int64{37, 15}, []int64{first, rows})
}

func TestCycle(t *testing.T) {
	s := Spans{Rows: 45, BatchRows: 10}
	for distinct, want := range map[int64]int64{0: 5, 10: 1, 40: 4, 45: 5, 50: 5, 1000: 5} {
		require.Equal(t, want, s.Cycle(distinct), distinct)
	}
}

func TestSpansOfManyRows(t *testing.T) {
	s := Spans{Rows: math.MaxInt64, BatchRows: 1 << 32}
	require.EqualValues(t, 1<<31, s.Batches())
	_, rows := s.Span(1<<31 - 1)
	require.EqualValues(t, 1<<32-1, rows)
}
