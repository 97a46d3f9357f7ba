package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/terapush/terapush/internal/config"
)

// What a plan file may be at most. Nesting is bounded before the file is parsed, since the parser calls itself for every
// level: it takes 6 GB for 64 KiB of brackets.
const (
	maxBytes = 64 << 10
	maxDepth = 32
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
		Facts      *factsKeys
	}
	factsKeys struct {
		Source, Machine, Note scalar

		Points []pointKeys
	}
	pointKeys struct {
		At                   entries[scalars]
		RowsPerSecond        scalar `yaml:"rows_per_second"`
		BytesPerSecond       scalar `yaml:"bytes_per_second"`
		OverallRowsPerSecond scalar `yaml:"overall_rows_per_second"`
		Seconds              scalar
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
	case *ast.NullNode:
		return nil
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
	switch {
	case n.Type() == ast.NullType:
		return nil
	case !ok:
		return unexpected(n, "keys and values")
	}
	*e = make(entries[T], len(m.Values))
	for i, v := range m.Values {
		(*e)[i] = entry[T]{key: keyOf(v), line: lineOf(v.Key), node: v.Value}
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

func unexpected(n ast.Node, belongs string) error {
	is := map[ast.NodeType]string{ast.MappingType: "keys and values", ast.SequenceType: "a list"}[n.Type()]
	text := fmt.Sprintf("%s: %s is here, %s belongs", where(n), cmp.Or(is, "one value"), belongs)
	return &yaml.SyntaxError{Message: text, Token: n.GetToken()}
}

// where returns the keys that lead to a value: push.rows.
func where(n ast.Node) string {
	return cmp.Or(strings.TrimLeft(n.GetPath(), "$."), "the plan")
}

func keyOf(v *ast.MappingValueNode) string { return v.Key.GetToken().Value }

func lineOf(n ast.Node) int {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// normal writes a key with dashes, as flags are written. The name of a session variable stays as it is.
func normal(key string) string {
	if strings.HasPrefix(key, setPrefix) {
		return key
	}
	return strings.ReplaceAll(key, "_", "-")
}

// read parses a plan file, and returns nil if it is none.
func (p *planner) read(text []byte) *ast.MappingNode {
	if len(text) > maxBytes {
		p.add(1, "a plan of %d bytes: %d is the most", len(text), maxBytes)
		return nil
	}
	tokens := lexer.Tokenize(string(text))
	if line := tooDeep(tokens); line > 0 {
		p.add(line, "nested more than %d deep", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	switch {
	case err != nil:
		p.addYAML(err)
		return nil
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		p.add(1, "the plan is empty")
		return nil
	case len(file.Docs) > 1:
		p.add(1, "several documents (---) in one file: a plan is one")
		return nil
	}
	body := file.Docs[0].Body
	ast.Walk(p, body)
	root, ok := body.(*ast.MappingNode)
	if !ok && len(p.all) == 0 {
		p.addYAML(unexpected(body, "keys and values"))
	}
	if ok {
		respell(root, false)
	}
	return root
}

// tooDeep returns the line on which nesting goes beyond bounds, 0 when it does not. Indentation nests at most 350 deep in
// a file of maxBytes; brackets, and the dashes and question marks of one line, have no such bound.
func tooDeep(tokens token.Tokens) int {
	brackets, line, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			brackets++
		case token.SequenceEndType, token.MappingEndType:
			brackets--
		case token.SequenceEntryType, token.MappingKeyType:
			onLine++
		}
		if max(brackets, onLine) > maxDepth {
			return line
		}
	}
	return 0
}

// Visit implements ast.Visitor. It refuses what no plan needs, and what would let a short file stand for a long one.
func (p *planner) Visit(n ast.Node) ast.Visitor {
	switch n := n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		p.add(lineOf(n), "anchors, aliases and tags (&, *, !) are not read here: write the value out")
	case *ast.MappingValueNode:
		if _, ok := n.Key.(ast.ScalarNode); !ok {
			p.add(lineOf(n), "a key is one word here")
		}
	}
	return p
}

// respell writes keys with _, as the structs have them. Names that the user chooses stay.
func respell(n ast.Node, chosen bool) {
	switch n := n.(type) {
	case *ast.SequenceNode:
		for _, item := range n.Values {
			respell(item, false)
		}
	case *ast.MappingNode:
		for _, v := range n.Values {
			key := keyOf(v)
			if s, ok := v.Key.(*ast.StringNode); ok && !chosen {
				s.Value = strings.ReplaceAll(key, "-", "_")
			}
			respell(v.Value, !chosen && slices.Contains([]string{"parts", "scales", "schemes"}, key))
		}
	}
}

// decode reads keys strictly. The library stops at its first error: what is wrong is reported and taken out of n, and the
// rest is read again, so that the user sees all at once.
func (p *planner) decode(n *ast.MappingNode, into any) {
	for range maxProblems {
		err := yaml.NodeToValue(n, into, yaml.Strict())
		if err == nil {
			return
		}
		p.addYAML(err)
		var e yaml.Error
		if !errors.As(err, &e) || !takeOut(n, e.GetToken()) {
			return
		}
	}
}

// takeOut removes the innermost key or item that the token is of, and reports whether there was one.
func takeOut(n ast.Node, t *token.Token) bool {
	switch n := n.(type) {
	case *ast.MappingNode:
		for i, v := range n.Values {
			if takeOut(v.Value, t) {
				return true
			}
			if v.Key.GetToken() == t || v.Value.GetToken() == t {
				n.Values = slices.Delete(n.Values, i, i+1)
				return true
			}
		}
	case *ast.SequenceNode:
		for i, item := range n.Values {
			if takeOut(item, t) {
				return true
			}
			if item.GetToken() == t {
				n.Values = slices.Delete(n.Values, i, i+1)
				return true
			}
		}
	}
	return false
}

// addYAML adds an error of the library without the lines that it would show, which may hold what is nobody's business.
func (p *planner) addYAML(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil {
		p.add(1, "this is not YAML")
		return
	}
	text := e.GetMessage()
	if unknown := new(yaml.UnknownFieldError); errors.As(err, &unknown) {
		key := unknown.Token.Value
		text = fmt.Sprintf("key %q does not exist", key)
		switch guess := config.Suggest(key, keysOf(planKeys{}, factsKeys{}, pointKeys{})); guess {
		case "":
		case key:
			text += " here"
		default:
			text += fmt.Sprintf("; did you mean %q?", guess)
		}
	}
	p.add(e.GetToken().Position.Line, "%s", text)
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
func (p *planner) merge(base, patch *ast.MappingNode) *ast.MappingNode {
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

// complete reports values that are missing.
func (p *planner) complete(n *ast.MappingNode) {
	for _, null := range ast.Filter(ast.NullType, n) {
		p.add(lineOf(null), "%s: nothing is here: give a value, or leave the key out", where(null))
	}
}

// problems are all that is wrong with a plan file. The same line is complained about once in the same words, since parts
// share what stands above them.
type problems struct {
	file string
	all  []problem
}

type problem struct {
	line int // 0: of no line
	text string
}

// maxProblems is how many are said: a file of which more is wrong is another kind of file.
const maxProblems = 50

func (p *problems) add(line int, format string, args ...any) {
	one := problem{line, fmt.Sprintf(format, args...)}
	if !slices.Contains(p.all, one) {
		p.all = append(p.all, one)
	}
}

func (p *problems) err() error {
	slices.SortStableFunc(p.all, func(a, b problem) int { return cmp.Compare(a.line, b.line) })
	var all []error
	for i, one := range p.all {
		switch {
		case i == maxProblems:
			all = append(all, fmt.Errorf("%s: and %d more problems", p.file, len(p.all)-i))
			return errors.Join(all...)
		case one.line == 0:
			all = append(all, fmt.Errorf("%s: %s", p.file, one.text))
		default:
			all = append(all, fmt.Errorf("%s:%d: %s", p.file, one.line, one.text))
		}
	}
	return errors.Join(all...)
}
