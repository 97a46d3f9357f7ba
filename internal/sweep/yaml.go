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
)

// The keys of a plan file, all of them optional. Overrides are merged as nodes, so that values keep their lines.
type (
	planKeys struct {
		Name, Target, Repeats, Settle, Limit, Budget, Knee, Order scalar

		WarmUp                 scalar `yaml:"warm_up"`
		Parts, Scales, Schemes entries
		Shared                 partKeys `yaml:",inline"` // by all parts
	}
	partKeys struct {
		Title, Rows, Bytes, Duration scalar

		Push, Axes, Methods entries
		Facts               *factKeys
	}
)

// read parses a plan file. It returns nil after an error, which it adds.
func (p *planner) read(text []byte) *ast.MappingNode {
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
	ast.Walk(p, root)
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
	"facts scales schemes source machine note points"

// decode reads keys, and refuses unknown ones if it is strict.
func (p *planner) decode(n ast.Node, into any, options ...yaml.DecodeOption) {
	if err := yaml.NodeToValue(n, into, options...); err != nil {
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

func (p *planner) scalars(n ast.Node) []scalar {
	nodes := []ast.Node{n}
	if list, ok := n.(*ast.SequenceNode); ok {
		nodes = list.Values
	}
	all := make([]scalar, len(nodes))
	for i, item := range nodes {
		p.decode(item, &all[i])
	}
	return all
}

// entries are keys that the user chooses, in the order of the file, without those whose value is null.
type entries []entry

type entry struct {
	key  string // as it is written
	line int
	node ast.Node
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (e *entries) UnmarshalYAML(n ast.Node) error {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		return unexpected(n, "keys and values belong")
	}
	*e = entries{}
	for _, v := range m.Values {
		if v.Value.Type() != ast.NullType {
			*e = append(*e, entry{keyOf(v), lineOf(v.Key), v.Value})
		}
	}
	return nil
}

// normal writes a key as the flag is called, with dashes. The name of a session variable is left as it is.
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

// override merges the overrides of scale and scheme into the plan: the scale's, the scheme's, the scheme's own scale's.
// scaled reports whether the plan has scales.
func (p *planner) override(root *ast.MappingNode) (merged *ast.MappingNode, scaled bool) {
	var keys planKeys
	p.decode(root, &keys, yaml.Strict())
	scale := cmp.Or(p.Scale, DefaultScale)
	found, valid := scale == DefaultScale, []string{DefaultScale}
	apply := func(scales entries) {
		scaled = scaled || len(scales) > 0
		for _, e := range scales {
			if e.key == scale {
				root, found = p.merge(root, e), true
			}
		}
	}
	apply(keys.Scales)
	for _, e := range keys.Scales {
		valid = append(valid, e.key)
	}
	known := p.Drivers.Schemes()
	for _, e := range keys.Schemes {
		schemes := strings.FieldsFunc(e.key, func(r rune) bool { return r == ',' || r == ' ' })
		for _, name := range schemes {
			if !slices.Contains(known, name) {
				p.add(e.line, "%v", config.Unknown("target scheme", name, known))
			}
		}
		var own planKeys
		p.decode(e.node, &own)
		scaled = scaled || len(own.Scales) > 0
		if p.isFor(schemes, e.line, root) {
			root = p.merge(root, e)
			apply(own.Scales)
		}
	}
	if !found {
		p.add(0, "%v", config.Unknown("scale", p.Scale, valid))
	}
	return root, scaled
}

// merge merges an override, after a check of its keys.
func (p *planner) merge(root *ast.MappingNode, e entry) *ast.MappingNode {
	p.decode(e.node, &planKeys{}, yaml.Strict())
	return merge(root, e.node)
}

// isFor reports whether an override of some schemes applies to the plan's targets. It has to apply to all of them or to
// none, since one table has the same axes for all.
func (p *planner) isFor(schemes []string, line int, root *ast.MappingNode) bool {
	targets := []string{p.Target}
	if p.Target == "" {
		targets = p.targets(root)
	}
	matches := 0
	for _, target := range targets {
		if scheme, _, _ := strings.Cut(strings.ToLower(target), "://"); slices.Contains(schemes, scheme) {
			matches++
		}
	}
	if matches > 0 && matches < len(targets) {
		p.add(line, "the plan's targets have several schemes, and this override applies to some of them: sweep them separately")
	}
	return matches > 0
}

// targets lists all targets of a plan.
func (p *planner) targets(root *ast.MappingNode) (all []string) {
	var keys planKeys
	p.decode(root, &keys)
	if keys.Target.line > 0 {
		all = append(all, p.expand(keys.Target))
	}
	axes := slices.Clone(keys.Shared.Axes)
	for _, e := range keys.Parts {
		var part partKeys
		p.decode(e.node, &part)
		axes = append(axes, part.Axes...)
	}
	for _, e := range axes {
		if e.key != targetName {
			continue
		}
		for _, s := range p.scalars(e.node) {
			all = append(all, p.expand(s))
		}
	}
	return all
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
