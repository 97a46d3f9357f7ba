package dataset

import (
	"math/bits"
	"sync"

	"github.com/terapush/terapush/pkg/rows"
)

// generator draws the values of one column. Each column has a SplitMix64 stream of its own, of which every row takes
// the same number of words, so that any row is drawn alone.
type generator interface {
	// fill draws the values of rows first … first+n−1. start is the state of the column's stream at row 0.
	fill(v *rows.Vector, start uint64, first int64, n int)
}

// measured is implemented by generators that know the lengths of their values without making them.
type measured interface {
	// bytes adds up the lengths of the values of rows 0 … n−1, of a variable column.
	bytes(start uint64, n int) int64
}

// at returns the state before the first word of a row, of which every row takes some.
func at(start uint64, row int64, words uint64) uint64 { return start + uint64(row)*words*gamma }

// constantNumber is one value in all rows.
type constantNumber int64

func (g constantNumber) fill(v *rows.Vector, _ uint64, _ int64, n int) {
	for i := range v.Ints[:n] {
		v.Ints[i] = int64(g)
	}
}

// uniformNumber is least + k × step with any k below count; count 0 is 2^64.
type uniformNumber struct {
	least       int64
	step, count uint64
}

func (g *uniformNumber) largest() int64 { return int64(uint64(g.least) + (g.count-1)*g.step) }

func (g *uniformNumber) fill(v *rows.Vector, start uint64, first int64, n int) {
	values, state := v.Ints[:n], at(start, first, 1)
	least, step, count := uint64(g.least), g.step, g.count
	for i := range values {
		state += gamma
		k := mix(state)
		if count > 0 {
			k, _ = bits.Mul64(k, count)
		}
		values[i] = int64(least + k*step)
	}
}

// chosenNumber is one of a list. Without a choice all are equally frequent.
type chosenNumber struct {
	list   []int64
	choice choice
}

func (g *chosenNumber) fill(v *rows.Vector, start uint64, first int64, n int) {
	values, list, state := v.Ints[:n], g.list, at(start, first, 1)
	if g.choice == nil {
		for i := range values {
			state += gamma
			k, _ := bits.Mul64(mix(state), uint64(len(list)))
			values[i] = list[k]
		}
		return
	}

	for i := range values {
		state += gamma
		values[i] = list[g.choice.pick(mix(state))]
	}
}

// partNumber is least + k × step with a k of one of many parts. A row takes two words: for the part, and for the
// place in it.
type partNumber struct {
	least   int64
	step    uint64
	choice  choice
	parts   []part
	scatter *scatter // nil: k as it is
}

func (g *partNumber) fill(v *rows.Vector, start uint64, first int64, n int) {
	values, state := v.Ints[:n], at(start, first, 2)
	for i := range values {
		state += gamma
		p := &g.parts[g.choice.pick(mix(state))]
		state += gamma
		k, _ := bits.Mul64(mix(state), p.size)
		k += p.first
		if g.scatter != nil {
			k = g.scatter.of(k)
		}
		values[i] = int64(uint64(g.least) + k*g.step)
	}
}

// scatter is a permutation of 0 … n−1 that puts neighbors far apart: k × times + plus, modulo n.
type scatter struct{ n, times, plus uint64 }

// newScatter chooses times near the golden section of n, which divides a circle evenly, and without a divisor in common
// with n. Columns have different offsets.
func newScatter(n, seed uint64) *scatter {
	times, _ := bits.Mul64(gamma, n) // gamma is 2^64 divided by the golden ratio
	plus, _ := bits.Mul64(seed, n)
	times = max(times, 1)
	for divisor(times, n) != 1 {
		times++
	}
	return &scatter{n, times, plus}
}

