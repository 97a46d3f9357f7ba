package loader

import (
	"context"
	"fmt"
	"math/big"

	"github.com/terapush/terapush/pkg/batch"
)

// Features are the optional interfaces of a Loader, nil if it does not implement them.
type Features struct {
	Resolver  Resolver
	Committer Committer
	Inventory Inventory
	Finisher  Finisher
	Claims    Claims
	Prober    Prober
	Counter   Counter
	Fetcher   Fetcher
	Sampler   Sampler
	Sizer     Sizer
	Measurer  Measurer
	Checker   Checker
	Suspecter Suspecter
	Sequencer Sequencer
	Describer Describer
}

// WithoutNumbers returns the features that need no row numbers.
func (f Features) WithoutNumbers() Features {
	f.Counter, f.Fetcher, f.Sampler, f.Sequencer = nil, nil, nil, nil
	return f
}

// FeaturesOf returns the optional interfaces of l, right after Driver.Open. l must not be wrapped, since a wrapper
// hides them.
func FeaturesOf(l Loader) (f Features) {
	f.Resolver, _ = l.(Resolver)
	f.Committer, _ = l.(Committer)
	f.Inventory, _ = l.(Inventory)
	f.Finisher, _ = l.(Finisher)
	f.Claims, _ = l.(Claims)
	f.Prober, _ = l.(Prober)
	f.Counter, _ = l.(Counter)
	f.Fetcher, _ = l.(Fetcher)
	f.Sampler, _ = l.(Sampler)
	f.Sizer, _ = l.(Sizer)
	f.Measurer, _ = l.(Measurer)
	f.Checker, _ = l.(Checker)
	f.Suspecter, _ = l.(Suspecter)
	f.Sequencer, _ = l.(Sequencer)
	f.Describer, _ = l.(Describer)
	return f
}

// OnlyObjects reports whether the target is an object store without a table to count.
func (f Features) OnlyObjects() bool { return f.Inventory != nil && f.Counter == nil }

// Resolver finds the outcome of attempts whose answer was lost, and of batches that an earlier process left.
type Resolver interface {
	// Resolve first ends whatever may still run for the batch, so that "not applied" is final.
	//
	// After an error the engine asks again. Unknown is an answer: asking again does not help.
	Resolve(ctx context.Context, ref Ref) (Resolution, error)
}

// Ref names a batch and its rows without its bytes, or a commit group of a staged contract: then ID.Number is the
// group's.
type Ref struct {
	ID    batch.ID
	First int64
	Rows  int64
	// Attempt is the newest attempt that may have reached the server, as Batch.Attempt; 0 if none is known.
	Attempt int
}

// RefOf returns the batch's reference.
func RefOf(b *batch.Batch) Ref {
	return Ref{ID: b.ID, First: b.First, Rows: b.Rows, Attempt: b.Attempt}
}

// Committer loads what sessions have stored. A Loader with Caps.Staged implements it and, if the contract deduplicates,
// Resolver for groups.
type Committer interface {
	// Commit makes the database load the group's objects, all or none, and waits. It may be called again for the same
	// group: if an earlier attempt loaded it, the ack has AlreadyApplied.
	Commit(ctx context.Context, g Group) (Ack, error)
	// Discard removes the objects of a group that is in the table. Missing objects are no error.
	Discard(ctx context.Context, g Group) error
}

// Group is a commit group: the batches that the database loads at once.
type Group struct {
	Ref           // ID.Number is the group's; First and Rows span all members
	Members []Ref // in the order of their numbers, without a gap
}

// Inventory lists the batches of a run in an object store.
type Inventory interface {
	// Objects calls f with every object of the run, in any order, until f returns an error: its name, the number of its
	// batch and its length in bytes. Other objects under the run's prefix have number −1.
	Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error
}

// Finisher waits until acknowledged rows are visible, where group commit or publishing makes them visible later.
type Finisher interface {
	// Finish is called between the last ack and verification. The range has rows rows of the run. Notes are for the
	// user: rows that are still not visible are no error, since verification finds what is missing.
	Finish(ctx context.Context, all KeyRange, rows int64) (notes []string, err error)
}

// Resolution is what Resolve found.
type Resolution struct {
	Applied Applied
	// Reason says why the outcome is Unknown, as part of the batch's error.
	Reason string
}

// Claims are the claim rows of runs, which decide what was applied, and the rows of the runs, which decide who may
// write. Whatever changes a run's row waits for the batches on their way and keeps later ones out; see RunRow.
type Claims interface {
	// Claimed calls f with every claimed batch of the run, in any order, until f returns an error. Under a staged
	// contract number and rows are those of commit groups. run is RunRow.Run.
	Claimed(ctx context.Context, run string, f func(number, rows int64) error) error
	// Runs returns the rows of all shards of the newest run with that name, in any order; none if there is no such run.
	// "" is all rows of all runs.
	Runs(ctx context.Context, name string) ([]RunRow, error)
	// Reserve gives the run that Prepare has begun its row numbers: from first on, or, if that is negative, behind all
	// rows of the table and all numbers of other runs. If the range would end after last, the error is a *RangeError;
	// if a run that is open has some of the numbers, a *BusyError.
	Reserve(ctx context.Context, first, rows, last int64) (int64, error)
	// Announce keeps the fingerprint of the run that Prepare has begun, upon which its other shards begin.
	Announce(ctx context.Context, fingerprint int64) error
	// Take makes this process the owner of the row of its shard, or of all rows of the run, and opens them again.
	// Sessions that were opened before cannot claim any more. The error is ErrUnknownRun if the database does not have
	// the run.
	Take(ctx context.Context, name string) (RunRow, error)
	// Settle closes the run, or this shard of it, or says that it is proven. keys are those that it has used. The error
	// is a *TakenOverError if another process has it by now.
	Settle(ctx context.Context, state RunState, keys KeyRange) error
	// Forget removes the run's claims, and what a staged method left of it in the database, and leaves a tombstone of
	// its rows. It returns the number of claims removed, and false if the database does not know the run.
	Forget(ctx context.Context, name string) (claims int64, known bool, err error)
	// Owned returns a *TakenOverError if another process has the run by now.
	Owned(ctx context.Context) error
	// GiveBack removes the rows of the run that Prepare has begun and that has sent nothing.
	GiveBack(ctx context.Context) error
}

