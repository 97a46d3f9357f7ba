package source

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
)

func TestCompressionRatio(t *testing.T) {
	for _, c := range []struct {
		name   string
		o      dataset.Options
		format batch.Format
		want   float64
	}{
		{"documents", dataset.Options{}, batch.PGBinary, 8 / math.Log2(245)},
		{"documents", dataset.Options{PayloadKind: dataset.Text}, batch.TSV, 8 / math.Log2(90)},
		{"people", dataset.Options{}, batch.TSV, 1.51},      // 62 symbols have 5.95 of 8 bits, digits fewer, and the name of the bank goes away
		{"journal", dataset.Options{}, batch.Parquet, 3.06}, // 26 letters have 4.7 of 8 bits, and the fields' names go away
	} {
		d, err := dataset.New(c.name, c.o)
		require.NoError(t, err)
		ratio, err := CompressionRatio(d, c.format, 4000)
		require.NoError(t, err)
		assert.InDelta(t, c.want, ratio, 0.1, "%s %+v", c.name, c.o)
	}

	numbers := ownDataset(t, "{type: bigint, uniform: {min: 1, max: 9}}")
	ratio, err := CompressionRatio(numbers, batch.CSV, 4000)
	require.NoError(t, err, "a table without texts has a ratio, too")
	assert.Greater(t, ratio, 2.0)

	again, err := CompressionRatio(numbers, batch.CSV, 4000)
	require.NoError(t, err)
	assert.Equal(t, ratio, again)
	for f, n := range map[batch.Format]int64{batch.CSV: 40, batch.NDJSON: 4000} {
		other, err := CompressionRatio(numbers, f, n)
		require.NoError(t, err)
		assert.NotEqual(t, ratio, other, "%d rows of %s are not what was measured before", n, f)
	}
}
