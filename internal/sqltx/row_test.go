package sqltx

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func TestValueOf(t *testing.T) {
	for _, c := range []struct {
		kind rows.Type
		text string
		want any
	}{
		{rows.Date, "1970-01-01", int64(0)},
		{rows.Date, "1970-01-03", int64(2)},
		{rows.Date, "1969-12-31", int64(-1)},
		{rows.Date, "1600-02-29", int64(-135081)},
		{rows.Date, "1600-02-29 00:00:00", int64(-135081)},
		{rows.Timestamp, "1970-01-01 00:00:00.000001", int64(1)},
		{rows.Timestamp, "1970-01-01 00:00:01", int64(1_000_000)},
		{rows.Text, "x", []byte("x")},
		{rows.Text, "", []byte{}},
	} {
		got, err := valueOf(c.kind, []byte(c.text))
		require.NoError(t, err)
		require.Equal(t, c.want, got, c.text)
	}
	for _, kind := range []rows.Type{rows.Date, rows.Text} {
		null, err := valueOf(kind, nil)
		require.NoError(t, err)
		require.Nil(t, null, "a NULL is no empty text")
	}
	for _, bad := range []string{"0000-00-00", "soon", "1970-01-01 00:00:01", "1970-01-01 soon"} {
		_, err := valueOf(rows.Date, []byte(bad))
		require.Error(t, err)
	}
}
