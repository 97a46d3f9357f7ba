package sink

import (
	"regexp"
	"strings"
)

var (
	comments   = regexp.MustCompile(`^(?s:\s+|/\*.*?\*/|(?:--|#)[^\n]*\n)+`)
	firstWords = regexp.MustCompile(`^[A-Za-z]+(?:\s+[A-Za-z]+)?`)
	constants  = regexp.MustCompile(`(?is)^SELECT\s+(.*?)(?:\s+LIMIT\s+\d+)?[\s;]*$`)
	from       = regexp.MustCompile(`(?i)\bFROM\b`)
	alias      = regexp.MustCompile(`(?i)\s+AS\s+(\S+)$`)
	literal    = regexp.MustCompile(`^(?:-?\d+|'[^']*')$`)
)

// Plain returns the statement without the comments and spaces before it.
func Plain(sql string) string { return sql[len(comments.FindString(sql)):] }

// Verb returns the statement's first word in capitals, with the second one: "SELECT", "START TRANSACTION".
func Verb(sql string) (first, both string) {
	both = strings.ToUpper(strings.Join(strings.Fields(firstWords.FindString(Plain(sql))), " "))
	first, _, _ = strings.Cut(both, " ")
	return first, both
}

// From is the item that Constants returns for a query that reads a table.
const From = "FROM"

// Constants answers SELECTs without a FROM: every item is a literal or looked up by its lower-case text. unknown is
// the first item that is neither. Columns have the names that AS gives them.
func Constants(sql string, lookup func(item string) (string, bool)) (columns, row []string, unknown string) {
	m := constants.FindStringSubmatch(Plain(sql))
	if m == nil || from.MatchString(m[1]) {
		return nil, nil, From
	}
	for _, item := range splitList(m[1]) {
		item = strings.TrimSpace(item)
		name := item
		if m := alias.FindStringSubmatch(item); m != nil {
			item, name = strings.TrimSpace(item[:len(item)-len(m[0])]), strings.Trim(m[1], "\"`'")
		}
		value, ok := strings.Trim(item, "'"), literal.MatchString(item)
		if !ok {
			value, ok = lookup(strings.ToLower(item))
		}
		if !ok {
			return nil, nil, item
		}
		columns, row = append(columns, name), append(row, value)
	}
	return columns, row, ""
}

// splitList splits at the commas outside of parentheses and quotes.
func splitList(list string) []string {
	var items []string
	depth, quoted, start := 0, false, 0
	for i := range len(list) {
		switch c := list[i]; {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			items, start = append(items, list[start:i]), i+1
		}
	}
	return append(items, list[start:])
}
