package inspect

import (
	"cmp"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// unit reads and writes the numbers and times of a column as whole numbers: of 10^−scale, of 2^−bits, of days, or of
// 10^scale microseconds.
type unit struct {
	*column
	bits int // of floating-point numbers, after the point
}

func unitOf(c *column) unit {
	u := unit{c, 0}
	if t := c.Values.Type; t != rows.Float32 && t != rows.Float64 {
		return u
	}
	ends := c.Shape.Buckets
	if len(ends) == 0 {
		u.bits = 4
		return u
	}
	least, okLeast := new(big.Rat).SetString(ends[0].Least)
	most, okMost := new(big.Rat).SetString(ends[len(ends)-1].Most)
	if !okLeast || !okMost {
		return u
	}
	width, _ := new(big.Rat).Sub(most, least).Float64()
	for _, bits := range []int{4, 10, 20} { // so fine that a thousandth of the width is a step
		if u.bits = bits; width*float64(int(1)<<bits) >= 1000 {
			break
		}
	}
	return u
}

// timeLayouts are those of servers. Those without a zone are in UTC, which is that of our sessions.
var timeLayouts = []string{
	time.DateTime, "2006-01-02 15:04:05Z07", "2006-01-02 15:04:05Z07:00", time.DateOnly, "2006-01-02T15:04:05",
}

// parse reads a value, rounded to whole units; false of what is none in our range.
func (u unit) parse(text string) (n int64, ok bool) {
	if !u.Values.Type.IsTime() && u.Values.Type != rows.Date {
		v, ok := new(big.Rat).SetString(text)
		if !ok {
			return 0, false
		}
		v.Mul(v, new(big.Rat).SetInt64(pow10(u.scale())<<u.bits))
		v.Add(v, big.NewRat(1, 2))
		whole := new(big.Int).Div(v.Num(), v.Denom()) // rounded down
		return whole.Int64(), whole.IsInt64()
	}

	for _, layout := range timeLayouts {
		at, err := time.Parse(layout, text) // reads digits after the seconds, too
		if err != nil || at.Year() < 1 || at.Year() > 9999 {
			continue
		}
		if u.Values.Type == rows.Date {
			return floored(at.Unix(), 24*60*60), true
		}
		return floored(at.UnixMicro(), pow10(u.Values.Scale)), true
	}
	return 0, false
}

func (u unit) scale() int {
	if u.Values.Type == rows.Decimal {
		return u.Values.Scale
	}
	return 0
}

// floored divides, rounded down.
func floored(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

func (u unit) format(n int64) string {
	switch t := u.Values.Type; {
	case t == rows.Date:
		return time.Unix(n*24*60*60, 0).UTC().Format(time.DateOnly)
	case t.IsTime():
		return quoted(time.UnixMicro(n * pow10(u.Values.Scale)).UTC().Format("2006-01-02 15:04:05.999999"))
	case u.bits > 0:
		return strings.TrimSuffix(strings.TrimRight(big.NewRat(n, 1<<u.bits).FloatString(u.bits), "0"), ".")
	}
	return decimal(n, u.scale())
}

// intervals reads the buckets of a histogram, in the order of their values.
func (u unit) intervals(buckets []loader.Interval) (all []interval, ok bool) {
	for _, b := range buckets {
		least, okLeast := u.parse(b.Least)
		most, okMost := u.parse(b.Most)
		if !okLeast || !okMost || most < least {
			return nil, false
		}
		all = append(all, interval{least, most, b.Share})
	}
	slices.SortStableFunc(all, func(a, b interval) int { return cmp.Compare(a.least, b.least) })
	return all, true
}
