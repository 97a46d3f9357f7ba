package inspect

import (
	"cmp"
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// limits are what the CHECKs that are understood let a column have.
type limits struct {
	in             []string // nil: whatever it is
	out            []string // what it is not
	least, most    *bound
	minLen, maxLen int    // of a text, in characters; maxLen 0: none
	pattern        string // of which a text has to be; "": whatever it is
	json           bool
	after          string // the column whose times are not later; "": none
}

// bound is one end of a range, as the constant is written.
type bound struct {
	value  string
	beyond bool // the end itself is not in the range
}

// understand reads the condition of a CHECK: IN, BETWEEN, comparisons with constants, LIKE, regular expressions,
// lengths, booleans, the NOT of one of them, which of two times is not later, several with AND, and one with OR … IS
// NULL. Part of what it returns may hold although not all was understood. escapes says that a backslash begins one in a
// literal.
func understand(condition string, escapes bool) (found map[string]limits, all bool) {
	p := &checkParser{found: map[string]limits{}}
	tokens, ok := tokenize(condition, escapes)
	if !ok {
		return nil, false
	}
	if len(tokens) > 0 && tokens[0].is("check") {
		tokens = tokens[1:]
	}
	p.tokens = withoutParentheses(withoutCasts(tokens))
	all = p.conditions() && p.at == len(p.tokens)
	return p.found, all
}

// checkParser reads tokens. What it does not know ends it.
type checkParser struct {
	tokens []token
	at     int
	found  map[string]limits
}

func (p *checkParser) next() token {
	if p.at >= len(p.tokens) {
		return token{kind: signToken}
	}
	p.at++
	return p.tokens[p.at-1]
}

// take goes on if the next token is the one.
func (p *checkParser) take(text string) bool {
	if p.at < len(p.tokens) && p.tokens[p.at].is(text) {
		p.at++
		return true
	}
	return false
}

// conditions reads conditions with AND between them.
func (p *checkParser) conditions() bool {
	for {
		if !p.alternatives() {
			return false
		}
		if !p.take("and") {
			return true
		}
	}
}

// alternatives reads a condition, or several with OR, which are understood if each says what one column is equal to.
func (p *checkParser) alternatives() bool {
	before := p.found
	p.found = map[string]limits{}
	defer func() { p.found = merge(before, p.found) }()
	at := p.at
	if p.isNull() && p.take("or") { // a value that meets the others will do
		return p.alternatives()
	}
	p.at = at
	if !p.condition() {
		return false
	}
	for p.take("or") {
		if p.isNull() {
			continue
		}
		one := p.found
		p.found = map[string]limits{}
		if !p.condition() {
			p.found = nil
			return false
		}
		if p.found = either(one, p.found); p.found == nil {
			return false
		}
	}
	return true
}

// isNull reads that a column is NULL, if that is next.
func (p *checkParser) isNull() bool {
	before := p.at
	open := p.take("(")
	if p.next().isColumn() && p.take("is") && p.take("null") && (!open || p.take(")")) {
		return true
	}
	p.at = before
	return false
}

// either is what one of two conditions allows; nil if that is not understood.
func either(a, b map[string]limits) map[string]limits {
	if len(a) != 1 || len(b) != 1 {
		return nil
	}
	for name, one := range a {
		other, same := b[name]
		if same && one.in != nil && other.in != nil {
			one.in = append(slices.Clone(one.in), other.in...)
			return map[string]limits{name: one}
		}
	}
	return nil
}

// merge adds the limits of more conditions, which all hold.
func merge(a, b map[string]limits) map[string]limits {
	for name, more := range b {
		l, known := a[name]
		if !known {
			a[name] = more
			continue
		}
		if more.in != nil && l.in != nil {
			l.in = slices.DeleteFunc(slices.Clone(l.in), func(v string) bool { return !slices.Contains(more.in, v) })
		} else if more.in != nil {
			l.in = more.in
		}
		l.out = slices.Concat(l.out, more.out)
		l.least, l.most = tighter(l.least, more.least, 1), tighter(l.most, more.most, -1)
		l.minLen, l.json = max(l.minLen, more.minLen), l.json || more.json
		l.pattern, l.after = cmp.Or(l.pattern, more.pattern), cmp.Or(l.after, more.after)
		if l.maxLen == 0 || more.maxLen > 0 && more.maxLen < l.maxLen {
			l.maxLen = more.maxLen
		}
		a[name] = l
	}
	return a
}

// tighter returns the end of a range of two that lies further in the direction. Numbers are compared as such, and
// dates, which begin with the year, as texts.
func tighter(a, b *bound, direction int) *bound {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	order := strings.Compare(b.value, a.value)
	x, isNumber := new(big.Rat).SetString(a.value)
	y, areNumbers := new(big.Rat).SetString(b.value)
	if isNumber && areNumbers {
		order = y.Cmp(x)
	}
	if order == direction || order == 0 && b.beyond {
		return b
	}
	return a
}

// condition reads one condition, or some in parentheses.
func (p *checkParser) condition() bool {
	if p.take("(") {
		return p.conditions() && p.take(")")
	}
	if p.take("not") {
		return p.negated()
	}

	first := p.next()
	switch {
	case first.isConstant():
		sign := p.next()
		column := p.next()
		return column.isColumn() && p.compare(column.text, turned(sign.text), first)
	case !first.isColumn():
		return false
	case first.kind == wordToken && p.take("("):
		return p.function(strings.ToLower(first.text))
	case p.take("in"):
		return p.take("(") && p.list(first.text, ")")
	case p.take("between"):
		least, and, most := p.next(), p.take("and"), p.next()
		return and && p.compare(first.text, ">=", least) && p.compare(first.text, "<=", most)
	case p.take("is"):
		if p.take("not") {
			return p.take("null")
		}
		return p.compare(first.text, "=", p.next())
	case p.at == len(p.tokens), p.tokens[p.at].is("and"), p.tokens[p.at].is("or"), p.tokens[p.at].is(")"): // a boolean
		p.found = merge(p.found, map[string]limits{first.text: {in: []string{"true"}}})
		return true
	}

	sign := p.next()
	switch {
	case sign.is("=") && p.take("any"):
		return p.array(first.text)
	case sign.is("like"), sign.is("~") && p.take("~"):
		return p.matches(first.text, func(text string) (string, bool) { return likePattern(text), true })
	case p.at < len(p.tokens) && p.tokens[p.at].isColumn():
		return p.order(first.text, sign.text, p.next().text)
	case sign.is("~"), sign.is("regexp"), sign.is("rlike"):
		return p.matches(first.text, patternOf)
	}
	return p.compare(first.text, sign.text, p.next())
}

// negated reads a condition of one column of which the opposite holds.
func (p *checkParser) negated() bool {
	before := p.found
	p.found = map[string]limits{}
	understood := p.condition()
	one := p.found
	p.found = before
	if !understood || len(one) != 1 {
		return false
	}
	for name, l := range one {
		opposite, known := l.opposite()
		if !known {
			return false
		}
		p.found = merge(p.found, map[string]limits{name: opposite})
	}
	return true
}

// opposite returns what is left to a column that is not in the limits, if it is one end of a range or a list.
func (l limits) opposite() (limits, bool) {
	ends := 0
	for _, is := range []bool{l.least != nil, l.most != nil, l.in != nil, l.out != nil, l.minLen+l.maxLen > 0, l.json, l.pattern+l.after != ""} {
		if is {
			ends++
		}
	}
	switch {
	case ends != 1:
	case l.least != nil:
		return limits{most: &bound{l.least.value, !l.least.beyond}}, true
	case l.most != nil:
		return limits{least: &bound{l.most.value, !l.most.beyond}}, true
	case l.in != nil:
		return limits{out: l.in}, true
	case l.out != nil:
		return limits{in: l.out}, true
	}
	return limits{}, false
}

// turned is a comparison read from the right.
func turned(sign string) string {
	return strings.NewReplacer("<", ">", ">", "<").Replace(sign)
}

// array reads what follows = ANY, as PostgreSQL shows an IN: (ARRAY['a', 'b']), with or without more parentheses.
func (p *checkParser) array(column string) bool {
	open := 0
	for p.take("(") {
		open++
	}
	if open == 0 || !p.take("array") || !p.take("[") || !p.list(column, "]") {
		return false
	}
	for ; open > 0; open-- {
		if !p.take(")") {
			return false
		}
	}
	return true
}

// list reads constants up to the end of a list.
func (p *checkParser) list(column, end string) bool {
	l := limits{}
	for {
		v := p.next()
		if !v.isConstant() {
			return false
		}
		l.in = append(l.in, v.text)
		if p.take(end) {
			p.found = merge(p.found, map[string]limits{column: l})
			return true
		}
		if !p.take(",") {
			return false
		}
	}
}

// function reads a limit of a length.
func (p *checkParser) function(name string) bool {
	if name == "json_valid" {
		column := p.next()
		p.found = merge(p.found, map[string]limits{column.text: {json: true}})
		return column.isColumn() && p.take(")")
	}
	if name == "regexp_like" { // as MySQL shows REGEXP
		column := p.next()
		return column.isColumn() && p.take(",") && p.matches(column.text, patternOf) && p.take(")")
	}
	if !slices.Contains([]string{"length", "char_length", "character_length", "octet_length"}, name) {
		return false
	}
	column := p.next()
	closed := p.take(")")
	if !column.isColumn() || !closed {
		return false
	}
	if p.take("between") {
		least, isLeast := p.count()
		and := p.take("and")
		most, isMost := p.count()
		p.found = merge(p.found, map[string]limits{column.text: {minLen: least, maxLen: most}})
		return isLeast && and && isMost
	}
	sign := p.next()
	n, is := p.count()
	if !is {
		return false
	}

	l := limits{}
	switch sign.text {
	case "<=":
		l.maxLen = n
	case "<":
		l.maxLen = n - 1
	case ">=":
		l.minLen = n
	case ">":
		l.minLen = n + 1
	case "=":
		l.minLen, l.maxLen = n, n
	default:
		return false
	}
	p.found = merge(p.found, map[string]limits{column.text: l})
	return true
}

// count reads a whole number.
func (p *checkParser) count() (n int, is bool) {
	t := p.next()
	n, err := strconv.Atoi(t.text)
	return n, t.kind == numberToken && err == nil
}

// compare adds a comparison with a constant.
func (p *checkParser) compare(column, sign string, with token) bool {
	if !with.isConstant() {
		return false
	}
	if with.kind == wordToken {
		with.text = strings.ToLower(with.text)
	}
	l := limits{}
	switch sign {
	case "=":
		l.in = []string{with.text}
	case "<", "<=":
		l.most = &bound{with.text, sign == "<"}
	case ">", ">=":
		l.least = &bound{with.text, sign == ">"}
	case "<>", "!=":
		if with.text == "" {
			l.minLen = 1
			break
		}
		l.out = []string{with.text}
	default:
		return false
	}
	p.found = merge(p.found, map[string]limits{column: l})
	return true
}
