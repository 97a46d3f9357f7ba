package dataset

import (
	"fmt"
	"math"
	"math/bits"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecPattern is a text that matches a regular expression as a whole. The members of a class are equally frequent, as
// are the numbers of repetitions and the alternatives, once what they begin with in common is taken out of them:
// regexp/syntax does that. Golden rows tell if another version of it would do it in another way.
type SpecPattern string

func (s *SpecPattern) plan(p *columnPlanner) (plan columnPlan) {
	at := []string{"pattern"}
	whole, err := parsePattern(string(*s))
	if err != nil {
		return p.refuse(at, "pattern: %v", err)
	}
	if p.t.Type == rows.Char && whole.endsInBlank {
		return p.refuse(at, "pattern: a value may end in a blank: servers cut them off from a char(n)")
	}
	if uint64(max(p.c.Distinct, 0)) > whole.ways {
		return p.refuse([]string{"distinct"}, "distinct: %d: the pattern has %d values", p.c.Distinct, whole.ways)
	}

	return columnPlan{
		column: rows.Column{MaxBytes: whole.longest, Plain: whole.plain, ASCII: whole.ascii},
		drawn: func(uint64) generator {
			return &patternText{whole.draw, whole.longest, wordsOf(whole.bits)}
		},
	}
}

// patternPart is a part of a pattern, and what is known of all its values.
type patternPart struct {
	draw         drawer
	longest      int    // bytes
	bits         int    // of random numbers that one value takes at most
	ways         uint64 // how many different values there are, at most: a value that can be made in two ways counts twice
	plain, ascii bool
	endsInBlank  bool // some do
	isEmpty      bool // some are
}

// drawer appends a value, without an allocation where dst has room for the longest.
type drawer interface {
	appendTo(dst []byte, w *words) []byte
}

// words are the random words of one row. Choices among a few share a word: each takes the upper bits of what the last
// one left.
type words struct {
	state uint64
	rest  uint64
	used  int // bits of the current word
}

// A word serves choices of up to wordBits in all, so that what it leaves still decides fairly, each of up to
// choiceBits.
const wordBits, choiceBits = 32, 16

// below returns a number below n.
func (w *words) below(n uint64) (k uint64) {
	needs := bits.Len64(n - 1)
	if w.used += needs; w.used > wordBits {
		w.state += gamma
		w.rest, w.used = mix(w.state), needs
	}
	k, w.rest = bits.Mul64(w.rest, n)
	return k
}

// wordsOf returns how many words choices of some bits take at most: each but the last serves more than wordBits −
// choiceBits.
func wordsOf(bits int) uint64 { return 1 + uint64(bits)/(wordBits-choiceBits+1) }

// patternText takes the same number of words in every row, as many as the value that needs the most.
type patternText struct {
	drawer  drawer
	longest int
	words   uint64
}

// wordsPool has words to draw from: distinct fills row by row.
var wordsPool = sync.Pool{New: func() any { return new(words) }}

func (g *patternText) fill(v *rows.Vector, start uint64, first int64, n int) {
	w := wordsPool.Get().(*words)
	defer wordsPool.Put(w)

	values := longTexts(v, n, g.longest)
	for i := range n {
		w.state, w.used = at(start, first+int64(i), g.words), wordBits
		values.used += len(g.drawer.appendTo(values.data[values.used:values.used], w))
		values.end(i)
	}
	values.done()
}

// parsePattern reads a regular expression. The error says what to write.
func parsePattern(text string) (patternPart, error) {
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		what := strings.TrimPrefix(err.Error(), "error parsing regexp: ")
		return patternPart{}, fmt.Errorf("%s: write characters, classes as [A-Z0-9], (a|b), ? and {n,m}", what)
	}
	if re.Op == syntax.OpConcat { // at the ends of the whole pattern anchors say what is so without them
		re.Sub = slices.DeleteFunc(re.Sub, func(sub *syntax.Regexp) bool {
			return sub == re.Sub[0] && sub.Op == syntax.OpBeginText ||
				sub == re.Sub[len(re.Sub)-1] && sub.Op == syntax.OpEndText && sub.Flags&syntax.WasDollar != 0
		})
	}
	return patternOf(re)
}

func patternOf(re *syntax.Regexp) (part patternPart, err error) {
	if re.Flags&syntax.FoldCase != 0 {
		return part, fmt.Errorf("(?i) is not there: write both cases, as [Aa]")
	}

	switch re.Op {
	case syntax.OpEmptyMatch:
		return literalPart(""), nil
	case syntax.OpLiteral:
		if slices.Contains(re.Rune, 0) {
			return part, fmt.Errorf("a text has no NUL")
		}
		return literalPart(string(re.Rune)), nil
	case syntax.OpCharClass:
		return classPart(re)
	case syntax.OpCapture:
		return patternOf(re.Sub[0])
	case syntax.OpConcat, syntax.OpAlternate:
		subs := make([]patternPart, len(re.Sub))
		for i, sub := range re.Sub {
			if subs[i], err = patternOf(sub); err != nil {
				return part, err
			}
		}
		if re.Op == syntax.OpConcat {
			return concatPart(subs), nil
		}
		return alternatePart(subs)
	case syntax.OpQuest, syntax.OpRepeat:
		return repeatPart(re)
	case syntax.OpStar:
		return part, fmt.Errorf("* has no end: write {0,20}")
	case syntax.OpPlus:
		return part, fmt.Errorf("+ has no end: write {1,20}")
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return part, fmt.Errorf(`. is any character at all: write those that you mean, as [a-z0-9], or \. for a point`)
	case syntax.OpNoMatch:
		return part, fmt.Errorf("nothing matches it")
	default:
		return part, fmt.Errorf(`^, $ and \b are places, and no characters: leave them out, since a value is the whole pattern`)
	}
}

