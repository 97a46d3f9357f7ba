package databend

import (
	"crypto/rand"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// The squares of the offsets in a batch of four million rows are beyond 64 bits.
func TestSumsBeyond64Bits(t *testing.T) {
	target := realServer(t)
	target.Method, target.Table = insertNoPresign, "t_"+strings.ToLower(rand.Text())
	const rows = 4_000_000
	t.Cleanup(func() { statementOn(t, target, "DROP TABLE IF EXISTS "+target.Table) })
	statementOn(t, target, "CREATE TABLE "+target.Table+" (id BIGINT NOT NULL, s VARCHAR NOT NULL)")
	statementOn(t, target, "INSERT INTO "+target.Table+" SELECT number, 'né' FROM numbers(4000000)")
	l, err := New().Open(t.Context(), target, testDeps())
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	_, err = l.Prepare(t.Context(), preparation(insertNoPresign))
	require.NoError(t, err)
	var got []loader.Bucket
	g := loader.Grouping{KeyRange: loader.KeyRange{Last: rows - 1}, Size: rows, Lengths: true}
	require.NoError(t, l.(loader.Counter).Count(t.Context(), g, func(b loader.Bucket) error {
		got = append(got, b)
		return nil
	}))
	n := big.NewInt(rows)
	squares := new(big.Int).Mul(n, big.NewInt(rows-1))
	squares.Mul(squares, big.NewInt(2*rows-1)).Div(squares, big.NewInt(6))
	require.Equal(t, []loader.Bucket{{
		Rows: rows, Max: rows - 1, Sum: big.NewInt(rows * (rows - 1) / 2), Squares: squares, Lengths: []int64{3 * rows},
	}}, got)
	require.False(t, squares.IsInt64())
}
