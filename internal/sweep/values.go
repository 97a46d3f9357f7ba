package sweep

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/record"
)

// text is a scalar with its variables expanded; nothing is "".
func (p *planner) text(n *node) string {
	if n == nil {
		return ""
	}
	return p.expand(n)
}

// expand replaces ${NAME} by the environment's variable, which has to be there. $${NAME} stands for ${NAME} itself.
func (p *planner) expand(n *node) string {
	text := n.text
	var made strings.Builder
	for {
		before, after, found := strings.Cut(text, "${")
		if !found {
			return made.String() + text
		}
		name, rest, closed := strings.Cut(after, "}")
		switch {
		case !closed:
			p.add(n.line, "${ without }: $${ writes it as it is")
			return made.String()
		case strings.HasSuffix(before, "$"):
			made.WriteString(before + "{" + name + "}")
		default:
			made.WriteString(before + p.variable(name, n.line))
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

// checked is the value of a flag, which the flag has to take.
func (p *planner) checked(flag string, n *node) string {
	value := p.expand(n)
	p.check(flag, value, n.line)
	return value
}

func (p *planner) check(flag, value string, line int) {
	if p.Check == nil || strings.HasPrefix(flag, setPrefix) {
		return
	}
	if err := p.Check(flag, value); err != nil {
		p.add(line, "%s: %v", flag, err)
	}
}

func (p *planner) count(n *node, what string, least, otherwise int) int {
	if n == nil {
		return otherwise
	}
	const most = 1000
	count, err := strconv.Atoi(p.expand(n))
	if err != nil || count < least || count > most {
		p.add(n.line, "%s: write a number from %d to %d", what, least, most)
	}
	return count
}

func (p *planner) duration(n *node, what string) time.Duration {
	if n == nil {
		return 0
	}
	d, err := time.ParseDuration(p.expand(n))
	if err != nil || d < 0 {
		p.add(n.line, "%s: write a time as 90s, 10m or 1h30m", what)
	}
	return d
}

// axis adds an axis to the part.
func (p *planner) axis(part *Part, e entry) {
	name := normal(e.key)
	for _, other := range p.excludedBy(name) {
		if _, given := p.Push[other]; given || p.setOnCommandLine(name) {
			p.add(e.line, "axis %s: the command line has --%s as well", name, other)
		} else if _, both := part.Push[other]; both {
			p.add(e.line, "axis %s: push has %s as well, and a cell takes one of them only", name, other)
		}
		if slices.ContainsFunc(part.Axes, func(a record.Axis) bool { return a.Name == other }) {
			p.add(e.line, "axis %s: %s is an axis as well, and a cell takes one of them only", name, other)
		}
	}
	if name == p.knee && name == targetName {
		p.add(e.line, "knee: targets have no order")
	}
	if name == targetName && p.Target != "" {
		part.targets = []string{p.Target}
		part.Axes = append(part.Axes, record.Axis{Name: name, Values: []string{p.show(p.Target, e.line)}})
		return
	}
	axis := record.Axis{Name: name}
	var rise ascent
	for _, item := range e.value.each() {
		for _, value := range p.values(item, name) {
			if name == p.knee && name != targetName {
				p.rises(&rise, name, value, item.line)
			}
			given := value
			if name == targetName {
				value = p.show(given, item.line)
			} else {
				p.check(name, value, item.line)
			}
			if slices.Contains(axis.Values, value) {
				p.add(item.line, "axis %s: %s is here twice", name, value)
				continue
			}
			axis.Values = append(axis.Values, value)
			if name == targetName {
				part.targets = append(part.targets, given)
			}
		}
	}
	if len(e.value.each()) == 0 {
		p.add(e.line, "axis %s has no values", name)
	}
	part.Axes = append(part.Axes, axis)
}

func (p *planner) setOnCommandLine(axis string) bool {
	variable, isSet := strings.CutPrefix(axis, setPrefix)
	return isSet && slices.ContainsFunc(p.Push[setFlag], func(text string) bool {
		name, _, _ := strings.Cut(text, "=")
		return strings.TrimSpace(name) == variable
	})
}

// values are those of one item of an axis: itself, or all of a range. What is quoted is itself.
func (p *planner) values(n *node, axis string) []string {
	text := p.expand(n)
	if text == "" {
		p.add(n.line, "axis %s: an empty value", axis)
		return nil
	}
	if axis == targetName || n.quoted {
		return []string{text}
	}
	values, err := expandRange(text)
	if err != nil {
		p.add(n.line, "axis %s: %s: %v", axis, text, err)
	}
	return values
}

// maxValues bounds one range.
const maxValues = 1000

var rangeForm = regexp.MustCompile(`^([0-9]+)([A-WYZa-wyz]*)\.\.([0-9]+)([A-WYZa-wyz]*)(?:(x)([0-9]+(?:\.[0-9]+)?)|(\+)([0-9]+))?$`)

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
	switch {
	case err != nil || err2 != nil:
		return nil, fmt.Errorf("a number is too large")
	case m[2] != m[4]:
		return nil, fmt.Errorf("write the same unit at both ends")
	case first > last:
		return nil, fmt.Errorf("write the smaller end first")
	case m[5] == "" && m[7] == "":
		return nil, fmt.Errorf("how far to step is missing: x2 doubles, +2 adds two")
	}
	var step func(int64) int64
	if m[7] != "" {
		by, err := strconv.ParseInt(m[8], 10, 64)
		if err != nil || by < 1 {
			return nil, fmt.Errorf("a step adds at least 1")
		}
		step = func(v int64) int64 {
			if v > math.MaxInt64-by {
				return last
			}
			return v + by
		}
	} else {
		by, err := strconv.ParseFloat(m[6], 64)
		if err != nil || by <= 1 || first == 0 {
			return nil, fmt.Errorf("a factor is more than 1, and the first value more than 0")
		}
		step = func(v int64) int64 { return multiplied(v, by) }
	}
	var values []string
	for v := first; ; v = step(v) {
		values = append(values, strconv.FormatInt(min(v, last), 10)+m[2])
		switch {
		case v >= last:
			return values, nil
		case len(values) == maxValues:
			return nil, fmt.Errorf("more than %d values", maxValues)
		}
	}
}

// multiplied rounds, and steps by 1 at least, or a factor near 1 would never get anywhere. Products of whole numbers are
// exact, since a float64 holds them up to 2^53 and the last value ends what is beyond.
func multiplied(v int64, by float64) int64 {
	product := math.Round(float64(v) * by)
	if product >= math.MaxInt64 {
		return math.MaxInt64
	}
	return max(int64(product), v+1)
}

// figures are the keys of a published figure.
func figures() []string {
	return []string{"rows_per_second", "bytes_per_second", "overall_rows_per_second", "seconds"}
}

func (p *planner) facts(n *node) *record.Facts {
	if n == nil {
		return nil
	}
	f := &record.Facts{Source: p.text(n.named("source")), Machine: p.text(n.named("machine")), Note: p.text(n.named("note"))}
	if f.Source == "" {
		p.add(n.line, "facts: say where they were published, as source")
	}
	for _, item := range n.named("points").each() {
		point := record.Fact{At: make(map[string]string)}
		for _, axis := range item.named("at").pairs() {
			point.At[normal(axis.key)] = p.expand(axis.value)
		}
		any := false
		for i, into := range []*float64{&point.RowsPerSecond, &point.BytesPerSecond, &point.OverallRowsPerSecond, &point.Seconds} {
			if figure := item.named(figures()[i]); figure != nil {
				*into = p.figure(figure, figures()[i])
				any = true
			}
		}
		if !any {
			p.add(item.line, "a point without a figure")
		}
		f.Points = append(f.Points, point)
	}
	return f
}

func (p *planner) figure(n *node, what string) float64 {
	v, err := strconv.ParseFloat(p.expand(n), 64)
	if err != nil || v <= 0 || math.IsInf(v, 0) || math.IsNaN(v) {
		p.add(n.line, "%s: write a number above 0", what)
		return 0
	}
	return v
}
