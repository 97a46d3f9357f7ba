package loader

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// Files are those formats in which a session takes the records of a user's file, with their Layout; none: it takes none.
	Files []batch.Format
	// PlainFiles reports whether these have no Layout but the columns: the server reads csv in a way of its own, and
	// gets all records as this program's encoders write them.
	PlainFiles bool
	// Lacks are the types for which the database has no column that returns what was sent.
	Lacks []rows.Type
	// NoNulls reports whether the method cannot send a NULL.
	NoNulls bool
	Dedup   Dedup
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

// Want is what the user wants of a method, and what is known of the rows.
type Want struct {
	Method     string
	Format     batch.Format // "": the first one of the method that can carry the rows
	Delivery   Delivery
	BatchRows  int64 // 0: from BatchBytes
	BatchBytes int64 // encoded bytes; 0: the method's default
	// GroupBatches is how many batches a commit group of a staged method holds; 0: from the method's default.
	GroupBatches int64
	Rows         int64 // of the whole run
	Workers      int
	// Carries returns nil if a format can carry the dataset's columns. RowBytes returns the length of an encoded row.
	Carries  func(batch.Format) error
	RowBytes func(batch.Format) int64
}

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

// DeliveryError reports that a method cannot deliver exactly once, because of the server or the table.
type DeliveryError struct{ Method, Reason string }

func (e *DeliveryError) Error() string {
	return fmt.Sprintf("method %s cannot deliver exactly once here: %s; choose --delivery at-least-once to do without",
		e.Method, orElse(e.Reason, "the database cannot recognise a batch that it has loaded before"))
}

// batchesPerWorker is how many batches each worker gets at least by default: with fewer, workers are idle at the end of
// a run.
const batchesPerWorker = 4

// Negotiate decides format, guarantee and batch size. Warnings say where the result is weaker than expected.
func Negotiate(caps Caps, w Want) (Contract, []string, error) {
	format, err := chooseFormat(caps, w)
	if err != nil {
		return Contract{}, nil, err
	}
	c := Contract{Method: w.Method, Format: format, Delivery: caps.Delivery(), Dedup: caps.Dedup}

	var warnings []string
	switch {
	case w.Delivery == AtLeastOnce:
		c.Delivery, c.Dedup = AtLeastOnce, DedupNone
	case c.Delivery == ExactlyOnce:
	case w.Delivery == ExactlyOnce:
		return c, nil, &DeliveryError{Method: w.Method, Reason: caps.Reason}
	case caps.Reason != "":
		warnings = append(warnings, "delivery is at least once: "+caps.Reason)
	}

	rowBytes := w.RowBytes(format)
	if c.BatchRows, err = chooseBatchRows(caps, w, rowBytes); err != nil {
		return c, warnings, err
	}
	switch {
	case caps.Staged && caps.MaxGroupBatches > 0 && w.GroupBatches > caps.MaxGroupBatches:
		return c, nil, fmt.Errorf("a group of %d batches is more than the %d that method %s commits at once: lower --commit-batches",
			w.GroupBatches, caps.MaxGroupBatches, w.Method)
	case caps.Staged:
		c.GroupBatches, c.Commits = chooseGroup(caps, w, c.BatchRows, rowBytes), max(caps.Commits, 1)
	case w.GroupBatches > 0:
		return c, nil, fmt.Errorf("method %s loads every batch by itself: --commit-batches is for methods that store objects first", w.Method)
	}
	return c, warnings, nil
}

// groupsPerRun is how many groups a run has at least by default, so that the database loads while uploads go on.
const groupsPerRun = 4

func chooseGroup(caps Caps, w Want, batchRows, rowBytes int64) int64 {
	if w.GroupBatches > 0 {
		return w.GroupBatches
	}
	n := max(caps.DefaultGroupBytes/max(batchRows*rowBytes, 1), 1)
	if w.Rows > 0 {
		n = min(n, max(w.Rows/batchRows/groupsPerRun, 1))
	}
	if caps.MaxGroupBatches > 0 {
		n = min(n, caps.MaxGroupBatches)
	}
	return n
}

func chooseFormat(caps Caps, w Want) (batch.Format, error) {
	if w.Format != "" {
		if !slices.Contains(caps.Formats, w.Format) {
			return "", fmt.Errorf("method %s does not take format %q; it takes %s", w.Method, w.Format, join(caps.Formats))
		}
		return w.Format, w.Carries(w.Format)
	}
	var refused []error
	for _, f := range caps.Formats {
		err := w.Carries(f)
		if err == nil {
			return f, nil
		}
		refused = append(refused, err)
	}
	return "", fmt.Errorf("no format of method %s can carry these rows: %w", w.Method, errors.Join(refused...))
}

// batchBytes returns the default size of a batch.
func (c Caps) batchBytes(workers int) int64 {
	switch workers {
	case 1:
		return max(c.DefaultBatchBytes, c.SoloBatchBytes)
	case 2:
		return max(c.DefaultBatchBytes, c.SoloBatchBytes/2)
	}
	return c.DefaultBatchBytes
}

func chooseBatchRows(caps Caps, w Want, rowBytes int64) (int64, error) {
	n := w.BatchRows
	if n == 0 {
		bytes := orElse(w.BatchBytes, caps.batchBytes(w.Workers))
		if caps.MaxBytes > 0 && w.BatchBytes == 0 {
			bytes = min(bytes, caps.MaxBytes)
		}
		n = max(bytes/rowBytes, 1)
		if w.BatchBytes == 0 {
			n = min(n, max(w.Rows/int64(w.Workers*batchesPerWorker), 1))
			n = max(n, caps.MinRows)
		}
	}
	if w.Rows > 0 {
		n = min(n, max(w.Rows, caps.MinRows))
	}
	if caps.MaxRows > 0 && w.BatchRows == 0 {
		n = min(n, caps.MaxRows)
	}
	switch {
	case caps.MaxRows > 0 && n > caps.MaxRows:
		return 0, fmt.Errorf("a batch of %d rows is more than the %d that method %s takes here", n, caps.MaxRows, w.Method)
	case n < caps.MinRows:
		return 0, fmt.Errorf("a batch of %d rows is less than the %d that method %s needs here", n, caps.MinRows, w.Method)
	case caps.MaxBytes > 0 && n > caps.MaxBytes/rowBytes:
		return 0, fmt.Errorf("a batch of %d rows is about %d bytes, more than the %d that method %s takes here: lower --batch-rows or --batch-bytes",
			n, n*rowBytes, caps.MaxBytes, w.Method)
	}
	return n, nil
}

func orElse[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func join(formats []batch.Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}
