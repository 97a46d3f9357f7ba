package results

import (
	"maps"
	"slices"
	"strings"
)

// Near is the share of the best rate that may be given away for a smaller setting: within it a cell is as good as the
// best, and where more brings less than it, more has stopped to pay. All that looks for knees goes by it.
const Near = 0.05

// Settings are those of one cell, one for each axis.
type Settings []Setting

// Value is what the axis is in the cell; "" for an axis that the cell does not have.
func (s Settings) Value(axis string) string {
	for _, one := range s {
		if one.Axis == axis {
			return one.Value
		}
	}
	return ""
}

// Without is the settings but for one axis; never nil.
func (s Settings) Without(axis string) Settings {
	rest := make(Settings, 0, len(s))
	for _, one := range s {
		if one.Axis != axis {
			rest = append(rest, one)
		}
	}
	return rest
}

// String is the settings for people: method copy, workers 4.
func (s Settings) String() string {
	words := make([]string, len(s))
	for i, one := range s {
		words[i] = one.Axis + " " + one.Value
	}
	return strings.Join(words, ", ")
}

// Value is what the fact says of an axis, which it may write as batch_rows or Batch-Rows; "" where it says nothing of it.
func (f Fact) Value(axis string) string {
	for _, name := range slices.Sorted(maps.Keys(f.At)) {
		if SameName(name, axis) {
			return f.At[name]
		}
	}
	return ""
}

// SameName takes batch_rows and batch-rows for one axis: articles and servers write the first, flags the second.
func SameName(a, b string) bool { return PlainName(a) == PlainName(b) }

// PlainName is an axis's name in small letters and with dashes, for comparing.
func PlainName(axis string) string { return strings.ReplaceAll(strings.ToLower(axis), "_", "-") }
