package verify

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/source"
)

// shelf is a store that lists what a test puts there.
type shelf struct {
	mute
	objects []thing
	err     error
}

type thing struct {
	name          string
	number, bytes int64
}

func (s shelf) Objects(_ context.Context, run string, f func(name string, number, bytes int64) error) error {
	for _, o := range s.objects {
		if err := f(run+"/"+o.name, o.number, o.bytes); err != nil {
			return err
		}
	}
	return s.err
}

// acked returns what the journal of four batches says: 100 bytes each, the last one 30. Nothing is known of batch 9.
func acked(number int64) (int64, bool) {
	return map[int64]int64{0: 100, 1: 100, 2: 100, 3: 30}[number], number < 4
}

func TestObjects(t *testing.T) {
	whole := []thing{{"0", 0, 100}, {"1", 1, 100}, {"2", 2, 100}, {"3", 3, 30}}
	without := func(n int, more ...thing) []thing {
		return append(append(append([]thing{}, whole[:n]...), whole[n+1:]...), more...)
	}
	for _, c := range []struct {
		name    string
		objects []thing
		found   int64
		bad     []report.BadBatch
		strange []string
	}{
		{name: "all there", objects: whole, found: 33},
		{name: "one missing", objects: without(1), found: 23, bad: []report.BadBatch{
			{Number: 1, FirstKey: 110, LastKey: 119, Rows: 10, Reason: string(Missing), Detail: "it has no object"},
		}},
		{name: "one too short", objects: without(3, thing{"3", 3, 29}), found: 30, bad: []report.BadBatch{
			{Number: 3, FirstKey: 130, LastKey: 132, Rows: 3, Reason: string(Short), Detail: "its object has 29 of 30 acknowledged bytes"},
		}},
		{name: "one too long", objects: without(0, thing{"0", 0, 101}), found: 23, bad: []report.BadBatch{
			{Number: 0, FirstKey: 100, LastKey: 109, Rows: 10, Reason: string(Differs), Detail: "its object has 101 bytes, more than the 100 acknowledged"},
		}},
		{name: "one twice", objects: append(without(0), thing{"0", 0, 100}, thing{"00", 0, 100}), found: 23, bad: []report.BadBatch{
			{Number: 0, FirstKey: 100, LastKey: 109, Rows: 10, Reason: string(Doubled), Detail: "2 objects hold it"},
		}},
		{name: "others beside", objects: append(without(0, whole[0]), thing{"a", -1, 7}, thing{"9", 9, 100}), found: 33,
			strange: []string{"r/a", "r/9"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := Expect{Spans: source.Spans{FirstKey: 100, Rows: 33, BatchRows: 10}, Run: "r", Length: acked}
			got, err := run(t.Context(), shelf{objects: c.objects}, Count, e, 0)
			require.NoError(t, err)
			require.Equal(t, Count, got.Mode)
			require.Equal(t, len(c.bad) == 0, got.OK)
			require.Equal(t, c.found, got.FoundRows)
			require.EqualValues(t, len(c.bad), got.BadCount)
			if len(c.bad) > 0 {
				require.Equal(t, c.bad, got.BadBatches)
			}
			require.Equal(t, c.strange, got.Strange)
		})
	}
}

func TestObjectsThatProveNothing(t *testing.T) {
	e := Expect{Spans: source.Spans{Rows: 10, BatchRows: 10}, Run: "r", Length: func(int64) (int64, bool) { return 0, false }}
	got, err := run(t.Context(), shelf{objects: []thing{{"0", 0, 5}}}, Count, e, 0)
	require.NoError(t, err)
	require.False(t, got.OK, "its length is not known")
	require.Zero(t, got.FoundRows)

	_, err = run(t.Context(), shelf{err: errors.New("access denied")}, Count, e, 0)
	require.EqualError(t, err, "verify: listing the objects of run r: access denied")
}
