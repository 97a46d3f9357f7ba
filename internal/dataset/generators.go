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
	name string
	// types of columns that it is for; nil: any.
	types []rows.Type
	// empty returns parameters that are not set. Their names and types are those of the struct's fields.
	empty func() Generator
	// read reads parameters that are no mapping of the struct's fields; nil: they are one.
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
		{name: "sequence", empty: func() Generator { return &SpecSequence{Every: 1} },
			types: slices.Concat(integers, letters, times)},
		{name: "scatter", empty: func() Generator { return new(SpecScatter) }, types: integers},
		{name: "uuid", empty: func() Generator { return new(SpecUUID) }, read: readUUID,
			types: slices.Concat([]rows.Type{rows.UUID}, letters)},
		{name: "hash", empty: func() Generator { return new(SpecHash) }, types: slices.Concat(integers, times)},
		{name: "uniform", empty: func() Generator { return new(SpecRange) }, types: append(slices.Clip(numbers), rows.Wide)},
		{name: "zipf", empty: func() Generator { return new(SpecZipf) }, read: readZipf, types: anyListed},
		{name: "normal", empty: func() Generator { return new(SpecNormal) }, types: numbers},
		{name: "lognormal", empty: func() Generator { return new(SpecLognormal) },
			types: slices.Concat(integers, []rows.Type{rows.Decimal, rows.Float32, rows.Float64})},
		{name: "exponential", empty: func() Generator { return new(SpecExponential) }, types: numbers},
		{name: "histogram", empty: func() Generator { return new(SpecHistogram) }, read: readHistogram,
			types: slices.Concat(numbers, letters)},
		{name: "values", empty: func() Generator { return new(SpecValues) }, read: readValues, types: anyListed},
		{name: "text", empty: func() Generator { return &SpecText{SpecLength: unknownLength} }, types: letters},
		{name: "pattern", empty: func() Generator { return new(SpecPattern) }, read: readPattern, types: letters},
		{name: "words", empty: func() Generator { return &SpecWords{unknownLength} }, types: letters},
		{name: "bytes", empty: func() Generator { return &SpecBytes{unknownLength} }, types: []rows.Type{rows.Bytes}},
		{name: "json", empty: func() Generator { return new(SpecJSON) }, read: readJSON, types: []rows.Type{rows.JSON, rows.Text}},
		{name: "sample", empty: func() Generator { return new(SpecSample) }, read: readSampleColumn,
			types: append([]rows.Type{rows.UUID}, anyListed...)},
		{name: "vector", empty: func() Generator { return &SpecVector{Clusters: 100} }, types: []rows.Type{rows.Float32s}},
		{name: "array", empty: func() Generator { return new(SpecArray) }, read: readArray, types: []rows.Type{rows.Arrays}},
		{name: "ref", empty: func() Generator { return new(SpecRef) }, read: readRef},
		{name: "after", empty: func() Generator { return new(SpecAfter) },
			types: slices.Concat(integers, times, clocks, []rows.Type{rows.Decimal})},
		{name: "same", empty: func() Generator { return new(SpecSame) }, read: readSame},
		{name: "constant", empty: func() Generator { return new(SpecConstant) }, read: readConstant, types: anyListed},
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
		if reflect.TypeOf(row.empty()) == reflect.TypeOf(g) {
			return &row
		}
	}
	return nil
}

// columnHead is a column without its generator.
type columnHead struct {
	Name     string `json:"name"`
	Type     string `json:"type"`
	SQL      string `json:"sql,omitempty"`
	Nulls    string `json:"nulls,omitempty"`
	Distinct int64  `json:"distinct,omitempty"`
	Absent   string `json:"absent,omitempty"`
	Items    string `json:"items,omitempty"`

	Common SpecValues `json:"common,omitempty"`
}

// MarshalJSON writes a column as {"name": …, "type": …, "uniform": {…}}.
func (c SpecColumn) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(columnHead{c.Name, c.Type, c.SQL, c.Nulls, c.Distinct, c.Absent, c.Items, c.Common})
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
		c.Generator = row.empty()
		if err := strictly(all[name], c.Generator); err != nil {
			return err
		}
		delete(all, name)
	}

	rest, err := json.Marshal(all)
	if err != nil {
		return err
	}
	var head columnHead
	err = strictly(rest, &head)
	c.Name, c.Type, c.SQL, c.Nulls, c.Distinct = head.Name, head.Type, head.SQL, head.Nulls, head.Distinct
	c.Absent, c.Items, c.Common = head.Absent, head.Items, head.Common
	return err
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

	into := g.empty()
	f := r.fields(c, e, where, parameterNames(reflect.TypeOf(into).Elem())...)
	f.into(reflect.ValueOf(into).Elem())
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
