package dataset

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// generatorNames lists what draws or derives a column's values.
var generatorNames = []string{
	"sequence", "uniform", "zipf", "normal", "values", "text", "words", "bytes", "constant",
}

// laterNames are generators that this version does not have.
var laterNames = []string{
	"uuid", "scatter", "hash", "lognormal", "exponential", "histogram", "pattern", "json", "array", "vector", "ref",
	"after", "same", "sample", "distinct",
}

// column reads a column: its type and one generator.
func (r *specReader) column(at entry) (c SpecColumn) {
	c.Name = at.key
	where := "column " + quoted(c.Name)
	r.lines[path("columns", c.Name)] = at.line

	var generators []string
	for _, e := range r.mapping(at.value, where) {
		r.lines[path("columns", c.Name, e.key)] = e.line
		switch {
		case e.key == "type":
			c.Type = r.scalar(e.value, where+": type")
			continue
		case e.key == "nulls":
			r.add(e.line, "%s: nulls is not there yet: leave it out, and every row has a value", where)
			continue
		case slices.Contains(generatorNames, e.key):
			r.generator(&c, e, where+": "+e.key)
		case slices.Contains(laterNames, e.key):
			r.add(e.line, "%s: generator %s is not there yet: there is %s", where, e.key, strings.Join(generatorNames, ", "))
		default:
			r.add(e.line, "%s: %s", where, unknown("generator", e.key, generatorNames))
		}
		generators = append(generators, e.key)
	}

	switch {
	case len(generators) == 0:
		r.add(at.line, "%s: a generator is missing: one of %s", where, strings.Join(generatorNames, ", "))
	case len(generators) == 2 && slices.Contains(generators, "zipf") && slices.Contains(generators, "values"):
		r.add(at.line, "%s: the values belong into zipf: {s: …, values: […]}", where)
	case len(generators) > 1:
		r.add(at.line, "%s: one generator belongs here, and these are %d: %s",
			where, len(generators), strings.Join(generators, ", "))
	}
	return c
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
		r.lines[path("columns", c.Name, e.key, p.key)] = p.line
	}
	return f
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

	n := f.integer(e)
	if n < 1 {
		f.add(e.line, "%s: %s is a whole number of 1 or more", f.where, name)
	}
	return n
}

// generator reads one generator of a column.
func (r *specReader) generator(c *SpecColumn, e entry, where string) {
	switch e.key {
	case "sequence":
		f := r.fields(c, e, where, "start", "step", "every", "cycle", "format")
		c.Sequence = &SpecSequence{
			Start: f.text("start"), Step: f.text("step"), Format: f.text("format"),
			Every: f.count("every", 1), Cycle: f.count("cycle", 0),
		}
	case "uniform":
		f := r.fields(c, e, where, "min", "max", "step")
		c.Uniform = &SpecRange{f.text("min"), f.text("max"), f.text("step")}
	case "zipf":
		c.Zipf = r.zipf(r.fields(c, e, where, "s", "scatter", "min", "max", "step", "values"))
	case "normal":
		f := r.fields(c, e, where, "mean", "stddev", "min", "max", "step")
		c.Normal = &SpecNormal{f.text("mean"), f.text("stddev"), SpecRange{f.text("min"), f.text("max"), f.text("step")}}
	case "values":
		c.Values = r.shares(e, where)
	case "text":
		f := r.fields(c, e, where, "length", "alphabet")
		c.Text = &SpecText{r.length(f), f.text("alphabet")}
	case "words":
		length := r.length(r.fields(c, e, where, "length"))
		c.Words = &length
	case "bytes":
		length := r.length(r.fields(c, e, where, "length"))
		c.Bytes = &length
	case "constant":
		value := r.scalar(e.value, where)
		c.Constant = &value
	}
}

func (r *specReader) zipf(f fields) *SpecZipf {
	z := &SpecZipf{S: f.text("s")}
	switch text := f.text("scatter"); text {
	case "true":
		z.Scatter = true
	case "", "false":
	default:
		f.add(f.all["scatter"].line, "%s: scatter is true or false", f.where)
	}

	values, listed := f.all["values"]
	if !listed {
		z.Range = &SpecRange{f.text("min"), f.text("max"), f.text("step")}
		return z
	}
	for _, name := range []string{"min", "max", "step"} {
		if e, both := f.all[name]; both {
			f.add(e.line, "%s: %s and values exclude each other", f.where, name)
		}
	}
	z.Values = r.list(values.value, f.where+": values")
	return z
}

// shares reads a list of values, or a mapping of values to their shares.
func (r *specReader) shares(e entry, where string) []SpecValue {
	all := []SpecValue{}
	if _, list := e.value.(*ast.SequenceNode); list {
		for _, value := range r.list(e.value, where) {
			all = append(all, SpecValue{Value: value})
		}
		return all
	}

	m := r.mapping(e.value, where)
	if len(m) > maxValues {
		r.add(e.line, "%s: %d values, of %d at most", where, len(m), maxValues)
		return nil
	}
	for _, one := range m {
		share := r.scalar(one.value, where+": "+quoted(one.key))
		percent, is := strings.CutSuffix(strings.TrimSpace(share), "%")
		if percent = strings.TrimSpace(percent); !is || percent == "" {
			r.add(one.line, "%s: %s: %s is no share: write it as 12.5%%", where, quoted(one.key), quoted(share))
			percent = "0"
		}
		all = append(all, SpecValue{r.expand(one.key, one.line), percent})
	}
	return all
}

// length reads 20 or 20..200.
func (r *specReader) length(f fields) (l SpecLength) {
	text := f.text("length")
	if text == "" {
		return SpecLength{-1, -1}
	}

	from, to, is := strings.Cut(text, "..")
	if !is {
		to = from
	}
	var errs [2]error
	l.Min, errs[0] = strconv.Atoi(strings.TrimSpace(from))
	l.Max, errs[1] = strconv.Atoi(strings.TrimSpace(to))
	if errs[0] != nil || errs[1] != nil || l.Min < 0 || l.Max < 0 {
		f.add(f.all["length"].line, "%s: %s is no length: write 20, or 20..200", f.where, quoted(text))
		return SpecLength{-2, -2}
	}
	return l
}
