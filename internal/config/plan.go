package config

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/pkg/loader"
)

// Plan is a run in numbers: rows, batches, distinct rows, buffers, memory. To make it nothing is opened and nothing is
// asked, so the same input gives the same plan in a dry run and in a push. It is kept with the run and is the part of it that a resume may not change, except for
// Workers, Buffers and Memory.
type Plan struct {
	loader.Contract
	Dataset      string `json:"dataset"`
	Seed         uint64 `json:"seed"`
	PayloadBytes int    `json:"payload_bytes_per_row"`
	PayloadKind  string `json:"payload_kind"`
	FirstKey     int64  `json:"first_key"`
	Rows         int64  `json:"rows"` // of the whole run; for a run by duration the most it can hold
	// ByDuration says that Rows is a bound and not a goal.
	ByDuration bool `json:"by_duration,omitempty"`
	// KeyRows is the number of rows that keys were made wide enough for: in text formats their digits, and with them the
	// length of every batch. It stays what it was when a run by duration gets its Rows in the end.
	KeyRows int64 `json:"key_rows"`
	// DistinctRows is D: row i is dataset row i mod D. It is a whole number of batches, at most those of the whole run;
	// 0 when every row is distinct.
	DistinctRows int64 `json:"distinct_rows"`
	// RowBytes is the column data of a row, the average where lengths vary. EncodedRowBytes is the most that a row takes
	// in the contract's format, and so what bounds memory.
	RowBytes        int64 `json:"row_bytes"`
	EncodedRowBytes int64 `json:"encoded_row_bytes"`

	Workers int   `json:"workers"`
	Buffers int   `json:"buffers"`
	Memory  int64 `json:"memory"` // bytes of all buffers with their offsets
}

// maxBatchBytes bounds a batch: offsets in a buffer have 32 bits, and head and tail lie in it too.
const maxBatchBytes = 4<<30 - 1<<20

// MaxDurationRows bounds a run by duration: it fixes the width of the key in text formats before the run knows how far
// it will get.
const MaxDurationRows = 1_000_000_000_000

// RowCount returns the number of rows of a run of rows that hold so many bytes; of one by duration, the most it can have.
func (p *Push) RowCount(rowBytes int64) int64 {
	switch {
	case p.Duration > 0:
		return MaxDurationRows
	case p.Rows > 0:
		return p.Rows
	}
	return max(divideUp(cmp.Or(int64(p.Bytes), int64(DefaultPayload)), rowBytes), 1)
}

// Resources is what the machine gives.
type Resources struct {
	Workers int
	// Default says that nobody asked for so many workers: there are no more than memory has batches for, and no warning.
	Default bool
	Memory  int64 // the most that all buffers together may take
	// BufferMemory is the memory of one buffer for batches of so many rows.
	BufferMemory func(batchRows int64) int64
}

