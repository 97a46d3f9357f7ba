package sweep

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

// What a plan file may be at most. YAML's own nesting is bounded before it is parsed, since the parser calls itself
// for every level.
const (
	maxBytes = 64 << 10
	maxDepth = 32
	maxKeys  = 500 // of one mapping
)

// kind is what a node is made of.
type kind uint8

const (
	null kind = iota
	scalar
	list
	mapping
)

func (k kind) String() string {
	return [...]string{"nothing", "one value", "a list", "keys and values"}[k]
}

// node is a piece of the plan file that knows its line. Overrides are laid over one another as nodes, so that an error
// names the line that is wrong and not the place it ended up in.
type node struct {
	line    int
	kind    kind
	text    string // of a scalar, before variables are expanded
	quoted  bool   // of a scalar: it is one value as it stands, and never a range
	items   []*node
	entries []entry // in the file's order
}

type entry struct {
	key   string // as it is written
	line  int
	value *node
}

// named finds a key however it is written, with - or _.
func (n *node) named(key string) *node {
	if n == nil {
		return nil
	}
	if i := n.index(key); i >= 0 {
		return n.entries[i].value
	}
	return nil
}

func (n *node) index(key string) int {
	return slices.IndexFunc(n.entries, func(e entry) bool { return normal(e.key) == normal(key) })
}

// normal writes a key with dashes, as flags are written. The name of a session variable stays as it is.
func normal(key string) string {
	if strings.HasPrefix(key, setPrefix) {
		return key
	}
	return strings.ReplaceAll(key, "_", "-")
}

// over lays a patch over n and returns what comes of it; neither is changed. Keys and values are merged, everything else
// is replaced, and nothing (key: ~) takes the key away, as in RFC 7396. A flag takes those away that it excludes.
func (n *node) over(patch *node, exclusive [][]string) *node {
	if patch == nil {
		return n
	}
	if n == nil || n.kind != mapping || patch.kind != mapping {
		return patch
	}
	merged := *n
	merged.entries = slices.Clone(n.entries)
	for _, group := range exclusive {
		if slices.ContainsFunc(group, func(key string) bool { return patch.index(key) >= 0 }) {
			merged.entries = slices.DeleteFunc(merged.entries, func(e entry) bool {
				return slices.Contains(group, normal(e.key)) && patch.index(e.key) < 0
			})
		}
	}
	for _, e := range patch.entries {
		at := merged.index(e.key)
		switch {
		case at >= 0 && e.value.kind == null:
			merged.entries = slices.Delete(merged.entries, at, at+1)
		case at >= 0:
			e.value = merged.entries[at].value.over(e.value, exclusive)
			merged.entries[at] = e
		case e.value.kind != null:
			merged.entries = append(merged.entries, e)
		}
	}
	return &merged
}

// reader turns YAML into nodes.
type reader struct{ *problems }

func (r reader) read(text []byte) *node {
	if len(text) > maxBytes {
		r.add(1, "a plan of %d bytes: %d is the most", len(text), maxBytes)
		return nil
	}
	tokens := lexer.Tokenize(string(text))
	if line := tooDeep(tokens); line > 0 {
		r.add(line, "nested more than %d deep", maxDepth)
		return nil
	}
	file, err := parser.Parse(tokens, 0)
	if err != nil {
		r.add(syntaxError(err))
		return nil
	}
	switch {
	case len(file.Docs) == 0 || file.Docs[0].Body == nil:
		r.add(1, "the plan is empty")
		return nil
	case len(file.Docs) > 1:
		r.add(1, "several documents (---) in one file: a plan is one")
		return nil
	}
	return r.node(file.Docs[0].Body, 0)
}

// tooDeep returns the line on which nesting goes beyond bounds, 0 when it does not. Lists in block style nest on one
// line as well as by indentation; columns bound the latter.
func tooDeep(tokens token.Tokens) int {
	flow, line, onLine := 0, 0, 0
	for _, t := range tokens {
		if t.Position.Line != line {
			line, onLine = t.Position.Line, 0
		}
		switch t.Type {
		case token.SequenceStartType, token.MappingStartType:
			flow++
		case token.SequenceEndType, token.MappingEndType:
			flow--
		case token.SequenceEntryType, token.MappingKeyType, token.MappingValueType:
			onLine++
			if flow <= 0 && (onLine > maxDepth || t.Position.Column > 8*maxDepth) {
				return line
			}
		}
		if flow > maxDepth {
			return line
		}
	}
	return 0
}

// syntaxError leaves out the lines that the parser would show, which may hold what is nobody's business.
func syntaxError(err error) (line int, text string) {
	var e yaml.Error
	if !errors.As(err, &e) {
		return 1, "this is not YAML"
	}
	line = 1
	if t := e.GetToken(); t != nil && t.Position != nil {
		line = t.Position.Line
	}
	return line, e.GetMessage()
}

func (r reader) node(n ast.Node, line int) *node {
	if t := n.GetToken(); t != nil && t.Position != nil && line == 0 {
		line = t.Position.Line
	}
	made := &node{line: line, kind: scalar}
	switch n := n.(type) {
	case *ast.NullNode:
		made.kind = null
	case *ast.StringNode:
		made.text = n.Value
		made.quoted = n.Token.Type == token.SingleQuoteType || n.Token.Type == token.DoubleQuoteType
	case *ast.LiteralNode:
		made.text, made.quoted = n.Value.Value, true
	case *ast.IntegerNode:
		made.text = fmt.Sprint(n.Value)
	case *ast.BoolNode:
		made.text = fmt.Sprint(n.Value)
	case *ast.FloatNode, *ast.InfinityNode, *ast.NanNode:
		made.text = n.GetToken().Value
	case *ast.SequenceNode:
		made.kind = list
		for _, v := range n.Values {
			made.items = append(made.items, r.node(v, 0))
		}
	case *ast.MappingNode:
		made.kind = mapping
		for _, v := range n.Values {
			r.entry(made, v)
		}
	case *ast.MappingValueNode: // a mapping of one key
		made.kind = mapping
		r.entry(made, n)
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode:
		r.add(line, "anchors, aliases and tags (&, *, !) are not read here: write the value out")
		made.kind = null
	default:
		r.add(line, "YAML's %s is not read here", n.Type())
		made.kind = null
	}
	return made
}

func (r reader) entry(into *node, v *ast.MappingValueNode) {
	t := v.Key.GetToken()
	line := into.line
	if t != nil && t.Position != nil {
		line = t.Position.Line
	}
	var key string
	switch k := v.Key.(type) {
	case *ast.StringNode:
		key = k.Value
	case *ast.IntegerNode, *ast.BoolNode, *ast.FloatNode, *ast.NullNode:
		key = t.Value // a part may have the name 1, or on
	default:
		r.add(line, "a key is one word here")
		return
	}
	switch {
	case into.index(key) >= 0:
		r.add(line, "%s is here twice", key)
		return
	case len(into.entries) == maxKeys:
		r.add(into.line, "more than %d keys in one place", maxKeys)
		return
	}
	into.entries = append(into.entries, entry{key, line, r.node(v.Value, 0)})
}
