package dataset

import (
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

// column reads a column: its type and one generator.
func (r *specReader) column(at entry) SpecColumn {
	return r.columnAt(at, "column "+quoted(at.key), []string{"columns", at.key})
}

// columnAt reads a column, or a field of a document.
func (r *specReader) columnAt(at entry, where string, place []string) (c SpecColumn) {
	c.Name, c.place = at.key, place
	r.lines[path(place...)] = at.line

	var generators []string
	_, known := at.value.(*ast.MappingNode) // all of its keys are
	all := r.mapping(at.value, where)
	_, isRef := find(all, "ref")
	generator := ""
	if i := slices.IndexFunc(all, func(e entry) bool { return generatorNamed(e.key) != nil }); i >= 0 {
		generator = all[i].key
	}
	var skew *SpecSkew
	for _, e := range all {
		r.lines[path(append(slices.Clip(place), e.key)...)] = e.line
		if r.modifier(&c, e, where+": "+e.key) {
			continue
		}
		row := generatorNamed(e.key)
		switch {
		case e.key == "zipf" && isRef:
			skew = readSkew(r, &c, e, where+": zipf")
		case row != nil:
			c.Generator = row.parameters(r, &c, e, where+": "+e.key)
			generators = append(generators, e.key)
		case slices.Contains(laterNames, e.key):
			r.add(e.line, "%s: generator %s is not there yet: there is %s", where, e.key, strings.Join(generatorNames(), ", "))
			generators = append(generators, e.key)
		case strings.HasSuffix(e.key, ")") && strings.Contains(c.Type, "("):
			c.Type += "," + e.key
			r.add(e.line, "%s: a type with a comma needs quotes: type: %q", where, c.Type)
		default:
			r.noKey(e, where, at.key, generator)
			known = false
		}
	}
	if ref, is := c.Generator.(*SpecRef); is {
		ref.Skew = skew
	}

	switch {
	case len(generators) == 0 && known:
		r.add(at.line, "%s: a generator is missing: one of %s", where, strings.Join(generatorNames(), ", "))
	case len(generators) == 2 && slices.Contains(generators, "zipf") && slices.Contains(generators, "values"):
		r.add(at.line, "%s: the values belong into zipf: {s: …, values: […]}", where)
	case len(generators) > 1:
		r.add(at.line, "%s: one generator belongs here, and these are %d: %s",
			where, len(generators), strings.Join(generators, ", "))
	}
	return c
}

// modifier reads a key of a column that is no generator, and reports whether it is one.
func (r *specReader) modifier(c *SpecColumn, e entry, where string) bool {
	texts := map[string]*string{"type": &c.Type, "sql": &c.SQL, "nulls": &c.Nulls}
	if c.place[len(c.place)-2] == "json" {
		texts["absent"], texts["items"] = &c.Absent, &c.Items
	}
	if text := texts[e.key]; text != nil {
		*text = r.scalar(e.value, where)
		return true
	}

	switch e.key {
	case "common":
		c.Common = r.shares(e, where)
	case "distinct":
		c.Distinct = r.count(e, where)
	default:
		return false
	}
	return true
}

func readZipf(r *specReader, c *SpecColumn, e entry, where string) Generator {
	f := r.fields(c, e, where, "s", "scatter", "min", "max", "step", "values")
	z := &SpecZipf{S: f.text("s"), Scatter: f.flag("scatter")}
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

func readValues(r *specReader, _ *SpecColumn, e entry, where string) Generator {
	all := SpecValues(r.shares(e, where))
	return &all
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
			r.add(one.line, "%s: %s: %s", where, quoted(one.key), noShare(share))
			percent = "0"
		}
		all = append(all, SpecValue{r.expand(one.key, one.line), percent})
	}
	return all
}

// length reads 20 or 20..200.
func (f fields) length() (l SpecLength) {
	text := f.text("length")
	if text == "" {
		return unknownLength
	}

	l, ok := parseLength(text)
	if !ok {
		f.add(f.all["length"].line, "%s: %s is no length: write 20, or 20..200", f.where, quoted(text))
		return SpecLength{-2, -2}
	}
	return l
}

// parseLength reads 20 or 20..200.
func parseLength(text string) (l SpecLength, ok bool) {
	from, to, is := strings.Cut(text, "..")
	if !is {
		to = from
	}
	var errs [2]error
	l.Min, errs[0] = strconv.Atoi(strings.TrimSpace(from))
	l.Max, errs[1] = strconv.Atoi(strings.TrimSpace(to))
	return l, errs[0] == nil && errs[1] == nil && l.Min >= 0 && l.Max >= 0
}
