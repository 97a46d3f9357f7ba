// Package backendtest makes batches and rows out of datasets, for the tests of back-ends.
package backendtest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

// Harness returns h with the schema, the batches and the rows of a dataset.
func Harness(d dataset.Dataset, h loadertest.Harness) loadertest.Harness {
	h.Schema = d.Schema()
	h.Batch = func(t *testing.T, id batch.ID, first, n int64) *batch.Batch {
		return Batch(t, d, h.Contract.Format, id, first, n)
	}
	h.Row = func(number int64) []any { return Row(d, number) }
	return h
}

// Resolves asks what became of a batch or a group.
func Resolves(t testing.TB, l loader.Loader, ref loader.Ref, want loader.Applied) {
	t.Helper()
	found, err := loader.FeaturesOf(l).Resolver.Resolve(t.Context(), ref)
	require.NoError(t, err)
	require.Equal(t, want, found.Applied, found.Reason)
}

// Batch encodes rows first … first+n−1. The caller, or the suite, holds it.
func Batch(t testing.TB, d dataset.Dataset, f batch.Format, id batch.ID, first, n int64) *batch.Batch {
	t.Helper()
	e, err := encode.New(f, d.Schema(), encode.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if whole, is := e.(encode.PerBatch); is {
		e = whole.ForBatch(int(n))
	}
	block := rows.NewBlock(d.Schema())
	d.Fill(block, first, int(n))
	d.Derive(block, first)
	var at encode.Offsets
	b := &batch.Batch{ID: id, Format: f, First: first, Rows: n, Payload: block.PayloadBytes(), Attempt: 1}
	b.Encoded = e.AppendTail(e.AppendRows(e.AppendHead(nil), block, &at))
	return b
}

// Row returns the values of a row as Fetch has to give them back.
func Row(d dataset.Dataset, number int64) []any {
	block := rows.NewBlock(d.Schema())
	dataset.Row(block, d, 0, number, 0)
	values := make([]any, len(block.Columns))
	for i := range block.Columns {
		values[i] = block.Columns[i].At(0)
	}
	return values
}
