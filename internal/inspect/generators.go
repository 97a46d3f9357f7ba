package inspect

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// maxDeclared is the longest length that a spec declares; what may be longer has none.
const maxDeclared = 1 << 20

// kindOf is a type as a spec writes it; "" if it has none.
func kindOf(c *rows.Column) string {
	if c == nil {
		return ""
	}
	sized := func(kind string) string {
		if c.MaxBytes < 1 || c.MaxBytes > maxDeclared {
			return kind
		}
		return fmt.Sprintf("%s(%d)", kind, c.MaxBytes)
	}
	switch c.Type {
	case rows.Decimal, rows.Wide:
		return quoted(dataset.TypeName(*c))
	case rows.Arrays:
		return quoted(strings.Trim(kindOf(c.Of), `"`) + "[]")
	case rows.Text, rows.Char, rows.Bytes:
		return sized(c.Type.String())
	}
	return dataset.TypeName(*c)
}

// isNarrow reports whether the column holds fewer integers than its type of ours, which ends its sequences early.
func (c *column) isNarrow() bool { return c.Values != nil && c.Values.Most != 0 }

func (c *column) isInteger() bool { return c.Values != nil && c.Values.Type.IsInteger() }

// longest is the most characters of a text that the table takes; 0 has no bound.
func (c *column) longest() int {
	n := c.Values.MaxBytes
	if n > maxDeclared {
		n = 0
	}
	if c.maxLen > 0 && (n == 0 || c.maxLen < n) {
		n = c.maxLen
	}
	return n
}

// canBeWithout reports whether a generator can leave out single values of the column.
func (c *column) canBeWithout() bool {
	if c.Values == nil {
		return false
	}
	t := c.Values.Type
	return t.IsInteger() || t.IsDecimal() || t == rows.Float32 || t == rows.Float64 || t == rows.Bool || t == rows.Enum
}

// without removes the values that the column may not have.
func (c *column) without(values []string) []string {
	return slices.DeleteFunc(slices.Clone(values), func(v string) bool { return slices.Contains(c.out, v) })
}

// isDay reports whether the column has days, with or without an hour.
func (c *column) isDay() bool {
	return c.Values != nil && slices.Contains([]rows.Type{rows.Date, rows.Timestamp, rows.TimestampTZ}, c.Values.Type)
}

// follows lists the generators of what is later than another column.
func (c *column) follows() []string {
	if c.after == "" {
		return nil
	}
	return []string{"after: {column: " + value(c.after) + ", by: 1d..30d}"}
}

// draws lists the generators that draw a column's values, the best first.
func (c *column) draws() []string {
	if c.parent != nil {
		return c.parent.draws(c)
	}
	if c.own != nil {
		return []string{"ref: {column: " + value(c.own.Name) + "}" + c.someNulls()}
	}
	if c.Values.Type == rows.Bool {
		return []string{"values: [" + strings.Join(c.without(c.truths()), ", ") + "]"}
	}
	if c.in != nil {
		return []string{"values: " + values(c.without(c.in))}
	}
	if c.examples != nil {
		return []string{"values: " + values(c.examples)}
	}
	v := c.Values
	if v.Type.IsInteger() {
		return []string{c.integers()}
	}
	switch v.Type {
	case rows.Time:
		return []string{"uniform: {min: 00:00:00, max: 23:59:59, step: 1s}"}
	case rows.Wide: // of which few digits will do
		scale := min(v.Scale, 14)
		least, most := c.between(scale, 0, pow10(min(v.Digits-v.Scale, 3)+scale)-1)
		most = min(most, pow10(v.Digits-v.Scale+scale)-1)
		return []string{fmt.Sprintf("uniform: {min: %s, max: %s}", decimal(least, scale), decimal(most, scale))}
	case rows.Decimal:
		least, most := c.between(v.Scale, 1, min(pow10(v.Digits)-1, 1000*pow10(v.Scale)))
		most = min(most, pow10(v.Digits)-1)
		return []string{fmt.Sprintf("uniform: {min: %s, max: %s}", decimal(least, v.Scale), decimal(most, v.Scale))}
	case rows.Float32, rows.Float64:
		return c.floats()
	case rows.UUID:
		return []string{"uuid: v4"}
	case rows.Date, rows.Timestamp, rows.TimestampTZ:
		return []string{fmt.Sprintf("uniform: {min: %s, max: %s}", c.from(), c.to())}
	case rows.JSON:
		return documents
	case rows.Enum:
		return []string{"values: " + values(c.without(v.Labels))}
	case rows.Arrays:
		if v.Of.Type == rows.UUID { // those that are drawn are keys of another table
			return []string{"array: {length: 0..4, of: {ref: {table: t, column: id, uuid: v4, rows: 1000000}}}"}
		}
		of := &column{Column: &loader.Column{Values: v.Of}}
		return []string{"array: {length: 0..4, of: {" + of.draws()[0] + "}}"}
	case rows.Float32s:
		return []string{"vector: {normalised: true}"}
	case rows.Bytes:
		return []string{"bytes: {length: " + c.length(64) + "}"}
	case rows.Text, rows.Char:
		if c.json {
			return documents
		}
		return c.texts()
	}
	return nil
}

