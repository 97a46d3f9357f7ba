package dataset

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/rows"
)

// SpecJSON draws a JSON object: its fields, in this order, each with a generator of its own.
type SpecJSON []SpecColumn

const (
	maxFields     = 256 // of an object
	maxDocument   = 64 << 10
	maxJSONNested = 8
	exactDigits   = 15 // of a number with a fraction that every double holds
)

func readJSON(r *specReader, c *SpecColumn, e entry, where string) Generator {
	document := SpecJSON{}
	for _, field := range r.mapping(e.value, where) {
		document = append(document, r.columnAt(field, where+": "+quoted(field.key), append(slices.Clip(c.place), "json", field.key)))
	}
	return &document
}

func (d *SpecJSON) plan(p *columnPlanner) (plan columnPlan) {
	switch {
	case len(*d) < 1 || len(*d) > maxFields:
		return p.refuse([]string{"json"}, "json: %d fields: an object has 1 to %d", len(*d), maxFields)
	case p.depth == maxJSONNested:
		return p.refuse([]string{"json"}, "json: objects are nested more than %d deep", maxJSONNested)
	}

	object := &document{}
	size := len("{}")
	for i := range *d {
		one := &(*d)[i]
		of := &columnPlanner{
			specPlanner: p.specPlanner, c: one, inside: true, depth: p.depth + 1,
			at: append(slices.Clip(p.at), "json", one.Name), name: p.name + ": json: " + quoted(one.Name),
		}
		if one.Type == "" {
			one.Type = fieldType(one.Generator)
		}
		field, ok := of.field()
		if !ok {
			continue
		}
		size += field.size
		object.fields = append(object.fields, field)
	}
	if p.hasProblem() {
		return plan
	}
	if size > maxDocument {
		return p.refuse([]string{"json"}, "json: a document has up to %d bytes: %d at most", size, maxDocument)
	}

	notASCII := func(f jsonField) bool {
		return !isASCII([]byte(f.label)) || f.column.Type.IsText() && !f.column.ASCII
	}
	plan.column.ASCII = !slices.ContainsFunc(object.fields, notASCII)
	object.together = max(min(documentRows, documentBytes/size), 1)
	plan.column.MaxBytes, plan.column.JSON = size, p.t.Type == rows.Text
	plan.drawn = func(start uint64) generator { return object.compile(start) }
	return plan
}

// fieldType is the type of a field whose file says none.
func fieldType(g Generator) string {
	switch g := g.(type) {
	case *SpecJSON:
		return "json"
	case *SpecRef:
		switch {
		case g.UUID != "":
			return "uuid"
		case g.Format == "":
			return "bigint"
		}
	case *SpecExponential:
		return typeOf(append(g.exact(), g.Mean))
	case exact:
		return typeOf(g.exact())
	}
	return "text"
}

// typeOf returns the narrowest of boolean, bigint, decimal and text that values have in common.
func typeOf(values []string) string {
	values = slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == "" })
	all := func(is func(string) bool) bool {
		return len(values) > 0 && !slices.ContainsFunc(values, func(v string) bool { return !is(v) })
	}
	scale := 0
	isNumber := func(v string) bool {
		_, fraction, _ := strings.Cut(v, ".")
		scale = max(scale, len(fraction))
		_, err := parseFraction(v)
		return err == nil
	}
	switch {
	case all(func(v string) bool { return v == "true" || v == "false" }):
		return "boolean"
	case all(isNumber) && scale == 0:
		return "bigint"
	case all(isNumber) && scale <= narrowDigits:
		return "decimal(18," + strconv.Itoa(scale) + ")"
	default:
		return "text"
	}
}

