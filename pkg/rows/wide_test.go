package rows_test

import (
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

// A number of up to 38 digits is the same as text, as bytes and in a sum.
func TestWideDecimals(t *testing.T) {
	c := rows.Column{Type: rows.Wide, Digits: 38, Scale: 10}
	most := strings.Repeat("9", 28) + "." + strings.Repeat("9", 10)
	v, sum := rows.Vector{Type: rows.Wide}, new(big.Int)
	for text, want := range map[string]string{
		"0": "0.0000000000", "-0.0": "0.0000000000", ".5": "0.5000000000", "-1": "-1.0000000000", most: most, "-" + most: "-" + most,
		"18446744073709551616": "18446744073709551616.0000000000", "-9223372036.8547758080": "-9223372036.8547758080", "007.25": "7.2500000000",
	} {
		value, err := c.ParseWide(text)
		require.NoError(t, err, text)
		require.Equal(t, want, c.TextOf(value), text)
		require.Equal(t, value, rows.FromBig(rows.BigOf(value)), text)
		v.Data = append(v.Data, value...)
		sum.Add(sum, rows.BigOf(value))
	}
	got := new(big.Int)
	rows.Measure{Of: rows.Number}.Add(got, &v)
	require.Equal(t, sum.String(), got.String())

	for _, bad := range []string{"", "-", ".", "1.", "x", "1e5", "0.00000000001", "1" + strings.Repeat("0", 28), "--1"} {
		_, err := c.ParseWide(bad)
		require.Error(t, err, bad)
	}
	require.Panics(t, func() { rows.WideMagnitude(rows.FromBig(new(big.Int).Exp(big.NewInt(10), big.NewInt(38), nil))) })
	all := rows.Column{Type: rows.Wide, Digits: 20, Scale: 0}
	require.Equal(t, "-7", all.TextOf(rows.FromBig(big.NewInt(-7))))
	none := rows.Column{Type: rows.Wide, Digits: 38, Scale: 38}
	require.Equal(t, "0."+strings.Repeat("0", 37)+"7", none.TextOf(rows.FromBig(big.NewInt(7))))
}

// The sum of unsigned numbers has no sign.
func TestSumOfUnsigned(t *testing.T) {
	sum := new(big.Int)
	rows.Measure{Of: rows.Number}.Add(sum, &rows.Vector{Type: rows.Uint64, Ints: []int64{-1, 1, -1 << 63}})
	require.Equal(t, "27670116110564327424", sum.String())
}
