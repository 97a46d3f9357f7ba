package inspect

import (
	"fmt"
	"math"

	"github.com/terapush/terapush/pkg/rows"
)

// uuidText is the length of a UUID's text, and of the columns that people make for them.
const uuidText = 36

// sequenceDigits is how many digits a derived text has that may be longer.
const sequenceDigits = 12

// sequences lists the generators that make a column different in every row, the best first. key says that the row has
// to be found by it.
func (c *column) sequences(key bool) (all []string) {
	if c.parent != nil {
		return []string{"sequence: {" + c.begins() + "}"}
	}
	if c.in != nil || c.examples != nil {
		return nil
	}
	if c.isInteger() {
		return []string{fmt.Sprintf("sequence: {start: %d%s}", c.first(), c.last())}
	}
	switch c.Values.Type {
	case rows.UUID:
		return []string{"uuid: v4"}
	case rows.Text, rows.Char:
		if c.pattern != "" {
			return formatsOf(c.pattern, c.longest())
		}
		digits := sequenceDigits
		if most := c.longest(); most > 0 {
			digits = min(digits, most)
		}
		digits = max(digits, min(c.minLen, 18))
		if c.longest() == uuidText {
			all = []string{"uuid: v4"}
		}
		return append(all, fmt.Sprintf(`sequence: {format: "{:0%d}"}`, digits))
	case rows.Date:
		return []string{"sequence: {start: " + c.from() + ", step: 1d" + c.lastDay() + "}"}
	case rows.Timestamp, rows.TimestampTZ:
		step := "1s"
		if key {
			step = "1us"
		}
		return []string{"sequence: {start: " + c.from() + ", step: " + step + c.lastDay() + "}"}
	}
	return nil
}

// first is where a sequence of integers starts: behind the values that the column may not have.
func (c *column) first() int64 {
	first := c.begin()
	for i := range c.out {
		if v, ok := c.scaled(&bound{c.out[i], false}, 1, 1); ok && v >= first && v < math.MaxInt64 {
			first = v + 1
		}
	}
	return first
}

func (c *column) begin() int64 {
	if c.reference != nil && c.reference.Keys != nil && c.reference.Keys.Count > 0 {
		return max(c.reference.Keys.Min, 0)
	}
	if v, ok := c.scaled(c.least, 1, 1); ok {
		return max(v, 0)
	}
	if v, ok := c.scaled(c.most, 1, -1); ok {
		return min(v, 1)
	}
	return 1
}

// last says where a sequence of integers ends, if the column ends before its type does.
func (c *column) last() string {
	most, bounded := c.end()
	if !bounded {
		return ""
	}
	return fmt.Sprintf(", most: %d", most)
}

// end returns the largest number that the column may have, if that is less than its type's.
func (c *column) end() (most int64, bounded bool) {
	most, bounded = c.scaled(c.most, 1, -1)
	if c.isNarrow() && (!bounded || c.Values.Most < most) {
		return c.Values.Most, true
	}
	return most, bounded
}

func (c *column) lastDay() string {
	if c.most == nil {
		return ""
	}
	return ", most: " + c.to()
}
