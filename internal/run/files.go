package run

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Files are the user's files that a run loads. Their records have no numbers and no seed, and how many there are is
// known only at their end.
type Files struct {
	files.Spec
	// Columns are the table's, one for each field of a record; "" leaves the field out. Without any the Header of every
	// file has them.
	Columns []string `json:"columns,omitempty"`
	// Shard says which of the files this load sends: see Share.
	Shard config.Shard `json:"shard,omitzero"`
	// BatchBytes are those of the files in a batch; 0 until the back-end has agreed.
	BatchBytes int64 `json:"batch_bytes"`
	// Ended reports whether the files were read to their ends: then the plan's Rows are their records.
	Ended bool `json:"ended,omitempty"`
	// Fragile are columns in which the server would take a value for another one.
	Fragile []files.Field `json:"fragile,omitempty"`
	// TableRows is how many rows the table had before the run; nil if they were not counted.
	TableRows *int64 `json:"table_rows,omitempty"`
}

// NewFilesSpec returns the spec of a load that begins, of files that were found.
func NewFilesSpec(f *Files, b *config.Batches, method string) Spec {
	return Spec{Files: f, Wish: Wish{
		Method: method, Delivery: loader.ExactlyOnce, BatchBytes: int64(b.BatchBytes), Shared: !f.Shard.Whole(),
	}}
}

// wholeFiles is how many files a shard has at least, or all shards share each file.
const wholeFiles = 4

// Share returns which files the load reads, and which of their batches it sends, as files.Config has them. Where there
// are enough, each shard has files of its own, the largest first to the one that has the least; otherwise it reads all
// of them, and sends every n-th batch. All of that follows from the sizes of the files.
func (f *Files) Share() (only func(file int) bool, share func(file int, nth int64) bool) {
	index, count := f.Shard.Index, f.Shard.Count
	switch {
	case f.Shard.Whole():
		return nil, nil
	case int64(len(f.Files)) < wholeFiles*count:
		return nil, func(file int, nth int64) bool { return (int64(file)+nth)%count == index }
	}

	order := make([]int, len(f.Files))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(f.Files[b].Size, f.Files[a].Size) })
	has, of := make([]int64, count), make([]int64, len(order))
	for _, file := range order {
		least := slices.Index(has, slices.Min(has))
		has[least] += max(f.Files[file].Size, 1)
		of[file] = int64(least)
	}
	return func(file int) bool { return of[file] == index }, nil
}

