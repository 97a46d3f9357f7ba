package push_test

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader/loadertest"
	"github.com/terapush/terapush/pkg/rows"
)

// The plan's keys, seed and distinct rows are those of the feed and of the proof: what goes in is compared with the
// dataset's rows, value by value, also after attempts that failed or whose answer was lost.
func TestRowsAreThePlans(t *testing.T) {
	const firstKey, batchRows, distinct = 1000, 10, 50
	d, err := dataset.New("httplogs", dataset.Options{Seed: 7})
	require.NoError(t, err)
	synctest.Test(t, func(t *testing.T) {
		p := newFixture(t)
		p.memory.Row = func(number int64) (values []any) {
			b := rows.NewBlock(d.Schema())
			dataset.Row(b, d, firstKey, number-firstKey, distinct)
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
			case attempt == 1 && number%4 == 1:
				return loadertest.Fault{After: loadertest.ErrConnection}
			case attempt == 1 && number%4 == 3:
				return loadertest.Fault{Before: loadertest.ErrThrottled}
			}
			return loadertest.Fault{}
		}
		r := p.succeeds(fmt.Sprintf("--dataset httplogs --seed 7 --format columns --rows 195 --first-key %d --batch-rows %d "+
			"--distinct-bytes %d --workers 3 --verify full", firstKey, batchRows, distinct*d.Schema().RowBytes()))
		p.exact(firstKey, 195)
		require.Equal(t, "columns", r.Plan.Format)
		require.EqualValues(t, 195, r.Verify.SampledRows)
	})
}
