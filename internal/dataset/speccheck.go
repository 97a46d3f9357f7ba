package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// columnPlanner checks one column, and writes its values in their one notation.
type columnPlanner struct {
	*specPlanner
	c *SpecColumn
	t specType
}

// wrong adds a problem of the column, at a parameter of its generator if there is one.
func (p *columnPlanner) wrong(at []string, format string, args ...any) {
	place := path(append([]string{"columns", p.c.Name}, at...)...)
	p.add(place, "column %s: %s", quoted(p.c.Name), fmt.Sprintf(format, args...))
}

func (p *columnPlanner) plan() (plan columnPlan) {
	row := generatorOf(p.c.Generator)
	if row == nil {
		p.wrong(nil, "it has no generator")
		return plan
	}
	t, err := parseType(p.c.Type)
	if err != nil {
		p.wrong([]string{"type"}, "%v", err)
		return plan
	}
	p.t = t
	if row.types != nil && !p.need(row.name, row.types...) {
		return plan
	}

	before := len(p.problems)
	plan = p.c.Generator.plan(p)
	if len(p.problems) > before {
		return plan
	}

	plan.column.Name, plan.column.Type = p.c.Name, p.t.Type
	plan.column.Digits, plan.column.Scale = p.t.digits, p.t.scale
	plan.column.Derived = plan.derived != nil
	if p.t.Variable() {
		p.declare(&plan.column)
	}
	p.c.Type = p.t.String()
	return plan
}

// declare compares the length of a variable type with the longest value.
func (p *columnPlanner) declare(c *rows.Column) {
	switch {
	case c.MaxBytes == 0:
		p.wrong(nil, "all of its values are empty")
	case c.MaxBytes > MaxPayloadBytes:
		p.wrong(nil, "its values have up to %d bytes: %d at most", c.MaxBytes, MaxPayloadBytes)
	case p.t.size == 0:
		p.t.size = c.MaxBytes
	case p.t.size < c.MaxBytes:
		p.wrong([]string{"type"}, "%s is too short: its values have up to %d bytes", p.t, c.MaxBytes)
	case p.t.size > c.MaxBytes:
		c.Declared = p.t.size
	}
}

// need reports whether the column has one of the types, or adds that the generator needs one.
func (p *columnPlanner) need(generator string, types ...rows.Type) bool {
	if slices.Contains(types, p.t.Type) {
		return true
	}
	var names []string
	for i, t := range []rows.Type{rows.Int64, rows.Text, rows.Bytes, rows.Date, rows.Timestamp, rows.Decimal} {
		if slices.Contains(types, t) {
			names = append(names, typeNames[i])
		}
	}
	p.wrong([]string{"type"}, "generator %s is for %s, not for %s", generator, strings.Join(names, ", "), quoted(p.c.Type))
	return false
}

// number reads a parameter that is a value of the column's type, and writes it in its one notation. "" is replaced.
func (p *columnPlanner) number(text *string, missing int64, at ...string) int64 {
	if *text == "" {
		*text = p.t.format(missing)
		return missing
	}
	v, err := p.t.parse(*text)
	if err != nil {
		p.wrong(at, "%s: %v", strings.Join(at, ": "), err)
		return missing
	}
	*text = p.t.format(v)
	return v
}

// step reads a parameter that is a distance of two values.
func (p *columnPlanner) step(text *string, missing int64, at ...string) int64 {
	if *text == "" {
		*text = p.t.formatStep(missing)
		return missing
	}
	v, err := p.t.parseStep(*text)
	if err != nil {
		p.wrong(at, "%s: %v", strings.Join(at, ": "), err)
		return missing
	}
	*text = p.t.formatStep(v)
	return v
}

// few adds a problem if a list is empty or too long.
func (p *columnPlanner) few(n int, at ...string) bool {
	if n < 1 || n > maxValues {
		p.wrong(at, "%s: %d values: 1 to %d belong here", strings.Join(at, ": "), n, maxValues)
		return false
	}
	return true
}

func (c *SpecConstant) plan(p *columnPlanner) columnPlan {
	return p.chosen([]*string{(*string)(c)}, "constant", nil)
}

func (v *SpecValues) plan(p *columnPlanner) (plan columnPlan) {
	all := *v
	if !p.few(len(all), "values") {
		return plan
	}

	const hundred = 100_000_000_000 // percent with 9 digits
	texts, shares, sum := []*string{}, []uint64{}, int64(0)
	for i := range all {
		v := &all[i]
		texts = append(texts, &v.Value)
		if (v.Share == "") != (all[0].Share == "") {
			p.wrong([]string{"values"}, "values: all have shares, or none")
			return plan
		}
		if v.Share == "" {
			continue
		}
		share, err := parseDecimal(v.Share, 9, 12)
		if err == nil && (share < 0 || share > hundred) {
			err = fmt.Errorf("%s%% is not between 0%% and 100%%", quoted(v.Share))
		}
		if err != nil {
			p.wrong([]string{"values"}, "values: share of %s: %v", quoted(v.Value), err)
			return plan
		}
		v.Share = trimmed(formatDecimal(share, 9))
		shares, sum = append(shares, uint64(share)), sum+share
	}

	if len(shares) == 0 {
		return p.chosen(texts, "values", nil)
	}
	if sum != hundred {
		p.wrong([]string{"values"}, "values: the shares add up to %s%%, not to 100%%", trimmed(formatDecimal(sum, 9)))
		return plan
	}
	return p.chosen(texts, "values", func() choice { return newChoice(shares) })
}

