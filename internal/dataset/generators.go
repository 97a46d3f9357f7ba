package dataset

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/terapush/terapush/pkg/rows"
)

// Generator is how a column of a spec gets its values: a pointer to one of the types in generators.
type Generator interface {
	// plan checks the parameters, fills in what is missing and writes values in their one notation.
	plan(p *columnPlanner) columnPlan
}

// generatorRow is one generator: what it is called, whom it is for, and its parameters, which know how to check
// themselves and what to make of them.
type generatorRow struct {
	name    string
	example string // of parameters, for messages
	// empty are parameters that are not set. Those of a struct have the names and types of its fields.
	empty Generator
	// types of columns that it is for; nil: any.
	types []rows.Type
	// read reads parameters that are neither a text, nor a list of texts, nor a mapping of a struct's fields; nil: they
	// are one of these.
	read func(r *specReader, c *SpecColumn, e entry, where string) Generator
}

var (
	integers  = []rows.Type{rows.Int64, rows.Int32, rows.Int16, rows.Uint64, rows.Uint32, rows.Uint16}
	times     = []rows.Type{rows.Date, rows.Timestamp, rows.TimestampTZ}
	clocks    = []rows.Type{rows.Time} // which are drawn only
	numbers   = slices.Concat(integers, times, clocks, []rows.Type{rows.Decimal, rows.Float32, rows.Float64})
	anyListed = slices.Concat(numbers, []rows.Type{rows.Bool, rows.Text, rows.Char, rows.Enum, rows.JSON, rows.Bytes, rows.Wide})
	letters   = []rows.Type{rows.Text, rows.Char}
)

// generators lists all of them, in the order of messages. A new one is a row here and a file with its parameters.
func generators() []generatorRow {
	return []generatorRow{
		{name: "sequence", example: "{start: 1}",
			empty: &SpecSequence{Every: 1}, types: slices.Concat(integers, letters, times)},
		{name: "scatter", example: "{start: 1, stride: 1000}", empty: &SpecScatter{}, types: integers},
		{name: "uuid", example: "v4",
			empty: &SpecUUID{}, types: slices.Concat([]rows.Type{rows.UUID}, letters), read: readUUID},
		{name: "hash", example: "{min: 1, max: 100}", empty: &SpecHash{}, types: slices.Concat(integers, times)},
		{name: "uniform", example: "{min: 1, max: 100}", empty: &SpecRange{}, types: append(slices.Clip(numbers), rows.Wide)},
		{name: "zipf", example: "{s: 1.2} beside ref, or {s: 1.2, min: 1, max: 100}",
			empty: &SpecZipf{}, types: anyListed, read: readZipf},
		{name: "normal", example: "{mean: 50, stddev: 10}", empty: &SpecNormal{}, types: numbers},
		{name: "lognormal", example: "{median: 48, sigma: 0.9, min: 1, max: 20000}",
			empty: &SpecLognormal{}, types: slices.Concat(integers, []rows.Type{rows.Decimal, rows.Float32, rows.Float64})},
		{name: "exponential", example: "{mean: 60, max: 3600}", empty: &SpecExponential{}, types: numbers},
		{name: "histogram", example: "[0, 10, 25, 100]", empty: &SpecHistogram{}, types: slices.Concat(numbers, letters)},
		{name: "values", example: "{a: 70%, b: 30%}", empty: &SpecValues{}, types: anyListed, read: readValues},
		{name: "text", example: "{length: 3..21}", empty: &SpecText{SpecLength: unknownLength}, types: letters},
		{name: "pattern", example: `"[A-Z]{2}-[0-9]{4}"`, empty: new(SpecPattern), types: letters},
		{name: "words", example: "{length: 20..200}", empty: &SpecWords{unknownLength}, types: letters},
		{name: "bytes", example: "{length: 0..24}", empty: &SpecBytes{unknownLength}, types: []rows.Type{rows.Bytes}},
		{name: "json", example: "{n: {type: int, uniform: {min: 1, max: 9}}}",
			empty: &SpecJSON{}, types: []rows.Type{rows.JSON, rows.Text}, read: readJSON},
		{name: "sample", example: "people.csv",
			empty: &SpecSample{}, types: append([]rows.Type{rows.UUID}, anyListed...), read: readSampleColumn},
		{name: "vector", example: "{clusters: 100}", empty: &SpecVector{Clusters: 100}, types: []rows.Type{rows.Float32s}},
		{name: "array", example: "{length: 0..8, of: {uniform: {min: 1, max: 9}}}",
			empty: &SpecArray{}, types: []rows.Type{rows.Arrays}, read: readArray},
		{name: "ref", example: "{table: customers, column: id, rows: 1000}", empty: &SpecRef{}, read: readRef},
		{name: "after", example: "{column: ordered_at, by: 1h..30d}",
			empty: &SpecAfter{}, types: slices.Concat(integers, times, clocks, []rows.Type{rows.Decimal})},
		{name: "same", example: "billing_id", empty: new(SpecSame)},
		{name: "constant", example: "EUR", empty: new(SpecConstant), types: anyListed},
	}
}

// laterNames are generators that this version does not have.
var laterNames = []string{"fake"}

func generatorNames() (all []string) {
	for _, g := range generators() {
		all = append(all, g.name)
	}
	return all
}

