package dataset

import (
	"math/bits"

	"github.com/terapush/terapush/pkg/rows"
)

const lineitemName = "lineitem"

// lineitem is the largest table of TPC-H (specification 4.2.3): 16 columns of numbers, decimals, dates and short
// texts, as a warehouse has them. Keys, prices, dates and flags have the ranges and dependencies of the specification, so
// its queries are meaningful. The rows are not dbgen's: every row follows from seed and row number.
//
//   - Each order has four lines, where dbgen draws one to seven, and order keys have no gaps.
//   - The ranges of parts (200,000) and suppliers (10,000) are those of scale factor 1, since a row must not depend on the
//     number of rows.
//   - Comments have no comma, and do not begin or end with a blank, which some databases trim.
//
// The dates of all lines of an order count from one order date, which is not a column. It is drawn from the number of the
// order, row / 4. Unless the first key, and D if drawn columns repeat after D rows, are multiples of 4, some orders have
// lines of two drawn orders. Each line by itself is correct all the same.
type lineitem struct {
	schema rows.Schema
	start  uint64 // state of the lines' stream at row 0
	orders uint64 // state of the orders' stream at order 0
	words  uint64 // words of the lines' stream a row takes
	pool   comments

	instructions []text
	modes        []text
}

// The columns, by their position in the schema.
const (
	lineOrder = iota
	linePart
	lineSupplier
	lineNumber
	lineQuantity
	linePrice
	lineDiscount
	lineTax
	lineReturn
	lineStatus
	lineShipped
	lineCommitted
	lineReceived
	lineInstruction
	lineMode
	lineComment
)

const (
	orderLines = 4

	parts     = 200_000
	suppliers = 10_000

	firstOrderDay = 8035 // 1992-01-01 in days since 1970-01-01
	orderDays     = 2406 // to 1998-08-02, 151 days before the last date
	currentDay    = 9298 // 1995-06-17, which decides what has been shipped or returned
	shortComment  = 10   // bytes …
	longComment   = 43   // … to this many
)

func newLineitem(o Options) Dataset {
	d := &lineitem{
		start: mix(o.Seed), words: 3, pool: newComments(),
		instructions: newTexts("DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"),
		modes:        newTexts("REG AIR", "AIR", "RAIL", "SHIP", "TRUCK", "MAIL", "FOB"),
	}
	// The orders' stream begins at the first word of the lines' stream: elsewhere for every seed, and far from the lines'
	// words.
	d.orders = mix(d.start + gamma)
	number := func(name string) rows.Column { return rows.Column{Name: name, Type: rows.Int64} }
	derived := func(name string) rows.Column { return rows.Column{Name: name, Type: rows.Int64, Derived: true} }
	money := func(name string) rows.Column {
		return rows.Column{Name: name, Type: rows.Decimal, Digits: 15, Scale: 2}
	}
	day := func(name string) rows.Column { return rows.Column{Name: name, Type: rows.Date} }
	text := func(name string, bytes int) rows.Column {
		return rows.Column{Name: name, Type: rows.Text, MaxBytes: bytes, Plain: true}
	}
	d.schema = rows.Schema{
		Dataset: lineitemName,
		Columns: []rows.Column{
			derived("l_orderkey"), number("l_partkey"), number("l_suppkey"), derived("l_linenumber"),
			money("l_quantity"), money("l_extendedprice"), money("l_discount"), money("l_tax"),
			text("l_returnflag", 1), text("l_linestatus", 1), day("l_shipdate"), day("l_commitdate"), day("l_receiptdate"),
			text("l_shipinstruct", len("DELIVER IN PERSON")), text("l_shipmode", len("REG AIR")), text("l_comment", longComment),
		},
		Number:       []rows.Term{{Column: lineOrder, Minus: 1, Times: orderLines}, {Column: lineNumber, Minus: 1, Times: 1}},
		MeanRowBytes: 121,
	}
	return d
}

func (d *lineitem) Schema() rows.Schema { return d.schema }

// Fill reads three words for each row, and one for its order.
func (d *lineitem) Fill(dst *rows.Block, first int64, n int) {
	dst.Reset(n)
	d.goods(dst, first)
	d.dates(dst, first)
	d.texts(dst, first)
}