// Fix sets what follows from the contract, the dataset, the keys and the number of rows: KeyRows, DistinctRows and what Fit
// sets. maxNumber is the largest row number that the dataset's keys carry (rows.Schema.MaxNumber), distinctBytes how much
// column data is drawn before it repeats, 0 for all of it. Warnings say where the machine made the plan smaller than what
// was asked for.
func (p *Plan) Fix(maxNumber, distinctBytes int64, r Resources) ([]string, error) {
	p.KeyRows = p.Rows
	widest := max(p.RowBytes, p.EncodedRowBytes, 1)
	most := math.MaxInt64 / widest // all sizes are counted in bytes
	if p.ByDuration {
		p.Rows = min(p.Rows, most) // which no time is long enough for; KeyRows stays, since the encoder was made for it
	}
	if p.Rows < 1 || p.Rows > most {
		return nil, fmt.Errorf("%d rows: a run has from 1 to %d of them where a row takes up to %d bytes (--rows, --bytes)", p.Rows, most, widest)
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
	return p.Fit(r)
}

// LargestKey is the largest key of any run, of a dataset whose row numbers go up to maxNumber. Half of them are left out,
// so that neither here nor in SQL a sum of a key and a number of rows is beyond 64 bits.
func LargestKey(maxNumber int64) int64 { return maxNumber / 2 }

// Fit sets workers and buffers to what the machine gives. A resume calls it again, on another machine perhaps: nothing
// it changes has an effect on the rows.
func (p *Plan) Fit(r Resources) ([]string, error) {
	var warnings []string
	one := r.BufferMemory(p.BatchRows)
	if r.Workers < 1 {
		return nil, errors.New("--workers: at least 1")
	}
	p.Workers = int(min(int64(r.Workers), p.Batches()))
	most := r.Memory / one
	if most < 1 && p.BatchRows == 1 {
		return nil, fmt.Errorf("one row needs a buffer of %s, more than --memory %s: raise --memory",
			humanize.IBytes(uint64(one)), humanize.IBytes(uint64(r.Memory)))
	}
	if most < 1 {
		return nil, fmt.Errorf("one batch of %d rows needs a buffer of %s, more than --memory %s: raise --memory or lower --batch-rows",
			p.BatchRows, humanize.IBytes(uint64(one)), humanize.IBytes(uint64(r.Memory)))
	}
	if r.Default {
		p.Workers = int(min(int64(p.Workers), most))
	}
	if most < int64(p.Workers) {
		warnings = append(warnings, fmt.Sprintf("--memory %s holds %d batches of %s, so only %d of %d workers can have one at a time",
			humanize.IBytes(uint64(r.Memory)), most, humanize.IBytes(uint64(one)), most, p.Workers))
	}
	// A buffer more for every worker: with just enough for the templates, those on their way would be missing, and
	// nearly every batch would be encoded anew.
	wanted := min(p.Templates()+int64(p.Workers), p.Batches())
	if p.DistinctRows == 0 {
		wanted = min(2*int64(p.Workers), p.Batches())
	}
	p.Buffers = int(min(wanted, most))
	p.Memory = int64(p.Buffers) * one
	return warnings, nil
}

// Batches is the number of batches of the run.
func (p *Plan) Batches() int64 { return divideUp(p.Rows, p.BatchRows) }

// BatchSize is the number of rows in a batch of the run; only the last may be short.
func (p *Plan) BatchSize(number int64) int64 { return min(p.BatchRows, p.Rows-number*p.BatchRows) }

// Templates is the number of different buffers the rows make: D / batch rows, and 0 when every row is distinct.
func (p *Plan) Templates() int64 { return p.DistinctRows / p.BatchRows }

// BatchBytes is the encoded length of a whole batch, without head and tail.
func (p *Plan) BatchBytes() int64 { return p.BatchRows * p.EncodedRowBytes }

// PayloadTotal is the column data of the whole run, reckoned by the average row.
func (p *Plan) PayloadTotal() int64 { return p.Rows * p.RowBytes }

// LastKey is the number of the last row.
func (p *Plan) LastKey() int64 { return p.FirstKey + p.Rows - 1 }

// divideUp rounds up. It takes care of numbers near the largest.
func divideUp(n, by int64) int64 {
	quotient := n / by
	if n%by > 0 {
		quotient++
	}
	return quotient
}

// What one connection is reckoned to carry, in bits a second, where the link's speed decides how many there are.
const (
	// flowBits is the most that one TCP connection carries on EC2 outside of a cluster placement group, however fast the
	// instance is.
	flowBits = 5_000_000_000
	// connectionBits is what a connection to a database carries. A server has one process or thread for each, whose parser
	// takes from 220 MB/s (MariaDB, LOAD DATA) to 600 MB/s (PostgreSQL, binary COPY), and nothing moves while it commits.
	// So 50 Gbit/s are 40 connections.
	connectionBits = flowBits / 4
	// requestBits is what a connection to an object store carries. Amazon reckons with a request for every 85 to 90 MB/s,
	// 72 of them at 50 Gbit/s; half as many again, since a worker that waits for its answer sends nothing. So 105.
	requestBits = 480_000_000
)

// Bounds of the number of workers that nobody asked for.
const (
	fewest = 4
	// A connection costs a database memory, and PostgreSQL takes a hundred by default. A store does not care: there it is
	// the memory of this machine that bounds them.
	mostConnections, mostRequests = 64, 256
)

// DefaultWorkers is how many connections load at the same time where the user does not say. It is two a core, 4 to 64: one sends
// while the other waits for its answer. On a link whose speed is known, in bits a second, there are at least as many as it
// takes to fill it; 0 is not known. Memory and the server may lower the number: see Plan.Fit and loader.Caps.MaxInFlight.
func DefaultWorkers(cores int, linkBits int64, caps loader.Caps) int {
	each, most := int64(connectionBits), int64(mostConnections)
	if caps.StoresObjects() {
		each, most = requestBits, mostRequests
	}
	most = max(most, divideUp(linkBits, flowBits))
	byCores := min(max(2*cores, fewest), mostConnections)
	return max(byCores, int(min(divideUp(linkBits, each), most)))
}