// floats draws multiples of a power of two: sixteenths, or finer ones if there is none between the bounds.
func (c *column) floats() (all []string) {
	for _, bits := range []uint{4, 10, 20} {
		unit := int64(1) << bits
		least, most := c.inUnits(unit, 0, 1000*unit)
		if least > most {
			continue
		}
		text := func(v int64) string {
			return strings.TrimSuffix(strings.TrimRight(big.NewRat(v, unit).FloatString(int(bits)), "0"), ".")
		}
		all = append(all, fmt.Sprintf("uniform: {min: %s, max: %s, step: %s}", text(least), text(most), text(1)))
	}
	return all
}

// truths are the values of a boolean, which servers write in several ways.
func (c *column) truths() (all []string) {
	if c.in == nil {
		return []string{"true", "false"}
	}
	for _, v := range c.in {
		all = append(all, truth(v))
	}
	return all
}

// documents are small objects.
var documents = []string{"json: {n: {type: bigint, uniform: {min: 0, max: 9999}}}", `constant: "{}"`}

// Texts of at least so many characters are words, and shorter ones symbols.
const (
	shortText = 20
	longText  = 80
)

func (c *column) texts() []string {
	if c.pattern != "" {
		return []string{"pattern: " + quoted(c.pattern)}
	}
	symbols := "text: {length: " + c.length(longText) + "}"
	if most := c.longest(); most > 0 && most < shortText {
		return []string{symbols}
	}
	return []string{"words: {length: " + c.length(longText) + "}", symbols}
}

// length is that of a column's values, up to most unless the table wants more.
func (c *column) length(most int) string {
	if longest := c.longest(); longest > 0 {
		most = min(most, longest)
	}
	least := max(c.minLen, 1)
	most = max(most, least)
	if least == most {
		return fmt.Sprint(most)
	}
	return fmt.Sprintf("%d..%d", least, most)
}

// integers draws integers: a parent's keys, or what the CHECKs and the type allow.
func (c *column) integers() string {
	if r := c.reference; r != nil && canBeDrawn(r) && r.Keys.Min >= 0 {
		return fmt.Sprintf("ref: {table: %s, column: %s, rows: %d, start: %d}", value(r.Table), value(r.Of[0]), r.Keys.Count, r.Keys.Min)
	}

	bits := 8 * c.Values.Type.Size()
	largest := int64(math.MaxInt64) >> (64 - bits)
	smallest := -largest - 1
	if c.Values.Type.IsUnsigned() {
		smallest, largest = 0, int64(uint64(math.MaxUint64)>>max(64-bits, 1)) // of 64 bits those of an int64
	}
	if c.isNarrow() {
		smallest, largest = c.Values.Least, c.Values.Most
	}
	least, most := c.between(0, 1, min(1_000_000, largest))
	if r := c.reference; r != nil && r.Keys != nil && r.Keys.Count > 0 {
		least, most = r.Keys.Min, r.Keys.Max
	}
	return fmt.Sprintf("uniform: {min: %d, max: %d}", max(least, smallest), min(most, largest))
}

