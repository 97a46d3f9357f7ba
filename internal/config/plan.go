package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
)

// Plan is a run in numbers. It is made without any connection, so that a dry run and a push have the same. It is kept with
// the run, and a resume may change only Workers, Buffers and Memory.
type Plan struct {
	loader.Contract
	Dataset      string `json:"dataset"`
	Seed         uint64 `json:"seed"`
	PayloadBytes int    `json:"payload_bytes_per_row"`
	PayloadKind  string `json:"payload_kind"`
	FirstKey     int64  `json:"first_key"`
	Rows         int64  `json:"rows"`                  // of the whole run
	ByDuration   bool   `json:"by_duration,omitempty"` // Rows is a bound and not a goal
	// KeyRows is the number of rows that keys are wide enough for: in text formats it decides the length of every batch. It
	// does not change when a run by duration gets its Rows in the end.
	KeyRows int64 `json:"key_rows"`
	// DistinctRows is D: row i is dataset row i mod D. It is a whole number of batches, at most those of the run; 0 if
	// every row is distinct.
	DistinctRows int64 `json:"distinct_rows"`
	// Shard is the part of the batches that this process sends. All else is the same in every process of the run.
	Shard           Shard `json:"shard,omitzero"`
	RowBytes        int64 `json:"row_bytes"`         // column data of a row, on average
	EncodedRowBytes int64 `json:"encoded_row_bytes"` // of a row at most, in the contract's format

	Workers int   `json:"workers"`
	Buffers int   `json:"buffers"`
	Memory  int64 `json:"memory"` // bytes of all buffers with their offsets
}

// maxBatchBytes bounds a batch: offsets in a buffer have 32 bits, and it holds head and tail, too.
const maxBatchBytes = 4<<30 - 1<<20

// MaxDurationRows bounds a run by duration, and with it the width of its keys in text formats.
const MaxDurationRows = 1_000_000_000_000

// RowCount returns the number of rows of a run, at most if it is by duration, for rows of so many bytes.
func (p *Push) RowCount(rowBytes int64) int64 {
	switch {
	case p.Duration > 0:
		return MaxDurationRows
	case p.Rows > 0:
		return p.Rows
	}
	return max(divideUp(cmp.Or(int64(p.Bytes), int64(DefaultPayload)), rowBytes), 1)
}

// Resources are those of the machine.
type Resources struct {
	Workers int
	Default bool  // Workers is a default, and is reduced without a warning to the batches that memory holds
	Memory  int64 // for all buffers, at most
	// BufferMemory returns the memory of one buffer for batches of so many rows.
	BufferMemory func(batchRows int64) int64
}

// Fix sets KeyRows, DistinctRows and what Fit sets. maxNumber is the largest row number of the dataset's keys
// (rows.Schema.MaxNumber), distinctBytes the column data that is drawn before it repeats, 0 for all of it. Warnings say
// where the machine made the plan smaller than asked for.
func (p *Plan) Fix(maxNumber, distinctBytes int64, r Resources) ([]string, error) {
	p.KeyRows = p.Rows
	widest := max(p.RowBytes, p.EncodedRowBytes, 1)
	most := math.MaxInt64 / widest // all sizes are counted in bytes
	if p.ByDuration {
		p.Rows = min(p.Rows, most) // never reached; the encoder was made for KeyRows
	}
	if p.Rows < 1 || p.Rows > most {
		return nil, fmt.Errorf("%d rows: a run has 1 to %d rows if a row takes up to %d bytes (--rows, --bytes)", p.Rows, most, widest)
	}
	if last := LargestKey(maxNumber); p.FirstKey < 0 || p.FirstKey > last-(p.Rows-1) {
		return nil, fmt.Errorf("--first-key %d with %d rows: keys of %s run from 0 to %d", p.FirstKey, p.Rows, p.Dataset, last)
	}
	if p.BatchRows > maxBatchBytes/max(p.EncodedRowBytes, 1) {
		return nil, fmt.Errorf("a batch of %d rows of up to %d bytes is more than 4 GiB: lower --batch-rows or --batch-bytes",
			p.BatchRows, p.EncodedRowBytes)
	}
	if distinctBytes > 0 { // whole batches, so that a template is always a whole batch of distinct rows
		wanted := max(divideUp(distinctBytes, p.RowBytes), 1)
		p.DistinctRows = divideUp(min(wanted, p.KeyRows), p.BatchRows) * p.BatchRows
	}
	if units, size := p.units(); units < p.Shard.Count {
		return nil, fmt.Errorf("--shard %s: the run has only %d parts of %d batches: take fewer shards, or smaller batches or commit groups", &p.Shard, units, size)
	}
	return p.Fit(r)
}

// LargestKey returns the largest key of a run, for a dataset whose row numbers go up to maxNumber. It is half of that, so
// that the sum of a key and a number of rows fits into 64 bits, here and in SQL.
func LargestKey(maxNumber int64) int64 { return maxNumber / 2 }

