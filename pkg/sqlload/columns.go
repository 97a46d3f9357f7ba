package sqlload

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Column is a column of a relation.
type Column struct {
	loader.Column
	Is ServerType
}

// ColumnOf is a column of a type as the server writes it, of which nothing else is known.
func ColumnOf(name, kind string) Column {
	return Column{loader.Column{Name: name, Type: kind}, ParseType(kind)}
}

// Complete adds to a column what a query of ReadColumns says of it in a server's own way.
type Complete func(c *Column, more []string)

// ReadColumns reads the columns of a relation by a query of the server's catalog. A row of it has the column's name and
// type, whether it takes NULLs, its default, what is said of it besides, the expression of a generated column, and the
// comment, in the order and the words of information_schema.columns: extra is "virtual generated", "auto_increment",
// "identity by default", "on update …", "invisible", or several of them. The last ones may be left out. What follows is
// more for complete, which may be nil.
func ReadColumns(ctx context.Context, c Conn, query string, complete Complete) (all []Column, err error) {
	err = c.Query(ctx, query, func(row [][]byte) error {
		all = append(all, readColumn(row, complete))
		return nil
	})
	return all, err
}

// ReadAllColumns is ReadColumns of several relations, whose names come before what ReadColumns reads.
func ReadAllColumns(ctx context.Context, c Conn, query string, complete Complete) (map[string][]Column, error) {
	all := make(map[string][]Column)
	err := c.Query(ctx, query, func(row [][]byte) error {
		name := string(row[0])
		all[name] = append(all[name], readColumn(row[1:], complete))
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

	c := ColumnOf(texts[0], texts[1])
	c.Nullable, c.Default, c.Comment = isYes(texts[2]), texts[3], texts[6]
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

// readExtra reads the words of extra. Others than those that are looked for, as "invisible" alone, leave a column that
// a load omits without a value.
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
	c.Numbered = loader.Numbering(numbered.FindString(extra))
	c.Invisible = strings.Contains(extra, "invisible")
}
