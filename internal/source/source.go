// Package source says which rows a batch has, and makes batches ready to send. A Ring makes those of a dataset, in a
// fixed ring of buffers whose size is the program's memory.
//
// Row i of a run has the drawn columns of dataset row i mod D. With B rows a batch, and D a multiple of B, batch k
// equals batch k mod (D/B), its template, except for the derived columns. Templates are encoded before the clock
// starts. A batch is made by stamping the derived fields of a buffer that holds its template, one memory access a row.
// If no free buffer holds it, because it is still being sent or there are fewer buffers than templates, a free buffer
// is encoded again: a refill. So a straggler, a retry or a small machine costs CPU, but no caller waits for a
// particular buffer.
//
// A format that cannot be stamped (compressed ones) is encoded for every batch. These are not refills: more memory
// would not avoid them.
//
// The engine chooses: it asks for a batch by number and holds it for all attempts.
package source

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
)

// Source makes the batches of a run ready to send. It is safe for concurrent use.
//
// The rows of a batch of a dataset are known before it is made, and how many batches there are. Those of files
// become known as they are read: an *EndError says where they end.
type Source interface {
	// Span returns the key of a batch's first row, and the number of its rows, 0 if that is not known yet.
	Span(batch int64) (first, rows int64)
	// Batch returns the batch with that number, 0 ≤ number. It waits for a free buffer, or until ctx ends, and then
	// returns its error. The batch is complete. The caller must Release it; its buffer is free once every body opened
	// on it is closed, too. A source that finds its end by reading returns an *EndError behind its last batch. For one
	// that knows how many there are, such a number is a mistake of the caller's.
	Batch(ctx context.Context, number int64) (*batch.Batch, error)
	// Proof returns what a proof can know of the rows.
	Proof() Proof
	// Close gives back the memory, once no batch is in use. If one still is after two seconds, it only returns an
	// error.
	Close() error
}

// EndError is the error of a batch behind the last one.
type EndError struct {
	Batches int64 // of the run
}

func (e *EndError) Error() string { return fmt.Sprintf("the run has %d batches", e.Batches) }

// Proof says how rows can be made again from their keys.
type Proof struct {
	Dataset dataset.Dataset
	// Distinct is the number of rows after which drawn columns repeat, 0 if never. It is a whole number of batches
	// unless the run is shorter.
	Distinct int64
}
