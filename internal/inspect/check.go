package inspect

import (
	"cmp"
	"maps"
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

// found are limits of columns, by name.
type found = map[string]limits

// understand reads the condition of a CHECK: IN, BETWEEN, comparisons with constants, LIKE, regular expressions,
// lengths, booleans, the NOT of one of them, which of two times is not later, several with AND, and one with OR … IS
// NULL. Part of what it returns may hold although not all was understood. escapes says that a backslash begins one in a
// literal.
func understand(condition string, escapes bool) (some found, all bool) {
	tokens, ok := tokenize(condition, escapes)
	if !ok {
		return nil, false
	}
	if len(tokens) > 0 && tokens[0].is("check") {
		tokens = tokens[1:]
	}
	p := &checkParser{tokens: withoutParentheses(withoutCasts(tokens))}
	some, all = p.conditions()
	return some, all && p.at == len(p.tokens)
}

// checkParser reads tokens. What it does not know ends it: its methods return false then, and what they have read that
// holds.
type checkParser struct {
	tokens []token
	at     int
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
func (p *checkParser) conditions() (all found, ok bool) {
	for {
		more, ok := p.alternatives()
		all = merge(all, more)
		if !ok || !p.take("and") {
			return all, ok
		}
	}
}

// alternatives reads a condition, or several with OR, which are understood if each says what one column is equal to.
func (p *checkParser) alternatives() (one found, ok bool) {
	at := p.at
	if p.isNull() && p.take("or") { // a value that meets the others will do
		return p.alternatives()
	}
	p.at = at

	one, ok = p.condition()
	for ok && p.take("or") {
		if p.isNull() {
			continue
		}
		other, understood := p.condition()
		if !understood {
			return nil, false
		}
		one = either(one, other)
		ok = one != nil
	}
	return one, ok
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
func either(a, b found) found {
	if len(a) != 1 || len(b) != 1 {
		return nil
	}
	for name, one := range a {
		other, same := b[name]
		if same && one.in != nil && other.in != nil {
			one.in = append(slices.Clone(one.in), other.in...)
			return found{name: one}
		}
	}
	return nil
}

// merge returns the limits of conditions that all hold.
func merge(a, b found) found {
	all := found{}
	maps.Copy(all, a)
	for name, more := range b {
		l, known := all[name]
		if known {
			more = l.and(more)
		}
		all[name] = more
	}
	return all
}

// and returns what both limits allow.
func (l limits) and(more limits) limits {
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
	return l
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
func (p *checkParser) condition() (one found, ok bool) {
	if p.take("(") {
		one, ok = p.conditions()
		return one, ok && p.take(")")
	}
	if p.take("not") {
		return p.negated()
	}

	first := p.next()
	switch {
	case first.isConstant():
		sign := p.next()
		column := p.next()
		if !column.isColumn() {
			return nil, false
		}
		return compared(column.text, turned(sign.text), first)
	case !first.isColumn():
		return nil, false
	case first.kind == wordToken && p.take("("):
		return p.function(strings.ToLower(first.text))
	case p.take("in"):
		if !p.take("(") {
			return nil, false
		}
		return p.list(first.text, ")")
	case p.take("between"):
		least, and, most := p.next(), p.take("and"), p.next()
		if one, ok = compared(first.text, ">=", least); !ok || !and {
			return nil, false
		}
		to, ok := compared(first.text, "<=", most)
		return merge(one, to), ok
	case p.take("is"):
		if p.take("not") {
			return nil, p.take("null")
		}
		if p.take("json") {
			return found{first.text: {json: true}}, true
		}
		return compared(first.text, "=", p.next())
	case p.at == len(p.tokens), p.tokens[p.at].is("and"), p.tokens[p.at].is("or"), p.tokens[p.at].is(")"): // a boolean
		return found{first.text: {in: []string{"true"}}}, true
	}

	sign := p.next()
	switch {
	case sign.is("=") && p.take("any"):
		return p.array(first.text)
	case sign.is("like"), sign.is("~") && p.take("~"):
		return p.matches(first.text, func(text string) (string, bool) { return likePattern(text), true })
	case p.at < len(p.tokens) && p.tokens[p.at].isColumn():
		return order(first.text, sign.text, p.next().text)
	case sign.is("~"), sign.is("regexp"), sign.is("rlike"):
		return p.matches(first.text, patternOf)
	}
	return compared(first.text, sign.text, p.next())
}

// negated reads a condition of one column of which the opposite holds.
func (p *checkParser) negated() (found, bool) {
	one, ok := p.condition()
	if !ok || len(one) != 1 {
		return nil, false
	}
	for name, l := range one {
		if opposite, known := l.opposite(); known {
			return found{name: opposite}, true
		}
	}
	return nil, false
}

// opposite returns what is left to a column that is not in the limits, if it is one end of a range or a list.
func (l limits) opposite() (limits, bool) {
	ends := 0
	for _, is := range []bool{
		l.least != nil, l.most != nil, l.in != nil, l.out != nil, l.minLen+l.maxLen > 0, l.json, l.pattern+l.after != "",
	} {
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
func (p *checkParser) array(column string) (one found, ok bool) {
	open := 0
	for p.take("(") {
		open++
	}
	if open == 0 || !p.take("array") || !p.take("[") {
		return nil, false
	}
	one, ok = p.list(column, "]")
	for ; ok && open > 0; open-- {
		ok = p.take(")")
	}
	return one, ok
}

// list reads constants up to the end of a list.
func (p *checkParser) list(column, end string) (found, bool) {
	var all []string
	for {
		v := p.next()
		if !v.isConstant() {
			return nil, false
		}
		all = append(all, v.text)
		if p.take(end) {
			return found{column: {in: all}}, true
		}
		if !p.take(",") {
			return nil, false
		}
	}
}

// function reads a limit of a length.
func (p *checkParser) function(name string) (found, bool) {
	column := p.next()
	if name == "regexp_like" && column.isColumn() && p.take(",") { // as MySQL shows REGEXP
		one, ok := p.matches(column.text, patternOf)
		return one, ok && p.take(")")
	}
	if !column.isColumn() || !p.take(")") {
		return nil, false
	}
	switch name {
	case "json_valid":
		return found{column.text: {json: true}}, true
	case "length", "char_length", "character_length", "octet_length":
	default:
		return nil, false
	}
	if p.take("between") {
		least, isLeast := p.count()
		and := p.take("and")
		most, isMost := p.count()
		return found{column.text: {minLen: least, maxLen: most}}, isLeast && and && isMost
	}
	sign := p.next()
	n, is := p.count()
	if !is {
		return nil, false
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
		return nil, false
	}
	return found{column.text: l}, true
}

// count reads a whole number.
func (p *checkParser) count() (n int, is bool) {
	t := p.next()
	n, err := strconv.Atoi(t.text)
	return n, t.kind == numberToken && err == nil
}

// compared is a comparison with a constant.
func compared(column, sign string, with token) (found, bool) {
	if !with.isConstant() {
		return nil, false
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
		return nil, false
	}
	return found{column: l}, true
}
