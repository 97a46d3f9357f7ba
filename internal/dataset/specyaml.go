package dataset

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/terapush/terapush/pkg/rows"
)

// specReader turns YAML into a spec whose values are as they are written. plan checks them and fills in the defaults.
type specReader struct {
	file       string
	given      map[string]string // parameters of the command line
	parameters []entry
	names      []string // of the parameters, once they are declared
	used       map[string]bool
	expanded   int            // bytes of texts with parameters so far
	lines      map[string]int // by path
	problems   []lineProblem
}

type lineProblem struct {
	line int // 0: of no line
	text string
}

// entry is one key of a mapping.
type entry struct {
	key   string
	line  int
	value ast.Node
}

func (r *specReader) add(line int, format string, args ...any) {
	if len(r.problems) > maxProblems {
		return
	}
	if one := (lineProblem{line, fmt.Sprintf(format, args...)}); !slices.Contains(r.problems, one) {
		r.problems = append(r.problems, one)
	}
}

// unknown adds that a word is none of the valid ones. Once there are enough problems it looks for no other word: a file
// may have thousands.
func (r *specReader) unknown(line int, before, kind, word string, valid []string) {
	if len(r.problems) <= maxProblems {
		r.add(line, "%s%s", before, unknown(kind, word, valid))
	}
}

// err returns the problems in the order of their lines.
func (r *specReader) err() error {
	slices.SortStableFunc(r.problems, func(a, b lineProblem) int { return cmp.Compare(a.line, b.line) })

	var all []error
	for i, one := range r.problems {
		switch {
		case i == maxProblems:
			all = append(all, fmt.Errorf("%s: and more", r.file))
		case one.line == 0:
			all = append(all, fmt.Errorf("%s: %s", r.file, one.text))
		default:
			all = append(all, fmt.Errorf("%s:%d: %s", r.file, one.line, one.text))
		}
	}
	return errors.Join(all...)
}

// lineOf returns the line of a path, or of what it is in.
func (r *specReader) lineOf(at string) int {
	for {
		if line, ok := r.lines[at]; ok {
			return line
		}
		cut := strings.LastIndexByte(at, 0)
		if cut < 0 {
			return 0
		}
		at = at[:cut]
	}
}

// read returns nil after an error, which it adds.
func (r *specReader) read(text []byte) *Spec {
	all, version, ok := r.open(text, "version", "name", "rows", "parameters", "key", "primary", "unique", "columns")
	if !ok {
		return nil
	}

	s := r.spec(all)
	s.Version, s.Name = version, cmp.Or(s.Name, r.nameOfFile())
	r.allUsed()
	return s
}

// open reads the keys of a file, its version and its parameters; false after an error, which it adds.
func (r *specReader) open(text []byte, known ...string) (all []entry, version int, ok bool) {
	root := r.parse(text)
	if root == nil {
		return nil, 0, false
	}
	all = r.mapping(root, "the file", known...)
	r.declare(all)
	return all, r.version(all), true
}

// find returns the entry of a key.
func find(all []entry, key string) (e entry, is bool) {
	for _, e := range all {
		if e.key == key {
			return e, true
		}
	}
	return entry{}, false
}

func (r *specReader) nameOfFile() string {
	return strings.TrimSuffix(filepath.Base(r.file), filepath.Ext(r.file))
}

// spec reads what is said of one table.
func (r *specReader) spec(all []entry) *Spec {
	s := &Spec{Key: []string{}, Unique: [][]string{}, Columns: []SpecColumn{}}
	for _, e := range all {
		r.lines[e.key] = e.line
		switch e.key {
		case "name":
			s.Name = r.scalar(e.value, "name")
		case "rows":
			s.Rows = r.count(e, "rows")
		case "key":
			s.Key = r.list(e.value, "key")
		case "primary":
			s.Primary = r.list(e.value, "primary")
		case "unique":
			s.Unique = r.lists(e)
		case "columns":
			for _, c := range r.mapping(e.value, "columns") {
				s.Columns = append(s.Columns, r.column(c))
			}
		}
	}

	if slices.Equal(s.Key, []string{hiddenKey}) && s.column(hiddenKey) == nil {
		r.addKey(s)
	}
	return s
}

// A table whose columns are no key gets one that is added, as if it stood in the file.
const (
	hiddenKey = "hidden"
	rowColumn = "terapush_row"
)

