package loadertest

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// checkBucket compares a bucket with what one whole batch of n rows gives: offsets 0 … n−1.
func checkBucket(t *testing.T, b loader.Bucket, n int64, mix loader.Mix, s rows.Schema) {
	t.Helper()
	if b.Rows != n || b.Min != 0 || b.Max != n-1 {
		t.Errorf("bucket %d: %d rows with offsets %d to %d, want %d with 0 to %d", b.Number, b.Rows, b.Min, b.Max, n, n-1)
		return
	}
	if b.Sum.Cmp(sum(n-1)) != 0 || b.Squares.Cmp(squares(n-1)) != 0 {
		t.Errorf("bucket %d: offsets sum to %v and their squares to %v, want %v and %v", b.Number, b.Sum, b.Squares, sum(n-1), squares(n-1))
	}
	if want := mix.Sum(n); b.Mix == nil || b.Mix.Cmp(want) != 0 {
		t.Errorf("bucket %d: the mix of its offsets is %v, want %v", b.Number, b.Mix, want)
	}
	if want := len(s.Measures()); len(b.Measures) != want {
		t.Errorf("bucket %d: %d measures of the schema's %d", b.Number, len(b.Measures), want)
	}
}

// checkRow compares values as loader.Fetcher hands them out: numbers, days and microseconds are int64, all others
// []byte.
func checkRow(t *testing.T, number int64, got, want []any) {
	t.Helper()
	if len(got) != len(want) {
		t.Errorf("row %d has %d values, want %d", number, len(got), len(want))
		return
	}
	for i := range want {
		if !same(got[i], want[i]) {
			t.Errorf("row %d, column %d: got %s, want %s", number, i, shown(got[i]), shown(want[i]))
		}
	}
}

func same(got, want any) bool {
	switch w := want.(type) {
	case int64:
		return got == w
	case []byte:
		g, is := got.([]byte)
		return is && bytes.Equal(g, w)
	default:
		return got == nil && want == nil
	}
}

// shown includes the type of a value: a time.Time or a string is as wrong as another day.
func shown(v any) string {
	if b, is := v.([]byte); is {
		return fmt.Sprintf("%.80q", b)
	}
	return fmt.Sprintf("%v (%T)", v, v)
}
