package oracle

import (
	"strings"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// dialect has the rules of Oracle's SQL Language Reference: names without quotation marks are in upper case, and nothing is
// escaped in a text but its own quotation mark.
func dialect() *sqlread.Dialect {
	return &sqlread.Dialect{
		Quotes: []sqlread.Quote{{Mark: '\'', Kind: sqlread.String}, {Mark: '"', Kind: sqlread.Quoted}},
		Upper:  true,
		Letter: func(c byte) bool { return c == '#' || sqlread.Letter(c) },
		Number: func(rest string) (sqlread.Kind, int) {
			return sqlread.Number, len(rest) - len(strings.TrimLeft(rest, "0123456789."))
		},
		Operators: []string{"||", ":=", "=>", "<=", ">=", "<>", "!=", "(", ")", ",", ".", ";", "=", "<", ">", "+", "-", "*", "/"},
		Comments:  []string{"--"},
		Hints:     true,
		Binds:     true,
		Reserved: []string{"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "UNION", "FETCH", "ON", "JOIN", "LEFT", "INNER", "USING", "FOR", "AND",
			"OR", "AS", "VALUES", "PARTITION", "CROSS", "SELECT", "SET", "INTO", "IN", "IS", "LIKE", "NOT", "BETWEEN", "MINUS"},
		Text: "a text",
		Error: func(near, why string) error {
			return ora(900, "invalid SQL statement near %q: %s (the stand-in knows no more of Oracle's SQL than its users need)",
				near[:min(len(near), 60)], why)
		},
	}
}

// parser reads one statement. A semicolon behind SQL is refused, as drivers get it (ORA-00933).
type parser struct {
	sqlread.Parser
	binds      []string // names of the placeholders, in the order of their appearance
	aggregates int      // how many were read
}

func newParser(text string) *parser { return &parser{Parser: sqlread.New(text, dialect())} }

// qualified reads [owner.]name.
func (p *parser) qualified() (owner, name string) {
	name = p.Identifier()
	if p.Take(".") {
		owner, name = name, p.Identifier()
	}
	return owner, name
}
