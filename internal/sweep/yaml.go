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

// document is a plan file. All keys are optional. Decoding an override over it does what RFC 7396 says: mappings are
// merged, everything else is replaced, and null removes the key, which is why all fields are pointers.
type document struct {
	Name, Target, Repeats, Precision, Settle, Limit, Budget, Knee, Order *value

	WarmUp *value          `yaml:"warm_up"`
	Parts  *mapping[nodes] // each decoded over what is shared

	Scales, Schemes *mapping[nodes] // decoded over the document

	Shared table `yaml:",inline"` // by all parts
}

// table holds the keys that a part may have.
type table struct {
	Title, Rows, Bytes, Duration *value

	Push             *mapping[values]
	Axes             *mapping[choices]
	Include, Exclude *picks
	Methods          *mapping[mapping[values]]
	Thresholds       *mapping[values]
	Facts            *factKeys
}

const keyNames = "name title target push methods axes include exclude thresholds rows bytes duration repeats warm_up settle limit budget knee order " +
	"parts facts scales schemes source machine note points"

// sized returns the sizes of a trial, in the order of sizes.
func (t *table) sized() []*value { return []*value{t.Rows, t.Bytes, t.Duration} }

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

// at returns the line of a value, 0 without one.
func (v *value) at() int {
	if v == nil {
		return 0
	}
	return v.line
}

// values are one value, or a list of them.
type values []value

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (v *values) UnmarshalYAML(n ast.Node) error {
	items := itemsOf(n)

	*v = make(values, len(items))
	for i, item := range items {
		if err := (*v)[i].UnmarshalYAML(item); err != nil {
			return err
		}
	}
	return nil
}

// itemsOf returns the items of a list, or what is no list as the only one.
func itemsOf(n ast.Node) []ast.Node {
	if list, ok := n.(*ast.SequenceNode); ok {
		return list.Values
	}
	return []ast.Node{n}
}

// nodes are what will be decoded over something else, one after the other.
type nodes []ast.Node

// UnmarshalYAML implements yaml.NodeUnmarshaler.
func (all *nodes) UnmarshalYAML(n ast.Node) error {
	*all = append(slices.Clip(*all), n)
	return nil
}

// mapping holds keys that the user chooses, in the order of the file.
type mapping[T any] struct{ list []entry[T] }

type entry[T any] struct {
	key   string // as it is written
	line  int
	value T
}

// entries lists those of a mapping, none of a nil one.
func (m *mapping[T]) entries() []entry[T] {
	if m == nil {
		return nil
	}
	return m.list
}

// find returns the index of a key, however it is written, or -1.
func (m *mapping[T]) find(key string) int {
	return slices.IndexFunc(m.entries(), func(e entry[T]) bool { return normal(e.key) == normal(key) })
}

// UnmarshalYAML implements yaml.NodeUnmarshaler. It merges: others may have the entries that are there, so they are
// copied. A flag removes those that it excludes.
func (m *mapping[T]) UnmarshalYAML(n ast.Node) error {
	over, ok := n.(*ast.MappingNode)
	if !ok {
		return unexpected(n, "keys and values belong")
	}
	m.list = slices.DeleteFunc(slices.Clone(m.list), func(e entry[T]) bool {
		return !has(over, e.key) && has(over, exclusiveWith(normal(e.key))...)
	})

	for i, v := range over.Values {
		if again := (&ast.MappingNode{Values: over.Values[:i]}); has(again, keyOf(v)) {
			return &yaml.SyntaxError{Message: keyOf(v) + " is here twice", Token: v.Key.GetToken()}
		}

		at := m.find(keyOf(v))
		if v.Value.Type() == ast.NullType {
			if at >= 0 {
				m.list = slices.Delete(m.list, at, at+1)
			}
			continue
		}
		if at < 0 {
			at = len(m.list)
			m.list = append(m.list, entry[T]{})
		}
		m.list[at].key, m.list[at].line = keyOf(v), lineOf(v.Key)
		if err := yaml.NodeToValue(v.Value, &m.list[at].value, yaml.Strict()); err != nil {
			return err
		}
	}
	return nil
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

// Visit implements ast.Visitor. It writes keys with _, as the structs have them, and refuses what would move values to
// other lines.
func (p *planner) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		p.add(lineOf(n), "anchors, aliases and tags (&, *, !) are not supported: write the value out")
	case *ast.MappingValueNode:
		if key, ok := n.Key.(*ast.StringNode); ok && !isEntry(key.Value) {
			key.Value = strings.ReplaceAll(key.Value, "-", "_")
		}
	}
	return p
}

