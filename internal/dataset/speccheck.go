package dataset

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// columnPlanner checks one column, or a field of a document, and writes its values in their one notation.
type columnPlanner struct {
	*specPlanner
	c      *SpecColumn
	t      specType
	at     []string // the place of the column in the file
	name   string   // for messages
	inside bool     // a document
	depth  int      // of documents
	failed bool     // for a reason that is known
	begun  int      // how many problems there were before it was planned
}

// hasProblem reports whether the column has one.
func (p *columnPlanner) hasProblem() bool { return p.failed || len(p.problems) > p.begun }

// wrong adds a problem of the column, at a parameter of its generator if there is one.
func (p *columnPlanner) wrong(at []string, format string, args ...any) {
	p.add(path(append(slices.Clip(p.at), at...)...), "%s: %s", p.name, fmt.Sprintf(format, args...))
}

// refuse is wrong of a column that has no plan then.
func (p *columnPlanner) refuse(at []string, format string, args ...any) columnPlan {
	p.wrong(at, format, args...)
	return columnPlan{}
}

func (p *columnPlanner) plan() (plan columnPlan) {
	row := generatorOf(p.c.Generator)
	if row == nil {
		return p.refuse(nil, "it has no generator")
	}
	t, err := parseType(p.c.Type)
	if err != nil {
		return p.refuse([]string{"type"}, "%v", err)
	}
	p.t = t
	if row.types != nil && !p.need(row.name, row.types...) {
		return plan
	}
	if of, is := p.c.Generator.(exact); is && t.isFloat() {
		p.t.binary = binaryOf(append(slices.Clip(of.exact()), p.c.Common.exact()...)...)
	}

	p.begun = len(p.problems)
	plan = p.c.Generator.plan(p)
	if p.hasProblem() {
		return columnPlan{}
	}
	plan.column.Name, plan.column.Type = p.c.Name, p.t.Type
	plan.column.Digits, plan.column.Scale = p.t.digits, p.t.scale
	plan.column.Derived, plan.column.SQL = plan.derived != nil, p.c.SQL
	p.modify(&plan)
	if p.t.IsInteger() && !plan.isBeyond(p.t) {
		plan.column.Least, plan.column.Most = plan.bounds()
	}
	if p.t.Variable() && !p.t.IsList() {
		p.declare(&plan.column)
	}
	if p.hasProblem() {
		return columnPlan{}
	}
	p.c.Type = p.t.String()
	return plan
}

// modify applies what is beside the generator.
func (p *columnPlanner) modify(plan *columnPlan) {
	if p.c.SQL != "" && p.t.Type != rows.Text && p.t.Type != rows.JSON {
		p.wrong([]string{"sql"}, "sql is for text and json, which the server parses; leave it out, or make the type text")
	}
	if p.c.SQL != "" && !isSQLType(p.c.SQL) {
		p.wrong([]string{"sql"}, "sql: %s is no type, as inet, tsvector or numeric(20, 4)", quoted(p.c.SQL))
	}
	if p.c.Distinct != 0 {
		p.distinct(plan, p.c.Distinct)
	}
	if p.c.Common != nil {
		p.common(plan)
	}
	if draw := plan.drawn; p.t.isFloat() && draw != nil {
		binary := p.t.binary
		plan.drawn = func(start uint64) generator { return floats{draw(start), binary} }
	}
	if p.c.Nulls == "" {
		return
	}
	if p.c.takesNull() && !p.inside {
		p.c.Nulls, plan.column.TakesNull = noNulls, true
		return
	}

	if plan.derived != nil {
		p.wrong([]string{"nulls"}, "a derived column has one width and no NULL; draw it, or leave nulls out")
		return
	}
	draw, chance := plan.drawn, p.chance(&p.c.Nulls, "nulls")
	if ref, is := p.c.Generator.(*SpecRef); is {
		chance.first = ref.firstNulls()
	}
	plan.column.Nullable = true
	if plan.follows != nil {
		plan.follows = &nullableDependent{plan.follows, chance}
		return
	}
	plan.drawn = func(start uint64) generator { return &nullable{draw(start), chance} }
}

// endAt notes the last row that a derived column has a value for.
func (p *columnPlanner) endAt(row int64) {
	if row < p.limit {
		p.limit, p.limiting = row, p.c.Name
	}
}

// isSQLType reports whether a text is the name of a type, with numbers and what belongs to a type alone: no constraint,
// default or other word of a column's definition, which would change or hide rows.
func isSQLType(text string) bool { return len(text) <= maxName && sqlType.MatchString(text) }

// setLabel is a literal without what ends it on one server or another.
const setLabel = `'(?:[^'\\[:cntrl:]]|'')*'`

