package dataset

import (
	"fmt"
	"math/bits"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/rows"
)

const journalName = "journal"

// journal is the table of the public Oracle load generator (JakubIllner/load-generator): a key, two labels, a time and
// a line of a general ledger's journal as a JSON document of 25 fields. A row has 1360 bytes of column data: 1299 of the
// document, 20 of the key, 25 and 8 of the labels, 8 of the time. Generating it takes as long as a row of people, which has
// half as many bytes.
//
// Unlike the generator's, every value follows from seed and row number: the key is not a UUID, and no date is today's.
type journal struct {
	schema        rows.Schema
	start         uint64 // state of the stream at row 0
	words         uint64 // words of the stream a row takes
	run           string // column run_id in every row
	debit, credit journalForm
	capitals      *alphabet
	texts         []journalText
	days          []byte // all dates of documents, as 2006-01-02
}

// journalText is a field of random symbols, which has its own words.
type journalText struct {
	field, bytes int
	alphabet     *alphabet
	word         uint64 // index of its first word in the row's
}

// journalForm is the document of one side of the ledger, with a value in every field. JSON numbers have no leading zeros, so
// the side that is 0 is as much shorter as the other one is longer, and the positions of the fields differ.
type journalForm struct {
	text []byte
	at   [journalFields]int // where the fields' values begin, after the quotation mark if there is one
}

// The columns, by their position in the schema.
const (
	journalID       = 0
	journalRun      = 1
	journalScenario = 2
	journalTime     = 3
	journalPayload  = 4
)

// The fields of the document in their order.
const (
	fieldSource = iota
	fieldReference
	fieldHeaderText
	fieldPeriod
	fieldPeriodDate
	fieldCurrency
	fieldCategory
	fieldPosted
	fieldCreated
	fieldCreatedTime
	fieldActual
	fieldStatus
	fieldHeaderName
	fieldReversal
	fieldReversed
	fieldLine
	fieldAccount
	fieldOrganization
	fieldProject
	fieldSide
	fieldEnteredDebit
	fieldEnteredCredit
	fieldAccountedDebit
	fieldAccountedCredit
	fieldLineText
	journalFields
)

const (
	journalDigits   = 20 // of a key
	journalScene    = "terapush"
	journalDays     = 3653 // 2020-01-01 … 2029-12-31
	journalLag      = 7    // days until a line is posted, exclusive
	journalDayBytes = len(time.DateOnly)

	referenceBytes  = 20
	headerTextBytes = 200
	headerNameBytes = 80
	lineTextBytes   = 253
)

func newJournal(o Options) Dataset {
	between := func(first, last byte) *alphabet {
		return alphabetOf(func(c byte) bool { return first <= c && c <= last })
	}
	letters := between('a', 'z')
	d := &journal{
		start: mix(o.Seed),
		words: 4, // read by document itself
		run:   fmt.Sprintf("seed_%020d", o.Seed),
		debit: newJournalForm("DR", "10000.00", "0.00"), credit: newJournalForm("CR", "0.00", "10000.00"),
		capitals: between('A', 'Z'),
		texts: []journalText{
			{field: fieldReference, bytes: referenceBytes, alphabet: alphabetOf(func(c byte) bool {
				return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z'
			})},
			{field: fieldHeaderText, bytes: headerTextBytes, alphabet: letters},
			{field: fieldHeaderName, bytes: headerNameBytes, alphabet: letters},
			{field: fieldLineText, bytes: lineTextBytes, alphabet: letters},
		},
	}
	for i := range d.texts {
		d.texts[i].word = d.words
		d.words += uint64(d.texts[i].bytes+7) / 8
	}
	for i := range journalDays {
		d.days = time.Unix(int64(firstDay+i)*24*60*60, 0).UTC().AppendFormat(d.days, time.DateOnly)
	}
	d.schema = rows.Schema{
		Dataset: journalName,
		Columns: []rows.Column{
			{Name: "id", Type: rows.Text, MaxBytes: journalDigits, Declared: 40, Derived: true, Plain: true},
			{Name: "run_id", Type: rows.Text, MaxBytes: len(d.run), Declared: 40, Plain: true},
			{Name: "scenario", Type: rows.Text, MaxBytes: len(journalScene), Declared: 20, Plain: true},
			{Name: "ts", Type: rows.Timestamp, Derived: true},
			{Name: "payload", Type: rows.Text, MaxBytes: len(d.debit.text), Declared: 4000, JSON: true},
		},
		Number: []rows.Term{{Column: journalID, Minus: 0, Times: 1}},
	}
	return d
}

