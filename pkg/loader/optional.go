package loader

import (
	"context"
	"math/big"

	"github.com/terapush/terapush/pkg/batch"
)

// The interfaces of this file are implemented by a Loader that can; the engine asks once, at the start. Loaders are
// never wrapped, so nothing can hide them.

// Resolver finds out what became of an attempt whose answer was lost, and of batches an earlier process left behind.
type Resolver interface {
	// Resolve first ends whatever may still be running for the batch, then looks. Only then is "not applied" final.
	Resolve(ctx context.Context, ref Ref) (Resolution, error)
}

// Ref names a batch and its rows without its bytes.
type Ref struct {
	ID    batch.ID
	First int64
	Rows  int64
}

// RefOf is the batch's reference.
func RefOf(b *batch.Batch) Ref { return Ref{ID: b.ID, First: b.First, Rows: b.Rows} }

// Resolution is what Resolve found.
type Resolution struct {
	Applied Applied
	// Rows is how many rows at the front of the batch are there although the batch is not applied as a whole; only
	// methods that deduplicate by key range (DedupRange) report it, and the next attempt leaves them out.
	Rows int64
}

// Claims gives access to the claim rows of a run: the truth about what was applied.
type Claims interface {
	// Claimed calls f with every claimed batch of the run, in no order, until f returns an error.
	Claimed(ctx context.Context, run string, f func(number, rows int64) error) error
	// Forget removes the run's claims.
	Forget(ctx context.Context, run string) error
}

// Prober proves on this server and table what the contract assumes, and leaves nothing behind.
type Prober interface {
	// Probe sends a batch of one row and its claim through the method in a transaction, rolls back and looks for
	// both. A row that survived is removed by its key.
	Probe(ctx context.Context, c Contract, b *batch.Batch) (Proof, error)
}

// Proof is what a probe found.
type Proof struct {
	Transactional bool   // neither the row nor the claim survived the rollback
	Reason        string // what survived and why, when not
}

// Reserver sets a range of row numbers aside for a run that appends.
type Reserver interface {
	// Reserve returns the first row number of a range that starts behind every row in the table and behind every
	// other reservation. Asked again for the same run it returns the same range.
	Reserve(ctx context.Context, run string, rows int64) (first int64, err error)
}

// Counter counts the rows that arrived.
type Counter interface {
	// Count scans the table once and calls f for every bucket that holds rows. Rows outside the range are not counted.
	Count(ctx context.Context, g Grouping, f func(Bucket) error) error
	// Distinct scans the table once and returns the number of different row numbers in the range.
	Distinct(ctx context.Context, r KeyRange) (int64, error)
}

// KeyRange is a range of row numbers, both ends included.
type KeyRange struct{ First, Last int64 }

// Grouping says what one scan counts. Bucket n spans the row numbers First + n·Size … First + (n+1)·Size − 1.
type Grouping struct {
	KeyRange
	Size int64
	// Lengths asks for Bucket.Lengths too. Values that lie outside of their rows' pages have to be read for it.
	Lengths bool
}

// Bucket is what one scan found of one batch. The offset of a row is its row number less the bucket's first.
type Bucket struct {
	Number int64
	Rows   int64
	Min    int64 // smallest offset
	Max    int64 // largest offset
	// Sum of the offsets and of their squares: beyond 64 bits for large batches.
	Sum, Squares *big.Int
	Lengths      []int64 // summed bytes of each variable column, in the schema's order; only when asked for
}

// Fetcher reads single rows back.
type Fetcher interface {
	// Fetch calls f for every row found with one of the numbers, with the values of all columns in the schema's
	// order as the dataset would fill them: numbers as int64, the others as []byte that f must not keep.
	Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error
}

// Sizer tells how much room the table takes.
type Sizer interface {
	// Stored returns the bytes of the table with its indexes as the server counts them.
	Stored(ctx context.Context) (int64, error)
}
