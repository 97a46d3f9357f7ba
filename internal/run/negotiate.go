package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// DeliveryError reports that a method cannot deliver exactly once, because of the server or the table.
type DeliveryError struct{ Method, Reason string }

func (e *DeliveryError) Error() string {
	return fmt.Sprintf("method %s cannot deliver exactly once here: %s; choose --delivery at-least-once to do without",
		e.Method, cmp.Or(e.Reason, "the database cannot recognise a batch that it has loaded before"))
}

// contract returns what was agreed on, or agrees with what a database can do.
func (s Spec) contract(
	caps loader.Caps, d source.Data, rows int64, workers int,
) (loader.Contract, []string, error) {
	if s.agreed() {
		if s.Dedup != loader.DedupNone && caps.Dedup == loader.DedupNone {
			return s.Contract, nil, &DeliveryError{Method: s.Method, Reason: caps.Reason}
		}
		return s.Contract, nil, nil
	}

	for _, c := range d.Dataset.Schema().Columns {
		if slices.Contains(caps.Lacks, c.Type) {
			return loader.Contract{}, nil, &loader.Error{
				Op: "plan", Applied: loader.No, Hint: "declare it as text; for dataset documents use --payload-kind text",
				Err: fmt.Errorf("column %s holds %s, and the database has no type for them", c.Name, c.Type),
			}
		}
		if caps.NoTextNulls && mayReadNull(c) {
			return loader.Contract{}, nil, &loader.Error{
				Op: "plan", Applied: loader.No,
				Hint: "remove nulls from the column, or draw texts of letters and digits",
				Err: fmt.Errorf("some values of column %s are NULL, and others texts with any character: "+
					"by method %s this database might take a text \\N for a NULL", c.Name, s.Wish.Method),
			}
		}
	}
	carries := func(f batch.Format) error {
		return cmp.Or(caps.Reads(f, d.Dataset.Schema()), d.Carries(f))
	}
	w := want{
		Wish: s.Wish, rows: rows, workers: workers, carries: carries,
		rowBytes: func(f batch.Format) int64 { return d.RowBytesIn(f, caps.MaxBytes > 0) }, // the longest have to fit it
	}
	c, warnings, err := w.negotiate(caps)
	if parents, _ := d.OwnParents(); err == nil && c.BatchRows < parents && w.BatchRows+w.BatchBytes == 0 {
		w.BatchRows = parents
		return w.negotiate(caps)
	}
	return c, warnings, err
}

// mayReadNull reports whether a column has NULLs, and perhaps a text that reads like one.
func mayReadNull(c rows.Column) bool {
	return c.Nullable && c.Type.IsText() && c.Type != rows.JSON && !c.Plain
}

// want is what the user asks of a method, and what is known of the rows.
type want struct {
	Wish
	rows     int64 // of the whole run
	workers  int
	carries  func(batch.Format) error // nil if a format can carry the rows, and the database reads them
	rowBytes func(batch.Format) int64 // length of an encoded row
}

// sharedWorkers is for how many workers the default size of a batch is made where machines with other cores share a
// run.
const sharedWorkers = 64

// negotiate decides format, guarantee and batch size. Warnings say where the result is weaker than expected.
func (w want) negotiate(caps loader.Caps) (loader.Contract, []string, error) {
	if w.Shared {
		w.workers = sharedWorkers
	}
	format, err := w.format(caps)
	if err != nil {
		return loader.Contract{}, nil, err
	}
	c := loader.Contract{Method: w.Method, Format: format, Delivery: caps.Delivery(), Dedup: caps.Dedup}

	var warnings []string
	switch {
	case w.Delivery == loader.AtLeastOnce:
		c.Delivery, c.Dedup = loader.AtLeastOnce, loader.DedupNone
	case c.Delivery == loader.ExactlyOnce:
	case w.Delivery == loader.ExactlyOnce:
		return c, nil, &DeliveryError{Method: w.Method, Reason: caps.Reason}
	case caps.Reason != "":
		warnings = append(warnings, "delivery is at least once: "+caps.Reason)
	}

	rowBytes := w.rowBytes(format)
	if c.BatchRows, err = w.batchRows(caps, rowBytes); err != nil {
		return c, warnings, err
	}
	switch {
	case caps.Staged && caps.MaxGroupBatches > 0 && w.CommitBatches > caps.MaxGroupBatches:
		return c, nil, fmt.Errorf(
			"a group of %d batches is more than the %d that method %s commits at once: lower --commit-batches",
			w.CommitBatches, caps.MaxGroupBatches, w.Method)
	case caps.Staged:
		c.GroupBatches, c.Commits = w.groupBatches(caps, c.BatchRows*rowBytes, c.BatchRows), max(caps.Commits, 1)
	case w.CommitBatches > 0:
		return c, nil, fmt.Errorf(
			"method %s loads every batch by itself: --commit-batches is for methods that store objects first", w.Method)
	}
	return c, warnings, nil
}

func (w want) format(caps loader.Caps) (batch.Format, error) {
	if w.Format != "" {
		if !slices.Contains(caps.Formats, w.Format) {
			return "", fmt.Errorf("method %s does not take format %q; it takes %s",
				w.Method, w.Format, joined(caps.Formats))
		}
		return w.Format, w.carries(w.Format)
	}

	var refused []error
	for _, f := range caps.Formats {
		err := w.carries(f)
		if err == nil {
			return f, nil
		}
		refused = append(refused, err)
	}
	return "", fmt.Errorf("no format of method %s can carry these rows: %w", w.Method, errors.Join(refused...))
}

func joined(formats []batch.Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// batchesPerWorker is how many batches each worker gets at least by default: with fewer, workers are idle at the end of
// a run.
const batchesPerWorker = 4

func (w want) batchRows(caps loader.Caps, rowBytes int64) (int64, error) {
	n := w.BatchRows
	if n == 0 {
		bytes := cmp.Or(w.BatchBytes, batchBytes(caps, w.workers))
		if caps.MaxBytes > 0 && w.BatchBytes == 0 {
			bytes = min(bytes, caps.MaxBytes)
		}
		n = max(bytes/rowBytes, 1)
		if w.BatchBytes == 0 {
			n = min(n, max(w.rows/int64(w.workers*batchesPerWorker), 1))
			n = max(n, caps.MinRows)
		}
	}
	if w.rows > 0 {
		n = min(n, max(w.rows, caps.MinRows))
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
		return 0, fmt.Errorf("a batch of %d rows is about %d bytes, more than the %d that method %s takes here: "+
			"lower --batch-rows or --batch-bytes", n, n*rowBytes, caps.MaxBytes, w.Method)
	}
	return n, nil
}

// batchBytes returns the default size of a batch.
func batchBytes(caps loader.Caps, workers int) int64 {
	switch workers {
	case 1:
		return max(caps.DefaultBatchBytes, caps.SoloBatchBytes)
	case 2:
		return max(caps.DefaultBatchBytes, caps.SoloBatchBytes/2)
	}
	return caps.DefaultBatchBytes
}

// groupsPerRun is how many groups a run has at least by default, so that the database loads while uploads go on.
const groupsPerRun = 4

func (w want) groupBatches(caps loader.Caps, batchBytes, batchRows int64) int64 {
	if w.CommitBatches > 0 {
		return w.CommitBatches
	}
	n := max(caps.DefaultGroupBytes/max(batchBytes, 1), 1)
	if w.rows > 0 {
		n = min(n, max(w.rows/batchRows/groupsPerRun, 1))
	}
	if caps.MaxGroupBatches > 0 {
		n = min(n, caps.MaxGroupBatches)
	}
	return n
}
