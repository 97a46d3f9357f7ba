package verify

import "fmt"

// Files is what is to be known of a load of files, whose records have no keys.
type Files struct {
	Records int64 // in the files
	Acked   int64 // rows that the server acknowledged
	Claimed int64 // rows that the claims have, which were committed with them
	Labels  bool  // there are no claims: the server remembers a label of every batch
	// Rejected are records that the server refused, and that were left out.
	Rejected int64
	// Before and After are the rows of the table, if they were counted.
	Counted       bool
	Before, After int64
}

// Result compares the records of the files with what arrived: they were acknowledged, they are claimed, and the table
// has so many rows more, if its rows were counted. Which rows they are is not looked at.
func (f Files) Result(m Mode) Result {
	r := Result{Mode: m, ExpectedRows: f.Records, FoundRows: f.Claimed, Files: &f}
	switch {
	case f.Counted:
		r.FoundRows = f.After - f.Before
	case f.Labels:
		r.FoundRows = f.Acked
	}
	r.ExpectedRows -= f.Rejected
	claimed := f.Labels || f.Claimed == r.ExpectedRows
	r.OK = m == None || f.Acked == r.ExpectedRows && claimed && r.FoundRows == r.ExpectedRows
	return r
}

// text says what was compared.
func (f Files) text() string {
	text := fmt.Sprintf("%d records in the files, %d rejected, %d acknowledged", f.Records, f.Rejected, f.Acked)
	if !f.Labels {
		text += fmt.Sprintf(", %d claimed", f.Claimed)
	}
	if f.Counted {
		text += fmt.Sprintf(", table from %d to %d rows", f.Before, f.After)
	}
	return text
}
