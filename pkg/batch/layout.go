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
	Line, Record int64 // of the first one, in the file
	// LineOf returns the line where a record of the batch begins, while that is in use.
	LineOf func(record int64) int64
}

// String returns file and first line.
func (o Origin) String() string { return fmt.Sprintf("%s from line %d on", o.File, o.Line) }

// At returns the place of a line of the batch, or else of a record; 0 is not known.
func (o Origin) At(line, record int64) string {
	switch {
	case line > 0:
		line += o.Line - 1
	case record > 0 && o.LineOf != nil:
		line = o.LineOf(record)
	default:
		return o.String()
	}
	return fmt.Sprintf("%s, line %d", o.File, line)
}
