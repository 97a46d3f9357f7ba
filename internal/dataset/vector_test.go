package dataset

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// numbersOf returns the numbers of a vector in units of 2^−14, of which all are multiples.
func numbersOf(t *testing.T, value []byte) (units []int64) {
	for one := range slices.Chunk(value, rows.FloatBytes) {
		unit := float64(math.Float32frombits(binary.LittleEndian.Uint32(one))) * (1 << vectorBits)
		if math.Trunc(unit) != unit { // require is slow
			require.Fail(t, "no multiple", "%v", unit)
		}
		units = append(units, int64(unit))
	}
	return units
}

// Vectors are as near to their centers as the spec says, all centers are used, and a normalised one has the length 1.
func TestVectors(t *testing.T) {
	for _, dims := range []int{1, 2, 3, 4, 5, 128, 1537, maxDims} {
		for _, normalised := range []bool{false, true} {
			const clusters, n = 3, 60
			text := fmt.Sprintf("version: 1\nname: v\ncolumns:\n  id: {type: bigint, sequence: {}}\n"+
				"  v: {type: vector(%d), vector: {clusters: %d, spread: 0.25, normalised: %v}}\n", dims, clusters, normalised)
			spec, err := ParseSpec("v.yaml", []byte(text), nil)
			require.NoError(t, err)
			d, err := spec.Compile(7)
			require.NoError(t, err)
			c, _ := d.Schema().Column("v")
			require.Equal(t, rows.Column{Name: "v", Type: rows.Float32s, MaxBytes: 4 * dims}, c)
			require.Equal(t, fmt.Sprintf("vector(%d)", dims), TypeName(c))

			block, used := rows.NewBlock(d.Schema()), map[int]bool{}
			d.Fill(block, 1<<40, n)
			all := centers(streamOf(columnStart(7, "v"), "centers"), clusters*dims)
			for i := range n {
				units := numbersOf(t, block.Columns[1].Value(i))
				require.Len(t, units, dims)
				if normalised {
					squares := 0.0
					for _, u := range units {
						squares += float64(u * u)
					}
					length := math.Sqrt(squares) / (1 << vectorBits)
					require.InDelta(t, 1, length, math.Sqrt(float64(dims))/(2<<vectorBits)+0.001, "row %d of %d dimensions", i, dims)
					continue
				}
				for k := range clusters {
					near := true
					for j, u := range units {
						near = near && math.Abs(float64(u-int64(all[k*dims+j]))) <= 0.25*(1<<vectorBits)
					}
					used[k] = used[k] || near
				}
			}
			assert.True(t, normalised || len(used) == clusters && used[0] && used[1] && used[2], "dims %d: %v", dims, used)
		}
	}
}

// The root has as many bits as it should, for scaleOf to be that of every vector.
func TestRoot(t *testing.T) {
	for _, x := range []uint64{1, 2, 3, 4, 15, 16, 17, 1<<32 - 1, 1 << 62, 1<<63 - 1, 1<<64 - 1, 3_037_000_499 * 3_037_000_499} {
		r := root(x)
		assert.True(t, r <= math.MaxUint32 && r*r <= x && (r == math.MaxUint32 || (r+1)*(r+1) > x), "%d: %d", x, r)
	}
	assert.Zero(t, scaleOf(0), "a vector without a length stays as it is")
}
