package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/results"
)

// The keys of a plan file, all of them optional. The whole file is decoded strictly once; overrides are merged as nodes,
// so that values keep their lines.
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

// read parses a plan file and decodes its keys strictly. It returns nil after an error, which it adds.
func (p *planner) read(text []byte, keys *planKeys) *ast.MappingNode {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		p.addYAML(err)
		return nil
	}
	var root *ast.MappingNode
	if len(file.Docs) == 1 {
		root, _ = file.Docs[0].Body.(*ast.MappingNode)
	}
	if root == nil {
		p.add(1, "a plan is one document of keys and values")
		return nil
	}
	if ast.Walk(p, root); len(p.all) > 0 {
		return nil
	}
	if err := yaml.NodeToValue(root, keys, yaml.Strict()); err != nil {
		p.addYAML(err)
		return nil
	}
	return root
}

// Visit implements ast.Visitor. It writes keys with _, as the structs have them, and refuses what merge does not follow.
func (p *planner) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		p.add(lineOf(n), "anchors, aliases and tags (&, *, !) are not supported: write the value out")
	case *ast.MappingValueNode:
		if key, ok := n.Key.(*ast.StringNode); ok && !strings.HasPrefix(key.Value, setPrefix) {
			key.Value = strings.ReplaceAll(key.Value, "-", "_")
		}
	}
	return p
}

// addYAML adds an error of the library without the lines of the file that it shows, which may hold a password.
func (p *planner) addYAML(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		p.add(1, "this is not YAML")
		return
	}
	text := e.GetMessage()
	if unknown := new(yaml.UnknownFieldError); errors.As(err, &unknown) {
		key := unknown.Token.Value
		text = fmt.Sprintf("key %q does not exist here", key)
		if guess := config.Suggest(key, strings.Fields(keyNames)); guess != "" && guess != key {
			text += fmt.Sprintf("; did you mean %q?", guess)
		}
	}
	p.add(e.GetToken().Position.Line, "%s", text)
}

const keyNames = "name title target push methods axes rows bytes duration repeats warm_up settle limit budget knee order parts " +
	"facts scales schemes source machine note points at rows_per_second bytes_per_second overall_rows_per_second seconds"

// decode reads merged keys. They were decoded strictly before, where they stand in the file.
func (p *planner) decode(n *ast.MappingNode, into any) {
	if err := yaml.NodeToValue(n, into); err != nil {
		p.addYAML(err)
	}
}

func unexpected(n ast.Node, belongs string) error {
	path := strings.TrimLeft(n.GetPath(), "$.")
	return &yaml.SyntaxError{Message: fmt.Sprintf("%s: %s here", path, belongs), Token: n.GetToken()}
}

func keyOf(v *ast.MappingValueNode) string { return v.Key.GetToken().Value }

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// scalar is one value, before its variables are expanded.
type scalar struct {
	text   string
	line   int  // 0: the key is missing
	quoted bool // never a range
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
		return unexpected(n, "one value belongs")
	}
	return nil
}

// scalars is one value or a list of them.
type scalars []scalar

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (s *scalars) UnmarshalYAML(n ast.Node) error {
	nodes := []ast.Node{n}
	if list, ok := n.(*ast.SequenceNode); ok {
		nodes = list.Values
	}
	*s = make(scalars, len(nodes))
	for i, item := range nodes {
		if err := (*s)[i].UnmarshalYAML(item); err != nil {
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
	value T // zero for null
	node  ast.Node
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (e *entries[T]) UnmarshalYAML(n ast.Node) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return unexpected(n, "keys and values belong")
	}
	*e = make(entries[T], len(m.Values))
	for i, v := range m.Values {
		(*e)[i] = entry[T]{key: keyOf(v), line: lineOf(v.Key), node: v.Value}
		if v.Value.Type() == ast.NullType {
			continue
		}
		if err := yaml.NodeToValue(v.Value, &(*e)[i].value, yaml.Strict()); err != nil {
			return err
		}
	}
	return nil
}

// named returns the value of a key, written with - or _.
func (e entries[T]) named(key string) (value T) {
	for _, one := range e {
		if normal(one.key) == key {
			return one.value
		}
	}
	return value
}

// normal writes a key with dashes, as flags are written. The name of a session variable is left as it is.
func normal(key string) string {
	if strings.HasPrefix(key, setPrefix) {
		return key
	}
	return strings.ReplaceAll(key, "_", "-")
}

// merge returns base with a patch applied, and changes neither: mappings are merged, everything else is replaced, and
// null removes the key, as in RFC 7396. A flag removes those that it excludes.
func merge(base *ast.MappingNode, patch ast.Node) *ast.MappingNode {
	over, ok := patch.(*ast.MappingNode)
	if !ok {
		return base // null
	}
	merged := *base
	merged.Values = slices.DeleteFunc(slices.Clone(base.Values), func(v *ast.MappingValueNode) bool {
		return index(over, keyOf(v)) < 0 &&
			slices.ContainsFunc(exclusiveWith(normal(keyOf(v))), func(key string) bool { return index(over, key) >= 0 })
	})
	for _, v := range over.Values {
		at := index(&merged, keyOf(v))
		if inner, ok := v.Value.(*ast.MappingNode); ok {
			under := &ast.MappingNode{BaseNode: inner.BaseNode, Start: inner.Start}
			if at >= 0 {
				if was, ok := merged.Values[at].Value.(*ast.MappingNode); ok {
					under = was
				}
			}
			entry := *v
			entry.Value = merge(under, inner)
			v = &entry
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

type problem struct {
	line int // 0: of no line
	text string
}

// add notes a problem, once: parts share what stands above them.
func (p *planner) add(line int, format string, args ...any) {
	if one := (problem{line, fmt.Sprintf(format, args...)}); !slices.Contains(p.all, one) {
		p.all = append(p.all, one)
	}
}

// err returns the problems in the order of their lines, nil if there are none.
func (p *planner) err() error {
	slices.SortStableFunc(p.all, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all []error
	for _, one := range p.all {
		if one.line == 0 {
			all = append(all, fmt.Errorf("%s: %s", p.file, one.text))
		} else {
			all = append(all, fmt.Errorf("%s:%d: %s", p.file, one.line, one.text))
		}
	}
	return errors.Join(all...)
}