func divisor(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func (s *scatter) of(k uint64) uint64 {
	high, low := bits.Mul64(k, s.times)
	low, carry := bits.Add64(low, s.plus, 0)
	if high += carry; high == 0 {
		return low % s.n
	}
	_, rest := bits.Div64(high, low, s.n)
	return rest
}

// constantText is one value in all rows.
type constantText string

func (g constantText) fill(v *rows.Vector, _ uint64, _ int64, n int) { repeat(v, n, string(g)) }
func (g constantText) bytes(_ uint64, n int) int64                   { return int64(n) * int64(len(g)) }

// chosenText is one of a list, as chosenNumber is.
type chosenText struct {
	list    []text
	choice  choice
	longest int
}

func (g *chosenText) pick(word uint64) *text {
	if g.choice != nil {
		return &g.list[g.choice.pick(word)]
	}
	k, _ := bits.Mul64(word, uint64(len(g.list)))
	return &g.list[k]
}

func (g *chosenText) fill(v *rows.Vector, start uint64, first int64, n int) {
	values, state := longTexts(v, n, g.longest), at(start, first, 1)
	switch {
	case g.longest <= shortCopy:
		for i := range n {
			state += gamma
			values.append(*g.pick(mix(state)))
			values.end(i)
		}
	case g.longest <= longCopy:
		for i := range n {
			state += gamma
			values.appendLong(*g.pick(mix(state)))
			values.end(i)
		}
	default:
		for i := range n {
			state += gamma
			one := g.pick(mix(state))
			values.used += copy(values.data[values.used:], one.padded[:one.length])
			values.end(i)
		}
	}
	values.done()
}

func (g *chosenText) bytes(start uint64, n int) (sum int64) {
	for i := range n {
		sum += int64(g.pick(mix(start + uint64(i+1)*gamma)).length)
	}
	return sum
}

// randomText is symbols of an alphabet. A row takes a word for its length if lengths differ, and one for each 8
// symbols of the longest value.
type randomText struct {
	alphabet          *alphabet
	shortest, longest int
}

func (g *randomText) words() uint64 {
	words := uint64(g.longest+7) / 8
	if g.shortest < g.longest {
		words++
	}
	return words
}

func (g *randomText) length(word uint64) int {
	more, _ := bits.Mul64(word, uint64(g.longest-g.shortest+1))
	return g.shortest + int(more)
}

func (g *randomText) fill(v *rows.Vector, start uint64, first int64, n int) {
	words := g.words() * gamma
	state := at(start, first, g.words())
	if g.shortest == g.longest {
		for data := sized(v, n, g.longest); len(data) > 0; data = data[g.longest:] {
			g.alphabet.draw(data[:g.longest], state)
			state += words
		}
		return
	}

	values := longTexts(v, n, g.longest)
	for i := range n {
		length := g.length(mix(state + gamma))
		g.alphabet.draw(values.data[values.used:values.used+length], state+gamma)
		values.used += length
		values.end(i)
		state += words
	}
	values.done()
}

func (g *randomText) bytes(start uint64, n int) (sum int64) {
	if g.shortest == g.longest {
		return int64(n) * int64(g.longest)
	}
	for i := range n {
		sum += int64(g.length(mix(at(start, int64(i), g.words()) + gamma)))
	}
	return sum
}

// prose is pieces of the text of comments, whose length is in one of some parts, all equally frequent. A row takes one
// word.
type prose struct {
	text     string
	parts    []part // of lengths, by their distance from the shortest
	shortest int
	longest  int
}

// textFor returns text for pieces of up to longest bytes.
func textFor(longest int) string {
	if longest <= usualProse {
		return usualText()
	}
	return commentText(commentPlaces + longest + proseSlack)
}

// usualText is made once: it takes as long as a million values.
var usualText = sync.OnceValue(func() string { return commentText(commentPlaces + usualProse + proseSlack) })

// usualProse is the longest piece of usualText. It is longer than what a short piece is copied with.
const usualProse = 4096

// proseSlack is how far a piece may have to move so that it neither begins nor ends with a blank: words have two
// letters or more, so two places in a row may be bad, and never three.
const proseSlack = 4

// length returns the length of a word's value, and the word for its place.
func (g *prose) length(word uint64) (n int, rest uint64) {
	k, rest := bits.Mul64(word, uint64(len(g.parts)))
	more, rest := bits.Mul64(rest, g.parts[k].size)
	return g.shortest + int(g.parts[k].first+more), rest
}

func (g *prose) fill(v *rows.Vector, start uint64, first int64, n int) {
	values, state := longTexts(v, n, g.longest), at(start, first, 1)
	for i := range n {
		state += gamma
		length, rest := g.length(mix(state))
		place, _ := bits.Mul64(rest, commentPlaces)
		for g.text[place] == ' ' || g.text[int(place)+length-1] == ' ' {
			place++
		}
		if g.longest <= longCopy {
			values.appendLong(text{g.text[place:], length})
		} else {
			values.used += copy(values.data[values.used:], g.text[place:int(place)+length])
		}
		values.end(i)
	}
	values.done()
}

func (g *prose) bytes(start uint64, n int) (sum int64) {
	for i := range n {
		length, _ := g.length(mix(start + uint64(i+1)*gamma))
		sum += int64(length)
	}
	return sum
}

// namedAlphabets are those of random texts. All their symbols are plain.
var namedAlphabets = map[string]func(c byte) bool{
	"alnum": isAlphanumeric,
	"ascii": isGraphic,
	"hex":   func(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' },
}
