package files

import (
	"fmt"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/source"
)

// ChangedError says that a file is not the one that the run began with. Nothing can be loaded from it.
type ChangedError struct {
	Path string
	What string // in words: "it has 17 bytes more than when the run began"
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("%s has changed: %s; put it back as it was, and resume", e.Path, e.What)
}

// RecordError says that a record has no meaning that all databases share: it has too many fields or too few, or a
// carriage return that ends no line.
type RecordError struct {
	Path string
	Line int64 // where the record begins
	Why  string
	// Record is the record as it is in the file, without its line end. It belongs to the error.
	Record []byte
}

func (e *RecordError) Error() string { return fmt.Sprintf("%s, line %d: %s", e.Path, e.Line, e.Why) }

// LongRecordError says that a record does not fit a buffer.
type LongRecordError struct {
	Path  string
	Line  int64 // where the record begins
	Quote int64 // the line of a quote that is still open at the end of the buffer, 0 = none
	Most  int64 // bytes of a record that fit
}

func (e *LongRecordError) Error() string {
	text := fmt.Sprintf("%s, line %d: the record has more than the %s that fit a buffer: raise --memory",
		e.Path, e.Line, humanize.IBytes(uint64(e.Most)))
	if e.Quote > 0 {
		text += fmt.Sprintf(", unless a quote is missing: the one in line %d does not close in these bytes", e.Quote)
	}
	return text
}

// EndError is what Source.Batch returns for a number beyond the last batch.
type EndError = source.EndError
