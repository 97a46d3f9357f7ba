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
	"github.com/terapush/terapush/internal/results"
)

// What a plan file may be at most. Nesting is bounded before the file is parsed, since the parser calls itself for every
// level: it takes 6 GB for 64 KiB of brackets.
const (
	maxBytes = 64 << 10
	maxDepth = 32
)

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
			if s, ok := v.Key.(*ast.StringNode); ok && !chosen && !strings.HasPrefix(key, setPrefix) {
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
	if kind := new(yaml.TypeError); errors.As(err, &kind) && kind.DstType.Kind() == reflect.Float64 {
		text = "a number belongs here" // rather than the names of Go's types
	}
	if unknown := new(yaml.UnknownFieldError); errors.As(err, &unknown) {
		key := unknown.Token.Value
		text = fmt.Sprintf("key %q does not exist here", key)
		if all := keysOf(planKeys{}, results.Facts{}, results.Fact{}); !slices.Contains(all, key) {
			text = config.Unknown("key", key, all).Error()
		}
	}
	p.add(e.GetToken().Position.Line, "%s", text)
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

// refuseNothing reports a value that is missing.
func (p *planner) refuseNothing(n ast.Node) {
	if n.Type() == ast.NullType {
		p.add(lineOf(n), "%s: nothing is here: give a value, or leave the key out", where(n))
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
