package run

import (
	"errors"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Plan is a run in numbers: a spec that leaves nothing open, and what one process has for it.
type Plan struct {
	Spec

	// Shard says which of the batches this process sends.
	Shard config.Shard `json:"shard,omitzero"`
	// DistinctRows is D: row i is dataset row i mod D. It is a whole number of batches; 0 if
	// every row is distinct.
	DistinctRows int64 `json:"distinct_rows"`
	RowBytes     int64 `json:"row_bytes"` // column data of a row, on average
	// EncodedRowBytes is the length of a row in the contract's format: at most, or on average in a user's dataset, whose
	// longest rows may be rare.
	EncodedRowBytes int64 `json:"encoded_row_bytes"`

	Workers int   `json:"workers"`
	Buffers int   `json:"buffers"`
	Memory  int64 `json:"memory"` // bytes of all buffers with their offsets
	// Samples is the memory that files of samples take beside the buffers, at most.
	Samples int64 `json:"-"`

	Data    dataset.Dataset `json:"-"` // nil in a plan that was read, and of files
	Encoder encode.Encoder  `json:"-"`
	Cut     *source.Cut     `json:"-"` // of files: the batches as far as they are known
}

// Resources are what one process has for a run. They do not change its batches; Cut, of files, says which these are so
// far.
type Resources struct {
	Shard    config.Shard
	Workers  int         // that the user asks for; 0: as many as cores and link need
	Cores    int         // only if Workers is 0, as LinkBits
	LinkBits int64       // of the link to the target, per second; 0: unknown
	Memory   int64       // for all buffers, at most
	Made     int64       // batches of the shard that need no buffer any more
	Unfilled bool        // no batch is to be made, and memory does not matter
	Cut      *source.Cut // of files; one to a process
}

// MakePlan makes the plan of a run for a database that can do what caps say. It is made anew whenever more is known:
// the server, the first key, that a probe has failed. Warnings say where the plan is less than what was asked for.
//
// A spec that leaves nothing open keeps its rows, batches and contract, and only what belongs to the process is made.
// The error is a *DeliveryError if the database cannot give the guarantee, else what the user asks for is
// impossible.
func MakePlan(s Spec, caps loader.Caps, r Resources) (Plan, []string, error) {
	if s.Files != nil {
		return planFiles(s, caps, r)
	}
	d, err := s.Data()
	if err != nil {
		return Plan{}, nil, err
	}
	schema := d.Dataset.Schema()
	workers, warnings := r.Connections(caps)
	rows := s.RowCount(schema.RowBytes())
	if s.ByDuration() && !s.agreed() { // as many as there are, if that is less
		rows = max(min(rows, LargestKey(schema.MaxNumber())-s.FirstKey+1), 1)
	}
	contract, more, err := s.contract(caps, d, rows, workers)
	warnings = append(warnings, more...)
	if contract.Dedup == loader.DedupKey && !schema.Ordered() {
		warnings = append(warnings, fmt.Sprintf("key %s is in no order: where the database no longer knows the outcome of "+
			"a batch, its keys are looked for in the whole table", schema.Key().Name))
	}
	if err != nil {
		return Plan{}, warnings, err
	}

	keyRows := s.KeyRows
	if keyRows == 0 {
		keyRows = rows
	}
	// KeyRows, since a batch that is sent again must keep its length.
	e, err := source.NewEncoder(contract.Format, d.Dataset, s.FirstKey, keyRows)
	if err != nil {
		return Plan{}, warnings, err
	}

	made := s
	made.Wish, made.Bytes = Wish{}, 0
	made.Contract, made.Rows, made.KeyRows = contract, rows, keyRows
	p := Plan{
		Spec: made, Shard: r.Shard, Data: d.Dataset, Encoder: e,
		RowBytes: schema.RowBytes(), EncodedRowBytes: d.RowBytes(e),
	}
	if err := p.refuse(schema); err != nil {
		return Plan{}, warnings, err
	}
	p.DistinctRows = p.distinctRows()
	if p.DistinctRows > 0 && p.DistinctRows < p.Rows && !p.ByDuration() {
		for _, want := range d.Wants(p.DistinctRows) {
			warnings = append(warnings, fmt.Sprintf("column %s wants %s distinct values, but drawn columns repeat "+
				"after %s rows: raise --distinct-bytes, or derive it",
				want.Column, humanize.Comma(want.Values), humanize.Comma(p.DistinctRows)))
		}
	}

	more, err = p.fit(workers, r)
	return p, append(warnings, more...), err
}

// maxBatchBytes bounds a batch: offsets in a buffer have 32 bits, and it holds head and tail, too.
const maxBatchBytes = 4<<30 - 1<<20

// refuse returns what makes the run impossible on any machine.
func (p *Plan) refuse(schema rows.Schema) error {
	widest := max(p.RowBytes, p.EncodedRowBytes, 1)
	if most := math.MaxInt64 / widest; p.Rows < 1 || p.Rows > most { // all sizes are counted in bytes
		return fmt.Errorf("%d rows: a run has 1 to %d rows if a row takes up to %d bytes (--rows, --bytes)",
			p.Rows, most, widest)
	}
	if last := LargestKey(schema.MaxNumber()); p.FirstKey < 0 || p.FirstKey > last-(p.Rows-1) {
		why := ""
		if schema.Limiting != "" {
			why = fmt.Sprintf(": column %s has values for no more, since half of them are for probes: "+
				"make it wider, or leave it out",
				schema.Limiting)
		}
		return fmt.Errorf("--first-key %d with %d rows: dataset %s has rows 0 to %d%s",
			p.FirstKey, p.Rows, p.Dataset, last, why)
	}
	if p.BatchRows > maxBatchBytes/max(p.EncodedRowBytes, 1) {
		return fmt.Errorf("a batch of %d rows of up to %d bytes is more than 4 GiB: lower --batch-rows or --batch-bytes",
			p.BatchRows, p.EncodedRowBytes)
	}
	if first, column := dataset.OwnParents(p.Data); min(p.BatchRows, p.Rows) < first {
		return fmt.Errorf("column %s refers to the first %d rows of its table, which batch 0 has to hold, and it has %d: "+
			"give more --rows, larger --batch-rows, or fewer rows in the file, as ref: {column: …, rows: %d}",
			column, first, min(p.BatchRows, p.Rows), min(p.BatchRows, p.Rows))
	}
	if column := p.refersAcross(); column != "" {
		return fmt.Errorf("--shard: column %s refers to rows of batch 0, and without claims a shard cannot tell whether that "+
			"is applied: use one process, or --delivery exactly-once", column)
	}
	if pieces, size := p.pieces(); pieces < p.Shard.Count {
		return &FewBatchesError{p.Shard, pieces, size}
	}
	return nil
}

// refersAcross returns a column whose values refer to rows that another shard sends, which has no claims to show that
// they are in. A database that loads by labels checks no references.
func (p *Plan) refersAcross() (column string) {
	if p.Shard.Count > 1 && p.Dedup == loader.DedupNone {
		_, column = dataset.OwnParents(p.Data)
	}
	return column
}

// FewBatchesError reports a run with fewer pieces than shards, to each of these.
type FewBatchesError struct {
	Shard           config.Shard
	Pieces, Batches int64 // of a piece
}

// Error implements error.
func (e *FewBatchesError) Error() string {
	return fmt.Sprintf("--shard %s: the run has only %d parts of %d batches: take fewer shards, or smaller batches or "+
		"commit groups",
		&e.Shard, e.Pieces, e.Batches)
}

// distinctRows returns whole batches, so that a template is always a whole batch of distinct rows.
func (p *Plan) distinctRows() int64 {
	if p.DistinctBytes == 0 {
		return 0
	}
	wanted := max(source.DivideUp(p.DistinctBytes, p.RowBytes), 1)
	return source.DivideUp(min(wanted, p.KeyRows), p.BatchRows) * p.BatchRows
}

// fit sets Workers, Buffers and Memory.
func (p *Plan) fit(workers int, r Resources) (warnings []string, err error) {
	if workers < 1 {
		return nil, errors.New("--workers: at least 1")
	}
	batches := max(p.ShardBatches()-r.Made, 1)
	one := source.Memory(source.Config{Spans: p.Spans(), Dataset: p.Data, Encoder: p.Encoder, Buffers: 1})
	p.Samples = dataset.SampleMemory(p.Data)
	most := max(r.Memory-p.Samples, 0) / one
	if r.Unfilled {
		most = math.MaxInt64
	}
	if most < 1 && p.Samples > 0 {
		return nil, fmt.Errorf("files of samples take %s, beside which --memory %s has no room for a batch of %s: "+
			"raise --memory, or take a part of the files",
			humanize.IBytes(uint64(p.Samples)), humanize.IBytes(uint64(r.Memory)), humanize.IBytes(uint64(one)))
	}
	if most < 1 {
		return nil, fmt.Errorf("one batch (--batch-rows %d) needs a buffer of %s, more than --memory %s: "+
			"raise --memory or lower --batch-rows",
			p.BatchRows, humanize.IBytes(uint64(one)), humanize.IBytes(uint64(r.Memory)))
	}

	p.Workers = int(min(int64(workers), batches))
	if r.Workers == 0 { // a default may shrink without a warning
		p.Workers = int(min(int64(p.Workers), most))
	}
	if most < int64(p.Workers) {
		warnings = append(warnings, fmt.Sprintf("--memory %s holds %d batches of %s, so only %d of %d workers "+
			"can have one at a time",
			humanize.IBytes(uint64(r.Memory)), most, humanize.IBytes(uint64(one)), most, p.Workers))
	}
	// One buffer more for every worker: with those of the templates alone, the ones in flight would be missing, and
	// nearly every batch would be encoded anew.
	wanted := p.Templates() + int64(p.Workers)
	if p.DistinctRows == 0 {
		wanted = 2 * int64(p.Workers)
	}
	p.Buffers = int(min(wanted, batches, most))
	p.Memory = int64(p.Buffers) * one
	return warnings, nil
}

// EndedAt returns the plan of a run by duration, or of files, that has ended before a batch.
func (p Plan) EndedAt(batch int64) Plan {
	p.Rows, p.Duration = p.Spans().Before(batch), 0
	if p.Files != nil {
		ended := *p.Files
		ended.Ended = true
		p.Files = &ended
	}
	return p
}

// Schema describes the columns that rows fill.
func (p *Plan) Schema() rows.Schema {
	if p.Files != nil {
		return p.Files.schema()
	}
	return p.Data.Schema()
}

// Spans returns how the run's rows are divided into batches.
func (p *Plan) Spans() source.Spans {
	return source.Spans{FirstKey: p.FirstKey, Rows: p.Rows, BatchRows: p.BatchRows, Cut: p.Cut}
}

// Batches returns the number of batches of the run.
func (p *Plan) Batches() int64 { return p.Spans().Batches() }

// Keys returns the keys of the run's rows; the last is below the first if rows have none.
func (p *Plan) Keys() loader.KeyRange {
	if p.Files != nil {
		return loader.KeyRange{Last: -1}
	}
	return p.keys(0, p.Batches())
}

func (p *Plan) keys(from, to int64) loader.KeyRange {
	first, last := p.Spans().Keys(from, to)
	return loader.KeyRange{First: first, Last: last}
}

// Sends returns the shard of the run, or of the files, that this process sends.
func (p *Plan) Sends() config.Shard {
	if p.Files != nil {
		return p.Files.Shard
	}
	return p.Shard
}

// ShardRange returns the batches that this process sends: from first on, up to and without end. A commit group is one
// shard's.
func (p *Plan) ShardRange() (first, end int64) {
	if p.Shard.Whole() {
		return 0, p.Batches()
	}
	pieces, size := p.pieces()
	each, more := pieces/p.Shard.Count, pieces%p.Shard.Count // the first ones have one more
	start := func(i int64) int64 { return min((i*each+min(i, more))*size, p.Batches()) }
	return start(p.Shard.Index), start(p.Shard.Index + 1)
}

// pieces returns into how many pieces the batches can be divided, and how many batches one has.
func (p *Plan) pieces() (n, size int64) {
	size = max(p.GroupBatches, 1)
	return source.DivideUp(p.Batches(), size), size
}

// ShardBatches returns how many batches this process sends.
func (p *Plan) ShardBatches() int64 {
	first, end := p.ShardRange()
	return end - first
}

// ShardKeys returns the keys of the rows that this process sends.
func (p *Plan) ShardKeys() loader.KeyRange { return p.keys(p.ShardRange()) }

// ShardRows returns the number of rows that this process sends.
func (p *Plan) ShardRows() int64 {
	if p.Files != nil {
		return p.Rows
	}
	keys := p.ShardKeys()
	return keys.Last - keys.First + 1
}

// BatchSize returns the number of rows in a batch; only the last may be short.
func (p *Plan) BatchSize(number int64) int64 {
	_, rows := p.Spans().Span(number)
	return rows
}

// Templates returns the number of different batches, but for their keys; 0 if every row is distinct.
func (p *Plan) Templates() int64 {
	if p.DistinctRows == 0 {
		return 0
	}
	return p.Spans().Cycle(p.DistinctRows)
}

// BatchBytes returns the encoded length of a whole batch, without head and tail; of files their bytes.
func (p *Plan) BatchBytes() int64 {
	if p.Files != nil {
		return p.Files.BatchBytes
	}
	return p.BatchRows * p.EncodedRowBytes
}

// TotalBytes returns the encoded length of the whole run, of files their size as stored; 0 if it is not known.
func (p *Plan) TotalBytes() int64 {
	switch {
	case p.Files != nil:
		return p.Files.Bytes()
	case p.ByDuration():
		return 0
	}
	return p.Rows * p.EncodedRowBytes
}

// PayloadTotal returns the column data that this process sends, by the average row.
func (p *Plan) PayloadTotal() int64 { return p.ShardRows() * p.RowBytes }
