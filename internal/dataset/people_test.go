package dataset

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func peopleOf(t testing.TB, seed uint64) Dataset {
	t.Helper()
	d, err := New("people", Options{Seed: seed})
	require.NoError(t, err)
	return d
}

// TestPeopleGolden pins the values: a change here makes every recorded run unverifiable. The wanted ones come from a
// program of its own, 40 lines of Python with whole numbers of any size and its library's calendar.
func TestPeopleGolden(t *testing.T) {
	for _, c := range []struct {
		seed uint64
		row  int64
		want []any
	}{
		{1, 0, []any{
			int64(0), "batch_0000000000000000", "kU1zvdpCN5TmL7T3", int64(-7305),
			"RAlKGHdZx9cjB07xCWiTxTSwaw8B8uSPSFyaRpBB", "BWm0WzmiJWJPWkO2shI64hl4VvtMPMLpX5DFmpM1",
			"vD8h4QPCCVpRGit39bQkWd3qXr53ADbA57evSRqF", "东方商业银行",
			"V4RJhsbmV9vRaezkTU5Y", "BBvAZmlULkEn6gLN", "rXm6fdFQexuEuoPZ3aemZudTv1N1agqEnBsQwQp9",
			"BkXfmrlPiE5WzgPY5l6qdiIFatxNgIn4So1fnd8E", "LSLeBl2FPr11JVFaP9m5QrErZGMBWgbRRY6iRjFs",
			"LlWo3Il7rp40zpF4JNeXotx8B75sx55e6M03pd4H", "ceryZyAAIqCU8EbB9BAt3T3lPV965bnZg4PfKblo",
			"93hnslGq4z8uNzAtZyqKvggg97CSQo1yeMQBQJsl", "7KZhU1DwVm5pKDqhlXEHVhi8UYb1VdanuTTnXEGC",
			"wIR9DEnuuCxzZHRQH8RjnIOFTGqf4NvMu1YTgRgZ", "xozRwvmxLHw8KY9ROAsyY8GVFgdF2o0IWEFLbD6m",
			"5TWL0lb5oHDG2LforEHr7aTvFakP7XQHlkJ6pWjg", "jFrKg3WTxMtpJ0zuntpKL5C3W9tM8d0yJ2zhi2NK",
			int64(18262), int64(1577836800000000),
		}},
		{math.MaxUint64, 2000, []any{
			int64(2000), "batch_0000000000000001", "CJg3A2M3DgxPIeqQ", int64(-5305),
			"N3Y28y3S8XO55oii7VDJy7SBt3AYoFGtHiGFh6px", "HxFxBB3H81RdEYcd69dyZs5mpkRvmWm8Mw7mmRNn",
			"CpedluhMLc8ZpNMSC5IytErjpMj3FZh6jew1dB9S", "东方商业银行",
			"HX0ixTAnlAFqfmogr4xp", "xlny0RQsJd9gJj8P", "miIUdBIuHYi8kAcSExahHi0sUHlZS0MK4lPsBAJ4",
			"WXlfulfjfi2ynNEjtIm7R4IZv1qjAawEfqqmasYS", "bUPP1fsIOK2E0X3vaSwXpRIAlH9EpHBrzd07ULwP",
			"0PikGkU8H6KmXRjRMe7EZShus2C5acTeGgwlNvKP", "YRd8n1B3RAvSGTNVKpBFkdHMGgdBeSIplmf8katJ",
			"jYFe3MWR57BRL4iMn6quiuugycvbyXCyaUERSqMu", "9A310cjVjIwsSghPjSMbyOyrAXQB6tUyIyHOsgRG",
			"z9v4RJlmnjulbl7Q8THVBecPXFEXmcf4TbclHDm3", "EmNXZI153ozGk0TIbgoCfsD89TVyP9H6XbH6B4h2",
			"w7SLpd0pwhmrejjBit4qva1m60oUiFcu7bwwb8D3", "U1euAmKaol73unehwXOGAGH8hkQTMqmiepSQiiE0",
			int64(18262), int64(1577836802000000),
		}},
		{42, 86400000, []any{
			int64(86400000), "batch_0000000000043200", "IJdN4aEUvhfSMGTS", int64(-7305),
			"ZeUoNaaSx8wTQcyEbtKwgguIcvJAs1kqvzwx4Fky", "LfG73KaJ5R3unfb6BKkG1QMaNUNMlkRmDBZalMUG",
			"5Fm9ToajogU6BL3S87HP51BOOO4ICifl9krHsdEN", "东方商业银行",
			"rl8beyZ8PDrKV8rkJIUV", "1kMn9csPmfMh0c1q", "RwQRc25e1dZnfnaFtAAYzXADdL0lCfstHCwfxvzu",
			"bOPXMILk88CHP8I8va5wP6KqStmVv8bmpGBxkzMI", "FojtixyVOf1f0qoHlsYEymPiQoOebyC4i2D0iM6J",
			"3Jzews21RUb758zUdCe4CMcyetwdHfGyjZKgtrXw", "FzDDTWdcBVW1PGu6vyNb9N2O7MNlEn3EKl398EPg",
			"EU8ibvJzt7NKfEMs59RZkALRn1cZuL6wjYyS95M5", "1nVr1BKWgn1ealavsiaC5aDejqoijykCXRCi0aJl",
			"OlkGzRDPsLHIMucizBhHImOLAXXJIwIlssiiXoA6", "fGQv6L96IrHqCEsoQ3Ns7slYzNnCqWGh2NJU4A6S",
			"CWlzq6AoSw0G7eu3nYYTmQYu0HFTZrNdF159vwe2", "hc0QhH94Ye7Dw1KoQiudp4GnABdhUScP1Mhw9gS1",
			int64(18263), int64(1577923200000000),
		}},
		{7, math.MaxInt64, []any{
			int64(math.MaxInt64), "batch_4611686018427387", "2M8ProcC0l0DsYeW", int64(8502),
			"FCEFVfaEnBk3vgZ95evMdiZZJW55XhPoxDyuyFTw", "T6EQknDVt1NG8Pyw9JiNgAM4RKXfgrqWQm0QlXY7",
			"L6uuWMogLGYDOsXBgqBPPsMe4faAfCVFL5Rfdjg3", "东方商业银行",
			"41UHTgRwcAD5DVwTHUVs", "AaJphfhfr3wjhkhA", "zS8MYzM6rsTShCwEfGZIn1TS5tJaGfcxgZZNuKLA",
			"dzAnBR8lGiFjzewmrQu1v6fw3ri47gWM58rXSZfM", "hmVOIlyHFXIQHl44H4GXs0wrw7XotzBswM5rLOoD",
			"uEOmCAeAXFFbBcUc8ZyXXaqlXn8n1toc2Rd5MHw9", "uxBqqZuNE2HQqdjIbiFp1dGoZCIeGaS2X7k9rkoH",
			"j2KVo2igtxHcliGfbqMhIAafwt84cwehs92u4GyQ", "CJRr8rTsN55D6nZo8RMSlxk83iqHKNWKO7P8H7Oj",
			"gNgoj1QXqLSj7DzIy1XY49F3GzAfKwYEhqgwI0Eu", "8tmfBGLwYX0xH3HkcOp8uHrlAh9xD3waEAgAVinw",
			"1akfBvdT1Afvz1j3qEMfx2ozVXeOy47gzkyuntOb", "3OogMkPD7hkq8EHIi9n9KmVPYLlNJv7bTh5gkKXC",
			int64(21476), int64(1855552375807000),
		}},
	} {
		assert.Equal(t, c.want, rowOf(peopleOf(t, c.seed), c.row), "seed %d row %d", c.seed, c.row)
	}
}

