package dataset

import (
	"fmt"
	"math/big"
	"math/bits"
	"slices"
	"strconv"
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
	p.add(path(append([]string{"columns", p.c.Name}, at...)...), "column %s: %s", quoted(p.c.Name), fmt.Sprintf(format, args...))
}

// generator returns the name of the column's only generator, "" if there is none or there are several.
func (p *columnPlanner) generator() (name string) {
	n := 0
	for i, is := range []bool{
		p.c.Sequence != nil, p.c.Uniform != nil, p.c.Zipf != nil, p.c.Normal != nil, p.c.Values != nil, p.c.Text != nil,
		p.c.Words != nil, p.c.Bytes != nil, p.c.Constant != nil,
	} {
		if is {
			n++
			name = generatorNames[i]
		}
	}
	if n != 1 {
		return ""
	}
	return name
}

func (p *columnPlanner) plan() (plan columnPlan) {
	name := p.generator()
	if name == "" {
		p.wrong(nil, "it has no generator, or several")
		return plan
	}
	t, err := parseType(p.c.Type)
	if err != nil {
		p.wrong([]string{"type"}, "%v", err)
		return plan
	}
	p.t = t

	before := len(p.problems)
	switch name {
	case "sequence":
		plan = p.sequence(p.c.Sequence)
	case "uniform":
		plan = p.uniform(p.c.Uniform)
	case "zipf":
		plan = p.zipf(p.c.Zipf)
	case "normal":
		plan = p.normal(p.c.Normal)
	case "values":
		plan = p.values()
	case "constant":
		plan = p.chosen([]*string{p.c.Constant}, "constant", nil)
	case "text":
		plan = p.text(p.c.Text)
	case "words":
		plan = p.words(p.c.Words)
	case "bytes":
		plan = p.bytes(p.c.Bytes)
	}
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
	for _, name := range typeNames {
		if t, err := parseType(strings.NewReplacer("(n)", "", "(p,s)", "(2,1)").Replace(name)); err == nil && slices.Contains(types, t.Type) {
			names = append(names, name)
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

// spread reads a range of values. count is how many it has, 0 for 2^64.
func (p *columnPlanner) spread(r *SpecRange, generator string) (least int64, step, count uint64) {
	if r.Min == "" || r.Max == "" {
		p.wrong([]string{generator}, "%s needs min and max", generator)
		return 0, 1, 1
	}

	before := len(p.problems)
	least = p.number(&r.Min, 0, generator, "min")
	most := p.number(&r.Max, 0, generator, "max")
	step = uint64(p.step(&r.Step, 1, generator, "step"))
	if len(p.problems) > before {
		return 0, 1, 1
	}
	if most < least {
		p.wrong([]string{generator, "max"}, "%s: max %s is less than min %s", generator, r.Max, r.Min)
		return 0, 1, 1
	}
	return least, step, (uint64(most)-uint64(least))/step + 1
}

func (p *columnPlanner) uniform(r *SpecRange) (plan columnPlan) {
	if !p.need("uniform", rows.Int64, rows.Date, rows.Timestamp, rows.Decimal) {
		return plan
	}
	least, step, count := p.spread(r, "uniform")
	plan.drawn = func(uint64) generator { return &uniformNumber{least, step, count} }
	return plan
}

const million = 1_000_000

func (p *columnPlanner) zipf(z *SpecZipf) (plan columnPlan) {
	s, err := parseDecimal(z.S, 6, 8)
	switch {
	case z.S == "":
		p.wrong([]string{"zipf"}, "zipf needs s, as s: 1.07")
	case err != nil:
		p.wrong([]string{"zipf", "s"}, "zipf: s: %v", err)
	case s < 1 || s > 20*million:
		p.wrong([]string{"zipf", "s"}, "zipf: s is more than 0 and at most 20")
	default:
		z.S = trimmed(formatDecimal(s, 6))
	}
	if (z.Range == nil) == (z.Values == nil) {
		p.wrong([]string{"zipf"}, "zipf needs min and max, or values")
	}
	if z.Values != nil && z.Scatter {
		p.wrong([]string{"zipf", "scatter"}, "zipf: values are not scattered: write them in their order")
	}
	if s < 1 || s > 20*million || (z.Range == nil) == (z.Values == nil) {
		return plan
	}

	if z.Values != nil {
		texts := make([]*string, len(z.Values))
		for i := range z.Values {
			texts[i] = &z.Values[i]
		}
		if p.few(len(texts), "zipf", "values") {
			return p.chosen(texts, "zipf", func() choice {
				_, logs := zipfParts(uint64(len(texts)), uint64(s))
				return newChoice(weights(logs))
			})
		}
		return plan
	}

	if !p.need("zipf", rows.Int64, rows.Date, rows.Timestamp, rows.Decimal) {
		return plan
	}
	least, step, count := p.spread(z.Range, "zipf")
	if count == 0 || count > 1<<62 {
		p.wrong([]string{"zipf"}, "zipf: more than 2^62 values")
		return plan
	}
	scattered := z.Scatter
	plan.drawn = func(start uint64) generator {
		parts, logs := zipfParts(count, uint64(s))
		var order *scatter
		if scattered {
			order = newScatter(count, start)
		}
		return newPartNumber(least, step, parts, logs, order)
	}
	return plan
}

// newPartNumber returns a list instead of parts of one value each, which takes one word a row instead of two.
func newPartNumber(least int64, step uint64, parts []part, logs []int64, order *scatter) generator {
	chosen := newChoice(weights(logs))
	if slices.ContainsFunc(parts, func(p part) bool { return p.size > 1 }) {
		return &partNumber{least, step, chosen, parts, order}
	}

	list := make([]int64, len(parts))
	for i, p := range parts {
		k := p.first
		if order != nil {
			k = order.of(k)
		}
		list[i] = int64(uint64(least) + k*step)
	}
	return &chosenNumber{list, chosen}
}

// normalReach is how many deviations from the mean the values go, unless the spec says otherwise.
const normalReach = 6

func (p *columnPlanner) normal(n *SpecNormal) (plan columnPlan) {
	if !p.need("normal", rows.Int64, rows.Date, rows.Timestamp, rows.Decimal) {
		return plan
	}
	if n.Mean == "" || n.Stddev == "" {
		p.wrong([]string{"normal"}, "normal needs mean and stddev")
		return plan
	}

	before := len(p.problems)
	mean := p.fine(&n.Mean, false, "normal", "mean")
	deviation := p.fine(&n.Stddev, true, "normal", "stddev")
	if len(p.problems) > before {
		return plan
	}
	if deviation.Sign() <= 0 {
		p.wrong([]string{"normal", "stddev"}, "normal: stddev is more than 0")
		return plan
	}

	// The ends that are missing, in whole units within the type.
	least, most := p.t.bounds()
	reach := new(big.Int).Mul(deviation, big.NewInt(normalReach))
	end := func(v *big.Int) string {
		v = new(big.Int).Div(v, big.NewInt(million))
		if v.Cmp(big.NewInt(least)) < 0 {
			return p.t.format(least)
		}
		if v.Cmp(big.NewInt(most)) > 0 {
			return p.t.format(most)
		}
		return p.t.format(v.Int64())
	}
	if n.Range.Min == "" {
		n.Range.Min = end(new(big.Int).Sub(mean, reach))
	}
	if n.Range.Max == "" {
		n.Range.Max = end(new(big.Int).Add(mean, reach))
	}
	from, step, count := p.spread(&n.Range, "normal")
	if len(p.problems) > before {
		return plan
	}
	to, _ := p.t.parse(n.Range.Max) // spread has read it
	if mean.Cmp(scaled(from)) < 0 || mean.Cmp(scaled(to)) > 0 {
		p.wrong([]string{"normal", "mean"}, "normal: mean %s is not between min %s and max %s", n.Mean, n.Range.Min, n.Range.Max)
		return plan
	}
	if count == 0 || count > 1<<62 {
		p.wrong([]string{"normal"}, "normal: more than 2^62 values")
		return plan
	}
	plan.drawn = func(uint64) generator {
		parts, logs := normalParts(big.NewInt(from), step, count, mean, deviation)
		return newPartNumber(from, step, parts, logs, nil)
	}
	return plan
}

// scaled returns a value in millionths.
func scaled(v int64) *big.Int { return new(big.Int).Mul(big.NewInt(v), big.NewInt(million)) }

// fine reads a value of the column's type in millionths of its unit: numbers may have up to 6 digits more after the point.
func (p *columnPlanner) fine(text *string, distance bool, at ...string) *big.Int {
	if p.t.Type == rows.Date || p.t.Type == rows.Timestamp {
		if distance {
			return scaled(p.step(text, 1, at...))
		}
		return scaled(p.number(text, 0, at...))
	}

	whole, fraction, _ := strings.Cut(*text, ".")
	extra := ""
	if len(fraction) > p.t.scale {
		fraction, extra = fraction[:p.t.scale], fraction[p.t.scale:]
	}
	if len(extra) > 6 || strings.Trim(extra, "0123456789") != "" {
		p.wrong(at, "%s: %s is no number with up to %d digits after the point", strings.Join(at, ": "), quoted(*text), p.t.scale+6)
		return new(big.Int)
	}
	unit := whole
	if fraction != "" {
		unit += "." + fraction
	}
	v := p.number(&unit, 0, at...)
	rest, _ := strconv.ParseInt("0"+extra+strings.Repeat("0", 6-len(extra)), 10, 64)
	result := scaled(v)
	if strings.HasPrefix(whole, "-") {
		result.Sub(result, big.NewInt(rest))
	} else {
		result.Add(result, big.NewInt(rest))
	}

	*text = unit
	if extra = strings.TrimRight(extra, "0"); extra != "" {
		if p.t.scale == 0 {
			*text += "."
		}
		if v == 0 && strings.HasPrefix(whole, "-") {
			*text = "-" + *text
		}
		*text += extra
	}
	return result
}

// few adds a problem if a list is empty or too long.
func (p *columnPlanner) few(n int, at ...string) bool {
	if n < 1 || n > maxValues {
		p.wrong(at, "%s: %d values: 1 to %d belong here", strings.Join(at, ": "), n, maxValues)
		return false
	}
	return true
}

func (p *columnPlanner) values() (plan columnPlan) {
	if !p.few(len(p.c.Values), "values") {
		return plan
	}

	const hundred = 100_000_000_000 // percent with 9 digits
	texts, shares, sum := []*string{}, []uint64{}, int64(0)
	for i := range p.c.Values {
		v := &p.c.Values[i]
		texts = append(texts, &v.Value)
		if (v.Share == "") != (p.c.Values[0].Share == "") {
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
	if *l == (SpecLength{-1, -1}) && p.t.size > 0 {
		*l = SpecLength{p.t.size, p.t.size}
	}
	switch at := []string{generator, "length"}; {
	case *l == (SpecLength{-1, -1}):
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

func (p *columnPlanner) text(t *SpecText) (plan columnPlan) {
	if !p.need("text", rows.Text) || !p.length(&t.SpecLength, "text") {
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

func (p *columnPlanner) bytes(l *SpecLength) (plan columnPlan) {
	if !p.need("bytes", rows.Bytes) || !p.length(l, "bytes") {
		return plan
	}
	return random(alphabetOf(func(byte) bool { return true }), *l)
}

func random(a *alphabet, l SpecLength) columnPlan {
	return columnPlan{
		column: rows.Column{MaxBytes: l.Max, Plain: true},
		drawn:  func(uint64) generator { return &randomText{a, l.Min, l.Max} },
	}
}

func (p *columnPlanner) words(l *SpecLength) (plan columnPlan) {
	if !p.need("words", rows.Text) || !p.length(l, "words") {
		return plan
	}
	if l.Min < 1 {
		p.wrong([]string{"words", "length"}, "words: a piece of text has at least 1 byte")
		return plan
	}
	return columnPlan{
		column: rows.Column{MaxBytes: l.Max, Plain: true},
		drawn:  func(uint64) generator { return newProse(l.Min, l.Max) },
	}
}

func (p *columnPlanner) sequence(q *SpecSequence) (plan columnPlan) {
	if !p.need("sequence", rows.Int64, rows.Text, rows.Date, rows.Timestamp) {
		return plan
	}
	s := &sequence{every: q.Every, cycle: q.Cycle}
	if q.Every < 1 || q.Cycle < 0 {
		p.wrong([]string{"sequence"}, "sequence: every is 1 or more, and cycle too if there is one")
		return plan
	}

	before := len(p.problems)
	_, most := p.t.bounds()
	number := *p // whose numbers are written as bigints, in a text
	if p.t.Type == rows.Text {
		number.t = specType{Type: rows.Int64, name: "bigint"}
		if !p.format(s, q.Format) {
			return plan
		}
		if s.digits <= 18 {
			most = tenTo(s.digits) - 1
		}
		plan.column.MaxBytes, plan.column.Plain = len(s.before)+s.digits+len(s.after), true
	} else if q.Format != "" {
		p.wrong([]string{"sequence", "format"}, "sequence: format is for texts")
	}
	if q.Start == "" && p.t.Type != rows.Int64 && p.t.Type != rows.Text {
		p.wrong([]string{"sequence"}, "sequence needs start, as start: 2026-01-01")
		return plan
	}
	s.start = number.number(&q.Start, 1, "sequence", "start")
	s.step = number.step(&q.Step, 1, "sequence", "step")
	if len(p.problems) > before {
		return plan
	}

	at := []string{"sequence", "start"}
	if s.start < 0 && (p.t.Type == rows.Int64 || p.t.Type == rows.Text) {
		p.wrong(at, "a sequence starts at 0 or above, not at %s", q.Start)
		return plan
	}
	if s.start > most {
		p.wrong(at, "sequence: start %s has more than the %d digits of its format", q.Start, s.digits)
		return plan
	}
	if s.cycle > 0 {
		high, low := bits.Mul64(uint64(s.cycle-1), uint64(s.step))
		if high > 0 || low > uint64(most)-uint64(s.start) {
			p.wrong([]string{"sequence", "cycle"}, "sequence: the last of %d numbers from %s in steps of %s is too large",
				s.cycle, q.Start, q.Step)
			return plan
		}
		last := s.start + (s.cycle-1)*s.step
		if p.t.Type == rows.Int64 && digitsOf(last) != digitsOf(s.start) {
			p.wrong(at, "sequence with cycle: %d and %d differ in their digits, which is not there yet: start at %d",
				s.start, last, tenTo(digitsOf(last)-1))
			return plan
		}
	}
	p.limit = min(p.limit, s.largestRow(most))
	plan.derived = s
	return plan
}

func digitsOf(v int64) int { return len(strconv.FormatInt(v, 10)) }

// maxDigits bounds the digits of a text sequence: one more than those of the largest int64.
const maxDigits = 20

// format splits the format of a text sequence, as TK-{:011}.
func (p *columnPlanner) format(s *sequence, format string) bool {
	at := []string{"sequence", "format"}
	if format == "" {
		p.wrong([]string{"sequence"}, "sequence of a text needs format, as format: \"TK-{:011}\" for TK- and 11 digits")
		return false
	}
	before, rest, open := strings.Cut(format, "{:0")
	digits, after, closed := strings.Cut(rest, "}")
	n, err := strconv.Atoi(digits)
	switch {
	case !open || !closed || err != nil || n < 1 || n > maxDigits || digits[0] == '0' || digits[0] == '+' ||
		strings.ContainsAny(before+after, "{}"):
		p.wrong(at, "sequence: format %s: write the digits as {:0N}, N from 1 to %d, once, as in \"TK-{:011}\"", quoted(format), maxDigits)
		return false
	case !isPlain([]byte(before + after)):
		p.wrong(at, "sequence: format %s: around the digits there is no quote, comma, backslash or control character", quoted(format))
		return false
	}
	s.before, s.after, s.digits = before, after, n
	return true
}
