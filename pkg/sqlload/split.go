package sqlload

import "github.com/terapush/terapush/pkg/loader"

// Spans splits a range into at most n of nearly equal length.
func Spans(r loader.KeyRange, n int) []loader.KeyRange {
	all := r.Last - r.First + 1
	parts := max(min(int64(n), all), 1)
	spans := make([]loader.KeyRange, parts)
	first, longer := r.First, all%parts // the first ones are longer by one
	for i := range spans {
		length := all / parts
		if int64(i) < longer {
			length++
		}
		spans[i] = loader.KeyRange{First: first, Last: first + length - 1}
		first += length
	}
	return spans
}

// SplitKeys returns conditions for parts of a table with an index that begins with the key's column; none if that is in
// no order.
func (s Statements) SplitKeys(r loader.KeyRange, n int) []string {
	if !s.Schema.Ordered() {
		return nil
	}
	var parts []string
	for _, span := range Spans(r, n) {
		parts = append(parts, s.Within(span))
	}
	return parts
}
