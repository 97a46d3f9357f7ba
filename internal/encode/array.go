package encode

import (
	"encoding/binary"
	"sync"

	"github.com/terapush/terapush/pkg/rows"
)

// elements reads the elements of arrays, and writes each as a column of their type would be. Encoders are used by several
// goroutines, so each takes a vector of its own for the elements.
type elements struct {
	of      rows.Column
	value   value
	vectors *sync.Pool // of *rows.Vector
}

func newElements(of rows.Column, w value) elements {
	return elements{of, w, &sync.Pool{New: func() any { return &rows.Vector{Type: of.Type} }}}
}

// longest is how many elements the values of a column have at most.
func longest(c rows.Column) int { return c.MaxBytes / int(4+c.Of.MaxSize()) }

// pgArrays writes arrays as PostgreSQL's array_send does (src/backend/utils/adt/arrayfuncs.c): as int32 the number of dimensions,
// whether there may be NULLs and the type of the elements; the number of elements and that of the first one; then each element as
// a column's value. All is big-endian, and an array without elements has no dimension.
type pgArrays struct {
	elements
	oid    uint32 // of the elements' type
	length int    // of an array, at most
}

// pgTypes are the numbers of types, which never change (src/include/catalog/pg_type.dat).
var pgTypes = map[rows.Type]uint32{
	rows.Bool: 16, rows.Bytes: 17, rows.Int64: 20, rows.Int16: 21, rows.Int32: 23, rows.Text: 25, rows.Float32: 700, rows.Float64: 701,
	rows.Char: 1042, rows.Date: 1082, rows.Timestamp: 1114, rows.TimestampTZ: 1184, rows.Decimal: 1700, rows.UUID: 2950,
}

func newPGArrays(c rows.Column, element writer) *pgArrays {
	return &pgArrays{newElements(*c.Of, withNull(element, "\xFF\xFF\xFF\xFF")), pgTypes[c.Of.Type], longest(c)}
}

func (a *pgArrays) max() int { return 4 + 5*4 + a.length*a.value.max() }

func (a *pgArrays) append(dst []byte, column *rows.Vector, i int) []byte {
	one := a.vectors.Get().(*rows.Vector)
	defer a.vectors.Put(one)

	began := len(dst)
	dst = append(dst, make([]byte, 4+5*4)...)
	n := uint32(0)
	for rest := column.Value(i); len(rest) > 0; n++ {
		rest = one.TakeElement(rest)
		dst = a.value.append(dst, one, 0)
	}
	head := dst[began:]
	binary.BigEndian.PutUint32(head[12:], a.oid)
	if n == 0 {
		head = head[:4+3*4]
		dst = dst[:began+len(head)]
	} else {
		binary.BigEndian.PutUint32(head[4:], 1)
		binary.BigEndian.PutUint32(head[16:], n)
		binary.BigEndian.PutUint32(head[20:], 1)
		if a.of.Nullable {
			binary.BigEndian.PutUint32(head[8:], 1)
		}
	}
	binary.BigEndian.PutUint32(head, uint32(len(dst)-began-4))
	return dst
}

// arrayTexts writes arrays as texts: {1,NULL,"a"}.
type arrayTexts struct {
	elements
	brackets string // the two
	length   int    // of an array, at most
}

// newJSONArrays returns a writer of JSON's arrays (RFC 8259); nil if JSON has no notation for the elements. quote is around
// one, and outer are the escapes of the format in it.
func newJSONArrays(c rows.Column, quote string, outer map[byte]string) writer {
	escapes := jsonEscapes()
	for b, s := range escapes {
		escapes[b] = string(appendEscaped(nil, []byte(s), newEscapes(outer)))
	}
	for b, s := range outer {
		if escapes[b] == "" {
			escapes[b] = s
		}
	}

	element := jsonValue(*c.Of, MaxDigits, escapes)
	if element == nil {
		return nil
	}
	return enclosed{quote, quote, &arrayTexts{newElements(*c.Of, withNull(element, "null")), "[]", longest(c)}}
}

// arrays is how a format writes arrays as PostgreSQL reads them (its manual, "Array Input and Output Syntax"): what is around
// one and around a text in it, how the symbols of such a text are escaped, and what comes before raw bytes, which are written
// in hexadecimal.
type arrays struct {
	around, quote, hex string
	escapes            map[byte]string
}

// writer returns the writer of a column of arrays, whose other elements are written in a format's notation; nil if it has none.
func (a *arrays) writer(c rows.Column, n notation) writer {
	of := *c.Of
	of.Plain = false // it says nothing of what an array takes for its own
	var element writer
	switch {
	case of.Type == rows.Bytes && a.hex == "":
		return nil
	case of.Type == rows.Bytes:
		element = enclosed{a.quote + a.hex, a.quote, &hexed{of.MaxBytes}}
	case of.Type.Variable():
		element = text(of, a.quote, a.quote, a.escapes)
	default:
		n.quote = ""
		element = n.numeric(of, MaxDigits)
	}
	return enclosed{a.around, a.around, &arrayTexts{newElements(of, withNull(element, "NULL")), "{}", longest(c)}}
}

func (a *arrayTexts) max() int { return len(a.brackets) + a.length*(a.value.max()+1) }

func (a *arrayTexts) append(dst []byte, column *rows.Vector, i int) []byte {
	one := a.vectors.Get().(*rows.Vector)
	defer a.vectors.Put(one)

	dst = append(dst, a.brackets[0])
	before := len(dst)
	for rest := column.Value(i); len(rest) > 0; {
		if len(dst) > before {
			dst = append(dst, ',')
		}
		rest = one.TakeElement(rest)
		dst = a.value.append(dst, one, 0)
	}
	return append(dst, a.brackets[1])
}

// withNull is a writer with its delimiters, for values of which some are NULL.
func withNull(w writer, null string) value {
	around, is := w.(enclosed)
	if !is {
		around.writer = w
	}
	return &nullable{around.writer.(value), newConstant(around.open), newConstant(around.close), newConstant(null)}
}
