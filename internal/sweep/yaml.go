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
	"github.com/terapush/terapush/internal/spelling"
)

// document is a plan file. All keys are optional: a value without a line is not there.
type document struct {
	Name, Target, Repeats, Precision, Settle, Limit, Budget, Knee, Order value

	WarmUp value             `yaml:"warm_up"`
	Parts  mapping[ast.Node] // merged over the document

	Scales, Schemes mapping[ast.Node] // likewise

	Shared table `yaml:",inline"` // by all parts
}

// table holds the keys that a part may have.
type table struct {
	Title, Rows, Bytes, Duration value

	Push             mapping[list[value]]
	Axes             mapping[list[choice]]
	Include, Exclude list[mapping[list[choice]]] // cases that are added and removed: values by axis
	Methods          mapping[mapping[list[value]]]
	Thresholds       mapping[list[value]]
	Facts            *factKeys
}

const keyNames = "name title target push methods axes include exclude thresholds rows bytes duration repeats warm_up settle limit budget knee order " +
	"parts facts scales schemes source machine note points"

// value is one word of a plan, before its variables are expanded.
type value struct {
	text   string
	line   int
	quoted bool // never a range
}

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (v *value) UnmarshalYAML(n ast.Node) error {
	*v = value{line: lineOf(n)}

	switch n := n.(type) {
	case *ast.NullNode: // in a list
	case *ast.StringNode:
		v.text = n.Value
		v.quoted = n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		v.text, v.quoted = n.Value.Value, true
	case *ast.IntegerNode:
		v.text = fmt.Sprint(n.Value) // without the _ of 2_000_000
	case *ast.BoolNode, *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		v.text = n.GetToken().Value
	default:
		return unexpected(n, "one value belongs")
	}
	return nil
}

// list is one value, or a list of them.
type list[T any] []T

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (l *list[T]) UnmarshalYAML(n ast.Node) error {
	items := []ast.Node{n}
	if several, ok := n.(*ast.SequenceNode); ok {
		items = several.Values
	}

	*l = make(list[T], len(items))
	for i, item := range items {
		if err := yaml.NodeToValue(item, &(*l)[i], yaml.Strict()); err != nil {
			return err
		}
	}
	return nil
}

// mapping holds keys that the user chooses, in the order of the file.
type mapping[T any] []entry[T]

type entry[T any] struct {
	key   string // as it is written
	line  int
	value T
}

// find returns the index of a key, however it is written, or -1.
func (m mapping[T]) find(key string) int {
	return slices.IndexFunc(m, func(e entry[T]) bool { return normal(e.key) == normal(key) })
}

// UnmarshalYAML implements yaml.NodeUnmarshaler. Keys with null are left out.
func (m *mapping[T]) UnmarshalYAML(n ast.Node) error {
	all, ok := n.(*ast.MappingNode)
	if !ok {
		return unexpected(n, "keys and values belong")
	}

	*m = mapping[T]{}
	for _, v := range all.Values {
		if v.Value.Type() == ast.NullType {
			continue
		}
		e := entry[T]{key: keyOf(v), line: lineOf(v.Key)}
		if err := yaml.NodeToValue(v.Value, &e.value, yaml.Strict()); err != nil {
			return err
		}
		*m = append(*m, e)
	}
	return nil
}

// merge returns one value with another over it, as RFC 7396 says: mappings are merged, everything else is replaced. A
// flag or a size removes those that it excludes. Null stays null, since a part with null does not inherit either.
func merge(below, over ast.Node) ast.Node {
	old, isMapping := below.(*ast.MappingNode)
	changes, areMapping := over.(*ast.MappingNode)
	if !isMapping || !areMapping {
		return over
	}

	all := slices.DeleteFunc(slices.Clone(old.Values), func(v *ast.MappingValueNode) bool {
		return !has(changes, keyOf(v)) && has(changes, exclusiveWith(normal(keyOf(v)))...)
	})
	for _, v := range changes.Values {
		at := slices.IndexFunc(all, func(had *ast.MappingValueNode) bool { return normal(keyOf(had)) == normal(keyOf(v)) })
		if at < 0 {
			all = append(all, v)
		} else {
			all[at] = ast.MappingValue(v.Start, v.Key, merge(all[at].Value, v.Value))
		}
	}
	return ast.Mapping(old.Start, old.IsFlowStyle, all...)
}

// has reports whether a mapping has one of the keys, however they are written.
func has(n *ast.MappingNode, keys ...string) bool {
	return slices.ContainsFunc(n.Values, func(v *ast.MappingValueNode) bool {
		return slices.ContainsFunc(keys, func(key string) bool { return normal(keyOf(v)) == normal(key) })
	})
}

func keyOf(v *ast.MappingValueNode) string { return v.Key.GetToken().Value }

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

