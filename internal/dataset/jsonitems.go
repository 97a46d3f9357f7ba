package dataset

import (
	"fmt"
	"math/bits"
)

// maxItems is how many values an array in a document may have.
const maxItems = 1024

// items says how many values an array in a document has. A field that is none has one value.
type items struct {
	listed      bool
	least, most int
}

// items reads how many values a field is to be an array of.
func (p *columnPlanner) items() (i items) {
	if p.c.Items == "" {
		return i
	}
	l, ok := parseLength(p.c.Items)
	if !ok || l.Min > l.Max || l.Max < 1 || l.Max > maxItems {
		p.wrong([]string{"items"}, "items: %s: write 3, or 0..5, up to %d", quoted(p.c.Items), maxItems)
		return i
	}
	p.c.Items = fmt.Sprintf("%d..%d", l.Min, l.Max)
	return items{true, l.Min, l.Max}
}

// each is how many values are drawn for a row, of which the row takes the first ones.
func (i items) each() int {
	if !i.listed {
		return 1
	}
	return i.most
}

// of returns how many values a row takes.
func (i items) of(start uint64, row int64) int {
	more, _ := bits.Mul64(mix(at(streamOf(start, "items"), row, 1)+gamma), uint64(i.most-i.least+1))
	return i.least + int(more)
}
