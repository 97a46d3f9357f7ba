package sqlread_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// plain has a little of everything; a backslash escapes between ' only.
func plain() *sqlread.Dialect {
	return &sqlread.Dialect{
		Quotes: []sqlread.Quote{
			{Mark: '\'', Kind: sqlread.String, Called: "string", Escapes: map[byte]string{'n': "\n"}},
			{Mark: '"', Kind: sqlread.Quoted},
		},
		Letter: sqlread.Letter,
		Number: func(rest string) (sqlread.Kind, int) {
			return sqlread.Number, sqlread.Run(rest, func(c byte) bool { return c == '.' || sqlread.Digit(c) })
		},
		Operators: []string{"<=", "<", ":=", ":", "(", ")", ",", ".", "+", "-", "/"},
		Comments:  []string{"--", "#"},
		Reserved:  []string{"FROM"},
		Text:      "a text",
		Error:     func(near, why string) error { return errors.New(why + " near <" + near + ">") },
	}
}

// oracle differs from plain in what only Oracle has.
func oracle() *sqlread.Dialect {
	d := plain()
	d.Upper, d.Hints, d.Binds = true, true, true
	return d
}

func TestTokens(t *testing.T) {
	one := func(kind sqlread.Kind, text string, at int) []sqlread.Token {
		return []sqlread.Token{{Kind: kind, Text: text, At: at}}
	}
	for name, c := range map[string]struct {
		dialect *sqlread.Dialect
		source  string
		want    []sqlread.Token
	}{
		"nothing":               {plain(), " \t\r\n", nil},
		"word":                  {plain(), " select_1$", one(sqlread.Word, "select_1$", 1)},
		"word in upper case":    {oracle(), "select", one(sqlread.Word, "SELECT", 0)},
		"quoted name":           {oracle(), `"a""b\n"`, one(sqlread.Quoted, `a"b\n`, 0)},
		"string":                {plain(), `'it''s \'one\' "\n"'`, one(sqlread.String, "it's 'one' \"\n\"", 0)},
		"number":                {plain(), "12.5", one(sqlread.Number, "12.5", 0)},
		"number without zero":   {plain(), ".5", one(sqlread.Number, ".5", 0)},
		"longer operator":       {plain(), "<=", one(sqlread.Op, "<=", 0)},
		"point":                 {plain(), "a.b", []sqlread.Token{{sqlread.Word, "a", 0}, {sqlread.Op, ".", 1}, {sqlread.Word, "b", 2}}},
		"placeholder":           {oracle(), ":n1", one(sqlread.Bind, "N1", 0)},
		"placeholder elsewhere": {plain(), ":n1", []sqlread.Token{{sqlread.Op, ":", 0}, {sqlread.Word, "n1", 1}}},
		"assignment":            {oracle(), ":=", one(sqlread.Op, ":=", 0)},
		"comments":              {plain(), "-- one\n# two\n/* three\n */ a -- four", one(sqlread.Word, "a", 26)},
		"hint elsewhere":        {plain(), "/*+ full */ a", one(sqlread.Word, "a", 12)},
	} {
		p := sqlread.New(c.source, c.dialect)
		var got []sqlread.Token
		for ; p.Token.Kind != sqlread.End; p.Advance() {
			got = append(got, p.Token)
		}
		assert.NoError(t, p.Err, name)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, len(c.source), p.Token.At, name)
	}
}

func TestUnreadable(t *testing.T) {
	for source, want := range map[string]string{
		"a 'b''":  "a string is not closed near <'b''>",
		`a 'b\'`:  `a string is not closed near <'b\'>`,
		`a "b`:    `a " is not closed near <"b>`,
		"/* b":    "a comment is not closed near </* b>",
		"a /*+ b": "a hint is not closed near </*+ b>",
		"a ~ b":   "a character that SQL has no use for: '~' near <~ b>",
		"a b":     "nothing may follow near <b>",
	} {
		p := sqlread.New(source, oracle())
		p.Take("A")
		assert.EqualError(t, p.End(), want, source)
	}
}

func TestHintsAreSetAside(t *testing.T) {
	p := sqlread.New("insert /*+ append Parallel(4) */ into", oracle())
	p.Expect("INSERT", "INTO")
	assert.NoError(t, p.End())
	assert.Equal(t, []string{"APPEND", "PARALLEL(4)"}, p.Hints)
}

func TestTakeIsAllOrNothing(t *testing.T) {
	p := sqlread.New("if not there", plain())
	assert.False(t, p.Take("IF", "NOT", "EXISTS"))
	assert.True(t, p.Token.Is("IF"))
	assert.Equal(t, "not", p.Peek().Text)
	assert.True(t, p.Take("IF", "NOT"))
	assert.Empty(t, p.OneOf("HERE", "NOWHERE"))
	assert.Equal(t, "THERE", p.OneOf("HERE", "THERE"))
	assert.NoError(t, p.End())
}

func TestReading(t *testing.T) {
	p := sqlread.New(`(a, "b", c) 'd' 42 from "from" 1 + 2 - 3`, plain())
	assert.Equal(t, []string{"a", "b", "c"}, p.Names())
	assert.Equal(t, "d", p.Text())
	from := p.Token.At
	assert.Equal(t, int64(42), p.Integer())
	assert.Equal(t, "42", p.Since(from))
	assert.False(t, p.AtName(), "FROM is reserved")
	assert.Equal(t, "from", p.Identifier())
	assert.True(t, p.AtName(), "a name in quotation marks never is")
	p.Advance()
	sum := p.Integer()
	for op := range p.Chain("+", "-") {
		if n := p.Integer(); op == "+" {
			sum += n
		} else {
			sum -= n
		}
	}
	assert.Zero(t, sum)
	assert.NoError(t, p.End())
}

func TestFirstErrorWins(t *testing.T) {
	for want, read := range map[string]func(p *sqlread.Parser){
		"expected a name near <1, 'b>":     func(p *sqlread.Parser) { p.Identifier() },
		"expected a text near <1, 'b>":     func(p *sqlread.Parser) { p.Text() },
		"expected ( near <1, 'b>":          func(p *sqlread.Parser) { p.Names() },
		"expected an integer near <, 'b>":  func(p *sqlread.Parser) { p.Integer(); p.Integer() },
		"row 7 near <1, 'b>":               func(p *sqlread.Parser) { p.Fail("row %d", 7) },
		"a string is not closed near <'b>": func(p *sqlread.Parser) { p.Each(func() { p.Integer() }) },
	} {
		p := sqlread.New("1, 'b", plain())
		read(&p)
		p.Fail("too late")
		p.Expect("A", "B")
		assert.False(t, p.Take(","), want)
		assert.Equal(t, sqlread.End, p.Token.Kind, "the parser stands at the end")
		assert.EqualError(t, p.End(), want)
	}
	p := sqlread.New("a 'b", plain())
	assert.Equal(t, sqlread.End, p.Peek().Kind)
	assert.NoError(t, p.Err, "to look is no error")
}
