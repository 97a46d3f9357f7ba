package verify

import (
	"cmp"
	"fmt"
	"slices"
)

// Reason says in one word what is wrong with a batch or a row.
type Reason string

// The reasons.
const (
	Missing Reason = "missing" // none of its rows is there
	Short   Reason = "short"   // fewer rows than sent
	Doubled Reason = "doubled" // more rows than sent
	Wrong   Reason = "wrong"   // as many rows as sent, but some are missing and others there twice
	Differs Reason = "differs" // the right rows, but with other values than were sent
)

// Bad is a batch that did not arrive as it was sent.
type Bad struct {
	Number   int64  `json:"number"`
	FirstKey int64  `json:"first_key"` // row numbers, both ends included
	LastKey  int64  `json:"last_key"`
	Rows     int64  `json:"rows"` // sent
	Found    int64  `json:"found"`
	Reason   Reason `json:"reason"`
	Detail   string `json:"detail,omitempty"`
}

// String is the batch as a person reads it.
func (b Bad) String() string {
	text := fmt.Sprintf("batch %d (keys %d to %d) is %s: %d of %d rows", b.Number, b.FirstKey, b.LastKey, b.Reason, b.Found, b.Rows)
	if b.Detail != "" {
		text += ", " + b.Detail
	}
	return text
}

// BadRow is a row of the sample that is not in the table as it was sent.
type BadRow struct {
	Key    int64  `json:"key"` // its row number
	Reason Reason `json:"reason"`
	// Of a row that differs: the first column that does, at which byte, and how. Values are never shown whole; they
	// may be long, and another program's.
	Column string `json:"column,omitempty"`
	Offset int    `json:"offset"`
	Detail string `json:"detail,omitempty"`
}

// String is the row as a person reads it.
func (b BadRow) String() string {
	switch b.Reason {
	case Differs:
		return fmt.Sprintf("row %d differs in column %s at byte %d: %s", b.Key, b.Column, b.Offset, b.Detail)
	default:
		return fmt.Sprintf("row %d is %s", b.Key, b.Reason)
	}
}

// Result is what was found.
type Result struct {
	Mode Mode `json:"mode"`
	// OK says that nothing is wrong as far as the mode looks; None does not look.
	OK           bool  `json:"ok"`
	ExpectedRows int64 `json:"expected_rows"`
	FoundRows    int64 `json:"found_rows"`    // Ack: acknowledged; Count, Full: in the table, of this run
	DistinctRows int64 `json:"distinct_rows"` // different row numbers among them; Full only
	// MeasuredBatches had the bytes of their variable columns compared with regenerated ones; Full only. It is less
	// than all where regenerating would take longer than it is worth.
	MeasuredBatches int64 `json:"measured_batches"`
	SampledRows     int64 `json:"sampled_rows"` // asked for and compared byte for byte; Full only

	// The lists keep the first maxKept by number and are never nil, the counts are of all.
	BadBatches  []Bad    `json:"bad_batches"`
	BadCount    int64    `json:"bad_batch_count"`
	BadRows     []BadRow `json:"bad_rows"`
	BadRowCount int64    `json:"bad_row_count"`

	Seconds float64 `json:"seconds"`
}

// maxKept bounds the lists of a Result: who has a hundred bad batches needs no more to act.
const maxKept = 100

func newResult(m Mode, rows int64) Result {
	return Result{Mode: m, ExpectedRows: rows, BadBatches: []Bad{}, BadRows: []BadRow{}}
}

func (r *Result) addBatch(b Bad) {
	r.BadCount++
	r.BadBatches = keep(r.BadBatches, b, func(x, y Bad) int { return cmp.Compare(x.Number, y.Number) })
}

func (r *Result) addRow(b BadRow) {
	r.BadRowCount++
	r.BadRows = keep(r.BadRows, b, func(x, y BadRow) int { return cmp.Compare(x.Key, y.Key) })
}

// keep inserts v into a sorted list of at most maxKept. Databases answer in any order; a report must not.
func keep[T any](list []T, v T, order func(T, T) int) []T {
	i, _ := slices.BinarySearchFunc(list, v, order)
	if i == maxKept {
		return list
	}
	list = slices.Insert(list, i, v)
	return list[:min(len(list), maxKept)]
}

func (r *Result) holds() bool {
	if r.Mode == None {
		return true
	}
	return r.FoundRows == r.ExpectedRows && r.BadCount == 0 && r.BadRowCount == 0 &&
		(r.Mode != Full || r.DistinctRows == r.ExpectedRows)
}

// Summary is the result in one line.
func (r *Result) Summary() string {
	switch {
	case r.Mode == None:
		return "not verified"
	case r.OK && r.Mode == Ack:
		return fmt.Sprintf("verify ok: all %d rows were acknowledged", r.FoundRows)
	case r.OK && r.Mode == Count:
		return fmt.Sprintf("verify ok: all %d rows are there", r.FoundRows)
	case r.OK:
		return fmt.Sprintf("verify ok: all %d rows are there once, %d read back are the same", r.FoundRows, r.SampledRows)
	case r.Mode == Ack:
		return fmt.Sprintf("verify failed: %d of %d rows were acknowledged", r.FoundRows, r.ExpectedRows)
	case r.Mode == Count:
		return fmt.Sprintf("verify failed: %d rows found, %d expected; wrong batches: %d", r.FoundRows, r.ExpectedRows, r.BadCount)
	default:
		return fmt.Sprintf("verify failed: %d rows found, %d different ones, %d expected; wrong batches: %d, wrong rows of those read back: %d of %d",
			r.FoundRows, r.DistinctRows, r.ExpectedRows, r.BadCount, r.BadRowCount, r.SampledRows)
	}
}
