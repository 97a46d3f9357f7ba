package source

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/dataset/datasettest"
	"github.com/terapush/terapush/internal/encode"
)

// TestRandomSpecsAreStamped is TestEveryDatasetIsStamped for specs of any columns: in every format, whatever the
// batches, the rows that are distinct and the buffers, and whether the run begins with the batch or has gone round.
func TestRandomSpecsAreStamped(t *testing.T) {
	random := rand.New(rand.NewPCG(39, 3))
	for k := range 20 {
		text := datasettest.Spec(random)
		s, err := dataset.ParseSpec("random.yaml", []byte(text), nil)
		require.NoError(t, err, text)
		d, err := s.Compile(random.Uint64())
		require.NoError(t, err)

		spans := Spans{Rows: 100 + random.Int64N(200), BatchRows: 1 + random.Int64N(70)}
		spans.FirstKey = random.Int64N(d.Schema().MaxNumber()-spans.Rows) >> random.IntN(40)
		c := Config{Dataset: d, Run: "r", Spans: spans, Buffers: 2 + random.IntN(4)}
		c.Distinct = spans.BatchRows * random.Int64N(4)
		for _, format := range encode.Formats() {
			if _, how := format.Compression(); how != "" || encode.Carries(format, d.Schema()) != nil {
				continue
			}
			c.Encoder, err = NewEncoder(format, d, c.FirstKey, c.Rows)
			require.NoError(t, err, text)
			t.Run(fmt.Sprintf("%d/%s", k, format), func(t *testing.T) {
				defer func() {
					if t.Failed() {
						t.Logf("%+v\n%s", spans, text)
					}
				}()
				r := newRing(t, c)
				require.NoError(t, r.Fill(t.Context(), 1, nil))
				for number := range c.Batches() {
					send(t, r, c, number)
				}
				for range 5 {
					send(t, r, c, random.Int64N(c.Batches()))
				}
				resumed := newRing(t, c)
				send(t, resumed, c, random.Int64N(c.Batches()))
			})
		}
	}
}