// Fit sets Workers, Buffers and Memory, which do not affect the rows. A resume calls it again, perhaps on another machine.
func (p *Plan) Fit(r Resources) ([]string, error) {
	var warnings []string
	one := r.BufferMemory(p.BatchRows)
	if r.Workers < 1 {
		return nil, errors.New("--workers: at least 1")
	}
	p.Workers = int(min(int64(r.Workers), p.PartBatches()))
	most := r.Memory / one
	if most < 1 {
		return nil, fmt.Errorf("one batch (--batch-rows %d) needs a buffer of %s, more than --memory %s: "+
			"raise --memory or lower --batch-rows",
			p.BatchRows, humanize.IBytes(uint64(one)), humanize.IBytes(uint64(r.Memory)))
	}
	if r.Default {
		p.Workers = int(min(int64(p.Workers), most))
	}
	if most < int64(p.Workers) {
		warnings = append(warnings, fmt.Sprintf("--memory %s holds %d batches of %s, so only %d of %d workers can have one at a time",
			humanize.IBytes(uint64(r.Memory)), most, humanize.IBytes(uint64(one)), most, p.Workers))
	}
	// One buffer more for every worker: with those of the templates alone, the ones in flight would be missing, and nearly
	// every batch would be encoded anew.
	wanted := min(p.Templates()+int64(p.Workers), p.PartBatches())
	if p.DistinctRows == 0 {
		wanted = min(2*int64(p.Workers), p.PartBatches())
	}
	p.Buffers = int(min(wanted, most))
	p.Memory = int64(p.Buffers) * one
	return warnings, nil
}

// Spans returns how the run's rows are divided into batches.
func (p *Plan) Spans() source.Spans {
	return source.Spans{FirstKey: p.FirstKey, Rows: p.Rows, BatchRows: p.BatchRows}
}

// EndAt ends a run by duration before a batch.
func (p *Plan) EndAt(batch int64) { p.Rows, p.ByDuration = p.Spans().Before(batch), false }

// Batches returns the number of batches of the run.
func (p *Plan) Batches() int64 { return p.Spans().Batches() }

// Keys returns the keys of the run's rows.
func (p *Plan) Keys() loader.KeyRange { return p.keys(0, p.Batches()) }

func (p *Plan) keys(from, to int64) loader.KeyRange {
	first, last := p.Spans().Keys(from, to)
	return loader.KeyRange{First: first, Last: last}
}

// Part returns the batches that this process sends: from first on, up to and without end. A commit group is one shard's.
func (p *Plan) Part() (first, end int64) {
	if p.Shard.Whole() {
		return 0, p.Batches()
	}
	units, size := p.units()
	each, more := units/p.Shard.Count, units%p.Shard.Count // the first ones have one more
	start := func(i int64) int64 { return min((i*each+min(i, more))*size, p.Batches()) }
	return start(p.Shard.Index), start(p.Shard.Index + 1)
}

// units returns into how many pieces the batches can be divided, and how many batches one has.
func (p *Plan) units() (units, size int64) {
	size = max(p.GroupBatches, 1)
	return divideUp(p.Batches(), size), size
}

// PartBatches returns how many batches this process sends.
func (p *Plan) PartBatches() int64 {
	first, end := p.Part()
	return end - first
}

// PartKeys returns the keys of the rows that this process sends.
func (p *Plan) PartKeys() loader.KeyRange { return p.keys(p.Part()) }

// PartRows returns the number of rows that this process sends.
func (p *Plan) PartRows() int64 {
	keys := p.PartKeys()
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

// BatchBytes returns the encoded length of a whole batch, without head and tail.
func (p *Plan) BatchBytes() int64 { return p.BatchRows * p.EncodedRowBytes }

// PayloadTotal returns the column data that this process sends, by the average row.
func (p *Plan) PayloadTotal() int64 { return p.PartRows() * p.RowBytes }

// divideUp rounds up, without overflow near the largest number.
func divideUp(n, by int64) int64 {
	return n/by + min(n%by, 1)
}

// Estimated throughput of one connection, in bits a second.
const (
	// flowBits is the most of one TCP connection on EC2 outside of a cluster placement group.
	flowBits = 5_000_000_000
	// connectionBits is that of a connection to a database. The server's process or thread for it parses 220 MB/s (MariaDB,
	// LOAD DATA) to 600 MB/s (PostgreSQL, binary COPY), and is idle while it commits. So 50 Gbit/s take 40 connections.
	connectionBits = flowBits / 4
	// requestBits is that of a connection to an object store. Amazon expects a request for every 85 to 90 MB/s, 72 of them at
	// 50 Gbit/s. 105 allow for workers that wait for their answer.
	requestBits = 480_000_000
)

// Bounds of the default number of workers. A connection costs a database memory, and PostgreSQL allows a hundred by
// default. For a store only the memory of this machine counts.
const fewest, mostConnections, mostRequests = 4, 64, 256

// DefaultWorkers returns the default number of workers: two a core, 4 to 64, so that one sends while the other waits for its
// answer, and at least as many as fill a link of linkBits a second; 0 is unknown. Memory and the server may reduce the
// number: see Plan.Fit and loader.Caps.MaxInFlight.
func DefaultWorkers(cores int, linkBits int64, caps loader.Caps) int {
	each, most := int64(connectionBits), int64(mostConnections)
	if caps.StoresObjects() {
		each, most = requestBits, mostRequests
	}
	most = max(most, divideUp(linkBits, flowBits))
	byCores := min(max(2*cores, fewest), mostConnections)
	return max(byCores, int(min(divideUp(linkBits, each), most)))
}
