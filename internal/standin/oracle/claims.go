package oracle

import (
	"cmp"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/standin"
)

// The statements about terapush's own tables: the claims, and the rows of runs from which they are inserted. Their
// columns are not quoted.

const ownTable = `(\S*\bTERAPUSH_(?:CLAIMS|RUNS)"?)`

var ownShapes = []shape{
	{pattern: like("BEGIN LOCK TABLE ? IN ROW EXCLUSIVE MODE; ?; " +
		"IF SQL%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-?, '?'); END IF; END;"), run: (*session).claim},
	{pattern: insertSelect, run: (*session).insertSelected},
	{pattern: regexp.MustCompile(`^SELECT (.+) FROM ` + ownTable + ` WHERE (.+)$`), run: (*session).selectOwn},
	{pattern: regexp.MustCompile(`^UPDATE ` + ownTable + ` SET (.+) WHERE (.+)$`), run: (*session).update},
	{pattern: regexp.MustCompile(`^DELETE FROM ` + ownTable + ` WHERE (.+)$`), run: (*session).deleteOwn},
}

var (
	insertSelect = regexp.MustCompile(`^INSERT INTO ` + ownTable +
		` \((.+?)\) SELECT (.+) FROM ` + ownTable + ` WHERE (.+)$`)
	assignment  = regexp.MustCompile(`^(\w+) = ('(?:[^']|'')*'|-?\d+|\w+)(?:, |$)`)
	selected    = regexp.MustCompile(`^(?:TO_CHAR\()?(?:(MIN|MAX)\()?(\w+)\)*$`)
	placeholder = regexp.MustCompile(`:(\d+)`)
)

// claim inserts a claim from a run's row, under the lock of the table.
func (x *session) claim(m []string) answer {
	x.lock(x.table(m[1]), false)
	insert := insertSelect.FindStringSubmatch(m[2])
	if insert == nil {
		refuse(6550, "the stand-in does not know the statement ", m[2])
	}
	a := x.insertSelected(insert)
	if a.rows == 0 {
		code, _ := strconv.Atoi(m[3])
		refuse(code, m[4])
	}
	return a
}

// insertSelected is INSERT … SELECT of literals, once for each row that meets the condition. These are those of the
// time before the table's lock: a server may read so late as well, but nobody may rely on it.
func (x *session) insertSelected(m []string) (a answer) {
	found := x.matching(x.table(m[4]), x.bound(m[5]))
	into := x.table(m[1])
	x.lock(into, false)
	values := x.values(into, m[2], x.bound(m[3]))
	for range found {
		x.put(into, x.row(into, values, 0))
		a.rows++
	}
	return a
}

// bound puts the binds, which are single values, in the place of their names.
func (x *session) bound(text string) string {
	return placeholder.ReplaceAllStringFunc(text, func(name string) string {
		n, _ := strconv.Atoi(name[1:])
		if n > len(x.Binds) {
			refuse(1008)
		}
		if s, is := x.Binds[n-1].(string); is {
			return "'" + strings.ReplaceAll(s, "'", "''") + "'"
		}
		return fmt.Sprint(x.Binds[n-1])
	})
}

// where returns what a condition says of a row.
func (t *table) where(condition string) func(standin.Row) bool {
	is, err := t.Where(condition)
	if err != nil {
		refuse(900, err)
	}
	return is
}

// matching returns the rows that the session sees and that meet a condition.
func (x *session) matching(t *table, condition string) []standin.Row {
	is := t.where(condition)
	return slices.DeleteFunc(x.tx.Rows(t.Table), func(r standin.Row) bool { return !is(r) })
}

// selectOwn is a SELECT of columns, or of the smallest and largest of their values.
func (x *session) selectOwn(m []string) (a answer) {
	t := x.table(m[2])
	found, aggregates := x.matching(t, m[3]), false
	var columns [][]any // of the answer
	for item := range strings.SplitSeq(m[1], ", ") {
		s := selected.FindStringSubmatch(item)
		if s == nil {
			refuse(900, "the stand-in does not know the expression ", item)
		}
		values := make([]any, len(found))
		for i, r := range found {
			values[i] = "1"
			if item != "1" {
				values[i] = t.text(r, t.column(s[2]))
			}
		}
		if s[1] != "" {
			aggregates, values = true, []any{outermost(values, s[1] == "MAX")}
		}
		columns = append(columns, values)
	}

	for i := range columns[0] {
		if aggregates && i > 0 {
			break
		}
		var line []any
		for _, values := range columns {
			line = append(line, values[i])
		}
		a.cells = append(a.cells, line)
	}
	return a
}

// text is a value as TO_CHAR returns it.
func (t *table) text(r standin.Row, column int) any {
	if r.Values[column] == nil {
		return nil
	}
	return standin.Text(t.Schema.Columns[column], r.Values[column])
}

// outermost is MAX or MIN of numbers and of times that sort as texts do; of none it is NULL.
func outermost(values []any, largest bool) any {
	if len(values) == 0 {
		return nil
	}
	number := func(v any) int64 { n, _ := strconv.ParseInt(fmt.Sprint(v), 10, 64); return n }
	slices.SortFunc(values, func(a, b any) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	if largest {
		return values[len(values)-1]
	}
	return values[0]
}

func (x *session) deleteOwn(m []string) answer {
	t := x.table(m[1])
	is := t.where(m[2])
	x.lock(t, false)
	return answer{rows: int64(len(x.remove(t, is)))}
}

// update replaces rows. The columns of the key stay as they are.
func (x *session) update(m []string) answer {
	t := x.table(m[1])
	is, changed := t.where(m[3]), make(map[int]any)
	for rest := m[2]; rest != ""; {
		s := assignment.FindStringSubmatch(rest)
		if s == nil {
			refuse(900, "the stand-in does not know the assignment ", rest)
		}
		rest = rest[len(s[0]):]
		if s[1] == s[2] { // it stays as it is
			continue
		}
		if slices.ContainsFunc(t.Key, func(key string) bool { return strings.EqualFold(key, s[1]) }) {
			refuse(904, s[1])
		}
		column := t.column(s[1])
		changed[column] = t.fit(column, valueOf(s[2]).literal, big.NewInt(1))
	}

	x.lock(t, false)
	old := x.remove(t, is)
	for _, r := range old {
		values := slices.Clone(r.Values)
		for column, v := range changed {
			values[column] = v
		}
		x.put(t, t.complete(values))
	}
	return answer{rows: int64(len(old))}
}