// goods fills part, supplier, quantity and price from the first word of a row.
func (d *lineitem) goods(dst *rows.Block, first int64) {
	part, supplier := dst.Columns[linePart].Ints, dst.Columns[lineSupplier].Ints
	quantity, price := dst.Columns[lineQuantity].Ints, dst.Columns[linePrice].Ints
	discount, tax := dst.Columns[lineDiscount].Ints, dst.Columns[lineTax].Ints
	state := d.start + uint64(first)*d.words*gamma
	for i := range dst.Rows {
		p, x := bits.Mul64(mix(state+gamma), parts)
		which, x := bits.Mul64(x, 4) // of a part's four suppliers
		pieces, x := bits.Mul64(x, 50)
		off, x := bits.Mul64(x, 11)
		duty, _ := bits.Mul64(x, 9)
		state += d.words * gamma

		key := p + 1
		part[i] = int64(key)
		supplier[i] = int64((key+which*(suppliers/4+p/suppliers))%suppliers + 1)
		retail := 90_000 + key/10%20_001 + 100*(key%1000) // cents
		quantity[i] = int64(pieces+1) * 100
		price[i] = int64((pieces + 1) * retail)
		discount[i], tax[i] = int64(off), int64(duty)
	}
}

// dates fills the dates, which count from the order's.
func (d *lineitem) dates(dst *rows.Block, first int64) {
	shipped, committed, received := dst.Columns[lineShipped].Ints, dst.Columns[lineCommitted].Ints, dst.Columns[lineReceived].Ints
	state := d.start + (uint64(first)*d.words+1)*gamma
	for i := range dst.Rows {
		lag, x := bits.Mul64(mix(state+gamma), 121)
		promised, x := bits.Mul64(x, 61)
		travel, _ := bits.Mul64(x, 30)
		state += d.words * gamma

		order := uint64(first+int64(i)) / orderLines
		day, _ := bits.Mul64(mix(d.orders+(order+1)*gamma), orderDays)
		ordered := firstOrderDay + int64(day)
		shipped[i] = ordered + 1 + int64(lag)
		committed[i] = ordered + 30 + int64(promised)
		received[i] = shipped[i] + 1 + int64(travel)
	}
}

// texts fills two flags, which follow from the dates, two texts from lists and the comment.
func (d *lineitem) texts(dst *rows.Block, first int64) {
	n := dst.Rows
	returned, status := sized(&dst.Columns[lineReturn], n, 1), sized(&dst.Columns[lineStatus], n, 1)
	shipped, received := dst.Columns[lineShipped].Ints, dst.Columns[lineReceived].Ints
	instructions := longTexts(&dst.Columns[lineInstruction], n, d.schema.Columns[lineInstruction].MaxBytes)
	modes := longTexts(&dst.Columns[lineMode], n, d.schema.Columns[lineMode].MaxBytes)
	comments := longTexts(&dst.Columns[lineComment], n, longComment)
	state := d.start + (uint64(first)*d.words+2)*gamma
	for i := range n {
		flag, x := bits.Mul64(mix(state+gamma), 2)
		instruction, x := bits.Mul64(x, uint64(len(d.instructions)))
		mode, x := bits.Mul64(x, uint64(len(d.modes)))
		length, x := bits.Mul64(x, longComment-shortComment+1)
		place, _ := bits.Mul64(x, commentPlaces)
		state += d.words * gamma

		returned[i] = "RA"[flag]
		if received[i] > currentDay {
			returned[i] = 'N'
		}
		status[i] = 'F'
		if shipped[i] > currentDay {
			status[i] = 'O'
		}
		instructions.appendLong(d.instructions[instruction])
		modes.append(d.modes[mode])
		comments.appendLong(d.pool.piece(int(place), int(shortComment+length)))
		instructions.end(i)
		modes.end(i)
		comments.end(i)
	}
	instructions.done()
	modes.done()
	comments.done()
}

// Derive numbers the orders, and the lines of each, from 1.
func (d *lineitem) Derive(dst *rows.Block, first int64) {
	orders, lines := dst.Columns[lineOrder].Ints, dst.Columns[lineNumber].Ints
	for i := range dst.Rows {
		row := uint64(first) + uint64(i)
		orders[i], lines[i] = int64(row/orderLines)+1, int64(row%orderLines)+1
	}
}