func (r *specReader) addKey(s *Spec) {
	place := []string{"columns", rowColumn}
	r.lines[path(place...)] = r.lines["key"]
	s.Key = []string{rowColumn}
	s.Columns = append(s.Columns, SpecColumn{
		Name: rowColumn, Type: "bigint", Generator: &SpecSequence{Start: "1", Every: 1}, place: place,
	})
}

// version reads the one of the format.
func (r *specReader) version(all []entry) int {
	version, is := find(all, "version")
	if !is {
		r.add(1, "version: 1 is missing: it fixes what the generators mean")
		return SpecVersion
	}
	r.lines["version"] = version.line
	return int(r.integer(version, "version"))
}

// allUsed adds the parameters that nothing uses.
func (r *specReader) allUsed() {
	for _, p := range r.parameters {
		if !r.used[p.key] {
			r.add(p.line, "parameter %s is not used: write ${%s} where its value belongs", quoted(p.key), shortened(p.key))
		}
	}
}

// parse returns the file's mapping, or nil after an error.
func (r *specReader) parse(text []byte) (root ast.Node) {
	if !utf8.Valid(text) {
		r.add(0, "this is not UTF-8")
		return nil
	}
	if len(text) > maxSpecBytes && !HasTables(text) { // whose length its reader bounds
		r.add(0, "the file has %d bytes: %d at most describe a dataset", len(text), maxSpecBytes)
		return nil
	}
	if line := tooDeep(text); line > 0 {
		r.add(line, "this is nested more than %d deep", maxSpecNesting)
		return nil
	}

	// A text that the library cannot stand is no YAML: it stops nobody but its author.
	defer func() {
		if recover() != nil {
			r.add(1, "this is not YAML")
			root = nil
		}
	}()
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		r.addYAML(err)
		return nil
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil || file.Docs[0].Body.Type() != ast.MappingType {
		r.add(1, "a dataset is one document of keys and values")
		return nil
	}

	root = file.Docs[0].Body
	ast.Walk(r, root)
	if len(r.problems) > 0 {
		return nil
	}
	return root
}

// Visit implements ast.Visitor.
func (r *specReader) Visit(n ast.Node) ast.Visitor {
	switch n.(type) {
	case *ast.AnchorNode, *ast.AliasNode, *ast.TagNode, *ast.MergeKeyNode:
		r.add(nodeLine(n), "anchors, aliases and tags (&, *, !) are not supported: write the value out")
	}
	return r
}

// addYAML adds an error of the library without the lines of the file that it shows.
func (r *specReader) addYAML(err error) {
	var e yaml.Error
	if !errors.As(err, &e) || e.GetToken() == nil || e.GetToken().Position == nil {
		r.add(1, "this is not YAML")
		return
	}
	if strings.Contains(e.GetMessage(), "already defined") {
		r.add(e.GetToken().Position.Line, "%s", e.GetMessage())
		return
	}
	r.add(e.GetToken().Position.Line, "this is not YAML: %s: look here and above at indentation (blanks, no tabs), at "+
		"brackets, and for a blank behind each colon", e.GetMessage())
}

// tooDeep returns the line on which brackets, indentation, or marks that may stand for structure exceed the nesting,
// 0 if none does. It looks at bytes, quoted or not, since the library takes time in proportion to the square of the
// nesting, and its stack to the nesting.
func tooDeep(text []byte) (line int) {
	open := 0
	for rest := range bytes.Lines(text) {
		line++
		for _, c := range rest {
			switch c {
			case '[', '{':
				open++
			case ']', '}':
				open = max(0, open-1)
			}
			if open > maxSpecNesting {
				return line
			}
		}

		marks := 0
		for word := range bytes.FieldsSeq(rest) {
			if c := word[0]; c == '&' || c == '*' || c == '!' || len(word) == 1 && (c == '-' || c == '?' || c == ':') {
				marks++
			}
		}
		indent := len(rest) - len(bytes.TrimLeft(rest, " \t"))
		if marks > maxSpecNesting || indent > maxSpecNesting {
			return line
		}
	}
	return 0
}

func nodeLine(n ast.Node) int {
	if n == nil {
		return 1
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line
	}
	return 1
}