// field plans a field of a document.
func (p *columnPlanner) field() (field jsonField, ok bool) {
	absent := chance{}
	before := len(p.problems)
	if p.c.Absent != "" {
		absent = p.chance(&p.c.Absent, "absent")
	}
	items := p.items()
	if p.c.SQL != "" {
		p.wrong([]string{"sql"}, "sql is for columns")
	}
	switch p.c.Generator.(type) {
	case *SpecSequence, *SpecScatter, *SpecUUID, *SpecHash:
		p.wrong(nil, "a document is drawn, and cannot hold what follows from the row's number")
		return field, false
	}
	plan := p.plan()
	if p.t.Type == rows.Bytes {
		p.wrong([]string{"type"}, "JSON has no raw bytes: write text with alphabet: hex")
	}
	if p.t.IsList() {
		p.wrong([]string{"type"}, "a vector or an array is a column of its own, and not a part of a document")
	}
	if p.t.Type == rows.Wide {
		p.wrong([]string{"type"}, "numbers of JSON have %d digits: write a decimal of fewer, or text", exactDigits)
		return field, false
	}
	most := max(plan.most, -plan.least)
	if p.t.Type == rows.Uint64 {
		most = min(plan.least, plan.most) // of which one is below 0 if it is beyond 63 bits
	}
	if !p.isExact(most) {
		p.wrong(
			nil, "%s has more than %d digits, of which servers that keep numbers of JSON as floating point lose some: "+
				"write fewer, a larger step, or text", p.t.format(most), exactDigits)
	}
	if len(p.problems) > before {
		return field, false
	}

	name, err := json.Marshal(p.c.Name)
	if err != nil {
		panic(err) // a text
	}
	field = jsonField{
		label: string(name) + ":", column: plan.column, drawn: plan.drawn, absent: absent, items: items, name: p.c.Name,
		quoted: p.t.Type == rows.UUID || p.t.isTime() || p.t.IsText() && p.t.Type != rows.JSON,
	}
	_, text := p.c.Generator.(*SpecText)
	_, words := p.c.Generator.(*SpecWords)
	field.escaped = p.t.IsText() && p.t.Type != rows.JSON && (!text && !words || p.c.Common != nil)

	value := plan.column.MaxBytes
	switch {
	case field.escaped:
		value *= 6 // \u0007
	case p.t.Type == rows.UUID:
		value = uuidText
	case !p.t.Variable():
		value = len("-0000-00-00 00:00:00.000000+00:00") // no number is longer
	}
	value = max(value, len("null")) + len(`"",`)
	field.size = len(field.label) + value
	if items.listed {
		field.size = len(field.label) + len("[],") + items.most*min(value, maxDocument+1)
	}
	return field, true
}

// isExact reports whether numbers up to one are the same in every server's JSON. A multiple of 2^−b has b digits after
// the point; OceanBase shows the 16th digit of some that a double holds.
func (p *columnPlanner) isExact(most int64) bool {
	switch {
	case p.t.Type == rows.Uint64:
		return most >= 0 // as an int64
	case p.t.Type == rows.Decimal:
		return most < tenTo(exactDigits)
	case p.t.isFloat():
		return p.t.binary <= exactDigits && most>>p.t.binary < tenTo(exactDigits-p.t.binary)
	default:
		return true
	}
}

// jsonField is a part of a document.
type jsonField struct {
	name, label     string
	column          rows.Column
	drawn           func(start uint64) generator
	absent          chance
	items           items
	quoted, escaped bool
	size            int // in the document, at most

	generator generator // once it is compiled
	start     uint64
}

// document draws objects. Its fields are filled one after the other, and then written row by row.
type document struct {
	fields   []jsonField
	together int       // how many are drawn at a time
	scratch  sync.Pool // of *[]*rows.Block, one of each field
}

// How many documents are drawn at a time, and of how many bytes at most unless one is longer: their fields stay in the CPU's
// caches, and out of the memory that a run has not planned.
const (
	documentRows  = 512
	documentBytes = 1 << 20
)

func (d *document) compile(start uint64) *document {
	c := &document{fields: slices.Clone(d.fields), together: d.together}
	for i := range c.fields {
		f := &c.fields[i]
		f.start = streamOf(start, "json "+f.name)
		f.generator = f.drawn(f.start)
	}
	c.scratch.New = func() any {
		blocks := make([]*rows.Block, len(c.fields))
		for i, f := range c.fields {
			blocks[i] = rows.NewBlock(rows.Schema{Columns: []rows.Column{f.column}})
		}
		return &blocks
	}
	return c
}

