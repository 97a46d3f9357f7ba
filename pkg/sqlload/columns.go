package sqlload

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// Column is a column of a relation.
type Column struct {
	Name string
	Type string // as the server writes it, for messages
	Is   ServerType
	// Nullable says that a NULL is taken, and is what a load leaves there that omits the column.
	Nullable bool
	Default  string // as the server writes it; "" is none
	// Generated is the expression of a column that holds what the server computes, whatever a load sends: refused by some
	// servers, dropped in silence by MySQL's LOAD DATA.
	Generated string
	Numbered  Numbering
	OnUpdate  string // what an UPDATE of other columns puts there, which is no default
	Invisible bool   // to SELECT *
	Comment   string
}

// Numbering is how a server numbers rows by itself, where a load leaves the column out; "" is not at all.
type Numbering string

// The numberings.
const (
	IdentityAlways    Numbering = "identity always"
	IdentityByDefault Numbering = "identity by default"
	AutoIncrement     Numbering = "auto_increment"
	AutoRandom        Numbering = "auto_random"
)

// Optional reports whether the server fills the column where a load leaves it out.
func (c *Column) Optional() bool {
	return c.Nullable || c.Default != "" || c.Generated != "" || c.Numbered != ""
}

// Complete adds to a column what a query of ReadColumns says of it in a server's own way.
type Complete func(c *Column, more []string)

// ReadColumns reads the columns of a relation by a query of the server's catalog. A row of it has the column's name and type,
// whether it takes NULLs, its default, what is said of it besides, the expression of a generated column, and the comment, in
// the order and the words of information_schema.columns: extra is "virtual generated", "auto_increment",
// "identity by default", "on update …", "invisible", or several of them. The last ones may be left out. What follows is more
// for complete, which may be nil.
func ReadColumns(ctx context.Context, c Conn, query string, complete Complete) (all []Column, err error) {
	err = c.Query(ctx, query, func(row [][]byte) error {
		all = append(all, readColumn(row, complete))
		return nil
	})
	return all, err
}

// columnWidth is how many values of a row ReadColumns knows.
const columnWidth = 7

func readColumn(row [][]byte, complete Complete) Column {
	texts := make([]string, max(len(row), columnWidth))
	for i, value := range row {
		texts[i] = string(value)
	}

	c := Column{
		Name: texts[0], Type: texts[1], Is: ParseType(texts[1]), Nullable: isYes(texts[2]),
		Default: texts[3], Comment: texts[6],
	}
	if len(row) > 3 && row[3] != nil && c.Default == "" {
		c.Default = "''"
	}
	c.readExtra(texts[4], texts[5])
	if complete != nil {
		complete(&c, texts[columnWidth:])
	}
	return c
}

// isYes reads an answer to a yes or no question.
func isYes(text string) bool {
	return slices.Contains([]string{"yes", "y", "t", "true", "1"}, strings.ToLower(text))
}

var (
	// generated finds a column that the server computes: "virtual generated", "stored generated", "persistent" before
	// MariaDB 10.2, "computed" in SingleStore. MySQL's "default_generated" is a default that is an expression.
	generated = regexp.MustCompile(`\b(virtual|stored|persistent|computed)\b`)
	onUpdate  = regexp.MustCompile(`\bon update (\S+)`)
	numbered  = regexp.MustCompile(`\b(identity always|identity by default|auto_increment|auto_random)\b`)
)

// readExtra reads the words of extra. Others than those that are looked for, as "invisible" alone, leave a column that a load
// omits without a value.
func (c *Column) readExtra(extra, expression string) {
	extra = strings.ToLower(extra)
	if kind := generated.FindString(extra); kind != "" {
		c.Generated = expression
		if expression == "" {
			c.Generated = kind
		}
	}
	if m := onUpdate.FindStringSubmatch(extra); m != nil {
		c.OnUpdate = m[1]
	}
	c.Numbered = Numbering(numbered.FindString(extra))
	c.Invisible = strings.Contains(extra, "invisible")
}
