package sweep

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/token"

	"github.com/terapush/terapush/internal/results"
)

// The keys of a plan file. The library decodes them strictly, and merge lays one over another before that, so that an
// error names the line that is wrong and not the place it ended up in. Every key may be missing.
type (
	planKeys struct {
		Name     scalar
		Scales   entries[overrideKeys]
		Schemes  entries[schemeKeys]
		Override overrideKeys `yaml:",inline"`
	}
	schemeKeys struct {
		Scales   entries[overrideKeys]
		Override overrideKeys `yaml:",inline"`
	}
	overrideKeys struct {
		Target, Repeats, Settle, Limit, Budget, Knee, Order scalar

		WarmUp scalar `yaml:"warm_up"`
		Parts  entries[partKeys]
		Shared partKeys `yaml:",inline"` // by all parts
	}
	partKeys struct {
		Title, Rows, Bytes, Duration scalar

		Push, Axes entries[scalars]
		Methods    entries[entries[scalars]]
		Facts      *results.Facts
	}
)

// partsOf lists what a plan says about any part, chosen or not: a typing error in a scale that nobody has run yet is one.
func (k *planKeys) partsOf() (all []partKeys) {
	add := func(o overrideKeys) {
		all = append(all, o.Shared)
		for _, part := range o.Parts {
			all = append(all, part.value)
		}
	}
	add(k.Override)
	for _, scale := range k.Scales {
		add(scale.value)
	}
	for _, scheme := range k.Schemes {
		add(scheme.value.Override)
		for _, scale := range scheme.value.Scales {
			add(scale.value)
		}
	}
	return all
}

// scalar is one value, before its variables are expanded.
type scalar struct {
	text   string
	line   int  // 0: the key is missing
	quoted bool // it is one value as it stands, and never a range
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *scalar) UnmarshalYAML(n ast.Node) error {
	*s = scalar{line: lineOf(n)}
	switch n := n.(type) {
	case *ast.NullNode:
		*s = scalar{}
	case *ast.StringNode:
		s.text = n.Value
		s.quoted = n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		s.text, s.quoted = n.Value.Value, true
	case *ast.IntegerNode:
		s.text = fmt.Sprint(n.Value) // without the _ of 2_000_000
	case *ast.BoolNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		s.text = n.GetToken().Value
	default:
		return unexpected(n, "one value")
	}
	return nil
}

// scalars is one value or a list of them.
type scalars []scalar

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *scalars) UnmarshalYAML(n ast.Node) error {
	nodes := []ast.Node{n}
	switch n := n.(type) {
	case *ast.SequenceNode:
		nodes = n.Values
	case *ast.MappingNode:
		return unexpected(n, "one value or a list")
	}
	*s = make(scalars, len(nodes))
	for i, item := range nodes {
		if err := yaml.NodeToValue(item, &(*s)[i]); err != nil {
			return err
		}
	}
	return nil
}

// entries are keys that the user chooses, in the order of the file.
type entries[T any] []entry[T]

type entry[T any] struct {
	key   string // as it is written
	line  int
	value T
	node  ast.Node
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (e *entries[T]) UnmarshalYAML(n ast.Node) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return unexpected(n, "keys and values")
	}
	*e = make(entries[T], len(m.Values))
	for i, v := range m.Values {
		(*e)[i] = entry[T]{key: keyOf(v), line: lineOf(v.Key), node: v.Value}
		if v.Value.Type() == ast.NullType {
			continue // in an override it takes the key away
		}
		if err := yaml.NodeToValue(v.Value, &(*e)[i].value, yaml.Strict()); err != nil {
			return err
		}
	}
	return nil
}

// named returns the value of a key however it is written, with - or _.
func (e entries[T]) named(key string) (value T) {
	for _, one := range e {
		if normal(one.key) == key {
			return one.value
		}
	}
	return value
}

// normal writes a key with dashes, as flags are written. The name of a session variable stays as it is.
func normal(key string) string {
	if strings.HasPrefix(key, setPrefix) {
		return key
	}
	return strings.ReplaceAll(key, "_", "-")
}

// keysOf lists the keys of structs, those of inline ones included.
func keysOf(structs ...any) (keys []string) {
	for _, s := range structs {
		v := reflect.ValueOf(s)
		for i := range v.NumField() {
			if tag := v.Type().Field(i).Tag.Get("yaml"); tag == ",inline" {
				keys = append(keys, keysOf(v.Field(i).Interface())...)
			} else {
				keys = append(keys, cmp.Or(tag, strings.ToLower(v.Type().Field(i).Name)))
			}
		}
	}
	return keys
}

// merge lays a patch over keys and returns what comes of it; neither is changed. Keys and values are merged, everything
// else is replaced, and nothing (key: ~) takes the key away, as in RFC 7396. A flag takes those away that it excludes.
func (p *planner) merge(base *ast.MappingNode, over ast.Node) *ast.MappingNode {
	patch, ok := over.(*ast.MappingNode)
	if !ok {
		return base // over is nothing
	}
	merged := *base
	merged.Values = slices.Clone(base.Values)
	for _, group := range p.exclusive {
		if slices.ContainsFunc(group, func(key string) bool { return index(patch, key) >= 0 }) {
			merged.Values = slices.DeleteFunc(merged.Values, func(v *ast.MappingValueNode) bool {
				return slices.Contains(group, normal(keyOf(v))) && index(patch, keyOf(v)) < 0
			})
		}
	}
	for _, v := range patch.Values {
		at := index(&merged, keyOf(v))
		if inner, ok := v.Value.(*ast.MappingNode); ok {
			under := &ast.MappingNode{BaseNode: inner.BaseNode, Start: inner.Start}
			if at >= 0 {
				if was, ok := merged.Values[at].Value.(*ast.MappingNode); ok {
					under = was
				}
			}
			over := *v
			over.Value = p.merge(under, inner)
			v = &over
		}
		switch isNull := v.Value.Type() == ast.NullType; {
		case at >= 0 && isNull:
			merged.Values = slices.Delete(merged.Values, at, at+1)
		case at >= 0:
			merged.Values[at] = v
		case !isNull:
			merged.Values = append(merged.Values, v)
		}
	}
	return &merged
}

func index(n *ast.MappingNode, key string) int {
	return slices.IndexFunc(n.Values, func(v *ast.MappingValueNode) bool { return normal(keyOf(v)) == normal(key) })
}

// only returns the mapping with some of its keys.
func only(n *ast.MappingNode, keys ...string) *ast.MappingNode {
	some := *n
	some.Values = slices.DeleteFunc(slices.Clone(n.Values), func(v *ast.MappingValueNode) bool {
		return !slices.Contains(keys, normal(keyOf(v)))
	})
	return &some
}