// chosen plans a column of listed values. chances makes the table of how frequent they are; nil: equally.
func (p *columnPlanner) chosen(texts []*string, from string, chances func() choice) (plan columnPlan) {
	if chances == nil {
		chances = func() choice { return nil }
	}
	if p.t.Variable() {
		return p.chosenText(texts, from, chances)
	}

	list, seen := make([]int64, len(texts)), map[int64]bool{}
	for i, text := range texts {
		v, err := p.t.parse(*text)
		if err != nil {
			p.wrong([]string{from}, "%s: %v", from, err)
			return plan
		}
		if seen[v] {
			p.wrong([]string{from}, "%s: %s is here twice", from, quoted(*text))
			return plan
		}
		list[i], seen[v] = v, true
		*text = p.t.format(v)
	}
	plan.drawn = func(uint64) generator {
		if len(list) == 1 {
			return constantNumber(list[0])
		}
		return &chosenNumber{list, chances()}
	}
	return plan
}

func (p *columnPlanner) chosenText(texts []*string, from string, chances func() choice) (plan columnPlan) {
	list, seen := make([]string, len(texts)), map[string]bool{}
	plan.column.Plain = true
	for i, text := range texts {
		v, err := p.t.parseBytes(*text)
		if err != nil {
			p.wrong([]string{from}, "%s: %v", from, err)
			return plan
		}
		if list[i] = string(v); seen[list[i]] {
			p.wrong([]string{from}, "%s: %s is here twice", from, quoted(*text))
			return plan
		}
		seen[list[i]] = true
		if p.t.Type == rows.Bytes {
			*text = fmt.Sprintf("%x", v)
		}
		plan.column.Plain = plan.column.Plain && isPlain(v)
		plan.column.MaxBytes = max(plan.column.MaxBytes, len(v))
	}
	longest := plan.column.MaxBytes
	plan.drawn = func(uint64) generator {
		if len(list) == 1 {
			return constantText(list[0])
		}
		return &chosenText{newTexts(list...), chances(), longest}
	}
	return plan
}

// length checks a length in bytes, whose longest value is that of the type if none is given.
func (p *columnPlanner) length(l *SpecLength, generator string) bool {
	if *l == unknownLength && p.t.size > 0 {
		*l = SpecLength{p.t.size, p.t.size}
	}
	switch at := []string{generator, "length"}; {
	case *l == unknownLength:
		p.wrong([]string{generator}, "%s needs length, as length: 20 or length: 20..200", generator)
	case l.Min < 0 || l.Max < l.Min:
		p.wrong(at, "%s: length %d..%d: the second is not less than the first", generator, l.Min, l.Max)
	case l.Max < 1 || l.Max > MaxPayloadBytes:
		p.wrong(at, "%s: length %d: 1 to %d bytes", generator, l.Max, MaxPayloadBytes)
	default:
		return true
	}
	return false
}

func (t *SpecText) plan(p *columnPlanner) (plan columnPlan) {
	if !p.length(&t.SpecLength, "text") {
		return plan
	}
	if t.Alphabet == "" {
		t.Alphabet = "alnum"
	}
	if !slices.Contains(alphabetNames, t.Alphabet) {
		p.wrong([]string{"text", "alphabet"}, "text: %s", unknown("alphabet", t.Alphabet, alphabetNames))
		return plan
	}
	return random(namedAlphabet(t.Alphabet), t.SpecLength)
}

func (l *SpecBytes) plan(p *columnPlanner) (plan columnPlan) {
	if !p.length(&l.SpecLength, "bytes") {
		return plan
	}
	return random(alphabetOf(func(byte) bool { return true }), l.SpecLength)
}

func random(a *alphabet, l SpecLength) columnPlan {
	return columnPlan{
		column: rows.Column{MaxBytes: l.Max, Plain: true},
		drawn:  func(uint64) generator { return &randomText{a, l.Min, l.Max} },
	}
}

func (l *SpecWords) plan(p *columnPlanner) (plan columnPlan) {
	if !p.length(&l.SpecLength, "words") {
		return plan
	}
	if l.Min < 1 {
		p.wrong([]string{"words", "length"}, "words: a piece of text has at least 1 byte")
		return plan
	}
	p.longest = max(p.longest, l.Max)
	return columnPlan{
		column: rows.Column{MaxBytes: l.Max, Plain: true},
		drawn:  func(uint64) generator { return &prose{p.prose(), l.Min, l.Max} },
	}
}
