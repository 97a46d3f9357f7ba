package dataset

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset/datasettest"
	"github.com/terapush/terapush/pkg/rows"
)

// TestRandomSpecs checks that specs of any columns keep what the tests here promise of the built-in datasets.
func TestRandomSpecs(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 2))
	for k := range 40 {
		text := datasettest.Spec(random)
		s, err := ParseSpec("random.yaml", []byte(text), nil)
		require.NoError(t, err, text)
		seed := uint64(k) // 1 is that of the mean
		d, err := s.Compile(seed)
		require.NoError(t, err, text)
		t.Run(fmt.Sprint(k), func(t *testing.T) {
			defer func() {
				if t.Failed() {
					t.Log(text)
				}
			}()
			longest := make([]int, len(d.Schema().Columns))
			for range 40 {
				requirePromises(t, d, random.Int64N(d.Schema().MaxNumber())>>random.IntN(40), longest)
			}
			requirePromises(t, d, d.Schema().MaxNumber(), longest)

			requireSameRows(t, d, random.Int64N(d.Schema().MaxNumber()/2)>>random.IntN(40))
			requireApart(t, d)
			requireUnique(t, d, s)
			requireMean(t, s)
			requireSameFromJSON(t, d, s, seed)
			requireNoAllocations(t, d)
		})
	}
}

// requireSameRows asks for rows in pieces, backwards and twice.
func requireSameRows(t *testing.T, d Dataset, first int64) {
	const n = 200
	all, part := rows.NewBlock(d.Schema()), rows.NewBlock(d.Schema())
	d.Fill(all, first, n)
	d.Derive(all, first)
	for _, piece := range [][2]int{{199, 1}, {0, 2}, {63, 66}, {64, 1}, {100, 100}, {17, 5}, {63, 66}} {
		from := first + int64(piece[0])
		d.Fill(part, from, piece[1])
		d.Derive(part, from+1_000_003%d.Schema().MaxNumber())
		d.Derive(part, from) // the derived columns are replaced, not added to
		for i := range piece[1] {
			require.Equal(t, values(all, piece[0]+i), values(part, i), "row %d", from+int64(i))
		}
	}
}

// requireApart checks that drawn columns do not depend on the row's number, and derived ones on nothing else.
func requireApart(t *testing.T, d Dataset) {
	s, b := d.Schema(), rows.NewBlock(d.Schema())
	first := (s.MaxNumber() - 12_345) / 2
	Row(b, d, first, 12_345, 1000)
	drawn, derived := rowOf(d, 345), rowOf(d, first+12_345)
	for i, c := range s.Columns {
		want := drawn[i]
		if c.Derived {
			want = derived[i]
		}
		require.Equal(t, want, values(b, 0)[i], "%s", c.Name)
	}

	// As the ring stamps: nothing but the derived columns is in the block.
	b.Reset(1)
	d.Derive(b, first+12_345)
	for i, c := range s.Columns {
		if !c.Derived {
			continue
		}
		got := b.Columns[i].At(0)
		if text, is := got.([]byte); is {
			got = string(text)
		}
		require.Equal(t, derived[i], got, "%s", c.Name)
	}
}

// requireUnique checks that no two of some rows have the same key or the same values of a unique set, and that keys grow
// with the rows if the schema says so.
func requireUnique(t *testing.T, d Dataset, s *Spec) {
	const n = 2000
	b := rows.NewBlock(d.Schema())
	d.Fill(b, 0, n)
	d.Derive(b, d.Schema().MaxNumber()/2)
	for _, set := range append([][]string{s.Key}, s.Unique...) {
		seen := map[string]bool{}
		for i := range n {
			all, key := values(b, i), ""
			for _, name := range set {
				key += fmt.Sprintf("%v\x00", all[slices.Index(d.Schema().Names(), name)])
			}
			require.False(t, seen[key], "row %d has the %v of another", i, set)
			seen[key] = true
		}
	}
	if !d.Schema().Ordered() {
		return
	}

	column := d.Schema().Number[0].Column
	for i := range n - 1 {
		this, next := values(b, i)[column], values(b, i+1)[column]
		v, is := this.(int64)
		if is {
			require.LessOrEqual(t, v, next.(int64), "row %d", i)
			continue
		}
		require.Less(t, this.(string), next.(string), "row %d", i)
	}
}

// requireMean makes the rows by which sizes become numbers of rows.
func requireMean(t *testing.T, s *Spec) {
	d, err := s.Compile(1)
	require.NoError(t, err)
	b := rows.NewBlock(d.Schema())
	d.Fill(b, 0, meanRows)
	d.Derive(b, 0)
	require.InDelta(t, float64(b.PayloadBytes())/meanRows, d.Schema().RowBytes(), 1)
	require.LessOrEqual(t, d.Schema().RowBytes(), d.Schema().MaxRowBytes())
}

// requireSameFromJSON makes the dataset from what a record keeps.
func requireSameFromJSON(t *testing.T, d Dataset, s *Spec, seed uint64) {
	text, err := json.Marshal(s)
	require.NoError(t, err)
	kept := new(Spec)
	require.NoError(t, json.Unmarshal(text, kept))
	again, err := kept.Compile(seed)
	require.NoError(t, err)
	require.Equal(t, d.Schema(), again.Schema())
	for _, row := range []int64{0, 999, d.Schema().MaxNumber()} {
		require.Equal(t, rowOf(d, row), rowOf(again, row))
	}
}

// requireNoAllocations says nothing under the race detector, where a sync.Pool loses some of what it is given.
func requireNoAllocations(t *testing.T, d Dataset) {
	info, _ := debug.ReadBuildInfo()
	if slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return
	}
	b := rows.NewBlock(d.Schema())
	allocs := testing.AllocsPerRun(5, func() {
		d.Fill(b, 0, 100)
		d.Derive(b, 0)
	})
	assert.Less(t, allocs, 20.0)
}
