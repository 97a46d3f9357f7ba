package source

// Spans divides the rows of a run into batches. Only the last one may be short. A run asks nobody else which rows a
// batch has. All keys and the product of Batches and BatchRows fit into an int64.
type Spans struct {
	FirstKey  int64 // key of the run's first row, ≥ 0
	Rows      int64 // of the run, ≥ 0; an upper bound if the run ends by time
	BatchRows int64 // rows of a batch, ≥ 1
	// Cut has the batches of a source that cuts them; then Rows and BatchRows say nothing.
	Cut *Cut
}

// Batches returns the number of batches: an upper bound until the source has ended.
func (s Spans) Batches() int64 {
	if s.Cut != nil {
		return s.Cut.batches()
	}
	return DivideUp(s.Rows, s.BatchRows)
}

// Span returns the key of a batch's first row, and the number of its rows: below 1 if the run has no such batch.
func (s Spans) Span(batch int64) (first, rows int64) {
	if s.Cut != nil {
		first = s.Cut.before(batch)
		return s.FirstKey + first, s.Cut.before(batch+1) - first
	}
	before := batch * s.BatchRows
	return s.FirstKey + before, min(s.BatchRows, s.Rows-before)
}

// Before returns how many rows of the run are in the batches below a number.
func (s Spans) Before(batch int64) int64 {
	if s.Cut != nil {
		return s.Cut.before(batch)
	}
	return min(batch*s.BatchRows, s.Rows)
}

// Keys returns the keys of the rows in the batches with numbers from ≤ n < to. If from == to,
// last is first−1.
func (s Spans) Keys(from, to int64) (first, last int64) {
	return s.FirstKey + s.Before(from), s.FirstKey + s.Before(to) - 1
}

// BatchOf returns the number of the batch that has a row with this key.
func (s Spans) BatchOf(key int64) int64 { return (key - s.FirstKey) / s.BatchRows }

// RowsOf returns the rows of so many batches that are not cut by their source; withLast says that the last one of the
// run is among them.
func (s Spans) RowsOf(batches int64, withLast bool) int64 {
	rows := batches * s.BatchRows
	if withLast {
		_, last := s.Span(s.Batches() - 1)
		rows -= s.BatchRows - last
	}
	return rows
}

// Joined returns the same rows with n batches, ≥ 1, as one.
func (s Spans) Joined(n int64) Spans {
	s.BatchRows *= n
	return s
}

// Cycle returns after how many batches the drawn columns repeat: all of them, or as many as have so many distinct rows.
// That is a whole number of batches, or more rows than the run has; 0 means that every row is distinct.
func (s Spans) Cycle(distinct int64) int64 {
	if distinct == 0 || distinct >= s.Rows {
		return s.Batches()
	}
	return distinct / s.BatchRows
}

// DivideUp divides and rounds up, without overflow near the largest number. by is above 0.
func DivideUp(n, by int64) int64 { return n/by + min(n%by, 1) }
