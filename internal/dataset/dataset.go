// Package dataset generates the rows that are pushed.
//
// A dataset is a pure function: a seed and a row number give the same row for any caller and number of rows, on any day
// and machine. Verification depends on that, since it generates the rows again instead of keeping them. So nothing here
// may read a clock, a global random source, the order of a map or the machine's byte order. Changing a single byte
// changes every recorded run; golden tests prevent that.
//
// There are two kinds of columns. Drawn columns follow from the seed and the row number; a run with more rows than D
// distinct ones draws row i as row i mod D. Derived columns follow from the row number alone and never repeat; they are
// stamped into buffers that were encoded before the clock started.
//
// Some datasets are built in (New). A user's own is a Spec in YAML, of which ParseSpec reads
//
//	version: 1                # of this format and of every generator's bytes
//	name: orders              # the table's default name
//	rows: 100_000_000         # default number of rows
//	parameters: {customers: 10_000_000}
//	key: [id]
//	columns:
//	  id:       {type: bigint, sequence: {start: 1}}
//	  ordered:  {type: timestamp, sequence: {start: 2026-01-01, step: 250us}}
//	  customer: {type: bigint, zipf: {s: 1.07, scatter: true, min: 1, max: "${customers}"}}
//	  status:   {type: text(10), values: {paid: 70%, shipped: 20%, open: 10%}}
//	  total:    {type: "decimal(12,2)", uniform: {min: 0.50, max: 20000}}
//	  note:     {type: text(400), words: {length: 20..400}}
//
// Columns with a sequence are derived, all others drawn. A drawn column's stream follows from the seed and the column's
// name, so others may come, go and change places. Whatever is unique has to be derived: drawn rows repeat.
package dataset

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/recent"
	"github.com/terapush/terapush/pkg/rows"
)

// Dataset is all rows of one table, 0 … Schema().MaxNumber(). It is a pointer, safe for concurrent use, and never
// changes; the blocks belong to callers.
type Dataset interface {
	Schema() rows.Schema // whose columns callers do not change
	// Fill resets dst to n rows and fills the drawn columns of rows first … first+n−1, 0 ≤ first. The derived columns are
	// undefined until Derive. A variable column of a block must stay below 4 GiB: callers fill long runs in pieces, which
	// also keeps a piece in the CPU's caches.
	Fill(dst *rows.Block, first int64, n int)
	// Derive overwrites the derived columns of the dst.Rows rows of dst, whose row numbers begin at first. It does not
	// change the drawn columns.
	Derive(dst *rows.Block, first int64)
}

// Options configure a dataset. The zero value is valid. A dataset without a payload accepts the default one only.
type Options struct {
	Seed         uint64 // every value gives other rows
	PayloadBytes int    // length of a row's payload in bytes, 1 … MaxPayloadBytes; 0 = DefaultPayloadBytes
	PayloadKind  Kind   // "" = Bytes
}

// The bounds of Options.PayloadBytes.
const (
	DefaultPayloadBytes = 512
	MaxPayloadBytes     = 1 << 20
)

// New returns the named dataset.
func New(name string, o Options) (Dataset, error) {
	return made.Get(fmt.Sprintf("%s %+v", name, o), func() (Dataset, error) { return newNamed(name, o) })
}

// builtIn are the datasets that have a name.
var builtIn = []struct {
	name string
	make func(o Options) Dataset
}{
	{documentsName, newDocuments},
	{peopleName, newPeople},
	{journalName, newJournal},
	{pairsName, newPairs},
	{lineitemName, newLineitem},
	{httplogsName, newHTTPLogs},
}

func newNamed(name string, o Options) (Dataset, error) {
	for _, d := range builtIn {
		if d.name != name {
			continue
		}
		if err := o.complete(name); err != nil {
			return nil, err
		}
		return d.make(o), nil
	}
	return nil, fmt.Errorf("dataset %q does not exist; available: %s", name, strings.Join(Names(), ", "))
}

// made are the last datasets by their text. A plan is made several times, and the cases of a sweep have one dataset or
// compare a few, whose tables may take a tenth of a second. Those of one take 128 MiB at most, and mostly less than 2.
var made = recent.Results[string, Dataset]{Most: 4}

// Names lists all datasets.
func Names() (all []string) {
	for _, d := range builtIn {
		all = append(all, d.name)
	}
	return all
}

// complete checks the payload of a dataset, and fills in what is missing. Only documents has one.
func (o *Options) complete(name string) error {
	o.PayloadBytes = cmp.Or(o.PayloadBytes, DefaultPayloadBytes)
	o.PayloadKind = cmp.Or(o.PayloadKind, Bytes)
	switch {
	case name != documentsName && o.PayloadBytes != DefaultPayloadBytes:
		return fmt.Errorf("dataset %s has no payload of %d bytes: the lengths of its columns are fixed", name, o.PayloadBytes)
	case name != documentsName && o.PayloadKind != Bytes:
		return fmt.Errorf("dataset %s has no payload of kind %s: its columns are fixed, and none has raw bytes", name, o.PayloadKind)
	case o.PayloadBytes < 1 || o.PayloadBytes > MaxPayloadBytes:
		return fmt.Errorf("payload of %d bytes: a row's payload has 1 to %d bytes", o.PayloadBytes, MaxPayloadBytes)
	case o.PayloadKind != Bytes && o.PayloadKind != Text:
		return fmt.Errorf("payload kind %q does not exist; valid are %s and %s", o.PayloadKind, Bytes, Text)
	}
	return nil
}

// Row fills dst with one row of a run: the drawn columns of dataset row `row mod distinct`, the derived columns of row
// number firstKey+row. distinct is the run's D; 0 means that all rows are distinct.
func Row(dst *rows.Block, d Dataset, firstKey, row, distinct int64) {
	drawn := row
	if distinct > 0 {
		drawn %= distinct
	}
	d.Fill(dst, drawn, 1)
	d.Derive(dst, firstKey+row)
}

// Widest makes dst one row with the largest derived numbers of rows 0 … last, so that every row's have at most its
// digits. They are those of the last row, except in columns of specs that start over or are in no order.
func Widest(dst *rows.Block, d Dataset, last int64) {
	dst.Reset(1)
	d.Derive(dst, last)
	for _, c := range ofSpec(d).derived {
		if v := &dst.Columns[c.column]; !v.Type.InBytes() && !v.Type.Variable() {
			v.Ints[0] = c.largest(last)
		}
	}
}
