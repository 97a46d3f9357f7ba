package loader

// Shape is what a server's statistics say of a column's values. Shares are of all rows, from 0 to 1. Values are the server's
// text of them.
type Shape struct {
	Nulls    float64       // share
	Distinct int64         // different values, more or less; 0 is unknown
	Length   float64       // mean bytes; 0 is unknown
	Common   []CommonValue // the most common values, in that order
	Buckets  []Interval    // of the others, ascending
	Order    float64       // correlation of the values with the order of the table's rows, from −1 to 1; 0 is unknown, or none
}

// CommonValue is a value with a share of its own.
type CommonValue struct {
	Value string
	Share float64
}

// Interval is the values from Least to Most, both of which there are.
type Interval struct {
	Least, Most string
	Share       float64
}

// Rest is the share of values that are neither NULL nor common.
func (s *Shape) Rest() float64 {
	rest := 1 - s.Nulls
	for _, c := range s.Common {
		rest -= c.Share
	}
	return max(rest, 0)
}
