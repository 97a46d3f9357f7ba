package results

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dustin/go-humanize"
)

// kind is what a value is measured in. Values of different kinds are never equal.
type kind int

const (
	text kind = iota
	number
	duration
)

// value is a setting's value as it compares: 2000, "2,000" and 2e3 are one number, 16MiB and 16777216 as well, and
// 1000ms and 1s are one duration.
type value struct {
	kind   kind
	amount float64 // of a number, or seconds
	text   string
}

func parseValue(s string) value {
	s = strings.TrimSpace(s)
	plain := strings.ReplaceAll(s, ",", "")
	if n, err := strconv.ParseFloat(plain, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) {
		return value{kind: number, amount: n}
	}
	// Durations go before sizes, which take "10m" for ten million bytes.
	if d, err := time.ParseDuration(s); err == nil {
		return value{kind: duration, amount: d.Seconds()}
	}
	if n, err := humanize.ParseBytes(s); err == nil {
		return value{kind: number, amount: float64(n)}
	}
	return value{text: strings.ToLower(s)}
}

func sameValue(a, b string) bool { return a == b || parseValue(a) == parseValue(b) }

// compareValues orders numbers and durations by size, and text behind them.
func compareValues(a, b string) int {
	x, y := parseValue(a), parseValue(b)
	switch {
	case x.kind == text && y.kind != text:
		return 1
	case x.kind != text && y.kind == text:
		return -1
	}
	return cmp.Or(cmp.Compare(x.amount, y.amount), cmp.Compare(x.text, y.text))
}

// Ordered tells whether all values of an axis are numbers, sizes or durations: then more and less mean something.
func Ordered(a Axis) bool {
	return !slices.ContainsFunc(a.Values, func(v string) bool { return parseValue(v).kind == text })
}

// key is settings as a map's key.
func key(settings Settings) string {
	var b strings.Builder
	for _, s := range settings {
		b.WriteString(strconv.Quote(s.Axis) + strconv.Quote(s.Value))
	}
	return b.String()
}
