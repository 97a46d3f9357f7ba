package source

import (
	"errors"
	"fmt"
	"math"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Config configures a Ring.
type Config struct {
	Spans   // of one row at least
	Dataset dataset.Dataset
	Encoder encode.Encoder // for the dataset's schema; see NewEncoder
	Run     string         // the run's id

	Distinct int64 // D, a multiple of BatchRows; 0 = all rows are distinct. More than Rows is allowed.
	Buffers  int   // of the ring, ≥ 1; without refills as many as templates (D/B) and a few for batches in use

	// Done reports whether an earlier process has delivered a batch, so that Fill leaves it out; nil = none.
	Done func(number int64) bool
}

// NewEncoder returns the encoder for a run of the dataset, with digits for the largest keys of the run, so that any
// batch of it can be stamped over any other.
func NewEncoder(f batch.Format, d dataset.Dataset, firstKey, runRows int64) (encode.Encoder, error) {
	widest := rows.NewBlock(d.Schema())
	dataset.Widest(widest, d, firstKey+runRows-1)
	return encode.New(f, d.Schema(), encode.Options{Digits: encode.Digits(widest)})
}

// PageBytes is the size of a page of memory: buffers share none.
const PageBytes = 4096

// BufferBytes returns the size of a buffer of the ring, rounded up to pages: head, tail and room for the rows of a
// batch, which is more than they take but for one batch in many billions. A batch that takes more gets memory of its
// own.
func BufferBytes(d dataset.Dataset, e encode.Encoder, batchRows int64) int64 {
	bytes := maxBytes(e, batchRows)
	if _, perBatch := e.(encode.PerBatch); !perBatch {
		bytes -= batchRows*int64(e.MaxRow()) - SizesOf(d, e).bytes(batchRows)
	}
	return (bytes + PageBytes - 1) / PageBytes * PageBytes
}

// maxBytes returns the most bytes of a batch.
func maxBytes(e encode.Encoder, batchRows int64) int64 {
	if p, ok := e.(encode.PerBatch); ok {
		return p.MaxBytes(batchRows)
	}
	return int64(len(e.AppendHead(nil))+len(e.AppendTail(nil))) + batchRows*int64(e.MaxRow())
}

// Memory returns the bytes of the ring of a valid config: for every buffer BufferBytes, and 4 bytes for the offset of
// each derived field; if rows are not contiguous, of each derived column. It does not include some 90 bytes a buffer on
// Go's heap, and the scratch memory of each caller that encodes or stamps: less than 1 MiB, or three times the longest
// row.
func Memory(c Config) int64 {
	return int64(c.Buffers) * (BufferBytes(c.Dataset, c.Encoder, c.BatchRows) + 4*offsets(c))
}

// offsets returns how many offsets a buffer has.
func offsets(c Config) int64 {
	derived := derivedColumns(c.Dataset.Schema())
	if _, ok := c.Encoder.(encode.PerBatch); ok {
		return derived
	}
	return c.BatchRows * derived
}

func derivedColumns(s rows.Schema) int64 {
	var n int64
	for _, c := range s.Columns {
		if c.Derived {
			n++
		}
	}
	return n
}

// layout is a checked config with derived values.
type layout struct {
	Config
	stamper     encode.Stamper // nil: the format cannot be stamped
	schema      rows.Schema
	templates   int64
	bufferBytes int64
	offsets     int64 // of a buffer
}

func newLayout(c Config) (layout, error) {
	if c.Dataset == nil || c.Encoder == nil {
		return layout{}, errors.New("source: dataset and encoder are required")
	}
	l := layout{Config: c, schema: c.Dataset.Schema()}
	l.stamper, _ = c.Encoder.(encode.Stamper)

	var problems []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			problems = append(problems, fmt.Errorf("source: "+format, args...))
		}
	}
	check(c.FirstKey >= 0, "first key %d is negative", c.FirstKey)
	check(c.Rows >= 1, "%d rows: a run has at least 1", c.Rows)
	check(c.FirstKey < 0 || c.Rows-1 <= l.schema.MaxNumber()-c.FirstKey,
		"first key %d + %d rows is beyond %d, the largest number of a row of %s",
		c.FirstKey, c.Rows, l.schema.MaxNumber(), l.schema.Dataset)
	check(c.BatchRows >= 1, "%d rows a batch: a batch has at least 1", c.BatchRows)
	check(c.BatchRows < 1 || c.Distinct >= 0 && c.Distinct%c.BatchRows == 0,
		"%d distinct rows are not a whole number of batches of %d", c.Distinct, c.BatchRows)
	check(c.Buffers >= 1, "%d buffers: a ring has at least 1", c.Buffers)
	if len(problems) > 0 {
		return layout{}, errors.Join(problems...)
	}

	l.templates = c.Cycle(c.Distinct)
	l.bufferBytes, l.offsets = BufferBytes(c.Dataset, c.Encoder, c.BatchRows), offsets(c)
	if l.bufferBytes > math.MaxUint32 { // with head and tail, which grow with the rows
		return layout{}, fmt.Errorf("source: a batch of %d rows takes up to %d bytes, which does not fit a buffer of 4 GiB",
			c.BatchRows, l.bufferBytes)
	}
	return l, nil
}

func (l *layout) content(number int64) content {
	_, rows := l.Span(number)
	return content{template: number % l.templates, rows: int(rows)}
}

// first returns the first n batches that are not done, or all of them.
func (l *layout) first(n int) []int64 {
	var numbers []int64
	for k := int64(0); k < l.Batches() && len(numbers) < n; k++ {
		if l.Done == nil || !l.Done(k) {
			numbers = append(numbers, k)
		}
	}
	return numbers
}