// between is inUnits of 10^−scale.
func (c *column) between(scale int, least, most int64) (from, to int64) {
	return c.inUnits(pow10(scale), least, most)
}

// inUnits returns the range of a column's numbers, times unit, of which CHECKs may have one end or both. Of what is
// before and behind a value that it may not have it is the larger part.
func (c *column) inUnits(unit, least, most int64) (from, to int64) {
	from, to = c.ends(unit, least, most)
	for i := range c.out {
		v, ok := c.scaled(&bound{c.out[i], false}, unit, 1)
		if !ok || v < from || v > to {
			continue
		}
		if v-from > to-v {
			to = v - 1
		} else {
			from = v + 1
		}
	}
	return from, to
}

func (c *column) ends(unit, least, most int64) (from, to int64) {
	width := most - least
	low, lowGiven := c.scaled(c.least, unit, 1)
	high, highGiven := c.scaled(c.most, unit, -1)
	switch {
	case lowGiven && highGiven:
		return low, high
	case lowGiven:
		return low, max(most, low+width)
	case highGiven && high >= least:
		return least, min(most, high)
	case highGiven:
		return high - width, high
	}
	return least, most
}

// scaled returns the end of a range times unit, rounded into the range, whose inside is in the direction.
func (c *column) scaled(b *bound, unit, direction int64) (int64, bool) {
	if b == nil {
		return 0, false
	}
	r, ok := new(big.Rat).SetString(b.value)
	if !ok {
		return 0, false
	}
	r.Mul(r, new(big.Rat).SetInt64(unit))
	v := new(big.Int).Div(r.Num(), r.Denom()) // rounded down
	exact := r.IsInt()
	switch {
	case exact && b.beyond:
		v.Add(v, big.NewInt(direction))
	case !exact && direction > 0:
		v.Add(v, big.NewInt(1))
	}
	return v.Int64(), v.IsInt64()
}

func pow10(n int) int64 {
	power := int64(1)
	for range min(n, 18) {
		power *= 10
	}
	return power
}

// decimal writes a number times 10^scale.
func decimal(v int64, scale int) string {
	return big.NewRat(v, pow10(scale)).FloatString(scale)
}

// The range of dates and times, where nothing else says it.
const (
	earliest = "2025-01-01"
	latest   = "2025-12-31"
)

func (c *column) from() string {
	if last := c.day(c.most, -1, latest); c.least == nil && last < earliest { // a year before the end
		if at, err := time.Parse(time.DateOnly, last); err == nil {
			return at.AddDate(-1, 0, 0).Format(time.DateOnly)
		}
	}
	return c.day(c.least, 1, earliest)
}

func (c *column) to() string {
	if c.most == nil && c.least != nil { // a year behind the beginning
		if at, err := time.Parse(time.DateOnly, c.from()); err == nil && at.After(time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)) {
			return at.AddDate(1, 0, 0).Format(time.DateOnly)
		}
	}
	return c.day(c.most, -1, latest)
}

// day is the day of a bound, or that before or behind it, which is in the range whatever the hour of the bound is.
func (c *column) day(b *bound, direction int, missing string) string {
	if b == nil || len(b.value) < len(time.DateOnly) {
		return missing
	}
	at, err := time.Parse(time.DateOnly, b.value[:len(time.DateOnly)])
	if err != nil {
		return missing
	}
	if b.beyond || len(b.value) > len(time.DateOnly) && direction > 0 {
		at = at.AddDate(0, 0, direction)
	}
	return at.Format(time.DateOnly)
}
