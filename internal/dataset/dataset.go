// Package dataset makes the rows that are pushed.
//
// A dataset is a pure function: the same seed and row number give the same row, whatever the caller, for however many
// rows at once, on any day and on any machine. Proof of arrival rests on that, since it makes the rows again instead
// of keeping them. So nothing here may read a clock, a global random source, the order of a map or the machine's byte
// order, and a change that alters a single byte is a change of every recorded run: the golden tests stand guard.
//
// Columns are of two kinds. Drawn columns come from the seed and the row number; a run of more rows than D distinct
// ones draws row i as row i mod D. Derived columns come from the row number alone and are never repeated; they are
// stamped into buffers that were encoded before the clock started.
package dataset

import (
	"fmt"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/terapush/terapush/pkg/rows"
)

// Dataset is all rows of one table, those of the numbers 0 … Schema().MaxNumber(); no caller asks for others. It is safe
// for concurrent use; the blocks are the callers'.
type Dataset interface {
	Schema() rows.Schema
	// Fill resets dst to n rows and fills the drawn columns of rows first … first+n−1, 0 ≤ first. The derived columns
	// hold undefined values until Derive. The variable columns of one block hold less than 4 GiB each: callers fill
	// long runs piece by piece, which also keeps a piece in the CPU's caches.
	Fill(dst *rows.Block, first int64, n int)
	// Derive fills the derived columns of the dst.Rows rows of dst, whose row numbers begin at first, whatever they held
	// before. It leaves the drawn columns alone.
	Derive(dst *rows.Block, first int64)
}

// Options shape a dataset. The zero value is usable. A dataset whose columns are all given refuses a payload other than
// the default one, which it ignores.
type Options struct {
	Seed         uint64 // any value; every value gives other rows
	PayloadBytes int    // length of a row's payload in bytes, 1 … MaxPayloadBytes; 0 = DefaultPayloadBytes
	PayloadKind  Kind   // "" = Bytes
}

// The bounds of Options.PayloadBytes.
const (
	DefaultPayloadBytes = 512
	MaxPayloadBytes     = 1 << 20
)

// New makes the dataset of that name.
func New(name string, o Options) (Dataset, error) {
	switch name {
	case documentsName:
		return newDocuments(o)
	case peopleName:
		return newPeople(o)
	case journalName:
		return newJournal(o)
	case pairsName:
		return newPairs(o)
	case lineitemName:
		return newLineitem(o)
	case httplogsName:
		return newHTTPLogs(o)
	default:
		return nil, fmt.Errorf("dataset %q does not exist; there is: %s", name, strings.Join(Names(), ", "))
	}
}

// Names lists the datasets that New makes.
func Names() []string {
	return []string{documentsName, peopleName, journalName, pairsName, lineitemName, httplogsName}
}

// refusePayload returns an error for payload options, which have no effect where the columns are given.
func refusePayload(name string, o Options) error {
	if o.PayloadBytes != 0 && o.PayloadBytes != DefaultPayloadBytes {
		return fmt.Errorf("a payload of %d bytes was asked for, but the columns of dataset %s have lengths of their own",
			o.PayloadBytes, name)
	}
	if o.PayloadKind != "" && o.PayloadKind != Bytes {
		return fmt.Errorf("payload kind %s was asked for, but dataset %s has columns of its own, none of which is raw bytes",
			o.PayloadKind, name)
	}
	return nil
}

// Row fills dst with exactly one row of a run: the drawn columns of dataset row `row mod distinct`, the derived columns
// of row number firstKey+row. distinct is the run's D; 0 means that all rows are distinct.
func Row(dst *rows.Block, d Dataset, firstKey, row, distinct int64) {
	drawn := row
	if distinct > 0 {
		drawn %= distinct
	}
	d.Fill(dst, drawn, 1)
	d.Derive(dst, firstKey+row)
}

// ratioSample is how many bytes of payload CompressionRatio looks at, or one row if that is longer: zstd's default
// window, so more would find little more.
const ratioSample = 8 << 20

// CompressionRatio returns the size of the payload (the drawn variable columns' values, back to back) over its size
// after zstd at its default level, measured on the first n rows of the dataset, or the first few MiB if that is less:
// 1 means incompressible, 3 that a third is left. It takes tens of milliseconds.
func CompressionRatio(d Dataset, n int64) (float64, error) {
	s := d.Schema()
	b := rows.NewBlock(s)
	d.Fill(b, 0, int(max(1, min(n, ratioSample/s.MaxRowBytes()))))
	var payload []byte
	for _, v := range b.Columns {
		payload = append(payload, v.Data...)
	}
	if len(payload) == 0 {
		return 0, fmt.Errorf("dataset %s has no payload to compress", s.Dataset)
	}
	// Without the second option this library gives up on data without repetitions, where the original zstd still finds
	// that text uses 90 of 256 symbols.
	w, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithAllLitEntropyCompression(true))
	if err != nil {
		return 0, fmt.Errorf("start zstd: %w", err)
	}
	defer func() { _ = w.Close() }() // nothing is written through it
	return float64(len(payload)) / float64(len(w.EncodeAll(payload, nil))), nil
}
