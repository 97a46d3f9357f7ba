package dataset

import (
	"fmt"
	"slices"

	"github.com/terapush/terapush/pkg/rows"
)

const documentsName = "documents"

// documents is the plain load: a key and an incompressible payload of one length. It measures bytes moved, nothing
// about the types.
type documents struct {
	schema   rows.Schema
	alphabet *alphabet
	start    uint64 // state of the stream at row 0
	payload  int    // bytes a row
	words    uint64 // words of the stream a row takes
}

func newDocuments(o Options) (*documents, error) {
	if o.PayloadBytes == 0 {
		o.PayloadBytes = DefaultPayloadBytes
	}
	if o.PayloadBytes < 1 || o.PayloadBytes > MaxPayloadBytes {
		return nil, fmt.Errorf("payload of %d bytes: a row's payload has 1 to %d bytes", o.PayloadBytes, MaxPayloadBytes)
	}
	if o.PayloadKind == "" {
		o.PayloadKind = Bytes
	}
	a, err := newAlphabet(o.PayloadKind)
	if err != nil {
		return nil, err
	}
	payload := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: o.PayloadBytes, Plain: true}
	if o.PayloadKind == Text {
		payload.Type = rows.Text
	}
	return &documents{
		schema: rows.Schema{
			Dataset: documentsName,
			Columns: []rows.Column{{Name: "document_id", Type: rows.Int64, Derived: true}, payload},
			Number:  []rows.Term{{Column: 0, Minus: 0, Times: 1}},
		},
		alphabet: a,
		// Neighbouring seeds must not give streams that are the same one, shifted by a word.
		start:   mix(o.Seed),
		payload: o.PayloadBytes,
		words:   uint64(o.PayloadBytes+7) / 8,
	}, nil
}

func (d *documents) Schema() rows.Schema { return d.schema }

// Fill reads one SplitMix64 stream at the place where the row's words lie, so no word is used for two rows.
func (d *documents) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	v := &dst.Columns[1]
	v.Data = slices.Grow(v.Data, n*d.payload)[:n*d.payload]
	v.Ends = slices.Grow(v.Ends, n)[:n]
	for i := range n {
		end := (i + 1) * d.payload
		v.Ends[i] = uint32(end)
		d.alphabet.draw(v.Data[end-d.payload:end], d.start+(uint64(first)+uint64(i))*d.words*gamma)
	}
}

// Derive numbers the documents: the key is the row number.
func (d *documents) Derive(dst *rows.Block, first int64) {
	keys := dst.Columns[0].Ints
	for i := range keys {
		keys[i] = first + int64(i)
	}
}
