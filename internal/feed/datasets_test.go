package feed

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
)

// TestEveryDatasetIsStamped compares stamped batches with rows made one by one: at the first rows, over the end of a
// second, a day and an order, and at the last numbers that a key carries.
func TestEveryDatasetIsStamped(t *testing.T) {
	for _, name := range dataset.Names() {
		o := dataset.Options{Seed: 5}
		if name == "documents" {
			o.PayloadKind = dataset.Text
		}
		d, err := dataset.New(name, o)
		require.NoError(t, err)
		most := d.Schema().MaxNumber()
		for _, format := range encode.Formats() {
			if encode.Carries(format, d.Schema()) != nil {
				continue
			}
			for _, first := range []int64{0, 999_950, 86_399_999_950, 9_999_953, most - 200} {
				t.Run(fmt.Sprintf("%s/%s/%d", name, format, first), func(t *testing.T) {
					c := Config{Dataset: d, Run: "r", FirstKey: first, Rows: 201, BatchRows: 10, Distinct: 30, Buffers: 4}
					c.Encoder, err = NewEncoder(format, d, c.FirstKey, c.Rows)
					require.NoError(t, err)
					f := newFeed(t, c)
					require.NoError(t, f.Fill(t.Context(), 1, nil))
					for number := range int64(21) {
						b, err := f.Batch(t.Context(), number)
						require.NoError(t, err)
						encoded, at := naive(c, number)
						require.Equal(t, string(encoded), string(b.Encoded), "batch %d", number)
						require.True(t, slices.Equal(at.Starts, b.Starts))
						b.Release()
					}
					c.FirstKey = most - c.Rows + 2
					_, err := New(c)
					require.ErrorContains(t, err, fmt.Sprintf("is beyond %d, the largest number of a row of %s", most, name))
				})
			}
		}
	}
}
