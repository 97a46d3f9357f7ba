package sweep

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

// expand replaces ${NAME} by the environment's variable, which has to be there. $${NAME} stands for ${NAME} itself.
func (p *planner) expand(s scalar) string {
	text := s.text
	var made strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			return made.String() + text
		}
		name, rest, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			p.add(s.line, "${ without }: $${ writes it as it is")
			return made.String()
		case strings.HasSuffix(before, "$"):
			made.WriteString(before + "{" + name + "}")
		default:
			made.WriteString(before + p.variable(name, s.line))
		}
		text = rest
	}
}

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

func (p *planner) variable(name string, line int) string {
	if !variableName.MatchString(name) {
		p.add(line, "${%s} is not the name of a variable", name)
		return ""
	}
	if p.LookupEnv != nil {
		if value, _ := p.LookupEnv(name); value != "" {
			return value
		}
	}
	p.add(line, "${%s}: the environment variable %s is not set", name, name)
	return ""
}

// checked returns the value of a flag, which the flag has to take.
func (p *planner) checked(flag string, s scalar) string {
	value := p.expand(s)
	p.check(flag, value, s.line)
	return value
}

func (p *planner) check(flag, value string, line int) {
	if strings.HasPrefix(flag, setPrefix) {
		return
	}
	if err := p.flags.Set(flag, value); err != nil {
		p.add(line, "%s: %v", flag, err)
	}
}

var planName = regexp.MustCompile(`^[A-Za-z0-9_-][A-Za-z0-9_.-]*$`)

func (p *planner) name(s scalar, line int) string {
	if s.line == 0 {
		p.add(line, "name: a plan needs one")
		return ""
	}
	name := p.expand(s)
	if !planName.MatchString(name) {
		p.add(s.line, "name: letters, digits, -, _ and . only, and no . first, since files are named after it")
	}
	return name
}

func (p *planner) interleaved(s scalar) bool {
	const shuffled, straight = "interleaved", "in-order"
	switch order := normal(p.expand(s)); order {
	case "", shuffled:
		return true
	case straight:
	default:
		p.add(s.line, "order: %v", config.Unknown("value", order, []string{shuffled, straight}))
	}
	return false
}

// count reads a number, which is least where the key is missing.
func (p *planner) count(s scalar, what string, least int) int {
	const most = 1000
	if s.line == 0 {
		return least
	}
	n, err := strconv.Atoi(p.expand(s))
	if err != nil || n < least || n > most {
		p.add(s.line, "%s: write a number from %d to %d", what, least, most)
	}
	return n
}

func (p *planner) duration(s scalar, what string) time.Duration {
	if s.line == 0 {
		return 0
	}
	d, err := time.ParseDuration(p.expand(s))
	if err != nil || d < 0 {
		p.add(s.line, "%s: write a time as 90s, 10m or 1h30m", what)
	}
	return d
}

// values lists those of one item of an axis: itself, or all of a range. What is quoted is itself.
func (p *planner) values(s scalar, axis string) []string {
	text := p.expand(s)
	if text == "" {
		p.add(s.line, "axis %s: an empty value", axis)
		return nil
	}
	if axis == targetName || s.quoted {
		return []string{text}
	}
	values, err := expandRange(text)
	if err != nil {
		p.add(s.line, "axis %s: %s: %v", axis, text, err)
	}
	return values
}

// rises refuses the next value of the knee's axis if it is not above the one before, "" before the first: rows end where
// more brings nothing, so that the sweep has to know what more is. An axis that falls would end at once, where there is
// most to gain.
func (p *planner) rises(axis, was, value string, line int) {
	amount, isTime, ok := units.Parse(value)
	before, wasTime, begun := units.Parse(was)
	switch {
	case !ok:
		p.add(line, "knee: %s of the axis %s is no number, size or duration, so that no value is more than another", value, axis)
	case begun && isTime != wasTime:
		p.add(line, "knee: %s and %s of the axis %s cannot be compared", was, value, axis)
	case begun && amount <= before:
		p.add(line, "knee: the axis %s has %s behind %s: its values have to rise", axis, value, was)
	}
}

// maxValues bounds one range.
const maxValues = 1000

var rangeForm = regexp.MustCompile(`^([0-9]+)([A-WYZa-wyz]*)\.\.([0-9]+)([A-WYZa-wyz]*)(?:x([0-9]+(?:\.[0-9]+)?)|\+([0-9]+))?$`)

// expandRange lists the values of a..bxF, each F times the one before, or of a..b+S, each S more. b is always the last
// value, even where a step would go beyond it. A unit stands at both ends, as in 1MiB..64MiBx2, and is kept. Text that
// is no range is one value.
func expandRange(text string) ([]string, error) {
	m := rangeForm.FindStringSubmatch(text)
	if m == nil {
		return []string{text}, nil
	}
	first, err := strconv.ParseInt(m[1], 10, 64)
	last, err2 := strconv.ParseInt(m[3], 10, 64)
	unit := m[2]
	factor, _ := strconv.ParseFloat(m[5], 64)
	more, err3 := strconv.ParseInt(m[6], 10, 64)
	switch {
	case err != nil || err2 != nil:
		return nil, errors.New("a number is too large")
	case unit != m[4]:
		return nil, errors.New("write the same unit at both ends")
	case first > last:
		return nil, errors.New("write the smaller end first")
	case m[5] == "" && m[6] == "":
		return nil, errors.New("how far to step is missing: x2 doubles, +2 adds two")
	case m[6] != "" && (err3 != nil || more < 1):
		return nil, errors.New("a step adds at least 1")
	case m[5] != "" && (factor <= 1 || first == 0):
		return nil, errors.New("a factor is more than 1, and the first value more than 0")
	}
	var values []string
	for v := first; len(values) < maxValues; {
		values = append(values, strconv.FormatInt(v, 10)+unit)
		if v == last {
			return values, nil
		}
		// Products of whole numbers are exact, since a float64 holds them up to 2^53 and the last value ends what is beyond.
		// They step by 1 at least, or a factor near 1 would never get anywhere.
		next := last
		if product := math.Round(float64(v) * factor); m[5] != "" && product < float64(last) {
			next = max(int64(product), v+1)
		} else if m[6] != "" && v < last-more {
			next = v + more
		}
		v = next
	}
	return nil, fmt.Errorf("more than %d values", maxValues)
}

// facts checks what the library has read: names of axes are written with dashes, and figures are more than 0.
func (p *planner) facts(f *results.Facts, line int) *results.Facts {
	if f == nil {
		return nil
	}
	expand := func(text string) string { return p.expand(scalar{text: text, line: line}) }
	f.Source, f.Machine, f.Note = expand(f.Source), expand(f.Machine), expand(f.Note)
	if f.Source == "" {
		p.add(line, "facts: say where they were published, as source")
	}
	for i, point := range f.Points {
		at := make(map[string]string)
		for axis, value := range point.At {
			if axis != targetName {
				p.isFlag(axis, line)
			}
			at[normal(axis)] = expand(value)
		}
		f.Points[i].At = at
		figures := []float64{point.RowsPerSecond, point.BytesPerSecond, point.OverallRowsPerSecond, point.Seconds}
		if slices.ContainsFunc(figures, func(v float64) bool { return !(v >= 0 && v <= math.MaxFloat64) }) {
			p.add(line, "facts: point %d: a figure is a number above 0", i+1)
		}
		if slices.Max(figures) == 0 {
			p.add(line, "facts: point %d is without a figure", i+1)
		}
	}
	return f
}