func unexpected(n ast.Node, belongs string) error {
	path := strings.TrimLeft(n.GetPath(), "$.")
	return &yaml.SyntaxError{Message: fmt.Sprintf("%s: %s here", path, belongs), Token: n.GetToken()}
}

// normal writes a key as the flag is called, with dashes. The name of a session variable or a parameter is left as it is.
func normal(key string) string {
	if isEntry(key) {
		return key
	}
	return strings.ReplaceAll(key, "_", "-")
}

// read parses a plan file. It returns nil after an error, which it adds.
func (p *planner) read(text []byte) ast.Node {
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		p.addYAML(err)
		return nil
	}

	if len(file.Docs) != 1 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() != ast.MappingType {
		p.add(1, "a plan is one document of keys and values")
		return nil
	}
	root := file.Docs[0].Body
	ast.Walk(p, root)
	return root
}

// Visit implements ast.Visitor. It writes keys with _, as the structs have them, and refuses keys that are then the
// same, and what would move values to other lines.
func (p *planner) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		p.add(lineOf(n), "anchors, aliases and tags (&, *, !) are not supported: write the value out")
	case *ast.MappingNode:
		for i, v := range n.Values {
			if has(&ast.MappingNode{Values: n.Values[:i]}, keyOf(v)) {
				p.add(lineOf(v.Key), "%s is here twice", keyOf(v))
			}
		}
	case *ast.MappingValueNode:
		if key, ok := n.Key.(*ast.StringNode); ok && !isEntry(key.Value) {
			key.Value = strings.ReplaceAll(key.Value, "-", "_")
		}
	}
	return p
}

// decode adds a problem if a node has a key too many, or a value of another form.
func (p *planner) decode(n ast.Node, into any) {
	if err := yaml.NodeToValue(n, into, yaml.Strict()); err != nil {
		p.addYAML(err)
	}
}

func (p *planner) document(n ast.Node) (d document) {
	p.decode(n, &d)
	return d
}

// override merges the overrides of scale and scheme over the plan: the scale's, the scheme's, the scheme's own scale's.
// scaled reports whether the plan has scales.
func (p *planner) override(plan ast.Node) (root ast.Node, scaled bool) {
	root = plan
	d := p.document(plan)
	scale := cmp.Or(p.Scale, DefaultScale)
	known, valid := scale == DefaultScale, []string{DefaultScale}

	apply := func(scales mapping[ast.Node]) {
		for _, e := range scales {
			scaled = true
			p.document(e.value) // for its mistakes, chosen or not
			if e.key == scale {
				known = true
				root = merge(root, e.value)
			}
		}
	}
	apply(d.Scales)
	for _, e := range d.Scales {
		valid = append(valid, e.key)
	}

	for _, e := range d.Schemes {
		schemes := strings.FieldsFunc(e.key, func(r rune) bool { return r == ',' || r == ' ' })
		for _, name := range schemes {
			if known := p.Drivers.Schemes(); !slices.Contains(known, name) {
				p.add(e.line, "%v", config.Unknown("target scheme", name, known))
			}
		}

		own := p.document(e.value)
		scaled = scaled || len(own.Scales) > 0
		if p.isFor(schemes, e.line, root) {
			root = merge(root, e.value)
			apply(own.Scales)
		}
	}
	if !known {
		p.add(0, "%v", config.Unknown("scale", p.Scale, valid))
	}
	return root, scaled
}

// isFor reports whether an override of some schemes applies to the plan's targets. It has to apply to all of them or to
// none, since one table has the same axes for all.
func (p *planner) isFor(schemes []string, line int, root ast.Node) bool {
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
		p.add(line, "the plan's targets have several schemes, and this override applies to some of them: "+
			"sweep them separately")
	}
	return matches > 0
}

// targets lists all targets of a plan.
func (p *planner) targets(root ast.Node) (all []string) {
	if target := p.document(root).Target; target.line > 0 {
		all = append(all, p.expand(target))
	}
	for _, e := range p.tables(root) {
		if at := e.value.Axes.find(targetName); at >= 0 {
			for _, c := range e.value.Axes[at].value {
				all = append(all, p.expand(c.value))
			}
		}
	}
	return all
}

// tables returns the parts by name, each merged over what all share except for the title; one without a name if the
// plan has no parts.
func (p *planner) tables(root ast.Node) (all []entry[table]) {
	d := p.document(root)
	if d.Parts == nil {
		return []entry[table]{{line: 1, value: d.Shared}}
	}

	for _, e := range d.Parts {
		var own table
		p.decode(e.value, &own)
		t := p.document(merge(root, e.value)).Shared
		t.Title = own.Title
		all = append(all, entry[table]{e.key, e.line, t})
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
		if guess := spelling.Nearest(key, strings.Fields(keyNames)); guess != "" && guess != key {
			text += fmt.Sprintf("; did you mean %q?", guess)
		}
	}
	p.add(e.GetToken().Position.Line, "%s", text)
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
