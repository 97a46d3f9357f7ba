package dataset

import (
	"math"
	"math/big"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/rows"
)

func TestExponential(t *testing.T) {
	for _, c := range []struct {
		step, n uint64
		mean    float64
	}{
		{1, 31, 3.25}, {1, 1 << 40, 86_400}, {1, 1, 1}, {250, 1 << 30, 777_777}, {1, 1 << 62, 1e18},
	} {
		mean, _ := new(big.Float).SetFloat64(c.mean * 1e6).Int(nil)
		parts, logs := exponentialParts(c.step, c.n, mean)
		mass, next := newChoice(weights(logs)).mass(), uint64(0)
		density := func(p part) float64 {
			return float64(p.size) * math.Exp(-float64(c.step)*(float64(p.first)+float64(p.size-1)/2)/(c.mean+float64(c.step)/2))
		}
		sum := 0.0
		for _, p := range parts {
			sum += density(p)
			require.Equal(t, next, p.first)
			next += p.size
		}
		require.LessOrEqual(t, next, c.n)
		for i, p := range parts {
			require.InDelta(t, density(p)/sum, mass[i], 1e-9, "%+v, part %d", c, i)
		}
	}
}

// block returns rows of one column c.
func block(t *testing.T, column string, n int) *rows.Vector {
	t.Helper()
	s, err := ParseSpec("t.yaml", []byte(withColumn(column)), nil)
	require.NoError(t, err)
	d, err := s.Compile(7)
	require.NoError(t, err)
	b := rows.NewBlock(d.Schema())
	d.Fill(b, 0, n)
	return &b.Columns[1]
}

// What a person would count in a table.
func TestSharesOfShapes(t *testing.T) {
	const n = 100_000
	for column, count := range map[string]struct {
		of   func(v any) bool
		want float64
	}{
		"{type: int, exponential: {mean: 300}}":                                      {func(v any) bool { return v.(int64) > 300 }, 1 / math.E},
		"{type: int, exponential: {mean: 40, min: 10}}":                              {func(v any) bool { return v.(int64) > 40 }, 1 / math.E},
		"{type: int, histogram: [0, 10, 25, 100]}":                                   {func(v any) bool { return v.(int64) < 25 }, 2. / 3},
		"{type: int, histogram: [0, 7, 7, 9]}":                                       {func(v any) bool { return v.(int64) == 7 }, 1./3 + 1./9},
		"{type: int, histogram: [0, 0]}":                                             {func(v any) bool { return v.(int64) == 0 }, 1},
		"{type: int, histogram: [10, 99], common: {5: 20%, 7: 3%}}":                  {func(v any) bool { return v.(int64) == 5 }, 0.2},
		"{type: int, histogram: [10, 99], common: {5: 20%}, nulls: 50%}":             {func(v any) bool { return v == int64(5) }, 0.1},
		"{type: text, histogram: [1, 10, 50]}":                                       {func(v any) bool { return len(v.([]byte)) < 10 }, 0.5},
		"{type: text, words: {length: 9}, distinct: 5, common: {v1: 30%, v2: 0.5%}}": {func(v any) bool { return string(v.([]byte)) == "v1" }, 0.3},
		"{type: text, pattern: '[A-Z]{2}-[0-9]{4,8}'}":                               {func(v any) bool { return len(v.([]byte)) == 8 }, 0.2},
		"{type: text, pattern: '(a|bb|[c-l]{3})'}":                                   {func(v any) bool { return len(v.([]byte)) == 3 }, 1. / 3},
		"{type: text, pattern: 'a?'}":                                                {func(v any) bool { return len(v.([]byte)) == 1 }, 0.5},
	} {
		v, found := block(t, column, n), 0
		for i := range n {
			if !v.IsNull(i) && count.of(v.At(i)) {
				found++
			}
		}
		assert.InDelta(t, count.want, float64(found)/n, 0.006, column)
	}
}

// The library that reads patterns says of every value that it fits, and no choice lacks a value.
func TestPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern string
		values  int
	}{
		{`[A-Z]{2}-[0-9]{4,8}`, 0}, {`[ab]{0,3}`, 15}, {`(a|b)(c|dd?|e{2,3})`, 10}, {`^x[0-9]?$`, 11}, {`\d\d:[0-5]\d`, 0}, {`\x{e9}|[α-ω]`, 26},
		{`(?:USD|USX|EUR)[12]`, 6}, {`((([ab]{2}){2}){2}){2}`, 0}, {`\w{300,900}`, 0}, {`\Qa.b\E\\[[-\]]`, 3}, {`a(?P<x>b)`, 1}, {`a??b{2}?`, 2},
	} {
		whole, err := parsePattern(c.pattern)
		require.NoError(t, err, c.pattern)
		fits, seen := regexp.MustCompile("^(?:"+c.pattern+")$"), map[string]bool{}
		v := block(t, "{type: text, pattern: '"+c.pattern+"'}", 2000)
		for i := range 2000 {
			require.Regexp(t, fits, string(v.Value(i)))
			seen[string(v.Value(i))] = true
		}
		if c.values > 0 {
			require.Len(t, seen, c.values, c.pattern)
			require.EqualValues(t, c.values, whole.ways, c.pattern)
		}
	}
}
