package loader

import (
	"fmt"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// Dedup is how a database recognises a batch that it has loaded before.
type Dedup uint8

// The ways.
const (
	DedupNone Dedup = iota
	DedupKey        // a label or file name that the server remembers for Caps.Window
	DedupTx         // a claim row in the transaction of the load
)

// String returns the text that the plan shows.
func (d Dedup) String() string {
	return [...]string{"none", "label", "claim row"}[d]
}

// Caps is what a method can do: the differences between databases that are not wire protocol, as data.
type Caps struct {
	Formats []batch.Format // accepted, best first
	// Files are those formats in which a session takes the records of a user's file, with their Layout; none: it takes
	// none.
	Files []batch.Format
	// PlainFiles reports whether these have no Layout but the columns: the server reads csv in a way of its own, and
	// gets all records as this program's encoders write them.
	PlainFiles bool
	// Lacks are the types for which the database has no column that returns what was sent.
	Lacks []rows.Type
	// Refuses are what the database does not read in one of the formats.
	Refuses []Refusal
	// NoTextNulls reports whether the server might take a text \N for a NULL, whatever is around it, so that a column of
	// texts has either none of these or no NULLs.
	NoTextNulls bool
	Dedup       Dedup
	// Window is how long the server remembers a DedupKey by default; 0 = for ever. It is for people: the engine does
	// not use it. After that time Resolve counts the rows of a label that is not known any more, or returns Unknown.
	Window time.Duration
	Atomic bool // a batch goes in whole or not at all
	// Reason says why Dedup is weaker than on another server or table.
	Reason string
	// Staged reports whether Load only stores a batch, and Committer loads a group of stored batches at a time. Dedup,
	// Window and Atomic are then those of a group.
	Staged bool
	// Objects reports whether every batch becomes an object of a store, by one request, and is not loaded anywhere.
	Objects bool
	// Commits is how many groups to commit at the same time; 0 is 1.
	Commits int
	// DefaultGroupBytes is the default size of a group in encoded bytes.
	DefaultGroupBytes int64
	// MaxGroupBatches is the most batches a group may hold; 0 = no bound.
	MaxGroupBatches int64
	// MaxInFlight is how many loads the server runs at a time; others wait in its queue with open connections. 0 = no
	// bound known. Of a staged method it is Commits.
	MaxInFlight int

	MinRows, MaxRows  int64 // per batch; 0 = no bound
	MaxBytes          int64 // encoded bytes per batch; 0 = no bound
	DefaultBatchBytes int64 // encoded bytes
	// SoloBatchBytes is the default for one worker, and half of it for two, if that is more than DefaultBatchBytes:
	// while few workers wait for the answer to claim and commit, nobody sends.
	SoloBatchBytes int64
}

// Refusal is a type whose values a database does not read in a format, although both have it.
type Refusal struct {
	Format batch.Format
	Type   rows.Type
	Nulls  bool   // only if some values are NULL
	Why    string // and what to do instead
}

// Reads returns why the database does not read a schema's rows in a format; nil if it does.
func (c Caps) Reads(f batch.Format, s rows.Schema) error {
	plain, _ := f.Compression()
	for _, column := range s.Columns {
		for _, r := range c.Refuses {
			if r.Format == plain && r.Type == column.Type && (column.Nullable || !r.Nulls) {
				return fmt.Errorf("format %s cannot carry the values of column %s here: %s", f, column.Name, r.Why)
			}
		}
	}
	return nil
}

// Delivery is the guarantee of a run, or the one that the user wants.
type Delivery string

// The guarantees.
const (
	DeliveryAuto Delivery = "auto" // wanted: the best the method can give
	ExactlyOnce  Delivery = "exactly-once"
	AtLeastOnce  Delivery = "at-least-once"
)

// Delivery returns the best guarantee the method can give.
func (c Caps) Delivery() Delivery {
	if c.Dedup == DedupNone {
		return AtLeastOnce
	}
	return ExactlyOnce
}

// StoresObjects reports whether sessions put batches into an object store, which takes far more connections than a
// database, and charges for requests.
func (c Caps) StoresObjects() bool { return c.Staged || c.Objects }

// Contract is what a run and a back-end agreed on. It is kept with the run.
type Contract struct {
	Method    string       `json:"method"`
	Format    batch.Format `json:"format"`
	Delivery  Delivery     `json:"delivery"`
	Dedup     Dedup        `json:"dedup"`
	BatchRows int64        `json:"batch_rows"`
	// GroupBatches is how many batches a commit group holds: group n has those from n·GroupBatches on. 0: the method is
	// not staged.
	GroupBatches int64 `json:"group_batches,omitempty"`
	Commits      int   `json:"commits,omitempty"` // groups committed at the same time
}

// Staged reports whether batches are stored first and loaded in groups.
func (c Contract) Staged() bool { return c.GroupBatches > 0 }

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
