package results

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/units"
)

// Settings are the settings of one case, one for each axis.
type Settings []Setting

// Value returns the value of an axis, "" for one that the case does not have.
func (s Settings) Value(axis string) string {
	for _, one := range s {
		if one.Axis == axis {
			return one.Value
		}
	}
	return ""
}

// Without returns the settings without one axis; never nil.
func (s Settings) Without(axis string) Settings {
	return slices.DeleteFunc(append(Settings{}, s...), func(one Setting) bool { return one.Axis == axis })
}

// String returns the settings for people, as in method copy, workers 4.
func (s Settings) String() string {
	words := make([]string, len(s))
	for i, one := range s {
		words[i] = one.Axis + " " + one.Value
	}
	return strings.Join(words, ", ")
}

// Value returns the fact's value of an axis, which it may write as batch_rows or Batch-Rows; "" without one.
func (f Fact) Value(axis string) string {
	for _, name := range slices.Sorted(maps.Keys(f.At)) {
		if sameName(name, axis) {
			return f.At[name]
		}
	}
	return ""
}

func sameName(a, b string) bool { return plainName(a) == plainName(b) }

// plainName returns the name of an axis for comparing. Articles and servers write batch_rows, flags batch-rows.
func plainName(axis string) string { return strings.ReplaceAll(strings.ToLower(axis), "_", "-") }

// value is a setting's value for comparing: all ways to write one amount are equal, and a number never equals a
// duration.
type value struct {
	amount     float64 // seconds of a duration
	isDuration bool
	text       string // in lower case, if it is no amount
	isText     bool
}

func parseValue(s string) value {
	amount, isDuration, ok := units.Parse(s)
	if !ok {
		return value{text: strings.ToLower(strings.TrimSpace(s)), isText: true}
	}
	return value{amount: amount, isDuration: isDuration}
}

// SameValue reports whether two values of an axis are one amount, or one text.
func SameValue(a, b string) bool { return parseValue(a) == parseValue(b) }

// CompareValues orders the values of an axis by size. They have to be numbers, sizes or durations.
func CompareValues(a, b string) int { return cmp.Compare(parseValue(a).amount, parseValue(b).amount) }

// brings reports whether a value of the axis sets a flag.
func (a Axis) brings(flag string) bool {
	for _, own := range a.Settings {
		if own[flag] != nil {
			return true
		}
	}
	return false
}

// ordered reports whether all values of an axis are numbers, sizes or durations.
func (a Axis) ordered() bool {
	return !slices.ContainsFunc(a.Values, func(v string) bool { return parseValue(v).isText })
}