// mapping returns the entries of a mapping, none twice. Without known keys any are allowed.
func (r *specReader) mapping(n ast.Node, where string, known ...string) (all []entry) {
	m, ok := n.(*ast.MappingNode)
	if !ok {
		r.add(nodeLine(n), "%s: keys and values belong here%s", where, like(where))
		return nil
	}

	seen := map[string]bool{}
	for _, v := range m.Values {
		switch v.Key.(type) {
		case *ast.NullNode:
			r.add(nodeLine(v.Key), "%s: null is no key: for NULLs write nulls: 30%% beside the generator", where)
			continue
		case *ast.StringNode, *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		default:
			r.add(nodeLine(v.Key), "%s: a key is a text or a number", where)
			continue
		}
		e := entry{v.Key.GetToken().Value, nodeLine(v.Key), v.Value}
		switch {
		case seen[e.key]:
			r.add(e.line, "%s: %s is here twice", where, quoted(e.key))
			continue
		case len(known) > 0 && !slices.Contains(known, e.key) && beside(where, e.key) != "":
			r.add(e.line, "%s: %s", where, beside(where, e.key))
			continue
		case len(known) > 0 && !slices.Contains(known, e.key):
			r.unknown(e.line, where+": ", "key", e.key, known)
			continue
		}
		seen[e.key] = true
		all = append(all, e)
	}
	return all
}

// scalar returns one value as it is written, with its parameters replaced.
func (r *specReader) scalar(n ast.Node, where string) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return r.expand(n.Value, nodeLine(n))
	case *ast.LiteralNode:
		return r.expand(n.Value.Value, nodeLine(n))
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value
	case *ast.NullNode:
		r.add(nodeLine(n), "%s: a value is missing%s; for NULLs write nulls: 30%% beside the generator", where, like(where))
	default:
		why := "one value belongs here"
		if clock := clockText(n); clock != "" {
			why = fmt.Sprintf("in a list YAML reads %s as a key with a value: quote it, as %q", clock, clock)
		}
		r.add(nodeLine(n), "%s: %s", where, why)
	}
	return ""
}

// clockText returns the text of what YAML takes for a key with a value, if a time of day was meant.
func clockText(n ast.Node) string {
	if m, is := n.(*ast.MappingNode); is && len(m.Values) == 1 {
		n = m.Values[0]
	}
	pair, is := n.(*ast.MappingValueNode)
	if !is || pair.Value == nil {
		return ""
	}
	text := pair.Key.String() + ":" + strings.TrimSpace(pair.Value.String())
	if _, err := (specType{Type: rows.Time, scale: 6}).parseClock(text); err != nil {
		return ""
	}
	return text
}

// integer reads a whole number of rows, versions or repetitions.
func (r *specReader) integer(e entry, where string) int64 {
	text := r.scalar(e.value, where)
	n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
	if err != nil {
		r.add(e.line, "%s: %s is no whole number below 2^63: write digits, as 1_000_000", where, quoted(text))
		return 1 // says nothing more
	}
	return n
}

// count reads a whole number of 1 or more.
func (r *specReader) count(e entry, where string) int64 {
	n := r.integer(e, where)
	if n < 1 {
		r.add(e.line, "%s is a whole number of 1 or more", where)
	}
	return n
}

// list reads a list of texts; one text is a list of one.
func (r *specReader) list(n ast.Node, where string) []string {
	items := []ast.Node{n}
	if s, ok := n.(*ast.SequenceNode); ok {
		items = s.Values
	}
	if len(items) > maxValues {
		r.add(nodeLine(n), "%s: %d values, of %d at most", where, len(items), maxValues)
		return nil
	}

	all := make([]string, len(items))
	for i, item := range items {
		all[i] = r.scalar(item, where)
	}
	return all
}

func (r *specReader) lists(e entry) [][]string {
	s, ok := e.value.(*ast.SequenceNode)
	if !ok {
		r.add(e.line, "unique: a list of lists of columns belongs here, as [[a], [b, c]]")
		return nil
	}

	all := make([][]string, len(s.Values))
	for i, one := range s.Values {
		if _, ok := one.(*ast.SequenceNode); !ok {
			r.add(nodeLine(one), "unique: a list of lists of columns belongs here, as [[a], [b, c]]")
			continue
		}
		all[i] = r.list(one, "unique")
		r.lines[path("unique", strconv.Itoa(i))] = nodeLine(one)
	}
	return all
}
