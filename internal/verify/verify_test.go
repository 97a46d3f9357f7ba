package verify

import (
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
)

func TestPossible(t *testing.T) {
	for _, c := range []struct {
		loader  loader.Loader
		want    Mode
		get     Mode
		warning string
	}{
		{mute{}, None, None, ""},
		{mute{}, Ack, Ack, ""},
		{mute{}, Count, Ack, "cannot count rows"},
		{mute{}, Full, Ack, "cannot count rows"},
		{counter{}, Count, Count, ""},
		{counter{}, Full, Count, "cannot read single rows back"},
		{&table{}, Full, Full, ""},
		{shelf{}, Count, Count, ""},
		{shelf{}, Full, Count, "objects are not read back"},
	} {
		get, warning := Possible(loader.FeaturesOf(c.loader), c.want)
		require.Equal(t, c.get, get)
		if c.warning == "" {
			require.Empty(t, warning)
			continue
		}
		require.Contains(t, warning, c.warning)
		_, err := run(t.Context(), c.loader, c.want, Expect{}, 0)
		require.EqualError(t, err, warning)
	}
}

// The plan promises a number of scans; Run must keep to it.
func TestScans(t *testing.T) {
	for _, name := range Modes() {
		e := documents(t, Expect{Spans: source.Spans{Rows: 10, BatchRows: 3}})
		table := load(e)
		_, err := run(t.Context(), table, Mode(name), e, 10)
		require.NoError(t, err)
		require.Equal(t, Mode(name).Scans(), table.scans, name)
	}
}

func TestAckComparesWhatTheServerSaid(t *testing.T) {
	r, err := run(t.Context(), mute{}, Ack, Expect{Spans: source.Spans{Rows: 10}}, 10)
	require.NoError(t, err)
	require.True(t, r.OK)

	r, err = run(t.Context(), mute{}, Ack, Expect{Spans: source.Spans{Rows: 10}}, 11)
	require.NoError(t, err)
	require.False(t, r.OK)
	require.Equal(t, "verify failed: 11 of 10 rows were acknowledged", r.Failure())

	r, err = run(t.Context(), mute{}, None, Expect{Spans: source.Spans{Rows: 10}}, 0)
	require.NoError(t, err)
	require.True(t, r.OK)
	require.Equal(t, report.Verify{Mode: "none"}, r.Report(), "nothing ran, and nothing failed")
}
