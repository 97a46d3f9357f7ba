package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// specType is a parsed type of a spec.
type specType struct {
	rows.Type
	name          string
	size          int       // n of text(n) and the like; 0 = as long as the longest value; of a vector, its numbers
	digits, scale int       // of decimals; scale also of times, as in rows.Column
	of            *specType // of an array: the type of its elements
	// binary is how many bits after the point the numbers of real and double have: they are multiples of 2^−binary, which
	// every server prints and reads exactly. It follows from the generator's step.
	binary int
}

// narrowDigits is how many digits a rows.Decimal has at most; a decimal of more is rows.Wide.
const narrowDigits = 18

// typeRow is a type of specs.
type typeRow struct {
	name    string
	Type    rows.Type
	shape   string   // with its parameters, for messages
	aliases []string // that mean the same
}

var specTypes = []typeRow{
	{"bigint", rows.Int64, "bigint", nil},
	{"int", rows.Int32, "int", []string{"integer"}},
	{"smallint", rows.Int16, "smallint", nil},
	{"bigint unsigned", rows.Uint64, "bigint unsigned", nil},
	{"int unsigned", rows.Uint32, "int unsigned", []string{"integer unsigned"}},
	{"smallint unsigned", rows.Uint16, "smallint unsigned", nil},
	{"boolean", rows.Bool, "boolean", []string{"bool"}},
	{"decimal", rows.Decimal, "decimal(p,s)", nil},
	{"real", rows.Float32, "real", nil},
	{"double", rows.Float64, "double", nil},
	{"text", rows.Text, "text(n)", nil},
	{"char", rows.Char, "char(n)", nil},
	{"enum", rows.Enum, "enum", nil},
	{"json", rows.JSON, "json", nil},
	{"bytes", rows.Bytes, "bytes(n)", nil},
	{"uuid", rows.UUID, "uuid", nil},
	{"date", rows.Date, "date", nil},
	{"time", rows.Time, "time", nil},
	{"timestamp", rows.Timestamp, "timestamp", nil},
	{"timestamptz", rows.TimestampTZ, "timestamptz", nil},
	{"vector", rows.Float32s, "vector(n)", nil},
	{"[]", rows.Arrays, "type[]", nil},
}

// laterTypes says what to write instead of types that this version does not have.
var laterTypes = map[string]string{
	"unsigned": "bigint unsigned", "float": "real or double", "numeric": "decimal(p,s)", "number": "decimal(p,s)",
	"varchar": "text(n)", "jsonb": "json", "array": "int[] or the like", "datetime": "timestamp",
	"string": "text(n)",
}

// shapes lists types for messages.
func shapes(types ...rows.Type) (all []string) {
	for _, row := range specTypes {
		if len(types) == 0 || slices.Contains(types, row.Type) {
			all = append(all, row.shape)
		}
	}
	return all
}

// parseType reads a type. The error is for a person.
func parseType(text string) (t specType, err error) {
	text = strings.TrimSpace(text)
	base, params, has := splitType(text)
	if text == "" {
		return t, fmt.Errorf("type is missing: one of %s", strings.Join(shapes(), ", "))
	}

	if element, is := strings.CutSuffix(text, "[]"); is {
		return arrayType(text, element)
	}
	i := slices.IndexFunc(specTypes, func(row typeRow) bool { return row.name == base || slices.Contains(row.aliases, base) })
	if i < 0 {
		return t, unknownType(text, base)
	}
	t.Type, t.name = specTypes[i].Type, specTypes[i].name
	switch {
	case t.Type == rows.Decimal:
		return t, t.readDigits(text, params)
	case t.Type == rows.Float32s:
		return t, t.readDims(text, params)
	case t.HasSeconds() && has:
		return t, t.readSecondDigits(text, params)
	case t.Variable() && t.Type != rows.Enum && t.Type != rows.JSON && len(params) <= 1:
		return t, t.readSize(text, params, has)
	case t.Type == rows.Enum && has:
		return t, fmt.Errorf("type %s: write enum, whose labels are those of values, or text with sql: and the name of the server's type",
			quoted(text))
	case has:
		return t, fmt.Errorf("type %s: write %s", quoted(text), specTypes[i].shape)
	default:
		return t, nil
	}
}

// arrayType reads the type of an array by that of its elements.
func arrayType(text, element string) (t specType, err error) {
	of, err := parseType(element)
	if err != nil {
		return t, err
	}
	if !of.IsElement() || of.digits > 18 {
		return t, fmt.Errorf("type %s: an array has numbers of up to 18 digits, texts, bytes, dates, timestamps, uuids or booleans",
			quoted(text))
	}
	return specType{Type: rows.Arrays, of: &of}, nil
}

