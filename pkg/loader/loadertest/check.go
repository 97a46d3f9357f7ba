package loadertest

import (
	"bytes"
	"math/big"
	"testing"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// checkBucket compares a bucket with what one whole batch of n rows gives: offsets 0 … n−1.
func checkBucket(t *testing.T, b loader.Bucket, n int64, s rows.Schema) {
	t.Helper()
	if b.Rows != n || b.Min != 0 || b.Max != n-1 {
		t.Errorf("bucket %d: %d rows with offsets %d to %d, want %d with 0 to %d", b.Number, b.Rows, b.Min, b.Max, n, n-1)
		return
	}
	sum := big.NewInt(n * (n - 1) / 2)
	squares := new(big.Int).Div(new(big.Int).Mul(sum, big.NewInt(2*n-1)), big.NewInt(3))
	if b.Sum.Cmp(sum) != 0 || b.Squares.Cmp(squares) != 0 {
		t.Errorf("bucket %d: offsets sum to %v and their squares to %v, want %v and %v", b.Number, b.Sum, b.Squares, sum, squares)
	}
	variable := 0
	for _, c := range s.Columns {
		if c.Type.Variable() {
			variable++
		}
	}
	if len(b.Lengths) != variable {
		t.Errorf("bucket %d: %d summed lengths for %d variable columns", b.Number, len(b.Lengths), variable)
	}
}

func checkRow(t *testing.T, number int64, got, want []any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("row %d has %d values, want %d", number, len(got), len(want))
		return
	}
	for i := range want {
		same := got[i] == nil && want[i] == nil
		switch w := want[i].(type) {
		case int64:
			same = got[i] == w
		case []byte:
			g, is := got[i].([]byte)
			same = is && bytes.Equal(g, w)
		}
		if !same {
			t.Errorf("row %d, column %d: got %.80q, want %.80q", number, i, got[i], want[i])
		}
	}
}
