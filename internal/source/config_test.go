package source

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
)

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.Encoder = nil }, "source: dataset and encoder are required"},
		{func(c *Config) { c.FirstKey = -1 }, "source: first key -1 is negative"},
		{func(c *Config) { c.Rows = 0 }, "source: 0 rows: a run has at least 1"},
		{func(c *Config) { c.FirstKey = math.MaxInt64 }, "source: first key 9223372036854775807 + 1000 rows is beyond 9223372036854775807, the largest number of a row of documents"},
		{func(c *Config) { c.BatchRows = 0 }, "source: 0 rows a batch: a batch has at least 1"},
		{func(c *Config) { c.Distinct = 100 }, "source: 100 distinct rows are not a whole number of batches of 32"},
		{func(c *Config) { c.Distinct = -32 }, "source: -32 distinct rows are not a whole number of batches of 32"},
		{func(c *Config) { c.Buffers = 0 }, "source: 0 buffers: a ring has at least 1"},
		{
			func(c *Config) { c.BatchRows = 99999999 },
			"source: a batch of 99999999 rows takes up to 4800000000 bytes, which does not fit a buffer of 4 GiB",
		},
		{
			func(c *Config) { c.FirstKey, c.Buffers = -1, 0 },
			"source: first key -1 is negative\nsource: 0 buffers: a ring has at least 1",
		},
	} {
		cfg := config(t, batch.PGBinary, 0, 4)
		c.change(&cfg)
		_, err := New(cfg)
		assert.EqualError(t, err, c.want)
	}
}

func TestMemory(t *testing.T) {
	c := config(t, batch.PGBinary, 0, 7)
	require.Equal(t, 2+4+8+4+30, c.Encoder.MaxRow())
	assert.EqualValues(t, 4096, BufferBytes(c.Dataset, c.Encoder, 32))
	assert.EqualValues(t, 4096, BufferBytes(c.Dataset, c.Encoder, (4096-21)/48))
	assert.EqualValues(t, 8192, BufferBytes(c.Dataset, c.Encoder, (4096-21)/48+1))
	assert.EqualValues(t, 7*(4096+32*4), Memory(c), "4 bytes a row for its key, and none for the row")

	r := newRing(t, c)
	assert.Equal(t, 7, r.Free())
	assert.Nil(t, r.memory, "before the first batch")
	require.NoError(t, r.Fill(t.Context(), 1, nil))
	assert.Len(t, r.memory, int(Memory(c)))
	for _, format := range []batch.Format{batch.Parquet, batch.ColumnArrays} { // one derived column
		c = config(t, format, 64, 3)
		assert.Equal(t, 3*(BufferBytes(c.Dataset, c.Encoder, c.BatchRows)+4), Memory(c))
	}
}

func TestEncoderHasDigitsForTheWholeRun(t *testing.T) {
	c := config(t, batch.TSV, 0, 1)
	for _, run := range []struct{ firstKey, rows, digits int64 }{
		{0, 1, 1}, {0, 10, 1}, {0, 11, 2}, {90, 10, 2}, {90, 11, 3}, {math.MaxInt64, 1, 19},
	} {
		e, err := NewEncoder(batch.TSV, c.Dataset, run.firstKey, run.rows)
		require.NoError(t, err)
		assert.EqualValues(t, run.digits+1+30+1, e.MaxRow())
	}
}