// Prober proves on this server and table what the contract assumes, and leaves nothing behind.
type Prober interface {
	// Probe sends a batch of the run's first row and its claim in a transaction, rolls back and looks for both. A row
	// that survived is removed by its key; one that was there before is an error, and stays. In a table with LongScan
	// only the claim is sent and looked for, and the server's word is taken that the table's loads can be rolled back.
	// Once that is proven, it is called again with more rows of the run, of which only the first is looked for.
	Probe(ctx context.Context, c Contract, b *batch.Batch) (Proof, error)
}

// Proof is what a probe found.
type Proof struct {
	Transactional bool   // neither row nor claim survived the rollback
	Reason        string // what survived and why, if not
}

// RangeError reports that a table has fewer row numbers left than the run has rows.
type RangeError struct {
	First int64 // after all rows and reservations
	Rows  int64 // of the run, at least 1
	Last  int64 // the largest possible number
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("the first free key is %d, after all rows and all keys reserved for other runs, and the largest one is %d: "+
		"there is no room for %d rows", e.First, e.Last, e.Rows)
}

// Fits returns a *RangeError if rows from the first number on go beyond last.
func Fits(first, rows, last int64) error {
	if first > last || rows-1 > last-first {
		return &RangeError{First: first, Rows: rows, Last: last}
	}
	return nil
}

// Counter counts the rows that arrived.
type Counter interface {
	// Parts splits a scan of the range into at most n parts, for Grouping.Part. Every row is in one of them. A single
	// "" is a table without anything to split it by, or one that the server scans with all its cores anyway.
	Parts(ctx context.Context, r KeyRange, n int) ([]string, error)
	// Count scans the part once and calls f for every bucket with rows in it.
	Count(ctx context.Context, g Grouping, f func(Bucket) error) error
}

// KeyRange is a range of row numbers, both ends included.
type KeyRange struct{ First, Last int64 }

// Grouping is what one scan counts. Bucket n spans the row numbers First + n·Size … First + (n+1)·Size − 1.
type Grouping struct {
	KeyRange
	Size int64
	Part string // of Counter.Parts; "" is all
	// Mix asks for Bucket.Mix too; nil does not. Size must be at most MaxMixed.
	Mix *Mix
	// Measures asks for Bucket.Measures too, for which values stored apart from their rows have to be read.
	Measures bool
}

// Bucket is what a scan found of a batch. The offset of a row is its row number minus the bucket's first.
type Bucket struct {
	Number int64
	Rows   int64
	Min    int64 // smallest offset
	Max    int64 // largest offset
	// Sum of the offsets and of their squares: beyond 64 bits for large batches.
	Sum, Squares *big.Int
	Mix          *big.Int   // sum of Mix.Of over the offsets, if asked for
	Measures     []*big.Int // of rows.Schema.Measures, in their order, if asked for
}

// Add adds another part's bucket of the same number.
func (b *Bucket) Add(other Bucket) {
	b.Rows += other.Rows
	b.Min, b.Max = min(b.Min, other.Min), max(b.Max, other.Max)
	b.Sum.Add(b.Sum, other.Sum)
	b.Squares.Add(b.Squares, other.Squares)
	if b.Mix != nil {
		b.Mix.Add(b.Mix, other.Mix)
	}
	for i, n := range other.Measures {
		b.Measures[i].Add(b.Measures[i], n)
	}
}

// Fetcher reads single rows back.
type Fetcher interface {
	// Fetch calls f for every row with one of the numbers, with the values of all columns in the schema's order:
	// what rows.Vector has in Ints as int64, the others as []byte that f must not keep, and a NULL as nil. Of a column with
	// rows.Column.SQL only whether it is NULL counts.
	Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error
}

// Sampler reads rows from all over a table whose rows no index finds by their numbers.
type Sampler interface {
	// Sample calls f, as Fetch does, for the rows at n places that are evenly spread over the table, fewer if a place
	// is empty, and reads no more than these. It calls f for none where an index finds rows, or only a scan would.
	Sample(ctx context.Context, n int, f func(number int64, values []any) error) error
}

// Sizer returns the size of the table.
type Sizer interface {
	// Stored returns the bytes of the table with its indexes, as the server counts them.
	Stored(ctx context.Context) (int64, error)
}

// Measurer returns what the run cost the server, if the server counts it.
type Measurer interface {
	// Measured is called after the last session was closed. Names end with their unit, as "redo_bytes" or
	// "cpu_seconds", and become part of the report. What could not be measured is a note.
	Measured(ctx context.Context) (cost map[string]float64, notes []string)
}

// Suspecter names what a table does by itself, and a user may not think of when rows are missing, refused or others
// than were sent.
type Suspecter interface {
	// Suspects lists triggers, rules and policies. It is asked for the words of an error.
	Suspects(ctx context.Context) ([]string, error)
}

// Sequencer finds the sequences that number other programs' rows. A load that brings its own keys leaves them behind,
// and the next row of another program gets a key that is taken.
type Sequencer interface {
	// Sequences returns the statements that move sequences behind the row number last, for those that are not. move has
	// them executed.
	Sequences(ctx context.Context, last int64, move bool) (statements []string, err error)
}