func TestPeopleSchema(t *testing.T) {
	s := peopleOf(t, 0).Schema()
	var described []string
	for _, c := range s.Columns {
		d := c.Name + " " + c.Type.String()
		if c.Derived {
			d += " derived"
		}
		described = append(described, d)
		assert.Equal(t, c.Type.Variable(), c.Plain, "%s", c.Name)
		assert.Equal(t, c.Type.Variable(), c.MaxBytes > 0, "%s", c.Name)
	}
	assert.Equal(t, strings.Split("id int64 derived, batch text derived, name text, birthday date derived, address text, "+
		"company text, job text, bank text, password text, phone_number text, user_agent text, c1 text, c2 text, c3 text, "+
		"c4 text, c5 text, c6 text, c7 text, c8 text, c9 text, c10 text, d date derived, t timestamp derived", ", "), described)
	assert.Equal(t, []rows.Term{{Column: 0, Minus: 0, Times: 1}}, s.Number)
	assert.EqualValues(t, 676, s.MaxRowBytes())
	assert.Equal(t, 6, utf8.RuneCountInString(bankName))
}

func TestPeopleKeepThePromisesOfTheirSchema(t *testing.T) {
	d := peopleOf(t, 11)
	b := rows.NewBlock(d.Schema())
	random := rand.New(rand.NewPCG(5, 6))
	seen := map[string]bool{}
	for range 1000 {
		row := random.Int64() >> random.IntN(32)
		Row(b, d, 0, row, 0)
		for i, c := range d.Schema().Columns {
			if !c.Type.Variable() {
				continue
			}
			v := b.Columns[i].Value(0)
			require.Len(t, v, c.MaxBytes, "%s", c.Name)
			require.True(t, utf8.Valid(v))
			require.False(t, strings.ContainsAny(string(v), "\x00\x01\x02\t\n\r\x1A\"',\\"), "%s", c.Name)
			if !c.Derived && c.Name != "bank" {
				require.False(t, seen[string(v)], "%s repeats", c.Name)
				seen[string(v)] = true
			}
		}
		born, day, micros := b.Columns[peopleBirthday].Ints[0], b.Columns[peopleDay].Ints[0], b.Columns[peopleTime].Ints[0]
		require.True(t, born >= -7305 && born < -7305+20_000)
		require.True(t, day >= 18_262 && day < 21_915, "2020-01-01 to 2029-12-31")
		require.Equal(t, day, micros/86_400_000_000, "d is the day of t")
	}
}

func TestPeopleUseAllLettersAndDigitsEvenly(t *testing.T) {
	d := peopleOf(t, 0)
	b := rows.NewBlock(d.Schema())
	d.Fill(b, 0, 2000)
	var count [256]int
	n := 0
	for i, c := range d.Schema().Columns {
		if c.Type.Variable() && !c.Derived && c.Name != "bank" {
			for _, symbol := range b.Columns[i].Data {
				count[symbol]++
				n++
			}
		}
	}
	assert.Equal(t, 2000*612, n)
	symbols := "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	chi2, each := 0.0, float64(n)/float64(len(symbols))
	for i := range len(symbols) {
		off := float64(count[symbols[i]]) - each
		chi2 += off * off / each
	}
	k := float64(len(symbols) - 1)
	assert.InDelta(t, k, chi2, 5*math.Sqrt(2*k))
	// 62 symbols hold 5.95 of 8 bits; the bank's name, 18 of 630 bytes, goes away.
	ratio, err := CompressionRatio(d, 1<<20)
	require.NoError(t, err)
	assert.InDelta(t, 8/math.Log2(62)*630/612, ratio, 0.03)
}
