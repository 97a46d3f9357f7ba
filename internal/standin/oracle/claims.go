package oracle

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/standin"
	"github.com/terapush/terapush/pkg/rows"
)

// The tables of terapush's own: the claims, and the rows of runs from which they are inserted. Their columns are not quoted.

// claimsSchema numbers claims by their batch, and runsSchema numbers runs by their first key, which nobody asks for.
var (
	claimsSchema = rows.Schema{
		Columns: []rows.Column{
			{Name: "run", Type: rows.Text}, {Name: "batch", Type: rows.Int64}, {Name: "first_key", Type: rows.Int64},
			{Name: "row_count", Type: rows.Int64}, {Name: "claimed_at", Type: rows.Timestamp},
		},
		Number: []rows.Term{{Column: 1, Times: 1}},
	}
	runsSchema = rows.Schema{
		Columns: []rows.Column{
			{Name: "name", Type: rows.Text}, {Name: "run", Type: rows.Text}, {Name: "part", Type: rows.Text},
			{Name: "state", Type: rows.Text}, {Name: "epoch", Type: rows.Text}, {Name: "target", Type: rows.Text},
			{Name: "owner", Type: rows.Text}, {Name: "appends", Type: rows.Int64}, {Name: "fingerprint", Type: rows.Int64},
			{Name: "first_key", Type: rows.Int64}, {Name: "last_key", Type: rows.Int64}, {Name: "changed", Type: rows.Int64},
		},
		Number: []rows.Term{{Column: 9, Times: 1}},
	}
)

const (
	ownTable = `(\S*\bTERAPUSH_(?:CLAIMS|RUNS)"?)`
	scalar   = `'(?:[^']|'')*'|-?\d+`
)

// ownShapes are those of statements about these tables.
func ownShapes() []shape {
	return []shape{
		{like("BEGIN LOCK TABLE ? IN ROW EXCLUSIVE MODE; ?; " +
			"IF SQL%ROWCOUNT = 0 THEN RAISE_APPLICATION_ERROR(-?, '?'); END IF; END;"), (*session).claim},
		{regexp.MustCompile(insertSelected), (*session).insertSelected},
		{regexp.MustCompile(`^SELECT (.+) FROM ` + ownTable + ` WHERE (.+)$`), (*session).selectOwn},
		{regexp.MustCompile(`^UPDATE ` + ownTable + ` SET (.+) WHERE (.+)$`), (*session).update},
		{regexp.MustCompile(`^DELETE FROM ` + ownTable + ` WHERE (.+)$`), (*session).deleteOwn},
	}
}

const insertSelected = `^INSERT INTO ` + ownTable + ` \((.+?)\) SELECT (.+) FROM ` + ownTable + ` WHERE (.+)$`

var (
	conditionShape = regexp.MustCompile(`^(?:1 = 0|(\w+) (?:(=|<>|>=) (` + scalar + `)|BETWEEN (-?\d+) AND (-?\d+)|(IN) \(([^)]+)\)))(?: AND |$)`)
	assignment     = regexp.MustCompile(`^(\w+) = (` + scalar + `|\w+)(?:, |$)`)
	selected       = regexp.MustCompile(`^(?:TO_CHAR\()?(?:(MIN|MAX)\()?(\w+)\)*$`)
	placeholder    = regexp.MustCompile(`:(\d+)`)
)

// claim inserts a claim from a run's row, under the lock of the table. It does all of it or nothing.
func (x *session) claim(m []string) (a answer, err error) {
	t, err := x.table(m[1])
	if err != nil {
		return a, err
	}
	if err := x.lock(t, rowExclusive); err != nil {
		return a, err
	}
	insert := regexp.MustCompile(insertSelected).FindStringSubmatch(m[2])
	if insert == nil {
		return a, Ora(6550, "the stand-in does not know the statement ", m[2])
	}
	if a, err = x.insertSelected(insert); err == nil && a.rows == 0 {
		code, _ := strconv.Atoi(m[3])
		err = Ora(code, m[4])
	}
	return a, err
}

// insertSelected is INSERT … SELECT of literals, once for each row that meets the condition. These are those of the time
// before the table's lock: a server may read so late as well, but nobody may rely on it.
func (x *session) insertSelected(m []string) (a answer, err error) {
	from, err := x.table(m[4])
	if err != nil {
		return a, err
	}
	list, listErr := x.bound(m[3])
	condition, err := x.bound(m[5])
	if listErr != nil || err != nil {
		return a, cmp.Or(listErr, err)
	}
	is, err := from.where(condition)
	if err != nil {
		return a, err
	}
	found := slices.DeleteFunc(x.seen(from), func(r standin.Row) bool { return !is(r) })
	into, err := x.table(m[1])
	if err != nil {
		return a, err
	}
	if err := x.lock(into, rowExclusive); err != nil {
		return a, err
	}
	values, err := x.values(into, m[2], list)
	if err != nil {
		return a, err
	}
	before := len(x.tx.changes)
	for range found {
		row, bad := x.row(into, values, 0)
		if bad == nil {
			bad = x.put(into, row)
		}
		if bad != nil {
			x.tx.undo(before)
			return answer{}, bad
		}
		a.rows++
	}
	return a, nil
}

// bound puts the binds, which are single values, in the place of their names.
func (x *session) bound(text string) (string, error) {
	missing := false
	text = placeholder.ReplaceAllStringFunc(text, func(name string) string {
		n, _ := strconv.Atoi(name[1:])
		if missing = missing || n > len(x.Binds); missing {
			return name
		}
		if s, is := x.Binds[n-1].(string); is {
			return "'" + strings.ReplaceAll(s, "'", "''") + "'"
		}
		return fmt.Sprint(x.Binds[n-1])
	})
	if missing {
		return "", Ora(1008)
	}
	return text, nil
}

