package sweep

import (
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/terapush/terapush/internal/units"
)

var variable = regexp.MustCompile(`\$?\$\{([^}]*)\}?`)

// expand replaces ${NAME} by the environment's variable, which has to be set. $${NAME} stands for ${NAME} itself.
func (p *planner) expand(v value) string {
	return variable.ReplaceAllStringFunc(v.text, func(text string) string {
		if text[1] == '$' {
			return text[1:]
		}
		name := variable.FindStringSubmatch(text)[1]
		value := ""
		if p.LookupEnv != nil {
			value, _ = p.LookupEnv(name)
		}
		if value == "" {
			p.add(v.line, "${%s}: the environment variable %s is not set", name, name)
		}
		return value
	})
}

// values lists those of one item of an axis: itself, or all of a range. What is quoted is no range.
func (p *planner) values(v value, axis string) []string {
	text := p.expand(v)
	if text == "" {
		p.add(v.line, "axis %s: an empty value", axis)
		return nil
	}
	if axis == targetName || v.quoted {
		return []string{text}
	}
	values, err := expandRange(text)
	if err != nil {
		p.add(v.line, "axis %s: %s: %v", axis, text, err)
	}
	return values
}

// less reports whether one value of a knee's axis is smaller than another: rows end where more does not pay.
func less(a, b string) bool {
	x, isTime, ok := units.Parse(a)
	y, wasTime, ok2 := units.Parse(b)
	return ok && ok2 && isTime == wasTime && x < y
}

const maxValues = 1000

var rangeForm = regexp.MustCompile(`^([0-9]+)([A-WYZa-wyz]*)\.\.([0-9]+)([A-WYZa-wyz]*)(?:x([0-9]+(?:\.[0-9]+)?)|\+([0-9]+))?$`)

// expandRange lists the values of a..bxF, each F times the one before, or of a..b+S, each S more. b is always the last
// value, even where a step would go beyond it. Both ends have the same unit, as in 1MiB..64MiBx2, and all values get
// it. Text that is no range is one value.
func expandRange(text string) ([]string, error) {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil {
		return []string{text}, nil
	}
	first, err := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[3], 10, 64)
	unit := m[2]
	factor, _ := strconv.ParseFloat(m[5], 64)
	more, _ := strconv.ParseInt(m[6], 10, 64)
	rises := factor > 1 && first > 0 || m[5] == "" && more > 0
	if err != nil || err2 != nil || unit != m[4] || first > last || !rises {
		return nil, fmt.Errorf("write a range as 1..64x2 or 0..100+10: it rises, and both ends have the same unit")
	}
	var values []string
	for v := first; len(values) < maxValues; {
		values = append(values, strconv.FormatInt(v, 10)+unit)
		if v == last {
			return values, nil
		}
		// A float64 holds products of whole numbers exactly up to 2^53, and last bounds what is beyond. A step is at
		// least 1, or a factor near 1 would never get anywhere.
		next := last
		if product := math.Round(float64(v) * factor); factor > 1 && product < float64(last) {
			next = max(int64(product), v+1)
		} else if more > 0 && v < last-more {
			next = v + more
		}
		v = next
	}
	return nil, fmt.Errorf("more than %d values", maxValues)
}