// literalText is the same in all values.
type literalText string

func (s literalText) appendTo(dst []byte, _ *words) []byte { return append(dst, s...) }

func literalPart(text string) patternPart {
	return patternPart{
		draw: literalText(text), longest: len(text), ways: 1, plain: isPlain([]byte(text)), ascii: isASCII([]byte(text)),
		endsInBlank: strings.HasSuffix(text, " "), isEmpty: text == "",
	}
}

// oneRune is one of a class.
type oneRune []rune

func (c oneRune) appendTo(dst []byte, w *words) []byte {
	return utf8.AppendRune(dst, c[w.below(uint64(len(c)))])
}

// oneByte is one of a class of ASCII.
type oneByte string

func (c oneByte) appendTo(dst []byte, w *words) []byte {
	return append(dst, c[w.below(uint64(len(c)))])
}

func classPart(re *syntax.Regexp) (patternPart, error) {
	part := patternPart{plain: true, ascii: true}
	var all oneRune
	for i := 0; i < len(re.Rune); i += 2 {
		from, to := re.Rune[i], re.Rune[i+1]
		if from == 0 || from <= 0xDFFF && to >= 0xD800 || len(all)+int(to-from) >= 1<<choiceBits {
			return part, fmt.Errorf("%s is too many characters: write those that you mean, as [a-z0-9]", shortened(re.String()))
		}
		for r := from; r <= to; r++ {
			all = append(all, r)
		}
	}
	for _, r := range all {
		value := []byte(string(r))
		part.plain, part.ascii = part.plain && isPlain(value), part.ascii && isASCII(value)
		part.longest = max(part.longest, len(value))
	}
	part.draw, part.bits, part.ways = all, bits.Len(uint(len(all)-1)), uint64(len(all))
	part.endsInBlank = slices.Contains(all, ' ')
	if part.ascii {
		part.draw = oneByte(string(all))
	}
	return part, nil
}

// sequenceOf is parts that follow each other.
type sequenceOf []drawer

func (all sequenceOf) appendTo(dst []byte, w *words) []byte {
	for _, one := range all {
		dst = one.appendTo(dst, w)
	}
	return dst
}

func concatPart(subs []patternPart) patternPart {
	whole, all := literalPart(""), sequenceOf{}
	for _, sub := range subs {
		all = append(all, sub.draw)
		whole = whole.before(sub)
	}
	whole.draw = all
	return whole
}

// before is what is known of values that are followed by others.
func (part patternPart) before(next patternPart) patternPart {
	return patternPart{
		longest: part.longest + next.longest, bits: part.bits + next.bits, ways: productOf(part.ways, next.ways),
		plain: part.plain && next.plain, ascii: part.ascii && next.ascii,
		endsInBlank: next.endsInBlank || next.isEmpty && part.endsInBlank, isEmpty: part.isEmpty && next.isEmpty,
	}
}

// or is what is known of values of one part or another.
func (part patternPart) or(other patternPart) patternPart {
	return patternPart{
		longest: max(part.longest, other.longest), bits: max(part.bits, other.bits), ways: sumOf(part.ways, other.ways),
		plain: part.plain && other.plain, ascii: part.ascii && other.ascii,
		endsInBlank: part.endsInBlank || other.endsInBlank, isEmpty: part.isEmpty || other.isEmpty,
	}
}

// oneOf is one of some alternatives.
type oneOf []drawer

func (all oneOf) appendTo(dst []byte, w *words) []byte {
	return all[w.below(uint64(len(all)))].appendTo(dst, w)
}

func alternatePart(subs []patternPart) (patternPart, error) {
	if len(subs) > maxValues {
		return patternPart{}, fmt.Errorf("%d alternatives: %d at most", len(subs), maxValues)
	}
	whole, all := subs[0], oneOf{}
	for i, sub := range subs {
		all = append(all, sub.draw)
		if i > 0 {
			whole = whole.or(sub)
		}
	}
	whole.draw = all
	whole.bits += bits.Len(uint(len(all) - 1))
	return whole, nil
}

// repeated is a part several times.
type repeated struct {
	one   drawer
	least int
	count uint64 // of numbers of times
}

func (r *repeated) appendTo(dst []byte, w *words) []byte {
	times := r.least + int(w.below(r.count))
	if class, is := r.one.(oneByte); is { // in a loop without interfaces a row of 27 bytes takes 89 ns, else 142
		for range times {
			dst = class.appendTo(dst, w)
		}
		return dst
	}
	for range times {
		dst = r.one.appendTo(dst, w)
	}
	return dst
}

func repeatPart(re *syntax.Regexp) (patternPart, error) {
	least, most := re.Min, re.Max
	if re.Op == syntax.OpQuest {
		least, most = 0, 1
	}
	if most < 0 {
		return patternPart{}, fmt.Errorf("{%d,} has no end: write {%d,%d}", least, least, least+20)
	}
	one, err := patternOf(re.Sub[0])
	if err != nil {
		return patternPart{}, err
	}

	soFar := literalPart("")
	for range least {
		soFar = soFar.before(one)
	}
	whole := soFar
	for range most - least {
		soFar = soFar.before(one)
		whole = whole.or(soFar)
	}
	whole.draw = &repeated{one.draw, least, uint64(most-least) + 1}
	whole.bits += bits.Len(uint(most - least))
	return whole, nil
}

// productOf and sumOf have the largest number in place of those beyond it.
func productOf(a, b uint64) uint64 {
	high, low := bits.Mul64(a, b)
	if high > 0 {
		return math.MaxUint64
	}
	return low
}

func sumOf(a, b uint64) uint64 {
	sum, carry := bits.Add64(a, b, 0)
	if carry > 0 {
		return math.MaxUint64
	}
	return sum
}