// Digest is the same for all shards of the same files: what they are read as, their sizes and hashes, and not where
// they are.
func (f *Files) Digest() string {
	of := f.Spec
	of.Files = slices.Clone(of.Files)
	for i := range of.Files {
		of.Files[i].Path, of.Files[i].Store = "", ""
	}
	text, err := json.Marshal(struct {
		files.Spec
		Columns    []string
		BatchBytes int64
	}{of, f.Columns, f.BatchBytes})
	if err != nil {
		panic(err) // numbers and texts
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Bytes returns the size of all files, as stored; 0 if one is not known.
func (f *Files) Bytes() (all int64) {
	for _, one := range f.Files {
		if one.Size < 0 {
			return 0
		}
		all += one.Size
	}
	return all
}

// largest returns the size of the largest file, as stored.
func (f *Files) largest() (most int64) {
	for _, one := range f.Files {
		most = max(most, one.Size)
	}
	return most
}

// PlainBytes is Bytes of files that are not compressed, 0 if one is: how much there is in it is known at its end.
func (f *Files) PlainBytes() int64 {
	if slices.ContainsFunc(f.Files, func(one files.File) bool { return one.Compression != files.Plain }) {
		return 0
	}
	return f.Bytes()
}

// Fields returns the columns of a file, one for each field of a record.
func (f *Files) Fields(file int) []string {
	if len(f.Columns) > 0 || file >= len(f.Files) {
		return f.Columns
	}
	return f.Files[file].Header
}

// Width returns how many fields a record has. An empty file has no header, and no records.
func (f *Files) Width() (fields int) {
	for i := range f.Files {
		fields = max(fields, len(f.Fields(i)))
	}
	return fields
}

// Column returns which of the columns that the files fill is named so, whatever the case; an error if none is.
func (f *Files) Column(name string) (string, error) {
	var columns []loader.Column
	for _, c := range f.schema().Columns {
		columns = append(columns, loader.Column{Name: c.Name})
	}
	return column(name, columns)
}

// Layout returns how the records of a file are written.
func (f *Files) Layout(file int) *batch.Layout {
	return &batch.Layout{Columns: f.Fields(file), Delimiter: f.Delimiter, Quote: f.Quote, Escape: f.Escape, Null: f.Null}
}

// Example is the Layout of the first file that has records, for statements that are only shown. Columns that are not
// known before the table is read are "…".
func (f *Files) Example() *batch.Layout {
	for i := range f.Files {
		if columns := f.Fields(i); len(columns) > 0 {
			return f.Layout(i)
		}
	}
	l := f.Layout(0)
	l.Columns = []string{"…"}
	return l
}

// Batches returns how many batches of BatchBytes there are in a file at least; 0 if that is known only at its end.
func (f *Files) Batches(file int) int64 {
	one := f.Files[file]
	if one.Size < 0 || one.Compression != files.Plain || f.BatchBytes <= 0 {
		return 0
	}
	return (one.Size + f.BatchBytes - 1) / f.BatchBytes
}

// ColumnsIn returns the columns of a file's fields, and what these may not be; nil: they may be anything.
func (f *Files) ColumnsIn(file int) []files.Field {
	if len(f.Fragile) == 0 && !f.Format.Named() {
		return nil
	}
	var all []files.Field
	for _, name := range f.Fields(file) {
		one := files.Field{Column: name}
		if i := slices.IndexFunc(f.Fragile, func(c files.Field) bool { return c.Column == name }); i >= 0 {
			one = f.Fragile[i]
		}
		all = append(all, one)
	}
	return all
}

// schema names the columns that the files fill.
func (f *Files) schema() (s rows.Schema) {
	seen := make(map[string]bool)
	for i := range max(len(f.Files), 1) {
		for _, name := range f.Fields(i) {
			if name != "" && !seen[name] {
				seen[name] = true
				s.Columns = append(s.Columns, rows.Column{Name: name, Type: rows.Text})
			}
		}
	}
	return s
}

// Wire returns the format in which a method gets the records; "" if it takes no files of this one. All formats can
// become TSV, or the csv of caps.PlainFiles, but for those that name their columns; the others are sent as they are.
func (f *Files) Wire(caps loader.Caps) batch.Format {
	ways := []batch.Format{batch.PGText, batch.TSV}
	switch {
	case f.Format.Named():
		ways = []batch.Format{batch.Format(f.Format)}
	case f.Format == files.CSV || caps.PlainFiles:
		ways[0] = batch.CSV
	}
	for _, wire := range ways {
		if slices.Contains(caps.Files, wire) {
			return wire
		}
	}
	return ""
}

// refuse returns why a method cannot load the files.
func (f *Files) refuse(method string, caps loader.Caps) error {
	switch {
	case len(caps.Files) == 0:
		return fmt.Errorf(
			"method %s does not take files yet: load takes PostgreSQL's copy, load-data of MySQL, MariaDB and TiDB, "+
				"and Databend's insert-no-presign", method)
	case f.Wire(caps) == "" && f.Format.Named():
		return fmt.Errorf("method %s does not parse %s, which Databend does: write the files as csv first", method, f.Format)
	case f.Wire(caps) == "":
		return fmt.Errorf("method %s does not take files of format %s", method, f.Format)
	case caps.Delivery() != loader.ExactlyOnce:
		return fmt.Errorf("a load needs exactly-once delivery, which method %s, the only one that takes files, "+
			"cannot give here: %s",
			method, caps.Reason)
	}
	return nil
}

// methodName is the method that was agreed on, or is asked for.
func (s Spec) methodName() string { return cmp.Or(s.Method, s.Wish.Method) }

// planFiles is MakePlan for files.
func planFiles(s Spec, caps loader.Caps, r Resources) (Plan, []string, error) {
	workers, warnings := r.Connections(caps)
	made, own := s, *s.Files
	made.Files = &own
	if err := own.refuse(s.methodName(), caps); err != nil {
		return Plan{}, warnings, err
	}
	if !s.agreed() {
		if caps.MaxBytes > 0 && s.Wish.BatchBytes > caps.MaxBytes {
			return Plan{}, warnings, fmt.Errorf("batches of %s are more than the %s that method %s takes here: "+
				"lower --batch-bytes", humanize.IBytes(uint64(s.Wish.BatchBytes)),
				humanize.IBytes(uint64(caps.MaxBytes)), s.methodName())
		}

		bytes := own.Bytes()
		if bytes == 0 {
			bytes = math.MaxInt64
		}
		w := want{
			Wish: s.Wish, rows: bytes, workers: workers,
			carries:  func(batch.Format) error { return nil },
			rowBytes: func(batch.Format) int64 { return 1 }, // so that rows are bytes
		}
		w.Format = own.Wire(caps)
		contract, more, err := w.negotiate(caps)
		warnings = append(warnings, more...)
		if err != nil {
			return Plan{}, warnings, err
		}
		size := contract.BatchRows
		switch {
		case own.Format == files.Parquet:
			size = own.largest()
		case s.Wish.BatchBytes == 0:
			size = max(size, smallestBatch)
		}
		own.BatchBytes, contract.BatchRows = size, 0
		made.Wish, made.Contract = Wish{}, contract
	}

	p := Plan{Spec: made, Cut: r.Cut}
	err := p.fitFiles(workers, r)
	return p, warnings, err
}

// smallestBatch is the least in bytes that files are cut into by default: smaller ones cost more than idle workers do.
const smallestBatch = 1 << 20

// fitFiles sets Workers, Buffers and Memory. One buffer more than workers is filled while these send. All of the memory
// is divided, since a record may be longer than a batch; what no record needs is never touched.
func (p *Plan) fitFiles(workers int, r Resources) error {
	if workers < 1 {
		return errors.New("--workers: at least 1")
	}
	one, advice := bufferBatches*p.Files.BatchBytes+bufferRoom, "lower --batch-bytes"
	if p.Files.Format == files.Parquet { // a file, sent as it is
		one, advice = p.Files.BatchBytes+bufferRoom, "write smaller files"
	}
	most := r.Memory / one
	if r.Unfilled {
		most = math.MaxInt64
	}
	if most < 2 {
		return fmt.Errorf("batches of %s need two buffers of %s, more than --memory %s: raise --memory or %s",
			humanize.IBytes(uint64(p.Files.BatchBytes)), humanize.IBytes(uint64(one)), humanize.IBytes(uint64(r.Memory)),
			advice)
	}

	p.Workers = int(min(int64(workers), most-1))
	p.Buffers = max(int(min(2*int64(p.Workers), most)), p.Workers+1)
	p.Memory = int64(p.Buffers) * min(max(r.Memory/int64(p.Buffers), one), maxBatchBytes)
	return nil
}

// bufferBatches is how many times as long as a batch a buffer is at least: it holds the bytes of the file, and behind
// them as they are sent.
const bufferBatches = 4

// bufferRoom is for what is rounded to pages, and for a line end that a file lacks.
const bufferRoom = 8 << 10