func (d *document) fill(v *rows.Vector, _ uint64, first int64, n int) {
	scratch := d.scratch.Get().(*[]*rows.Block)
	defer d.scratch.Put(scratch)
	blocks := *scratch

	for from := 0; from < n; from += d.together {
		m := min(d.together, n-from)
		for i := range d.fields {
			f := &d.fields[i]
			each := f.items.each()
			blocks[i].Reset(m * each)
			f.generator.fill(&blocks[i].Columns[0], f.start, (first+int64(from))*int64(each), m*each)
		}
		for i := range m {
			v.Data = d.append(v.Data, blocks, first+int64(from), i)
			v.Ends = append(v.Ends, uint32(len(v.Data)))
		}
	}
}

// append writes document i of blocks that begin with a row.
func (d *document) append(dst []byte, blocks []*rows.Block, first int64, i int) []byte {
	dst = append(dst, '{')
	began := len(dst)
	for k := range d.fields {
		f, v := &d.fields[k], &blocks[k].Columns[0]
		if f.absent != (chance{}) && f.absent.of(streamOf(f.start, "absent"), first+int64(i)) {
			continue
		}
		if len(dst) > began {
			dst = append(dst, ',')
		}
		dst = append(dst, f.label...)
		if !f.items.listed {
			dst = f.appendField(dst, v, i)
			continue
		}
		dst = append(dst, '[')
		for item := range f.items.of(f.start, first+int64(i)) {
			if item > 0 {
				dst = append(dst, ',')
			}
			dst = f.appendField(dst, v, i*f.items.each()+item)
		}
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// appendField writes a value, or null.
func (f *jsonField) appendField(dst []byte, v *rows.Vector, i int) []byte {
	if v.IsNull(i) {
		return append(dst, "null"...)
	}
	if !f.quoted {
		return f.appendValue(dst, v, i)
	}
	dst = append(dst, '"')
	dst = f.appendValue(dst, v, i)
	return append(dst, '"')
}

func (f *jsonField) appendValue(dst []byte, v *rows.Vector, i int) []byte {
	switch {
	case f.escaped:
		return appendEscaped(dst, v.Value(i))
	case v.Type.Variable():
		return append(dst, v.Value(i)...)
	case v.Type == rows.UUID:
		return rows.AppendUUID(dst, v.UUID(i))
	case v.Type.IsInteger():
		return strconv.AppendInt(dst, v.Ints[i], 10)
	case v.Type == rows.Decimal:
		return appendDecimal(dst, v.Ints[i], f.column.Scale)
	case v.Type.HasSeconds():
		return f.column.AppendTime(dst, v.Ints[i])
	case v.Type == rows.Date:
		return time.Unix(v.Ints[i]*24*60*60, 0).UTC().AppendFormat(dst, time.DateOnly)
	case v.Type == rows.Bool:
		return strconv.AppendBool(dst, v.Ints[i] != 0)
	case v.Type == rows.Float32:
		return strconv.AppendFloat(dst, float64(math.Float32frombits(uint32(v.Ints[i]))), 'f', -1, 32)
	default:
		return strconv.AppendFloat(dst, math.Float64frombits(uint64(v.Ints[i])), 'f', -1, 64)
	}
}

// appendDecimal is rows.Column.Text without garbage.
func appendDecimal(dst []byte, v int64, scale int) []byte {
	all := uint64(v)
	if v < 0 {
		dst, all = append(dst, '-'), -all
	}
	unit := uint64(tenTo(scale))
	dst = strconv.AppendUint(dst, all/unit, 10)
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	from := len(dst)
	dst = append(dst, zeros[:scale]...)
	putDigits(dst[from:], all%unit)
	return dst
}

// appendEscaped writes a text between quotation marks of JSON.
func appendEscaped(dst, text []byte) []byte {
	const hex = "0123456789abcdef"
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
