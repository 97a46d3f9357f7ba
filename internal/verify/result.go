package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/report"
)

// Reason is, in one word, what is wrong with a batch or a row.
type Reason string

// The reasons.
const (
	Missing Reason = "missing" // none of its rows is there
	Short   Reason = "short"   // fewer rows than sent
	Doubled Reason = "doubled" // more rows than sent
	Wrong   Reason = "wrong"   // as many rows as sent, but some are missing and others there twice
	Differs Reason = "differs" // the right rows, but with other values than were sent
)

// BadRow is a row of the sample that is not in the table as it was sent.
type BadRow struct {
	Key    int64 // its row number
	Reason Reason
	// Of a row that differs: the first column that does, at which byte, and how. Values are never shown whole; they
	// may be long, and another program's.
	Column string
	Offset int
	Detail string
}

// String returns the row as a person reads it.
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
	Mode Mode // "" when nothing was looked at
	// OK reports whether nothing is wrong as far as the mode looks; None does not look.
	OK           bool
	ExpectedRows int64
	FoundRows    int64 // Ack: acknowledged; Count, Full: in the table, of this run
	DistinctRows int64 // different row numbers among them; Full only
	SampledRows  int64 // asked for and compared byte for byte; Full only

	// The lists keep the first maxKept by number, the counts are of all.
	BadBatches  []report.BadBatch
	BadCount    int64
	BadRows     []BadRow
	BadRowCount int64

	Strange []string // some objects of the run's folder that are none of its batches
	Seconds float64
}

// maxKept bounds the lists of a Result: a hundred bad batches are enough to act on.
const maxKept = 100

func (r *Result) addBatch(b report.BadBatch) {
	r.BadCount++
	r.BadBatches = keep(r.BadBatches, b, func(x, y report.BadBatch) int { return cmp.Compare(x.Number, y.Number) })
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

// Failure returns one line about a result that is not OK.
func (r *Result) Failure() string {
	switch r.Mode {
	case Ack:
		return fmt.Sprintf("verify failed: %d of %d rows were acknowledged", r.FoundRows, r.ExpectedRows)
	case Count:
		return fmt.Sprintf("verify failed: %d rows found, %d expected; wrong batches: %d", r.FoundRows, r.ExpectedRows, r.BadCount)
	}
	return fmt.Sprintf("verify failed: %d rows found, %d different ones, %d expected; wrong batches: %d, wrong rows of those read back: %d of %d",
		r.FoundRows, r.DistinctRows, r.ExpectedRows, r.BadCount, r.BadRowCount, r.SampledRows)
}

// Report returns the result as a report has it.
func (r *Result) Report() report.Verify {
	v := report.Verify{
		Mode: string(r.Mode), Ran: r.Mode != "", OK: r.OK && r.Mode != None,
		ExpectedRows: r.ExpectedRows, FoundRows: r.FoundRows, SampledRows: r.SampledRows,
		BadBatches: r.BadBatches, BadCount: r.BadCount,
	}
	if r.Mode == Full && r.DistinctRows != r.FoundRows {
		v.Problems = append(v.Problems, fmt.Sprintf("%d rows, but only %d different keys", r.FoundRows, r.DistinctRows))
	}
	for _, b := range r.BadRows {
		v.Problems = append(v.Problems, b.String())
	}
	if more := r.BadRowCount - int64(len(r.BadRows)); more > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("%d more rows of the sample are wrong", more))
	}
	return v
}
