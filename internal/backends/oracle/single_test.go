package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// Who wants a commit for each row exactly once is told how.
func TestSingleIsAtLeastOnce(t *testing.T) {
	caps := capsOf(methodSingle)
	assert.Equal(t, loader.AtLeastOnce, caps.Delivery())
	assert.Contains(t, caps.Reason, "--method batch --batch-rows 1")
}

// A row that the server has not taken stops its batch when the rows before it are committed; one that cannot be bound,
// before the first.
func TestSingleStops(t *testing.T) {
	open := func() *one {
		return oneBatchOf(t, datasetOf(t, "journal", ""), way{contract: contractOf(methodSingle, 5)}, 5, fake.Options{})
	}
	for says, fault := range map[string]fake.Fault{
		"the server took -1 of 1 rows": {Count: -1}, "ORA-00001": {Fail: fake.Ora(1)},
	} {
		o := open()
		o.SetScript(fake.At(`INTO "TERA"."T_`, 3, fault))
		_, err := o.attempt(t.Context(), t)
		require.ErrorContains(t, err, says)
		require.ErrorContains(t, err, "2 rows of the batch were committed before")
		assert.Equal(t, loader.Unknown, o.backend.Classify(err).Applied, "%v", err)
		o.exact(t, o.target, 2)
	}

	o := open()
	c, err := o.batch.Columns(schemaOf(t, "journal"))
	require.NoError(t, err)
	c.Vectors[3].Ints[2] = yearOne
	require.NoError(t, c.Close())
	_, err = o.attempt(t.Context(), t)
	require.ErrorContains(t, err, "cannot be bound")
	assert.Equal(t, loader.No, o.backend.Classify(err).Applied, "%v", err)
	o.exact(t, o.target, 0)
}
