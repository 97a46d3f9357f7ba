package doris

import (
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// dialect has the lexical rules of Doris' grammar (DorisLexer.g4), and MySQL's escapes.
func dialect() *sqlread.Dialect {
	escapes := map[byte]string{'0': "\x00", 'n': "\n", 't': "\t", 'r': "\r", 'b': "\b", 'Z': "\x1A",
		'%': `\%`, '_': `\_`} // kept for LIKE
	return &sqlread.Dialect{
		Quotes: []sqlread.Quote{
			{Mark: '\'', Kind: sqlread.String, Called: "string", Escapes: escapes},
			{Mark: '"', Kind: sqlread.String, Called: "string", Escapes: escapes},
			{Mark: '`', Kind: sqlread.Quoted},
		},
		Letter: letter,
		Number: measure,
		Operators: []string{"<=>", "<=", ">=", "<>", "!=", "||", "&&", "@@", "(", ")", ",", ".", ";", "=", "<", ">", "+", "-", "*", "/", "%",
			"@", "!", "?", "[", "]", ":"},
		Comments: []string{"--", "#"},
		Reserved: []string{"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "AND", "OR", "AS", "ON", "JOIN", "UNION", "INNER", "LEFT",
			"RIGHT", "CROSS", "FULL", "LATERAL", "WINDOW", "DIV", "BETWEEN", "IN", "IS", "LIKE", "NOT", "OFFSET", "FOR", "PARTITION", "TABLET"},
		Text:  "a string",
		Error: func(near, why string) error { return &syntaxError{shorten(near), why} },
	}
}

func letter(c byte) bool { return c >= 0x80 || sqlread.Letter(c) }

// measure says how long a number is; a word that begins with digits is an identifier, as in MySQL.
func measure(rest string) (sqlread.Kind, int) {
	n := sqlread.Run(rest, sqlread.Digit)
	next := func(of string) bool { return n < len(rest) && strings.IndexByte(of, rest[n]) >= 0 }
	if n < len(rest) && letter(rest[n]) && !next("eE") {
		return sqlread.Word, sqlread.Run(rest, letter)
	}
	if next(".") {
		n++
		n += sqlread.Run(rest[n:], sqlread.Digit)
	}
	if next("eE") {
		if n++; next("+-") {
			n++
		}
		n += sqlread.Run(rest[n:], sqlread.Digit)
	}
	return sqlread.Number, n
}

// syntaxError is error 1064.
type syntaxError struct{ near, why string }

func (e *syntaxError) Error() string {
	return fmt.Sprintf("errCode = 2, detailMessage = Syntax error near '%s': %s (this stand-in knows no more of Doris' SQL than its users need)", e.near, e.why)
}

// parser reads one statement.
type parser struct{ sqlread.Parser }

func newParser(sql string) *parser { return &parser{sqlread.New(sql, dialect())} }

// End says that nothing but a semicolon may follow.
func (p *parser) End() error {
	p.Take(";")
	return p.Parser.End()
}

// qualified reads [catalog.][database.]name.
func (p *parser) qualified() (db, name string) {
	name = p.Identifier()
	for p.Take(".") {
		db, name = name, p.Identifier()
	}
	return db, name
}

// properties reads ("a" = "b", …); the quotes may be of either kind.
func (p *parser) properties() map[string]string {
	all := map[string]string{}
	p.Expect("(")
	for p.Err == nil && !p.Token.Is(")") {
		name := p.Text()
		p.Expect("=")
		all[name] = p.Text()
		if !p.Take(",") {
			break
		}
	}
	p.Expect(")")
	return all
}

// typeName reads a type with its arguments.
func (p *parser) typeName() columnType {
	name := p.Identifier()
	var args []int
	if p.Take("(") {
		if p.Take("*") { // VARCHAR(*) is the longest there is
			args = append(args, maxVarchar)
		} else {
			p.Each(func() { args = append(args, int(p.Integer())) })
		}
		p.Expect(")")
	}
	if strings.EqualFold(name, "SIGNED") { // CAST(x AS SIGNED [INT])
		p.Take("INT")
		name = "BIGINT"
	}
	t, err := newType(name, args)
	if err != nil {
		p.Fail("%v", err)
	}
	return t
}
