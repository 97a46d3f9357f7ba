package sqlload

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/terapush/terapush/pkg/loader"
)

// Length is the most that a server takes for a name. Some cut what is longer, so that two names are one table.
type Length struct {
	Most int // 0: no bound known
	Unit string
	Of   func(name string) int
}

// Bytes is a length of at most so many bytes.
func Bytes(most int) Length {
	return Length{Most: most, Unit: "bytes", Of: func(name string) int { return len(name) }}
}

// SplitTable reads the target's table, table or schema.table, for servers whose URL names a schema.
func SplitTable(t loader.Target, most Length) (schema, table string, err error) {
	schema, table = t.Database, t.Table
	if before, after, found := strings.Cut(t.Table, "."); found {
		schema, table = before, after
	}
	switch {
	case strings.Contains(t.Table, ","):
		err = fmt.Errorf("table %q: one run fills one table; push into several with a run each", t.Table)
	case schema == "":
		err = fmt.Errorf("the target names no database: write it into the URL, as in %s://user@host/database", t.Scheme)
	case table == "" || strings.Contains(table, "."):
		err = fmt.Errorf("table %q: write it as table or as database.table", t.Table)
	default:
		err = CheckTable(most, schema, table)
	}
	return schema, table, err
}

// CheckTable refuses the name of a target, schema first and table last, that no table has on purpose, as one in
// quotation marks, that is longer than the server takes, or that is a claim table's in any spelling: recreated or
// emptied, it would take the claims of all runs along.
func CheckTable(most Length, parts ...string) error {
	full := strings.Join(parts, ".")
	for _, part := range parts {
		switch {
		case strings.ContainsFunc(part, unicode.IsControl):
			return fmt.Errorf("table %q: a name cannot have line ends or other control characters", full)
		case part != strings.TrimSpace(part):
			return fmt.Errorf("table %q: a name cannot begin or end with a blank", full)
		case quoted(part):
			return fmt.Errorf("table %s: a name is taken as it is written: leave the quotation marks out", full)
		case most.Most > 0 && most.Of(part) > most.Most:
			return fmt.Errorf("table %q: %q has %d %s, and the server takes %d", full, part, most.Of(part), most.Unit, most.Most)
		}
	}
	switch strings.ToLower(parts[len(parts)-1]) {
	case ClaimsTable, UnloggedClaims, RunsTable:
		return fmt.Errorf("table %q: it is where terapush keeps what all runs have loaded; choose another --table", full)
	}
	return nil
}

// quoted reports whether a name is written as it would be in a statement.
func quoted(name string) bool {
	if len(name) < 2 {
		return false
	}
	ends := name[:1] + name[len(name)-1:]
	return ends == `""` || ends == "``" || ends == "[]"
}

// Literal quotes a text by doubling quotation marks, for servers to which a backslash is a letter.
func Literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// EscapedLiteral quotes a text for servers to which a backslash begins an escape.
func EscapedLiteral(text string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`, "\x00", `\0`).Replace(text) + "'"
}

// Backtick quotes one identifier. Dialect.Identifier takes a dot inside a name for a separator.
func Backtick(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Qualified quotes schema, which may be empty, and name in double quotation marks. Dialect.Identifier takes a dot inside
// a name for a separator.
func Qualified(schema, name string) string {
	quote := func(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }
	if schema == "" {
		return quote(name)
	}
	return quote(schema) + "." + quote(name)
}

// Unquoted undoes Qualified.
func Unquoted(table string) (schema, name string) {
	schema, name, both := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(table, `"`), `"`), `"."`)
	if !both {
		schema, name = "", schema
	}
	return strings.ReplaceAll(schema, `""`, `"`), strings.ReplaceAll(name, `""`, `"`)
}

// Literals quotes texts for an IN list.
func Literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, t := range texts {
		quoted[i] = Literal(t)
	}
	return strings.Join(quoted, ", ")
}
