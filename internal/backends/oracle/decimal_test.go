package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// prices has the widest decimals there are, and the narrowest. A float has 15 digits.
func prices() (s rows.Schema, values [][2]int64) {
	s = rows.Schema{
		Dataset: "prices",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true},
			{Name: "wide", Type: rows.Decimal, Digits: 18, Scale: 7}, {Name: "narrow", Type: rows.Decimal, Digits: 2, Scale: 2},
		},
		Number: []rows.Term{{Column: 0, Times: 1}},
	}
	return s, [][2]int64{
		{999_999_999_999_999_999, 99}, {-999_999_999_999_999_999, -99}, {999_999_999_999_999_998, 1}, {1, -1}, {-1, 10},
		{0, 0}, {10_000_000, 50}, {123_456_789_012_345_678, 7}, {-5_000_000, -30},
	}
}

func priced(t *testing.T, f batch.Format) *batch.Batch {
	t.Helper()
	s, values := prices()
	e, err := encode.New(f, s, encode.Options{})
	require.NoError(t, err)
	if whole, is := e.(encode.PerBatch); is {
		e = whole.ForBatch(len(values))
	}
	block := rows.NewBlock(s)
	block.Reset(len(values))
	for i, v := range values {
		block.Columns[0].Ints[i], block.Columns[1].Ints[i], block.Columns[2].Ints[i] = int64(i), v[0], v[1]
	}
	var at encode.Offsets
	b := &batch.Batch{ID: batch.ID{Run: "r"}, Format: f, Rows: int64(len(values)), Attempt: 1}
	b.Encoded = e.AppendHead(nil)
	b.Head = len(b.Encoded)
	b.Encoded = e.AppendTail(e.AppendRows(b.Encoded, block, &at))
	b.Starts = at.Starts
	return b
}

// Decimals come back as they went in, digit by digit, whatever the decimal point of the sessions is.
func TestDecimalsAreExact(t *testing.T) {
	schema, values := prices()
	for _, characters := range []string{".,", ",."} {
		for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect, methodCloudCopy} {
			t.Run(method+" "+characters, func(t *testing.T) {
				t.Parallel()
				s, store := startWithStore(t, fake.Options{NumericCharacters: characters})
				if method == methodDirect {
					s = startStandIn(t, true, fake.Options{NumericCharacters: characters})
				}
				target := s.table(method)
				if method == methodCloudCopy {
					target = s.through(store)
				}
				target.Settings = []loader.Setting{{Name: "nls_numeric_characters", Value: characters}}
				contract := contractOf(method, int64(len(values)))
				l, err := s.backend.Open(t.Context(), target, testDeps())
				require.NoError(t, err)
				t.Cleanup(func() { _ = l.Close() })
				_, err = l.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: schema, Contract: contract, Create: loader.CreateIfMissing})
				require.NoError(t, err)
				session, err := l.Session(t.Context(), contract)
				require.NoError(t, err)
				b := priced(t, contract.Format)
				_, err = load(t.Context(), session, b)
				require.NoError(t, err)
				require.NoError(t, session.Close())
				if c, staged := l.(loader.Committer); staged {
					_, err = c.Commit(t.Context(), loader.Group{Ref: loader.RefOf(b), Members: []loader.Ref{loader.RefOf(b)}})
					require.NoError(t, err)
				}
				_, err = l.(loader.Finisher).Finish(t.Context(), loader.KeyRange{Last: b.Rows - 1}, b.Rows)
				require.NoError(t, err)

				found := make([][2]int64, len(values))
				numbers := []int64{0, 1, 2, 3, 4, 5, 6, 7, 8}
				require.NoError(t, l.(loader.Fetcher).Fetch(t.Context(), numbers, func(n int64, row []any) error {
					found[n] = [2]int64{row[1].(int64), row[2].(int64)}
					return nil
				}))
				assert.Equal(t, values, found)
			})
		}
	}
}
