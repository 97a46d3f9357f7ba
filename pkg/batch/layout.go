package batch

import "fmt"

// Layout is how the records of a user's file are written, for a server that parses them. Batches of one run may differ
// in it: two files may have their columns in another order.
type Layout struct {
	// Columns are the table's, one for each field of a record. "" is a field that is left out, where the server can do
	// that.
	Columns []string
	// One character each, of CSV and PGText; TSV has tabs. Only CSV has quotes. Escape is what precedes a quote within
	// quotes, usually another one.
	Delimiter, Quote, Escape string
	// Null is the text of a field without quotes that stands for NULL, of CSV and PGText; in TSV it is \N.
	Null string
}

// Origin is where a batch's records are. All numbers count from 1.
type Origin struct {
	File         string
	Line, Record int64 // of the first one, in the file; Line is 0 where there are no lines
	// Records takes the batch apart, while it is in use.
	Records func() []Record
	// Bad are records that the batch was made without.
	Bad []Bad
}

// Record is one record of a batch.
type Record struct {
	Wire, Raw []byte // as it is sent, and as it is in the file, each with its line end
	Line      int64  // where it begins in the file
}

// Bad is a record that is left out.
type Bad struct {
	File   string `json:"file"`
	Line   int64  `json:"line"`             // where the record begins, from 1 on
	Column string `json:"column,omitempty"` // if the server says it
	Words  string `json:"error"`            // the server's own
	Record string `json:"record"`           // as it is in the file
}

// String returns file and first line.
func (o Origin) String() string {
	if o.Line == 0 {
		return o.File
	}
	return fmt.Sprintf("%s from line %d on", o.File, o.Line)
}