// splitType splits text(40) into a name in lower case and numbers; -1 stands for what is none.
func splitType(text string) (base string, params []int, has bool) {
	base, inside, has := strings.Cut(text, "(")
	base = strings.ToLower(strings.TrimSpace(base))
	if !has {
		return base, nil, false
	}

	list, closed := strings.CutSuffix(inside, ")")
	for p := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(p))
		if err != nil || !closed || n < 0 {
			n = -1
		}
		params = append(params, n)
	}
	return base, params, true
}

func (t *specType) readSize(text string, params []int, has bool) error {
	if !has {
		return nil
	}
	t.size = params[0]
	if t.size < 1 || t.size > MaxPayloadBytes {
		return fmt.Errorf("type %s: a length is a whole number from 1 to %d bytes", quoted(text), MaxPayloadBytes)
	}
	return nil
}

// maxDims is how many numbers a vector has at most. Every server has a bound of its own.
const maxDims = 16_000

func (t *specType) readDims(text string, params []int) error {
	if len(params) != 1 || params[0] < 1 || params[0] > maxDims {
		return fmt.Errorf("type %s: write how many numbers a vector has, 1 to %d, as vector(768)", quoted(text), maxDims)
	}
	t.size = params[0]
	return nil
}

func (t *specType) readDigits(text string, params []int) error {
	if len(params) != 2 {
		return fmt.Errorf("type %s: write its digits and those after the point, as decimal(12,2)", quoted(text))
	}
	t.digits, t.scale = params[0], params[1]
	switch {
	case t.digits < 1 || t.digits > rows.WideDigits || t.scale < 0 || t.scale > t.digits:
		return fmt.Errorf(
			"type %s: decimal(p,s) has p digits, 1 to 38, and s of them, perhaps 0, after the point", quoted(text))
	case t.digits > narrowDigits:
		t.Type = rows.Wide
	}
	return nil
}

// readSecondDigits reads how many digits the seconds of a time have after the point.
func (t *specType) readSecondDigits(text string, params []int) error {
	if len(params) != 1 || params[0] < 0 || params[0] > rows.SecondDigits {
		return fmt.Errorf("type %s: write %[2]s for microseconds, or %[2]s(0) to %[2]s(6) for so many digits after the seconds",
			quoted(text), t.name)
	}
	t.scale = rows.SecondDigits - params[0]
	return nil
}

func unknownType(text, base string) error {
	if instead, later := laterTypes[base]; later {
		name, _, sized := strings.Cut(instead, "(")
		if _, params, has := strings.Cut(text, "("); has && sized {
			instead = quoted(name + "(" + params)
		}
		return fmt.Errorf("type %s: write %s", quoted(text), instead)
	}
	return errors.New(unknown("type", text, shapes()))
}

// TypeName returns the type of a column as a spec writes it.
func TypeName(c rows.Column) string {
	t := specType{Type: c.Type, size: max(c.Declared, c.MaxBytes), digits: c.Digits, scale: c.Scale}
	switch c.Type {
	case rows.Float32s:
		t.size = c.Dims()
	case rows.Arrays:
		return TypeName(*c.Of) + "[]"
	}
	for _, row := range specTypes {
		if row.Type == c.Type {
			t.name = row.name
		}
	}
	return t.String()
}

// String returns the type as a spec writes it.
func (t specType) String() string {
	switch {
	case t.Type == rows.Arrays:
		return t.of.String() + "[]"
	case t.IsDecimal():
		return fmt.Sprintf("decimal(%d,%d)", t.digits, t.scale)
	case t.HasSeconds() && t.scale > 0:
		return fmt.Sprintf("%s(%d)", t.name, rows.SecondDigits-t.scale)
	case t.Variable() && t.Type != rows.Enum && t.Type != rows.JSON:
		return fmt.Sprintf("%s(%d)", t.name, t.size)
	default:
		return t.name
	}
}

// isTime reports whether values are dates or times, whose steps are durations.
func (t specType) isTime() bool {
	return t.Type == rows.Date || t.HasSeconds()
}

// unit is what all values of a type of numbers are multiples of.
func (t specType) unit() int64 {
	if t.HasSeconds() {
		return tenTo(t.scale)
	}
	return 1
}

// isFloat reports whether values are floating-point numbers.
func (t specType) isFloat() bool { return t.Type == rows.Float32 || t.Type == rows.Float64 }
