package push_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

// A back-end that binds arrays is given the dataset's rows, from buffers that are encoded once and stamped for every
// batch, and after attempts that failed or whose answer was lost.
func TestColumns(t *testing.T) {
	for _, name := range dataset.Names() {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { columns(t, name) })
		})
	}
}

func columns(t *testing.T, name string) {
	p := newFixture(t)
	const firstKey, batchRows, distinct = 1000, 10, 50
	d, err := dataset.New(name, dataset.Options{Seed: 7})
	require.NoError(t, err)
	p.memory.Row = func(number int64) []any {
		b := rows.NewBlock(d.Schema())
		dataset.Row(b, d, firstKey, number-firstKey, distinct)
		var values []any
		for c := range b.Columns {
			if v := &b.Columns[c]; v.Type.Variable() {
				values = append(values, bytes.Clone(v.Value(0)))
			} else {
				values = append(values, v.Ints[0])
			}
		}
		return values
	}
	p.memory.Script = func(number int64, attempt int) loadertest.Fault {
		switch {
		case attempt > 1:
			return loadertest.Fault{}
		case number%4 == 1:
			return loadertest.Fault{After: loadertest.ErrConnection}
		case number%4 == 3:
			return loadertest.Fault{Before: loadertest.ErrThrottled}
		default:
			return loadertest.Fault{}
		}
	}
	perRow := d.Schema().RowBytes()
	r := p.succeeds(fmt.Sprintf("--dataset %s --seed 7 --format columns --rows 195 --first-key %d --batch-rows %d --distinct-bytes %d --workers 3",
		name, firstKey, batchRows, distinct*perRow))
	p.exact(firstKey, 195)
	require.Equal(t, "columns", r.Plan.Format)
	require.EqualValues(t, distinct, r.Plan.DistinctRows, "or Row says something else")
	require.GreaterOrEqual(t, r.Result.EncodedBytes, r.Result.PayloadBytes, "and no less than that, which is all of rows of numbers alone")
	require.Equal(t, runlog.Verified, p.record().Stage)
}
