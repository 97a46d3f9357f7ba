// Package run says what a run is: its Spec, which every process of the run has, and its Plan, which is the spec in
// numbers, for a database and a machine. Both are values; only the Cut of files, which their source fills, is shared
// and grows. The package is pure: it opens no connection, and reads no clock, no environment and no file but those that
// a dataset draws its rows from. Package runlog keeps a plan with the run; package push carries it out.
package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Spec is everything that decides a run's rows, its batches and its guarantee: processes with equal specs make equal
// batches. A spec does not change. Where the user has left something open, MakePlan decides it, and the plan has a spec
// that leaves nothing open. That one is kept with the run: a plan that is made of it on another machine, or by another
// version, has the same batches.
type Spec struct {
	Dataset string `json:"dataset"`
	// Definition is the spec of a user's dataset; nil for a built-in one.
	Definition *dataset.Spec `json:"definition,omitempty"`
	// Files are the user's files; then nothing of a dataset is set. nil: the rows are a dataset's.
	Files *Files `json:"files,omitempty"`

	Seed          uint64 `json:"seed"`
	PayloadBytes  int    `json:"payload_bytes_per_row"`
	PayloadKind   string `json:"payload_kind"`
	DistinctBytes int64  `json:"distinct_bytes"` // column data that is drawn before it repeats; 0: nothing repeats

	FirstKey int64         `json:"first_key"`
	Rows     int64         `json:"rows"`               // of the whole run, at most if it is by duration; 0: from Bytes
	Bytes    int64         `json:"bytes,omitempty"`    // column data
	Duration time.Duration `json:"duration,omitempty"` // above 0: the run ends by time
	// KeyRows is the number of rows that keys are wide enough for: in text formats it decides the length of every
	// batch. It stays what it is when a run by duration gets its Rows in the end. 0: as many as Rows.
	KeyRows int64 `json:"key_rows"`

	Wish Wish `json:"wish,omitzero"`
	// Contract is zero until the back-end has agreed; then Wish is zero.
	loader.Contract
}

// Wish is what a user asks of a method. What is zero is left to the method.
type Wish struct {
	Method     string          `json:"method,omitempty"` // always given
	Format     batch.Format    `json:"format,omitempty"`
	Delivery   loader.Delivery `json:"delivery,omitempty"`
	BatchRows  int64           `json:"batch_rows,omitempty"`
	BatchBytes int64           `json:"batch_bytes,omitempty"` // encoded
	// CommitBatches is how many batches a commit group holds.
	CommitBatches int64 `json:"commit_batches,omitempty"`
	// Shared reports whether several machines send batches, which have to be the same everywhere: their size does not
	// depend on this machine's workers.
	Shared bool `json:"shared,omitempty"`
}

// MaxDurationRows bounds a run by duration, and with it the width of its keys in text formats.
const MaxDurationRows = 1_000_000_000_000

// NewSpec returns the spec of a run that begins, for a method of the target. shared is Wish.Shared.
func NewSpec(d *config.Data, b *config.Batches, method string, shared bool) Spec {
	s := Spec{
		Dataset: d.Dataset, Seed: d.Seed, PayloadBytes: d.PayloadBytes, PayloadKind: d.PayloadKind,
		DistinctBytes: int64(d.DistinctBytes.Bytes),
		FirstKey:      d.FirstKey.Key, Rows: d.Rows, Bytes: int64(d.Bytes), Duration: d.Duration,
		Wish: Wish{
			Method: method, Format: batch.Format(b.Format), Delivery: loader.Delivery(b.Delivery),
			BatchRows: b.BatchRows, BatchBytes: int64(b.BatchBytes), CommitBatches: b.CommitBatches, Shared: shared,
		},
	}
	if d.DistinctBytes.All {
		s.DistinctBytes = 0
	}
	if d.Own == nil {
		return s
	}

	s.Dataset, s.Definition = d.Own.Name, d.Own.Unsized()
	if s.Rows == 0 && s.Bytes == 0 && s.Duration == 0 {
		s.Rows = d.Own.Rows
	}
	return s
}

// From returns the spec of the same run with another first key.
func (s Spec) From(firstKey int64) Spec {
	s.FirstKey = firstKey
	return s
}

// Data makes the dataset.
func (s Spec) Data() (source.Data, error) {
	return source.NewData(s.Dataset, s.Definition, dataset.Options{
		Seed: s.Seed, PayloadBytes: s.PayloadBytes, PayloadKind: dataset.Kind(s.PayloadKind),
	})
}

// DatasetID names the rows for people and for comparisons: a user's dataset with the digest of its spec.
func (s Spec) DatasetID() string {
	if s.Files != nil {
		return "files"
	}
	if s.Definition == nil {
		return s.Dataset
	}
	return s.Dataset + " " + s.Definition.Digest()
}

// Check returns an error if the dataset or the format that is asked for does not fit the method. All else depends on
// the server.
func (s Spec) Check(caps loader.Caps) error {
	if s.Files != nil {
		return s.Files.refuse(s.methodName(), caps)
	}
	d, err := s.Data()
	if err != nil || s.agreed() {
		return err
	}
	s.Wish.Delivery, s.Wish.BatchRows, s.Wish.BatchBytes, s.Wish.CommitBatches = loader.DeliveryAuto, 0, 0, 0
	_, _, err = s.contract(caps, d, s.RowCount(d.Dataset.Schema().RowBytes()), 1)
	return err
}

// ByDuration reports whether the run ends by time, and Rows is a bound and not a goal.
func (s Spec) ByDuration() bool { return s.Duration > 0 }

// RowCount returns the number of rows, at most if the run is by duration, for rows of so many bytes of column data.
func (s Spec) RowCount(rowBytes int64) int64 {
	switch {
	case s.Rows > 0:
		return s.Rows
	case s.ByDuration():
		return MaxDurationRows
	}
	return max(source.DivideUp(cmp.Or(s.Bytes, int64(config.DefaultPayload)), rowBytes), 1)
}

// Open reports whether the number of rows is not known yet.
func (s Spec) Open() bool { return s.ByDuration() || s.Files != nil && !s.Files.Ended }

// agreed reports whether nothing is left open.
func (s Spec) agreed() bool { return s.Method != "" }

// Fingerprint returns a number above 0 for the plan's rows and batches and the table that they go to. What belongs to
// one process of the run is not in it.
func (p Plan) Fingerprint(table string) int64 {
	of := p.Spec
	of.Definition = of.Definition.Portable()
	text, err := json.Marshal(struct {
		Spec
		RowBytes, EncodedRowBytes int64 // of this release
	}{of, p.RowBytes, p.EncodedRowBytes})
	if err != nil {
		panic(err) // numbers and texts
	}
	sum := sha256.Sum256(append(text, table...))
	return int64(binary.BigEndian.Uint64(sum[:])>>2) + 1
}

// LargestKey returns the largest key of a run, for a dataset whose row numbers go up to maxNumber. It is half of that,
// so that probes have numbers of their own, and so that the sum of a key and a number of rows fits into 64 bits, here
// and in SQL.
func LargestKey(maxNumber int64) int64 { return maxNumber / 2 }
