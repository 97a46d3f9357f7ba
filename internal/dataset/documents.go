package dataset

import "github.com/terapush/terapush/pkg/rows"

const documentsName = "documents"

// documents is the plain load: a key and an incompressible payload of one length. It measures bytes moved, and no costs of
// types.
type documents struct {
	schema   rows.Schema
	alphabet *alphabet
	start    uint64 // state of the stream at row 0
	payload  int    // bytes a row
	words    uint64 // words of the stream a row takes
}

func newDocuments(o Options) Dataset {
	payload := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: o.PayloadBytes, Plain: true}
	symbols := func(byte) bool { return true }
	if o.PayloadKind == Text {
		payload.Type, symbols = rows.Text, isGraphic
	}
	return &documents{
		schema: rows.Schema{
			Dataset: documentsName,
			Columns: []rows.Column{{Name: "document_id", Type: rows.Int64, Derived: true}, payload},
			Number:  []rows.Term{{Column: 0, Minus: 0, Times: 1}},
		},
		alphabet: alphabetOf(symbols),
		// Without mix, neighboring seeds would give the same stream, shifted by a word.
		start:   mix(o.Seed),
		payload: o.PayloadBytes,
		words:   uint64(o.PayloadBytes+7) / 8,
	}
}

func (d *documents) Schema() rows.Schema { return d.schema }

// Fill reads one SplitMix64 stream at the position of each row's words, so no word is used for two rows.
func (d *documents) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	data := sized(&dst.Columns[1], n, d.payload)
	for state := d.start + uint64(first)*d.words*gamma; len(data) > 0; state += d.words * gamma {
		d.alphabet.draw(data[:d.payload], state)
		data = data[d.payload:]
	}
}

// Derive numbers the documents: the key is the row number.
func (d *documents) Derive(dst *rows.Block, first int64) { count(dst.Columns[0].Ints, first) }
