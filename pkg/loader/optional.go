package loader

import (
	"context"
	"fmt"
	"math/big"

	"github.com/terapush/terapush/pkg/batch"
)

// The interfaces of this file are implemented by a Loader that can.

// Features are what a Loader can do besides loading: one field for each interface, nil where it cannot.
type Features struct {
	Resolver  Resolver
	Committer Committer
	Inventory Inventory
	Finisher  Finisher
	Claims    Claims
	Prober    Prober
	Reserver  Reserver
	Counter   Counter
	Fetcher   Fetcher
	Sizer     Sizer
	Measurer  Measurer
	Checker   Checker
}

// FeaturesOf returns what l can do. It is asked once, after Driver.Open, and is the only place that looks: a Loader
// must not be wrapped before, since a wrapper would hide its interfaces.
func FeaturesOf(l Loader) (f Features) {
	f.Resolver, _ = l.(Resolver)
	f.Committer, _ = l.(Committer)
	f.Inventory, _ = l.(Inventory)
	f.Finisher, _ = l.(Finisher)
	f.Claims, _ = l.(Claims)
	f.Prober, _ = l.(Prober)
	f.Reserver, _ = l.(Reserver)
	f.Counter, _ = l.(Counter)
	f.Fetcher, _ = l.(Fetcher)
	f.Sizer, _ = l.(Sizer)
	f.Measurer, _ = l.(Measurer)
	f.Checker, _ = l.(Checker)
	return f
}

// OnlyObjects reports whether objects are all there is of a run: a store, and no table that could be counted.
func (f Features) OnlyObjects() bool { return f.Inventory != nil && f.Counter == nil }

// Resolver finds out what became of an attempt whose answer was lost, and of batches an earlier process left behind.
type Resolver interface {
	// Resolve first ends whatever may still be running for the batch, then looks. Only then is "not applied" final.
	//
	// An error means that there was no answer, and the engine asks again. An Applied of Unknown is an answer: the
	// database does not know, and asking again would not help.
	Resolve(ctx context.Context, ref Ref) (Resolution, error)
}

// Ref names a batch and its rows without its bytes, or a commit group of a staged contract: then ID.Number is the
// group's.
type Ref struct {
	ID    batch.ID
	First int64
	Rows  int64
	// Attempt is the newest attempt that may have reached the server, counted as Batch.Attempt is; 0 when the engine
	// knows of none.
	Attempt int
}

// RefOf returns the batch's reference.
func RefOf(b *batch.Batch) Ref {
	return Ref{ID: b.ID, First: b.First, Rows: b.Rows, Attempt: b.Attempt}
}

// Committer loads what sessions have stored; a Loader whose Caps say Staged is one. Where the contract deduplicates it
// is a Resolver too, whose references are those of groups.
type Committer interface {
	// Commit makes the database load the group's objects, all or none of them, and waits. It may be asked again for a
	// group, which is always the same: where an earlier attempt had loaded it, the ack has AlreadyApplied.
	Commit(ctx context.Context, g Group) (Ack, error)
	// Discard removes the objects of a group that is in the table. What is gone already is no error.
	Discard(ctx context.Context, g Group) error
}

// Group is a commit group: the batches that the database loads at once.
type Group struct {
	Ref           // ID.Number is the group's; First and Rows span all members
	Members []Ref // in the order of their numbers, without a gap
}

// Inventory lists the batches of a run in an object store.
type Inventory interface {
	// Objects calls f with every object of the run, in no order, until f returns an error: its name, the batch it
	// holds and its length in bytes. Objects of other names under the run's prefix have number −1.
	Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error
}

// Finisher waits until rows that were acknowledged can be read: group commit and published transactions show them
// later.
type Finisher interface {
	// Finish comes after the last ack and before verification. The run put rows rows into the range. It returns what
	// the user should know, such as rows that are still in a write-ahead log when it gives up waiting; that is no
	// error, since verification will find what is missing.
	Finish(ctx context.Context, all KeyRange, rows int64) (notes []string, err error)
}

// Resolution is what Resolve found.
type Resolution struct {
	Applied Applied
	// Reason is, with an Applied of Unknown, why the outcome is not known: what was found, such as a part of the rows. It
	// becomes part of the batch's error.
	Reason string
	// Rows is how many rows at the front of the batch are there although the batch is not applied as a whole; only
	// methods that deduplicate by key range (DedupRange) report it, and the next attempt leaves them out.
	Rows int64
}

// Claims gives access to the claim rows of a run: the truth about what was applied.
type Claims interface {
	// Claimed calls f with every claimed batch of the run, in no order, until f returns an error. Under a staged contract
	// number and rows are those of commit groups.
	Claimed(ctx context.Context, run string, f func(number, rows int64) error) error
	// Forget removes the run's claims and reservations, and returns how many rows of the claim table that were; and
	// whatever else of the run a staged method has left in the database.
	Forget(ctx context.Context, run string) (rows int64, err error)
}

// Prober proves on this server and table what the contract assumes, and leaves nothing behind.
type Prober interface {
	// Probe sends a batch of one row, the run's first, and its claim through the method in a transaction, rolls back and
	// looks for both. A row that survived is removed by its key; one that was there before is an error, and stays.
	Probe(ctx context.Context, c Contract, b *batch.Batch) (Proof, error)
}

// Proof is what a probe found.
type Proof struct {
	Transactional bool   // neither the row nor the claim survived the rollback
	Reason        string // what survived and why, when not
}

// Reserver sets a range of row numbers aside for a run that appends. It is a Claims, too: Forget takes the range back.
type Reserver interface {
	// Reserve returns the first row number of a range that starts behind every row in the table and behind every
	// other reservation of its keys. Asked again for the same run it returns the same range. Where the range would end
	// behind last nothing is set aside, and the error is a *RangeError.
	Reserve(ctx context.Context, run string, rows, last int64) (first int64, err error)
}

// RangeError reports that a table has fewer row numbers left than a run is to have rows.
type RangeError struct {
	First int64 // behind all that is there or set aside
	Rows  int64 // that the run is to have, at least 1
	Last  int64 // the largest number there may be
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("the first free key is %d, behind all rows and all that is set aside for other runs, and the largest one is %d: "+
		"there is no room for %d rows", e.First, e.Last, e.Rows)
}

// Fits returns a *RangeError where rows from the first number on would go beyond last.
func Fits(first, rows, last int64) error {
	if first > last || rows-1 > last-first {
		return &RangeError{First: first, Rows: rows, Last: last}
	}
	return nil
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

// Grouping is what one scan counts. Bucket n spans the row numbers First + n·Size … First + (n+1)·Size − 1.
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
	// Fetch calls f for every row found with one of the numbers, with the values of all columns in the schema's order
	// as the dataset would fill them: numbers, dates (days), timestamps (microseconds) and decimals (times 10^Scale)
	// as int64, the others as []byte that f must not keep.
	Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error
}

// Sizer returns how much space the table takes.
type Sizer interface {
	// Stored returns the bytes of the table with its indexes as the server counts them.
	Stored(ctx context.Context) (int64, error)
}

// Measurer returns what the run has cost the server, where the server counts it.
type Measurer interface {
	// Measured comes after the last session was closed. The names of what it returns end with their unit, as
	// "redo_bytes" or "cpu_seconds" do; they become part of the report. What could not be measured, for want of a
	// privilege or since a session broke, is a note and no error.
	Measured(ctx context.Context) (cost map[string]float64, notes []string)
}