// decode decodes nodes over a table, or over the document that has the table, one after the other. A size removes the
// other sizes.
func (p *planner) decode(over nodes, t *table, into any) {
	for _, n := range over {
		if m, ok := n.(*ast.MappingNode); ok && has(m, sizes()...) {
			t.Rows, t.Bytes, t.Duration = nil, nil, nil
		}
		if err := yaml.NodeToValue(n, into, yaml.Strict()); err != nil {
			p.addYAML(err)
		}
	}
}

// load decodes the plan and the overrides of scale and scheme over it: the scale's, the scheme's, the scheme's own
// scale's. scaled reports whether the plan has scales.
func (p *planner) load(root ast.Node) (d document, scaled bool) {
	p.decode(nodes{root}, &d.Shared, &d)
	plan := d
	scale := cmp.Or(p.Scale, DefaultScale)
	known, valid := scale == DefaultScale, []string{DefaultScale}

	apply := func(scales *mapping[nodes]) {
		for _, e := range scales.entries() {
			scaled = true
			p.decode(e.value, new(table), new(document)) // for its mistakes, chosen or not
			if e.key == scale {
				known = true
				p.decode(e.value, &d.Shared, &d)
			}
		}
	}
	apply(plan.Scales)
	for _, e := range plan.Scales.entries() {
		valid = append(valid, e.key)
	}

	for _, e := range plan.Schemes.entries() {
		schemes := strings.FieldsFunc(e.key, func(r rune) bool { return r == ',' || r == ' ' })
		p.checkSchemes(schemes, e.line)

		var own document
		p.decode(e.value, &own.Shared, &own)
		scaled = scaled || len(own.Scales.entries()) > 0
		if p.isFor(schemes, e.line, d) {
			p.decode(e.value, &d.Shared, &d)
			apply(own.Scales)
		}
	}
	if !known {
		p.add(0, "%v", config.Unknown("scale", p.Scale, valid))
	}
	return d, scaled
}

func (p *planner) checkSchemes(names []string, line int) {
	known := p.Drivers.Schemes()
	for _, name := range names {
		if !slices.Contains(known, name) {
			p.add(line, "%v", config.Unknown("target scheme", name, known))
		}
	}
}

// isFor reports whether an override of some schemes applies to the plan's targets. It has to apply to all of them or to
// none, since one table has the same axes for all.
func (p *planner) isFor(schemes []string, line int, d document) bool {
	targets := []string{p.Target}
	if p.Target == "" {
		targets = p.targets(d)
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
func (p *planner) targets(d document) (all []string) {
	if d.Target != nil {
		all = append(all, p.expand(d.Target))
	}
	for _, e := range p.tables(d) {
		if at := e.value.Axes.find(targetName); at >= 0 {
			for _, v := range e.value.Axes.list[at].value {
				all = append(all, p.expand(&v.value))
			}
		}
	}
	return all
}

// tables returns the parts by name, each decoded over what all share except for the title; one without a name if the
// plan has no parts.
func (p *planner) tables(d document) (all []entry[table]) {
	if d.Parts == nil {
		return []entry[table]{{line: 1, value: d.Shared}}
	}

	for _, e := range d.Parts.entries() {
		t := d.Shared
		t.Title = nil
		p.decode(e.value, &t, &t)
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
