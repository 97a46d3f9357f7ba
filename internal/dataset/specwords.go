package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/spelling"
)

// modifiers are the keys of a column that are no generator.
var modifiers = []string{"type", "sql", "nulls", "distinct", "common"}

// meant are the keys of ours for words of other tools. Of several the one is meant that is valid at the place.
var meant = map[string][]string{
	"null": {"nulls"}, "nullable": {"nulls"}, "optional": {"nulls"}, "null_share": {"nulls"}, "null_fraction": {"nulls"},
	"skew": {"zipf", "s"}, "exponent": {"s"}, "alpha": {"s"}, "theta": {"s"},
	"random": {"uniform"}, "range": {"uniform"}, "number": {"uniform"}, "between": {"uniform"},
	"min": {"uniform", "length"}, "max": {"uniform", "length"}, "minimum": {"min"}, "maximum": {"max"},
	"from": {"start", "min"}, "to": {"max"}, "increment": {"step"}, "size": {"length"},
	"choice": {"values"}, "choices": {"values"}, "oneof": {"values"}, "one_of": {"values"}, "enum": {"values"},
	"weights": {"values"}, "weight": {"values"}, "shares": {"values"},
	"serial": {"sequence"}, "identity": {"sequence"}, "auto_increment": {"sequence"}, "start": {"sequence"},
	"references": {"ref"}, "foreign_key": {"ref"}, "fk": {"ref"},
	"gaussian": {"normal"}, "mean": {"median", "normal"}, "sigma": {"stddev", "lognormal"}, "stddev": {"sigma", "normal"},
	"regex": {"pattern"}, "regexp": {"pattern"}, "string": {"text"}, "length": {"text"}, "alphabet": {"text"},
	"sentence": {"words"}, "paragraph": {"words"}, "lorem": {"words"},
	"primary_key": {"key"}, "primary": {"key"}, "table": {"name"}, "fields": {"columns"},
}

// elsewhere says what to do instead of what a column does not say.
var elsewhere = map[string]string{
	"unique":      "derive the column (sequence, uuid, scatter), and list it behind the columns, as unique: [[%s]]",
	"key":         "the key stands before the columns, as key: [%s]",
	"primary_key": "the key stands before the columns, as key: [%s]",
	"default":     "leave column %s out, and the table's default fills it",
}

// nearest returns the valid word that was meant, "" if none is known.
func nearest(word string, valid []string) string {
	for _, ours := range meant[strings.ToLower(word)] {
		if slices.Contains(valid, ours) {
			return ours
		}
	}
	return spelling.Nearest(word, valid)
}

// parameters are keys of generators that people write beside them.
var parameters = []string{
	"min", "max", "step", "start", "every", "cycle", "format", "s", "length", "alphabet", "mean", "median", "sigma", "stddev",
}

// noKey adds that a column with a generator, or none, has a key that is none.
func (r *specReader) noKey(e entry, where, column, generator string) {
	if generator != "" && slices.Contains(parameters, e.key) {
		r.add(e.line, "%s: %s stands in %s: {…}, not beside it", where, e.key, generator)
		return
	}
	if instead, is := elsewhere[e.key]; is {
		r.add(e.line, "%s: "+instead, where, quoted(column))
		return
	}
	guess := nearest(e.key, slices.Concat(modifiers, generatorNames()))
	switch {
	case guess == "":
		r.unknown(e.line, where+": ", "generator", e.key, generatorNames())
	case guess == "nulls":
		r.add(e.line, "%s: key %s: did you mean nulls, as in nulls: 30%%?", where, quoted(e.key))
	case slices.Contains(modifiers, guess):
		r.add(e.line, "%s: key %s: did you mean %s?", where, quoted(e.key), guess)
	case meant[strings.ToLower(e.key)] != nil: // which looks otherwise
		r.add(e.line, "%s: generator %s: did you mean %s, as in %[3]s: %[4]s?",
			where, quoted(e.key), guess, generatorNamed(guess).example)
	default:
		r.add(e.line, "%s: generator %s: did you mean %s?", where, quoted(e.key), guess)
	}
}

// like shows what belongs at a place that ends with the name of a generator, or of a column.
func like(where string) string {
	const column = "{type: int, uniform: {min: 1, max: 100}}"
	last, within := behindLast(where, ": ")
	switch row := generatorNamed(last); {
	case row != nil:
		return ", as " + last + ": " + row.example
	case last == "common":
		return ", as common: {a: 20%, b: 5%}"
	case !within && strings.HasPrefix(where, "column "):
		return ", as " + column
	}
	return ""
}

// beside says that a key stands beside the generator into which it was written, "" if it does not.
func beside(where, key string) string {
	last, _ := behindLast(where, ": ")
	if generatorNamed(last) == nil || !slices.Contains(modifiers, key) && (last != "ref" || key != "zipf") {
		return ""
	}
	return fmt.Sprintf("%s stands beside %s, not in it: %[2]s: {…}, %[1]s: …", key, last)
}

func behindLast(text, separator string) (rest string, found bool) {
	i := strings.LastIndex(text, separator)
	if i < 0 {
		return text, false
	}
	return text[i+len(separator):], true
}

// noShare says what to write instead of a text that is no share in percent.
func noShare(text string) string {
	what := quoted(text) + " is no share: write "
	number := strings.TrimSpace(text)
	share, err := parseDecimal(number, 9, 12)
	switch {
	case err != nil || share <= 0 || share > hundredPercent:
		return what + "it as 12.5%, more than 0% and at most 100%"
	case share < hundredPercent/100:
		return what + trimmed(formatDecimal(100*share, 9)) + "%, or " + number + "%"
	default:
		return what + number + "%"
	}
}
