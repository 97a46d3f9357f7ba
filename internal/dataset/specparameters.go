package dataset

import (
	"maps"
	"slices"
	"strings"
)

const (
	maxParameter = 1 << 10  // bytes of a value
	maxExpanded  = 16 << 20 // bytes of all texts with parameters
)

// declare reads the file's parameters, and gives them the values of the command line.
func (r *specReader) declare(all []entry) {
	r.used = map[string]bool{}
	if own, is := find(all, "parameters"); is {
		r.parameters = r.mapping(own.value, "parameters")
	}

	values, names := map[string]string{}, []string{}
	for _, p := range r.parameters {
		names = append(names, p.key)
		if p.key == "" || strings.ContainsAny(p.key, "${}\n") {
			r.add(p.line, "parameter %s: a name has no $, { or }", quoted(p.key))
		}
		value, given := r.given[p.key]
		if !given {
			value = r.literal(p)
		}
		if len(value) > maxParameter {
			r.add(p.line, "parameter %s has %d bytes: %d at most", quoted(p.key), len(value), maxParameter)
			value = ""
		}
		values[p.key] = value
	}
	for _, name := range slices.Sorted(maps.Keys(r.given)) {
		switch {
		case slices.Contains(names, name):
		case len(names) == 0:
			r.add(0, "parameter %s: the file has no parameters", quoted(name))
		default:
			r.unknown(0, "", "parameter", name, names)
		}
	}
	r.given, r.names = values, slices.Sorted(maps.Keys(values))
}

// literal reads a parameter's own value, in which no other is replaced.
func (r *specReader) literal(p entry) string {
	known := r.given
	r.given = nil
	value := r.scalar(p.value, "parameter "+quoted(p.key))
	r.given = known
	return value
}

// expand replaces ${name} by the parameter's value, and $${ by ${. The result is a value and never YAML.
func (r *specReader) expand(text string, line int) string {
	if !strings.Contains(text, "${") {
		return text
	}

	var out strings.Builder
	for {
		before, rest, found := strings.Cut(text, "${")
		if !found {
			out.WriteString(text)
			break
		}
		if literal, is := strings.CutSuffix(before, "$"); is {
			out.WriteString(literal + "${")
			text = rest
			continue
		}
		out.WriteString(before)
		name, after, closed := strings.Cut(rest, "}")
		value, known := r.given[name]
		switch {
		case !closed:
			r.add(line, "${ without }: write $${ for the characters themselves")
			return ""
		case !known && len(r.given) == 0:
			r.add(line, "${%s}: there is no such parameter: add it under parameters", quoted(name))
			return ""
		case !known:
			r.unknown(line, "", "parameter", name, r.names)
			return ""
		}
		r.used[name] = true
		if r.expanded += len(value); r.expanded > maxExpanded {
			r.add(line, "the parameters make more than %d bytes of text", maxExpanded)
			return ""
		}
		out.WriteString(value)
		text = after
	}
	return out.String()
}
