package inspect

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// mostShapes is how many common values, and how many parts of a histogram, a file has of a column.
const mostShapes = 100

// steep is from which correlation on a comment says that rows are in the order of a column's values.
const steep = 0.9

// shares are values as a spec writes them, and the share of each among those that are not NULL.
type shares struct {
	values []string
	shares []float64
}

func (s *shares) add(value string, share float64) {
	s.values, s.shares = append(s.values, value), append(s.shares, share)
}

func (s *shares) sum() (sum float64) {
	for _, share := range s.shares {
		sum += share
	}
	return sum
}

// common writes the values beside a generator; "" of none.
func (s *shares) common() string {
	var texts []string
	for i, v := range s.values {
		if s.shares[i] >= leastShare {
			texts = append(texts, v+": "+percent(s.shares[i]))
		}
	}
	if texts == nil {
		return ""
	}
	return ", common: {" + strings.Join(texts, ", ") + "}"
}

// leastShare is the smallest share that a file has, of a ten-thousandth of a percent.
const leastShare = 1e-6

func percent(share float64) string {
	text := strconv.FormatFloat(100*max(share, leastShare), 'f', 4, 64)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".") + "%"
}

// whole writes the values as all that there are. The most common one has what is left to 100 %.
func (s *shares) whole() string {
	const units = 1 / leastShare
	sum, left, largest := s.sum(), int64(units), 0
	parts, texts := make([]int64, len(s.values)), make([]string, len(s.values))
	for i, share := range s.shares {
		parts[i] = int64(math.Round(share / sum * units))
		left -= parts[i]
		if share > s.shares[largest] {
			largest = i
		}
	}
	parts[largest] += left
	for i, v := range s.values {
		texts[i] = v + ": " + strings.TrimSuffix(strings.TrimRight(decimal(parts[i], 4), "0"), ".") + "%"
	}
	return "values: {" + strings.Join(texts, ", ") + "}"
}

// shaped lists generators that imitate a column's statistics, the best first.
func (w *writer) shaped(c *column) (all []string) {
	s := c.Shape
	if s == nil {
		return nil
	}
	if math.Abs(s.Order) >= steep && s.Distinct > mostShapes {
		c.notes = append(c.notes, fmt.Sprintf("in the order of the rows (correlation %.3f), which is not imitated", s.Order))
	}

	all = c.draws()
	if c.reference == nil && c.examples == nil && c.pattern == "" && s.Nulls < 1 {
		all = slices.Concat(w.imitations(c), all)
	}
	if !c.Nullable || s.Nulls < leastShare {
		return all
	}
	for i := range all {
		all[i] += ", nulls: " + percent(s.Nulls)
	}
	return all
}

func (w *writer) imitations(c *column) []string {
	switch t := c.Values.Type; {
	case t == rows.Bool:
		return c.labels(c.without(c.truths()))
	case c.in != nil:
		return c.labels(c.without(c.in))
	case t == rows.Enum:
		return c.labels(c.without(c.Values.Labels))
	case t == rows.Text || t == rows.Char:
		if !c.json {
			return w.textShapes(c)
		}
	case t != rows.JSON && t != rows.Bytes && t != rows.UUID:
		return w.numberShapes(c)
	}
	return nil
}

// present is the share of a value among those that are not NULL.
func (c *column) present(share float64) float64 { return share / (1 - c.Shape.Nulls) }

// labels gives values that are known their shares; those without statistics divide the rest.
func (c *column) labels(all []string) []string {
	found, rest := map[string]float64{}, 1.0
	for _, v := range c.Shape.Common {
		label := v.Value
		if c.Values.Type == rows.Bool {
			label = truth(label)
		}
		if slices.Contains(all, label) {
			found[label] += c.present(v.Share)
			rest -= c.present(v.Share)
		}
	}
	if len(found) == 0 {
		return nil
	}
	var s shares
	for _, label := range all {
		share, known := found[label]
		if !known {
			share = max(rest, 0) / float64(len(all)-len(found))
		}
		s.add(value(label), share)
	}
	return []string{s.whole()}
}

// numberShapes imitates numbers and times: common values, and between the bounds of a histogram all others.
func (w *writer) numberShapes(c *column) []string {
	often, seldom := c.Shape.Common, slices.Clone(c.Shape.Buckets)
	if len(often) > mostShapes {
		for _, v := range often[mostShapes:] {
			seldom = append(seldom, loader.Interval{Least: v.Value, Most: v.Value, Share: v.Share})
		}
		often = often[:mostShapes]
	}
	u := unitOf(c)

	var s shares
	seen := map[int64]int{}
	for _, v := range often {
		n, ok := u.parse(v.Value)
		if !ok {
			return nil
		}
		if at, twice := seen[n]; twice { // two values that are one in our units
			s.shares[at] += c.present(v.Share)
			continue
		}
		seen[n] = len(s.values)
		s.add(u.format(n), c.present(v.Share))
	}
	parts, ok := u.intervals(seldom)
	if !ok {
		return nil
	}

	switch {
	case len(s.values) > 0 && (1-s.sum() < leastShare || len(parts) == 0 && 1-s.sum() < 0.01):
		return []string{s.whole()}
	case len(parts) == 0:
		return []string{c.draws()[0] + s.common()}
	}
	bounds := quantiles(parts)
	texts := make([]string, len(bounds))
	for i, n := range bounds {
		texts[i] = u.format(n)
	}
	generator := "histogram: [" + strings.Join(texts, ", ") + "]" + s.common()
	others := c.Shape.Distinct - int64(len(often))
	if width := bounds[len(bounds)-1] - bounds[0]; others >= mostShapes && others < w.Rows/2 && others < width/4 {
		return []string{generator + fmt.Sprintf(", distinct: %d", others), generator}
	}
	return []string{generator}
}

