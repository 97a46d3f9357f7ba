package dataset

import (
	"fmt"

	"github.com/terapush/terapush/pkg/rows"
)

const peopleName = "people"

// people is the table of the public Databend benchmark (wubx/databend_ingestion): 23 columns of numbers, dates and
// short texts, whose drawn ones hardly compress. A row has 676 bytes of column data. As CSV with a key of 7 digits it takes
// 728 bytes unquoted, 774 with every field quoted; the benchmark's own quoted rows have 766 on average, since its batch
// names and times are shorter.
//
// Unlike the benchmark's, every value follows from seed and row number, none from the clock.
type people struct {
	schema   rows.Schema
	alphabet *alphabet
	start    uint64 // state of the stream at row 0
	drawn    []drawn
	words    uint64 // words of the stream a row takes
	bank     int    // the column
}

// drawn is a column of random letters and digits, of one length.
type drawn struct {
	column, length int
	word           uint64 // index of its first word in the row's
}

// The derived columns, by their position in the schema.
const (
	peopleID       = 0
	peopleBatch    = 1
	peopleBirthday = 3
	peopleDay      = 21
	peopleTime     = 22
)

const (
	// bankName is the value of one column in all rows: six Chinese characters, 18 bytes.
	bankName = "东方商业银行"
	// batchName is the batch of row 0; 16 digits are enough for 2^63 / peopleBatchRows.
	batchName       = "batch_0000000000000000"
	peopleBatchRows = 2000

	dayMicros      = 24 * 60 * 60 * 1_000_000
	birthdays      = 20_000                       // days of column birthday, 1950-01-01 … 2004-10-03
	firstBirthday  = -7305                        // 1950-01-01 in days since 1970-01-01
	firstDay       = 18262                        // 2020-01-01
	rowMicros      = 1000                         // between the times of two rows
	peopleTimeRows = 3653 * dayMicros / rowMicros // after 2029-12-31 times start over
)

func newPeople(o Options) Dataset {
	d := &people{
		schema:   rows.Schema{Dataset: peopleName, Number: []rows.Term{{Column: peopleID, Minus: 0, Times: 1}}},
		alphabet: alphabetOf(isAlphanumeric), start: mix(o.Seed),
	}
	add := func(c rows.Column) { d.schema.Columns = append(d.schema.Columns, c) }
	text := func(name string, length int) {
		d.drawn = append(d.drawn, drawn{column: len(d.schema.Columns), length: length, word: d.words})
		d.words += uint64(length+7) / 8
		add(rows.Column{Name: name, Type: rows.Text, MaxBytes: length, Plain: true})
	}
	add(rows.Column{Name: "id", Type: rows.Int64, Derived: true})
	add(rows.Column{Name: "batch", Type: rows.Text, MaxBytes: len(batchName), Derived: true, Plain: true})
	text("name", 16)
	add(rows.Column{Name: "birthday", Type: rows.Date, Derived: true})
	text("address", 40)
	text("company", 40)
	text("job", 40)
	d.bank = len(d.schema.Columns)
	add(rows.Column{Name: "bank", Type: rows.Text, MaxBytes: len(bankName), Plain: true})
	text("password", 20)
	text("phone_number", 16)
	text("user_agent", 40)
	for i := range 10 {
		text(fmt.Sprintf("c%d", i+1), 40)
	}
	add(rows.Column{Name: "d", Type: rows.Date, Derived: true})
	add(rows.Column{Name: "t", Type: rows.Timestamp, Derived: true})
	return d
}

func (d *people) Schema() rows.Schema { return d.schema }

// Fill reads one SplitMix64 stream at the positions of the rows' words, column by column.
func (d *people) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	for _, c := range d.drawn {
		data := sized(&dst.Columns[c.column], n, c.length)
		state := d.start + (uint64(first)*d.words+c.word)*gamma
		for ; len(data) > 0; data = data[c.length:] {
			d.alphabet.draw(data[:c.length], state)
			state += d.words * gamma
		}
	}
	repeat(&dst.Columns[d.bank], n, bankName)
}

// Derive maps the row number, which may be any below 2^63, into the ranges of the columns.
func (d *people) Derive(dst *rows.Block, first int64) {
	ids, days, times := dst.Columns[peopleID].Ints, dst.Columns[peopleDay].Ints, dst.Columns[peopleTime].Ints
	born := dst.Columns[peopleBirthday].Ints
	batches := sized(&dst.Columns[peopleBatch], dst.Rows, len(batchName))
	name, named := []byte(batchName), int64(0)
	for i := range dst.Rows {
		row := first + int64(i)
		ids[i] = row
		born[i] = firstBirthday + row%birthdays
		micros := row % peopleTimeRows * rowMicros
		days[i] = firstDay + micros/dayMicros
		times[i] = firstDay*dayMicros + micros

		if batch := row / peopleBatchRows; batch != named {
			named = batch
			putDigits(name[len("batch_"):], uint64(batch))
		}
		copy(batches[i*len(batchName):], name)
	}
}
