package verify

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
)

// Reason is what is wrong with a batch or a row, in one word.
type Reason string

// The reasons.
const (
	Missing Reason = "missing" // none of its rows is there
	Short   Reason = "short"   // fewer rows than sent
	Doubled Reason = "doubled" // more rows than sent
	Wrong   Reason = "wrong"   // as many rows as sent, but other ones
	Differs Reason = "differs" // the right rows with other values
)

// BadRow is a row of the sample that did not arrive as it was sent.
type BadRow struct {
	Key    int64  // its row number; of a record its line
	Name   string // its key, as a condition of SQL, or a record's place in the user's files
	Reason Reason
	// Column, Offset and Detail are of the first difference. Values are not shown whole: they may be long, or another
	// program's.
	Column string
	Offset int
	Detail string
}

// String returns the row and what is wrong with it.
func (b BadRow) String() string {
	what := fmt.Sprintf("row %d", b.Key)
	if b.Name != "" {
		what = b.Name
	}
	switch {
	case b.Reason == Differs && b.Offset > 0:
		return fmt.Sprintf("%s differs in column %s at byte %d: %s", what, b.Column, b.Offset, b.Detail)
	case b.Reason == Differs:
		return fmt.Sprintf("%s differs in column %s: %s", what, b.Column, b.Detail)
	}
	return fmt.Sprintf("%s is %s", what, b.Reason)
}

// Result is the result of a verification.
type Result struct {
	Mode Mode // "" without one
	// OK reports whether the mode found nothing wrong; with None it is true.
	OK           bool
	ExpectedRows int64
	FoundRows    int64    // Ack: acknowledged; Count, Full: in the table, of this run
	SampledRows  int64    // compared byte for byte; Full only
	NotCompared  []string // columns with their types, of whose values only NULLs were compared; Full only
	// Untaken is how many rows the server did not take. What was found in their place another program may have written.
	Untaken int64

	// The lists have the first maxKept, the counts count all.
	BadBatches  []report.BadBatch
	BadCount    int64
	BadRows     []BadRow
	BadRowCount int64

	Files *Files // of a load of files

	Strange []string // some objects under the run's prefix that are none of its batches
}

// maxKept bounds the lists of a Result.
const maxKept = 100

func (r *Result) addBatch(b report.BadBatch) {
	r.BadCount++
	r.BadBatches = keep(r.BadBatches, b, func(x, y report.BadBatch) int { return cmp.Compare(x.Number, y.Number) })
}

func (r *Result) addRow(b BadRow) {
	r.BadRowCount++
	r.BadRows = keep(r.BadRows, b, func(x, y BadRow) int { return cmp.Compare(x.Key, y.Key) })
}

// keep inserts v into a sorted list of at most maxKept, since databases answer in any order.
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
	return r.FoundRows == r.ExpectedRows && r.BadCount == 0 && r.BadRowCount == 0
}

// Proves reports whether rows were counted: only that proves a run. The records of files are counted by their claims.
func (r *Result) Proves() bool {
	if r.Files != nil {
		return r.Mode != None
	}
	return r.Mode == Count || r.Mode == Full
}

// Failure returns one line about a result that is not OK.
func (r *Result) Failure() string {
	if r.Files != nil {
		text := "verify failed: " + r.Files.text()
		if r.BadRowCount > 0 {
			text += fmt.Sprintf(", %d of %d records that were read back are wrong", r.BadRowCount, r.SampledRows)
		} else if r.Files.Counted && r.Files.Acked == r.ExpectedRows {
			text += "; did something else write to the table? then --verify ack is the proof"
		}
		return text
	}
	switch r.Mode {
	case Ack:
		return fmt.Sprintf("verify failed: %d of %d rows were acknowledged", r.FoundRows, r.ExpectedRows)
	case Count:
		return fmt.Sprintf("verify failed: %d rows found, %d expected; wrong batches: %d%s",
			r.FoundRows, r.ExpectedRows, r.BadCount, r.first())
	}
	return fmt.Sprintf("verify failed: %d rows found, %d expected; wrong batches: %d, wrong rows of those read back: %d of %d%s",
		r.FoundRows, r.ExpectedRows, r.BadCount, r.BadRowCount, r.SampledRows, r.first())
}

// first says what is wrong with the first row or batch that is.
func (r *Result) first() string {
	switch {
	case len(r.BadRows) > 0:
		return ": " + r.BadRows[0].String()
	case len(r.BadBatches) > 0:
		return ": " + r.BadBatches[0].String()
	}
	return ""
}

// name gives the rows and batches of a dataset the names by which they are found in the table.
func (r *Result) name(d dataset.Dataset) {
	if d == nil {
		return
	}
	for i := range r.BadRows {
		r.BadRows[i].Name = dataset.KeyOf(d, r.BadRows[i].Key)
	}
	for i := range r.BadBatches {
		b := &r.BadBatches[i]
		b.Keys = dataset.KeysOf(d, b.FirstKey, b.LastKey)
	}
}

// Report returns the report's part.
func (r *Result) Report() report.Verify {
	if r.Mode == "" || r.Mode == None {
		return report.Verify{Mode: string(r.Mode)}
	}
	v := report.Verify{
		Mode: string(r.Mode), Ran: true, OK: r.OK && r.Untaken == 0,
		ExpectedRows: r.ExpectedRows, FoundRows: r.FoundRows, SampledRows: r.SampledRows,
		NotCompared: r.NotCompared,
		BadBatches:  r.BadBatches, BadCount: r.BadCount,
	}
	if f := r.Files; f != nil {
		v.Files = &report.VerifiedFiles{
			Records: f.Records, Rejected: f.Rejected, Acknowledged: f.Acked, Claimed: f.Claimed, Labels: f.Labels,
		}
		if f.Counted {
			v.Files.RowsBefore, v.Files.RowsAfter = f.Before, f.After
		}
	}
	if r.Untaken > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("the server acknowledged %d rows too few or too many", r.Untaken))
	}
	for _, b := range r.BadRows {
		v.Problems = append(v.Problems, b.String())
	}
	if more := r.BadRowCount - int64(len(r.BadRows)); more > 0 {
		v.Problems = append(v.Problems, fmt.Sprintf("%d more rows of the sample are wrong", more))
	}
	return v
}