// sqlType is one name, or one of the types of several words; then numbers, and words and brackets that follow them.
var sqlType = regexp.MustCompile(`(?i)^(double precision|(character|char|bit) varying|national (character|char|varchar)( varying)?|` +
	`long (varchar|varbinary|raw)|interval (year|month|day|hour|minute|second)( to (month|hour|minute|second))?|[a-z_][a-z0-9_]*(\.[a-z_][a-z0-9_]*)?|` +
	`set ?\(` + setLabel + `(, ?` + setLabel + `)*\))` +
	`( ?\([0-9]{1,6}(, ?[0-9]{1,6})*\))?( with(out)?( local)? time zone| unsigned| zerofill| unsigned zerofill)?(\[\])*$`)

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
	p.wrong([]string{"type"}, "generator %s is for %s, not for %s", generator, strings.Join(shapes(types...), ", "), quoted(p.c.Type))
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
	texts, shares, sum, ok := p.shares(*v, "values")
	switch {
	case !ok:
		return plan
	case len(shares) == 0:
		return p.chosen(texts, "values", nil)
	case sum != hundredPercent:
		return p.refuse([]string{"values"}, "values: the shares add up to %s%%, not to 100%%", trimmed(formatDecimal(sum, 9)))
	}
	return p.chosen(texts, "values", func() choice { return newChoice(shares) })
}

// shares reads values and their shares, of which there are as many or none, and their sum. at is what has them.
func (p *columnPlanner) shares(all []SpecValue, at string) (texts []*string, shares []uint64, sum int64, ok bool) {
	if !p.few(len(all), at) {
		return nil, nil, 0, false
	}

	for i := range all {
		v := &all[i]
		texts = append(texts, &v.Value)
		if (v.Share == "") != (all[0].Share == "") {
			p.wrong([]string{at}, "%s: all have shares, or none", at)
			return nil, nil, 0, false
		}
		if v.Share == "" {
			continue
		}
		share, err := parseDecimal(v.Share, 9, 12)
		if err == nil && (share < 0 || share > hundredPercent) {
			err = fmt.Errorf("%s%% is not between 0%% and 100%%", quoted(v.Share))
		}
		if err != nil {
			p.wrong([]string{at}, "%s: share of %s: %v", at, quoted(v.Value), err)
			return nil, nil, 0, false
		}
		v.Share = trimmed(formatDecimal(share, 9))
		shares, sum = append(shares, uint64(share)), sum+share
	}
	return texts, shares, sum, true
}

// chosen plans a column of listed values. chances makes the table of how frequent they are; nil: equally.
func (p *columnPlanner) chosen(texts []*string, from string, chances func() choice) (plan columnPlan) {
	if chances == nil {
		chances = func() choice { return nil }
	}
	numbers, values := make([]int64, len(texts)), make([]string, len(texts))
	plan.column.Plain, plan.column.ASCII = p.t.Variable(), p.t.Variable()
	for i, text := range texts {
		number, value, err := p.t.value(*text)
		if err != nil {
			return p.refuse([]string{from}, "%s: %v", from, err)
		}
		numbers[i], values[i] = number, string(value)
		if p.t.Variable() {
			hold(&plan.column, value)
		}
	}
	if i := firstTwice(numbers, values); i >= 0 {
		return p.refuse([]string{from}, "%s: %s is here twice", from, quoted(*texts[i]))
	}
	for i, text := range texts {
		*text = p.t.written(*text, numbers[i], []byte(values[i]))
	}

	longest := plan.column.MaxBytes
	switch {
	case p.t.Type == rows.Wide:
		plan.drawn = func(uint64) generator { return &chosenWide{values, chances()} }
	case p.t.Variable() && len(values) == 1:
		plan.drawn = func(uint64) generator { return constantText(values[0]) }
	case p.t.Variable():
		plan.drawn = func(uint64) generator { return &chosenText{newTexts(values...), chances(), longest} }
	case len(numbers) == 1:
		plan.drawn = func(uint64) generator { return constantNumber(numbers[0]) }
	default:
		plan.drawn = func(uint64) generator { return &chosenNumber{numbers, chances()} }
	}
	if p.t.Type == rows.Enum {
		plan.column.Labels = values
	}
	plan.least, plan.most = slices.Min(numbers), slices.Max(numbers)
	return plan
}

// firstTwice returns the first of some values, each a number or bytes, that is equal to one before it; −1 if none is.
func firstTwice(numbers []int64, values []string) int {
	type value struct {
		number int64
		bytes  string
	}
	seen := map[value]bool{}
	for i := range numbers {
		one := value{numbers[i], values[i]}
		if seen[one] {
			return i
		}
		seen[one] = true
	}
	return -1
}

// hold notes that a text is among the values of a column, of which Plain and ASCII are set before the first.
func hold(c *rows.Column, value []byte) {
	c.Plain = c.Plain && isPlain(value)
	c.ASCII = c.ASCII && isASCII(value)
	c.MaxBytes = max(c.MaxBytes, len(value))
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
	symbols := namedAlphabets[t.Alphabet]
	if symbols == nil {
		names := slices.Sorted(maps.Keys(namedAlphabets))
		return p.refuse([]string{"text", "alphabet"}, "text: %s", unknown("alphabet", t.Alphabet, names))
	}
	plan = random(alphabetOf(symbols), t.SpecLength)
	plan.column.ASCII = true
	return plan
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
		return p.refuse([]string{"words", "length"}, "words: a piece of text has at least 1 byte")
	}
	return p.pieces([]part{{0, uint64(l.Max - l.Min + 1)}}, l.Min, l.Max)
}

// pieces plans pieces of prose whose lengths are in some parts.
func (p *columnPlanner) pieces(parts []part, shortest, longest int) columnPlan {
	p.longest = max(p.longest, longest)
	return columnPlan{
		column: rows.Column{MaxBytes: longest, Plain: true, ASCII: true},
		drawn:  func(uint64) generator { return &prose{p.prose(), parts, shortest, longest} },
	}
}