// generatorNamed returns the row of a name, nil if there is none.
func generatorNamed(name string) *generatorRow {
	for _, row := range generators() {
		if row.name == name {
			return &row
		}
	}
	return nil
}

// generatorOf returns the row of a column's generator, nil if the column has none.
func generatorOf(g Generator) *generatorRow {
	for _, row := range generators() {
		if reflect.TypeOf(row.empty) == reflect.TypeOf(g) {
			return &row
		}
	}
	return nil
}

// columnHead is a column without its generator.
type columnHead SpecColumn

// MarshalJSON writes a column as {"name": …, "type": …, "uniform": {…}}.
func (c SpecColumn) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(columnHead(c))
	row := generatorOf(c.Generator)
	if err != nil || row == nil {
		return text, err
	}

	parameters, err := json.Marshal(c.Generator)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], fmt.Sprintf(",%q:", row.name)...)
	return append(append(text, parameters...), '}'), nil
}

// UnmarshalJSON reads what MarshalJSON has written, and nothing else.
func (c *SpecColumn) UnmarshalJSON(text []byte) error {
	var all map[string]json.RawMessage
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}

	*c = SpecColumn{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		row := generatorNamed(name)
		if row == nil {
			continue
		}
		if c.Generator != nil {
			return fmt.Errorf("a column has both %s and %s", generatorOf(c.Generator).name, name)
		}
		c.Generator = row.new().Interface().(Generator)
		if err := strictly(all[name], c.Generator); err != nil {
			return err
		}
		delete(all, name)
	}

	rest, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return strictly(rest, (*columnHead)(c))
}

// strictly decodes JSON without unknown keys.
func strictly(text []byte, into any) error {
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	return in.Decode(into)
}

// parameters reads those of a column's generator.
func (g *generatorRow) parameters(r *specReader, c *SpecColumn, e entry, where string) Generator {
	if g.read != nil {
		return g.read(r, c, e, where)
	}

	into := g.new()
	switch v := into.Elem(); v.Kind() {
	case reflect.String:
		v.SetString(r.scalar(e.value, where))
	case reflect.Slice:
		v.Set(reflect.ValueOf(r.list(e.value, where)).Convert(v.Type()))
	default:
		r.fields(c, e, where, parameterNames(v.Type())...).into(v)
	}
	return into.Interface().(Generator)
}

// new returns a pointer to parameters that are not set.
func (g *generatorRow) new() reflect.Value {
	empty := reflect.ValueOf(g.empty).Elem()
	into := reflect.New(empty.Type())
	into.Elem().Set(empty)
	return into
}

var lengthType = reflect.TypeFor[SpecLength]()

// parameterNames lists the parameters of a struct, whose own structs are inlined. A length is one parameter.
func parameterNames(t reflect.Type) (all []string) {
	for i := range t.NumField() {
		field := t.Field(i)
		switch {
		case field.Type == lengthType:
			all = append(all, "length")
		case field.Type.Kind() == reflect.Struct:
			all = append(all, parameterNames(field.Type)...)
		default:
			all = append(all, parameterName(field))
		}
	}
	return all
}

func parameterName(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return name
}

// fields are the parameters of a generator, by name.
type fields struct {
	*specReader
	where string
	all   map[string]entry
}

// fields reads the parameters of a column's generator. All may be missing: null is none.
func (r *specReader) fields(c *SpecColumn, e entry, where string, known ...string) fields {
	f := fields{r, where, map[string]entry{}}
	if _, none := e.value.(*ast.NullNode); none {
		return f
	}

	for _, p := range r.mapping(e.value, where, known...) {
		f.all[p.key] = p
		r.lines[path(append(slices.Clip(c.place), e.key, p.key)...)] = p.line
	}
	return f
}

// into sets the fields of a struct by their types: a text is a value or a word, an int64 a number of rows.
func (f fields) into(v reflect.Value) {
	for i := range v.NumField() {
		field, name := v.Field(i), parameterName(v.Type().Field(i))
		switch {
		case field.Type() == lengthType:
			field.Set(reflect.ValueOf(f.length()))
		case field.Kind() == reflect.Struct:
			f.into(field)
		case field.Kind() == reflect.String:
			field.SetString(f.text(name))
		case field.Kind() == reflect.Int64:
			field.SetInt(f.count(name, field.Int()))
		case field.Kind() == reflect.Bool:
			field.SetBool(f.flag(name))
		default:
			panic(fmt.Sprintf("parameter %s has no reader", name))
		}
	}
}

// text returns a parameter, "" if it is missing.
func (f fields) text(name string) string {
	e, ok := f.all[name]
	if !ok {
		return ""
	}

	text := f.scalar(e.value, f.where+": "+name)
	if text == "" {
		f.add(e.line, "%s: %s is empty", f.where, name)
	}
	return text
}

// count returns a whole number of 1 or more, or what is given if the parameter is missing.
func (f fields) count(name string, missing int64) int64 {
	e, ok := f.all[name]
	if !ok {
		return missing
	}

	return f.specReader.count(e, f.where+": "+name)
}

func (f fields) flag(name string) bool {
	switch text := f.text(name); text {
	case "true":
		return true
	case "", "false":
	default:
		f.add(f.all[name].line, "%s: %s is true or false", f.where, name)
	}
	return false
}