// literalOf reads what a scalar is.
func literalOf(text string) string {
	if quoted, is := strings.CutPrefix(text, "'"); is {
		return strings.ReplaceAll(strings.TrimSuffix(quoted, "'"), "''", "'")
	}
	return text
}

// cell is a value as TO_CHAR returns it; a NULL is nil.
func (t *table) cell(r standin.Row, column int) any {
	switch v := r.Values[column].(type) {
	case nil:
		return nil
	case []byte:
		return string(v)
	default:
		return show(t.Schema.Columns[column], v)
	}
}

// where returns what a condition says of a row.
func (t *table) where(condition string) (is func(standin.Row) bool, err error) {
	var all []func(standin.Row) bool
	for rest := condition; rest != ""; {
		m := conditionShape.FindStringSubmatch(rest)
		if m == nil {
			return nil, Ora(900, "the stand-in does not know the condition ", rest)
		}
		rest = rest[len(m[0]):]
		one := func(standin.Row) bool { return false }
		if m[1] != "" {
			column := t.column(m[1])
			if column < 0 || column >= len(t.Schema.Columns) {
				return nil, Ora(904, m[1])
			}
			one = func(r standin.Row) bool { return compare(t.cell(r, column), m[2:]) }
		}
		all = append(all, one)
	}
	return func(r standin.Row) bool {
		return !slices.ContainsFunc(all, func(one func(standin.Row) bool) bool { return !one(r) })
	}, nil
}

// compare compares a value with a literal, with both ends of a range, or with a list.
func compare(value any, m []string) bool {
	operator, literal, first, last, in, list := m[0], literalOf(m[1]), m[2], m[3], m[4], m[5]
	switch {
	case operator == "=":
		return value == literal
	case operator == "<>":
		return value != literal
	case operator == ">=":
		return number64(value) >= number64(literal)
	case in != "":
		return slices.ContainsFunc(valueShape.FindAllString(list, -1), func(text string) bool { return value == literalOf(text) })
	}
	return number64(first) <= number64(value) && number64(value) <= number64(last)
}

func number64(text any) int64 {
	n, _ := strconv.ParseInt(fmt.Sprint(text), 10, 64)
	return n
}

// selectOwn is a SELECT of columns, or of the smallest and largest of their values.
func (x *session) selectOwn(m []string) (a answer, err error) {
	t, err := x.table(m[2])
	if err != nil {
		return a, err
	}
	is, err := t.where(m[3])
	if err != nil {
		return a, err
	}
	found := slices.DeleteFunc(x.seen(t), func(r standin.Row) bool { return !is(r) })
	aggregates := false
	var columns [][]any // of the answer
	for item := range strings.SplitSeq(m[1], ", ") {
		s := selected.FindStringSubmatch(item)
		if s == nil {
			return a, Ora(900, "the stand-in does not know the expression ", item)
		}
		values := make([]any, len(found))
		column := t.column(s[2])
		for i, r := range found {
			if values[i] = item; column >= 0 {
				values[i] = t.cell(r, column)
			}
		}
		if s[1] != "" {
			aggregates = true
			values = []any{outermost(values, s[1] == "MAX")}
		}
		if item != "1" && column < 0 {
			return a, Ora(904, item)
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
	return a, nil
}

// outermost is MAX or MIN of numbers and of times that sort as texts do; of none it is NULL.
func outermost(values []any, largest bool) any {
	if len(values) == 0 {
		return nil
	}
	order := func(a, b any) int {
		return cmp.Or(cmp.Compare(number64(a), number64(b)), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	}
	if largest {
		return slices.MaxFunc(values, order)
	}
	return slices.MinFunc(values, order)
}

func (x *session) deleteOwn(m []string) (a answer, err error) {
	t, err := x.table(m[1])
	if err != nil {
		return a, err
	}
	is, err := t.where(m[2])
	if err != nil {
		return a, err
	}
	if err := x.lock(t, rowExclusive); err != nil {
		return a, err
	}
	gone, refused := x.remove(t, is)
	if refused != nil {
		return a, refused
	}
	a.rows = int64(len(gone))
	return a, nil
}

// update replaces rows. The columns of the key stay as they are.
func (x *session) update(m []string) (a answer, err error) {
	t, err := x.table(m[1])
	if err != nil {
		return a, err
	}
	is, err := t.where(m[3])
	if err != nil {
		return a, err
	}
	changed := make(map[int]any)
	for rest := m[2]; rest != ""; {
		s := assignment.FindStringSubmatch(rest)
		if s == nil {
			return a, Ora(900, "the stand-in does not know the assignment ", rest)
		}
		rest = rest[len(s[0]):]
		if s[1] == s[2] { // it stays as it is
			continue
		}
		column := t.column(s[1])
		if column < 0 || column >= len(t.Schema.Columns) || slices.Contains(t.key, column) {
			return a, Ora(904, s[1])
		}
		v, err := valueOf(s[2])
		if err != nil {
			return a, Ora(900, s[2])
		}
		fitted, bad := t.fit(column, v.literal, 1)
		if bad != nil {
			return a, bad
		}
		changed[column] = fitted
	}
	if err := x.lock(t, rowExclusive); err != nil {
		return a, err
	}
	before := len(x.tx.changes)
	old, refused := x.remove(t, is)
	if refused != nil {
		return a, refused
	}
	for _, r := range old {
		r.Values = slices.Clone(r.Values)
		for column, v := range changed {
			r.Values[column] = v
		}
		row, bad := t.complete(r.Values)
		if bad != nil {
			x.tx.undo(before)
			return a, bad
		}
		x.tx.changes = append(x.tx.changes, change{table: t, row: row})
	}
	a.rows = int64(len(old))
	return a, nil
}
