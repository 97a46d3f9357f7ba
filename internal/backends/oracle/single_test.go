package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// What is there after a lost answer is the front of the batch, whatever its rows are numbered by, and the next attempt
// sends the rest only.
func TestSingleGoesOn(t *testing.T) {
	for _, dataset := range []string{"pairs", "journal", "httplogs", "lineitem"} {
		t.Run(dataset, func(t *testing.T) {
			w := way{contract: contractOf(methodSingle, 11)} // which ends within an order
			o := oneBatchOf(t, datasetOf(t, dataset, ""), w, 11, fake.Options{})
			o.SetScript(fake.At(fake.Commit, 4, fake.Fault{CutAnswer: true}))
			_, err := o.attempt(t.Context(), t)
			assert.ErrorContains(t, err, "3 rows of the batch were committed before")
			found, err := o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			assert.Equal(t, loader.Resolution{Applied: loader.No, Rows: 4}, found)

			o.batch.Skip = found.Rows
			before := o.requests(`INTO "TERA"."T_`)
			ack, err := o.attempt(t.Context(), t)
			require.NoError(t, err)
			assert.Equal(t, int64(7), ack.Rows)
			assert.Equal(t, 7, o.requests(`INTO "TERA"."T_`)-before)
			o.exact(t, o.target, 11)
			found, err = o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			assert.Equal(t, loader.Resolution{Applied: loader.Yes, Rows: 11}, found)

			// A hole is no front: something else has written here.
			require.NoError(t, o.Delete(name(o.target), 5))
			found, err = o.loader.Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			assert.Equal(t, loader.Unknown, found.Applied)
			assert.Contains(t, found.Reason, "the table has 10 rows from 0 to 10")
		})
	}
}

// A row that the server has not taken, or that cannot be bound, stops its batch when the rows before it are committed.
func TestSingleStops(t *testing.T) {
	for says, fault := range map[string]fake.Fault{
		"the server took -1 of 1 rows": {Count: -1}, "ORA-00001": {Fail: fake.Ora(1)}, "cannot be bound": {},
	} {
		o := oneBatchOf(t, datasetOf(t, "journal", ""), way{contract: contractOf(methodSingle, 5)}, 5, fake.Options{})
		o.SetScript(fake.At(`INTO "TERA"."T_`, 3, fault))
		if says == "cannot be bound" {
			c, err := o.batch.Columns(schemaOf(t, "journal"))
			require.NoError(t, err)
			c.Vectors[3].Ints[2] = yearOne
			require.NoError(t, c.Close())
		}
		_, err := o.attempt(t.Context(), t)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "2 rows of the batch were committed before")
		assert.Equal(t, loader.Unknown, o.backend.Classify(err).Applied, "%v", err)
		o.exact(t, o.target, 2)
	}
}
