package chart

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestWhichCeilingsAreDrawn(t *testing.T) {
	a, b, far := Ceiling{"a", 100}, Ceiling{"b", 500}, Ceiling{"far", 501}
	for name, c := range map[string]struct {
		all         []Ceiling
		high        float64
		drawn, told []Ceiling
	}{
		"the highest first":        {[]Ceiling{a, b}, 100, []Ceiling{b, a}, nil},
		"five times as high":       {[]Ceiling{a, b, far}, 100, []Ceiling{b, a}, []Ceiling{far}},
		"below what it was to cap": {[]Ceiling{a}, 1000, []Ceiling{a}, nil},
		"over nothing":             {[]Ceiling{a}, 0, nil, []Ceiling{a}},
		"no number":                {[]Ceiling{{"x", math.NaN()}, {"y", math.Inf(1)}, {"z", -1}, {"none", 0}}, 100, nil, nil},
		"no more than can be told": {[]Ceiling{{"1", 1}, {"2", 2}, {"3", 3}, {"4", 4}, {"5", 5}}, 9, []Ceiling{{"5", 5}, {"4", 4}, {"3", 3}, {"2", 2}}, nil},
		"several of one name stay": {[]Ceiling{a, a}, 100, []Ceiling{a, a}, nil},
		"none":                     {nil, 100, nil, nil},
	} {
		got := placed(c.all, c.high, false)
		require.Equal(t, ceilings{c.drawn, c.told}, got, name)
		require.GreaterOrEqual(t, got.top(c.high), c.high, name)
	}
}