// interval is a loader.Interval in units.
type interval struct {
	least, most int64
	share       float64
}

// quantiles returns bounds between which values are equally frequent: those of the server where they are, or others.
func quantiles(parts []interval) (bounds []int64) {
	sum, equal := 0.0, len(parts) <= mostShapes
	for i, p := range parts {
		sum += p.share
		equal = equal && math.Abs(p.share-parts[0].share) < 1e-9 && (i == 0 || p.least == parts[i-1].most)
	}
	if equal {
		for _, p := range parts {
			bounds = append(bounds, p.least)
		}
		return append(bounds, parts[len(parts)-1].most)
	}

	at, before := 0, 0.0
	for k := range mostShapes {
		want := sum * float64(k) / mostShapes
		for at < len(parts)-1 && before+parts[at].share <= want {
			before += parts[at].share
			at++
		}
		p := parts[at]
		width := float64(p.most-p.least) + 1
		more := min(max((want-before)/max(p.share, leastShare), 0), 1) * width
		bounds = append(bounds, min(p.least+int64(more), p.most))
	}
	slices.Sort(bounds)
	return append(bounds, max(bounds[len(bounds)-1], parts[len(parts)-1].most))
}

// textShapes imitates texts: common ones, and the lengths of all others.
func (w *writer) textShapes(c *column) (all []string) {
	var s shares
	seen := map[string]bool{}
	for i, v := range c.Shape.Common {
		if i == mostShapes {
			break
		}
		text := v.Value
		if c.Values.Type == rows.Char {
			text = strings.TrimRight(text, " ")
		}
		if !w.keepValues {
			text = masked(i+1, utf8.RuneCountInString(text), seen)
		}
		s.add(quoted(strings.ReplaceAll(text, "${", "$${")), c.present(v.Share))
	}
	lengths := c.lengths()
	if len(s.values) > 0 && (1-s.sum() < leastShare || c.Shape.Buckets == nil && 1-s.sum() < 0.01) {
		return []string{s.whole()}
	}

	generators := c.draws()
	if lengths != nil {
		least, most := lengths[0], lengths[len(lengths)-1]
		symbols := fmt.Sprintf("text: {length: %d..%d}", least, most)
		generators = []string{symbols}
		if most >= shortText {
			generators = []string{"histogram: " + strings.ReplaceAll(fmt.Sprint(lengths), " ", ", "), symbols}
		}
	}
	others := c.Shape.Distinct - int64(len(s.values))
	for _, g := range generators {
		if others > 0 && w.Rows > 0 && others < w.Rows/10*9 {
			all = append(all, g+fmt.Sprintf(", distinct: %d", others)+s.common())
		}
		all = append(all, g+s.common())
	}
	return all
}

// lengths returns bounds of lengths between which texts are equally frequent, as far as the ends of buckets tell: these are
// a sample of the values that are not common. Without buckets, as PostgreSQL has none of long texts, the mean is that of a range.
// nil: nothing is known.
func (c *column) lengths() (bounds []int) {
	var all []int
	for i, b := range c.Shape.Buckets {
		if i == 0 {
			all = append(all, utf8.RuneCountInString(b.Least))
		}
		all = append(all, utf8.RuneCountInString(b.Most))
	}
	if mean := int(c.Shape.Length); len(all) == 0 && mean > 1 {
		all = []int{1, 2*mean - 1}
		if longest := c.longest(); longest > 0 {
			all[1] = min(all[1], longest)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	if len(all) == 2 {
		return []int{max(all[0], 1, c.minLen), max(all[1], 1, c.minLen)}
	}
	const parts = 20
	for k := range parts + 1 {
		bounds = append(bounds, max(all[k*(len(all)-1)/parts], 1, c.minLen))
	}
	if longest := c.longest(); longest > 0 && bounds[parts] > longest {
		return nil
	}
	if bounds[0] == bounds[parts] {
		return []int{bounds[0], bounds[0]}
	}
	return bounds
}

// masked is a text in the place of the value of a rank, from 1, of the same number of characters where that is enough.
func masked(rank, length int, seen map[string]bool) string {
	const digits = 36
	text := "v" + strconv.Itoa(rank)
	if len(text) > length && rank < digits && length > 0 {
		text = strconv.FormatInt(int64(rank+9)%digits, digits) // a to z, 0 to 8
	}
	text += strings.Repeat(".", max(length-len(text), 0))
	for seen[text] {
		text += "."
	}
	seen[text] = true
	return text
}

// truth is a value of a boolean as a spec has it.
func truth(text string) string {
	names := map[string]string{"1": "true", "t": "true", "0": "false", "f": "false"}
	return cmp.Or(names[text], strings.ToLower(text))
}