// newJournalForm writes the document with values of their final lengths.
func newJournalForm(side, debit, credit string) (f journalForm) {
	text := func(bytes int) string { return `"` + strings.Repeat("a", bytes) + `"` }
	for i, field := range [journalFields][2]string{
		{"journal_header_source_code", `"AAA"`},
		{"journal_external_reference", text(referenceBytes)},
		{"journal_header_description", text(headerTextBytes)},
		{"period_code", `"2020-01"`},
		{"period_date", `"2020-01-01"`},
		{"currency_code", `"AAA"`},
		{"journal_category_code", `"AAA"`},
		{"journal_posted_date", `"2020-01-01"`},
		{"journal_created_date", `"2020-01-01"`},
		{"journal_created_timestamp", `"2020-01-01T00:00:00.000000"`},
		{"journal_actual_flag", `"Y"`},
		{"journal_status", `"P"`},
		{"journal_header_name", text(headerNameBytes)},
		{"reversal_flag", `"N"`},
		{"reversal_journal_header_source_code", `"AAA"`},
		{"journal_line_number", `1000`},
		{"account_code", `"A000"`},
		{"organization_code", `"R000"`},
		{"project_code", `"P000"`},
		{"journal_line_type", `"` + side + `"`},
		{"entered_debit_amount", debit},
		{"entered_credit_amount", credit},
		{"accounted_debit_amount", debit},
		{"accounted_credit_amount", credit},
		{"journal_line_description", text(lineTextBytes)},
	} {
		name, value := field[0], field[1]
		lead := `,"`
		if i == 0 {
			lead = `{"`
		}
		f.text = append(f.text, lead+name+`":`...)
		f.at[i] = len(f.text)
		if value[0] == '"' {
			f.at[i]++
		}
		f.text = append(f.text, value...)
	}
	f.text = append(f.text, '}')
	return f
}

func (d *journal) Schema() rows.Schema { return d.schema }

// Fill copies one of the two documents for each row and overwrites its values.
func (d *journal) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	repeat(&dst.Columns[journalRun], n, d.run)
	repeat(&dst.Columns[journalScenario], n, journalScene)
	size := len(d.debit.text)
	data := sized(&dst.Columns[journalPayload], n, size)
	for state := d.start + uint64(first)*d.words*gamma; len(data) > 0; state += d.words * gamma {
		d.document(data[:size:size], state)
		data = data[size:]
	}
}

// document writes one row's document from the words of SplitMix64 that follow state.
func (d *journal) document(doc []byte, state uint64) {
	word := state + gamma
	side, x := bits.Mul64(mix(word), 2)
	f, debit, accounted := &d.debit, fieldEnteredDebit, fieldAccountedDebit
	if side == 1 {
		f, debit, accounted = &d.credit, fieldEnteredCredit, fieldAccountedCredit
	}
	copy(doc, f.text)

	cents, x := bits.Mul64(x, 9_000_000)
	line, _ := bits.Mul64(x, 9000)
	amount := doc[f.at[debit]:][:len("10000.00")]
	putDigits(amount[:5], 10_000+cents/100)
	putDigits(amount[6:], cents%100)
	copy(doc[f.at[accounted]:], amount)
	putDigits(doc[f.at[fieldLine]:][:4], 1000+line)

	word += gamma
	x = mix(word)
	for _, field := range [...]int{fieldAccount, fieldOrganization, fieldProject} {
		var code uint64
		code, x = bits.Mul64(x, 1000)
		putDigits(doc[f.at[field]+1:][:3], code)
	}
	flags, _ := bits.Mul64(x, 8)
	doc[f.at[fieldActual]] = "YN"[flags&1]
	doc[f.at[fieldStatus]] = "PU"[flags>>1&1] // posted or unposted
	doc[f.at[fieldReversal]] = "NY"[flags>>2&1]

	word += gamma
	x = mix(word)
	for _, field := range [...]int{fieldSource, fieldCurrency, fieldCategory, fieldReversed} {
		for i := range 3 {
			var letter uint64
			letter, x = bits.Mul64(x, d.capitals.size)
			doc[f.at[field]+i] = d.capitals.symbols[byte(letter)]
		}
	}

	d.dates(doc, f, mix(word+gamma))
	for i := range d.texts {
		t := &d.texts[i]
		t.alphabet.draw(doc[f.at[t.field]:][:t.bytes], state+t.word*gamma)
	}
}

// dates writes when the line was created, when it was posted, at most six days later, and the month of that.
func (d *journal) dates(doc []byte, f *journalForm, x uint64) {
	created, x := bits.Mul64(x, journalDays-journalLag+1)
	lag, x := bits.Mul64(x, journalLag)
	micros, _ := bits.Mul64(x, dayMicros)

	day := d.days[int(created)*journalDayBytes:][:journalDayBytes]
	copy(doc[f.at[fieldCreated]:], day)
	at := doc[f.at[fieldCreatedTime]:][:len("2020-01-01T00:00:00.000000")]
	copy(at, day)
	second := micros / 1_000_000
	putDigits(at[11:13], second/3600)
	putDigits(at[14:16], second/60%60)
	putDigits(at[17:19], second%60)
	putDigits(at[20:26], micros%1_000_000)

	day = d.days[int(created+lag)*journalDayBytes:][:journalDayBytes]
	copy(doc[f.at[fieldPosted]:], day)
	month := day[:len("2020-01")]
	copy(doc[f.at[fieldPeriod]:], month)
	copy(doc[f.at[fieldPeriodDate]:], month) // the form has its first day
}

// Derive writes the row number in digits, and the times of people.
func (d *journal) Derive(dst *rows.Block, first int64) {
	ids, times := sized(&dst.Columns[journalID], dst.Rows, journalDigits), dst.Columns[journalTime].Ints
	var id [journalDigits]byte
	putDigits(id[:], uint64(first))
	for i := range dst.Rows {
		copy(ids[i*journalDigits:], id[:])
		times[i] = firstDay*dayMicros + (first+int64(i))%peopleTimeRows*rowMicros
		addDigits(id[:], 1)
	}
}
