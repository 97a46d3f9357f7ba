package results

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// Settings are those of one cell, one for each axis.
type Settings []Setting

// Value returns what the axis is in the cell; "" for an axis that the cell does not have.
func (s Settings) Value(axis string) string {
	for _, one := range s {
		if one.Axis == axis {
			return one.Value
		}
	}
	return ""
}

// Without returns the settings but for one axis; never nil.
func (s Settings) Without(axis string) Settings {
	rest := make(Settings, 0, len(s))
	for _, one := range s {
		if one.Axis != axis {
			rest = append(rest, one)
		}
	}
	return rest
}

// String returns the settings for people: method copy, workers 4.
func (s Settings) String() string {
	words := make([]string, len(s))
	for i, one := range s {
		words[i] = one.Axis + " " + one.Value
	}
	return strings.Join(words, ", ")
}

// key returns the settings as a map's key.
func (s Settings) key() string {
	var b strings.Builder
	for _, one := range s {
		b.WriteString(strconv.Quote(one.Axis) + strconv.Quote(one.Value))
	}
	return b.String()
}

// Value returns what the fact says of an axis, which it may write as batch_rows or Batch-Rows; "" where it says nothing
// of it.
func (f Fact) Value(axis string) string {
	for _, name := range slices.Sorted(maps.Keys(f.At)) {
		if sameName(name, axis) {
			return f.At[name]
		}
	}
	return ""
}

// sameName reports whether two names are of one axis. Articles and servers write batch_rows, flags batch-rows.
func sameName(a, b string) bool { return plainName(a) == plainName(b) }

// plainName returns an axis's name in small letters and with dashes, for comparing.
func plainName(axis string) string { return strings.ReplaceAll(strings.ToLower(axis), "_", "-") }

// value is a setting's value as it compares: all ways to write one amount are equal. Text is neither a number nor a
// duration, and a number is never equal to a duration.
type value struct {
	amount     float64 // seconds of a duration
	isDuration bool
	text       string // of what has no amount, in small letters
	isText     bool
}

func parseValue(s string) value {
	amount, isDuration, ok := units.Parse(s)
	if !ok {
		return value{text: strings.ToLower(strings.TrimSpace(s)), isText: true}
	}
	return value{amount: amount, isDuration: isDuration}
}

// compareValues orders numbers and durations by size, and text behind them.
func compareValues(a, b string) int {
	x, y := parseValue(a), parseValue(b)
	switch {
	case x.isText && !y.isText:
		return 1
	case !x.isText && y.isText:
		return -1
	}
	return cmp.Or(cmp.Compare(x.amount, y.amount), cmp.Compare(x.text, y.text))
}

// ordered reports whether all values of an axis are numbers, sizes or durations: then more and less mean something.
func (a Axis) ordered() bool {
	return !slices.ContainsFunc(a.Values, func(v string) bool { return parseValue(v).isText })
}
