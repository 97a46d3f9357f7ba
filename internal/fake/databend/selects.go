package databend

import (
	"encoding/hex"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// number is the expression that gives a row's number: the sum of a table's columns, each less a constant and times one.
// A column of text is cast, and one of timestamps, whose microseconds it is then.
type number []term

type term struct {
	column       int
	kind         string
	minus, times int64
}

var (
	termShape = regexp.MustCompile("^(?:\\((" + valuePart + ") - (-?\\d+)\\)|(" + valuePart + "))(?: \\* (-?\\d+))?$")
	castShape = regexp.MustCompile("(?i)^CAST\\((" + namePart + ") AS BIGINT\\)$")
)

const (
	valuePart = "(?:CAST\\(" + namePart + " AS BIGINT\\)|" + namePart + ")"
	boundPart = `(-?\d+|'[^']*')` // of a range: a number, or the text that a column of texts or timestamps is compared with
)

func (t *table) number(text string) (number, error) {
	var n number
	for _, part := range strings.Split(text, " + ") {
		m := termShape.FindStringSubmatch(part)
		if m == nil {
			return nil, failed(1005, "the stand-in does not know the expression %s", text)
		}
		name, want := m[1]+m[3], []string{"BIGINT"}
		if c := castShape.FindStringSubmatch(name); c != nil {
			name, want = c[1], []string{"VARCHAR", "TIMESTAMP"}
		}
		i, err := t.column(bare(name))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(want, t.columns[i].kind) {
			return nil, failed(1006, "column %s is %s, and not read as a number here", t.columns[i].name, t.columns[i].kind)
		}
		minus, _ := strconv.ParseInt(m[2], 10, 64)
		times, err := strconv.ParseInt(m[4], 10, 64)
		if err != nil {
			times = 1
		}
		n = append(n, term{i, t.columns[i].kind, minus, times})
	}
	return n, nil
}

// of is a row's number; ok is false if it is NULL.
func (n number) of(row []any) (sum int64, ok bool) {
	for _, t := range n {
		text := asNumber(t.kind, row[t.column])
		if text == nil {
			return 0, false
		}
		v, err := strconv.ParseInt(*text, 10, 64)
		if err != nil {
			return 0, false
		}
		sum += (v - t.minus) * t.times
	}
	return sum, true
}

// key is what rows are found by: their number, or the text of a column.
func (t *table) key(expression string, isText bool) (func(row []any) (any, bool), error) {
	if !isText {
		n, err := t.number(expression)
		return func(row []any) (any, bool) { return n.of(row) }, err
	}
	i, err := t.column(bare(expression))
	return func(row []any) (any, bool) { text, ok := row[i].(string); return text, ok }, err
}

// text is a text in quotes as values of the column are kept: those of timestamps are in one form, and sort as they should.
func (t *table) text(expression, quoted string) (string, error) {
	i, err := t.column(bare(expression))
	if err != nil {
		return "", err
	}
	c, inside := t.columns[i], unquote(quoted)
	switch c.kind {
	case "VARCHAR":
		return inside, nil
	case "TIMESTAMP":
		v, err := c.parse(inside)
		text, _ := v.(string)
		return text, err
	}
	return "", failed(1006, "column %s is %s, and not compared with texts here", c.name, c.kind)
}

// isText tells texts from numbers.
func isText(bound string) bool { return strings.HasPrefix(bound, "'") }

// between makes the condition that an expression lies in a range. Texts are compared as texts.
func (t *table) between(expression, low, high string) (func(row []any) bool, error) {
	quoted := isText(low)
	if quoted != isText(high) {
		return nil, failed(1006, "%s is compared with a text and a number", expression)
	}
	key, err := t.key(expression, quoted)
	if err != nil {
		return nil, err
	}
	if quoted {
		first, err := t.text(expression, low)
		if err != nil {
			return nil, err
		}
		last, err := t.text(expression, high)
		return func(row []any) bool {
			v, ok := key(row)
			return ok && first <= v.(string) && v.(string) <= last
		}, err
	}
	from, _ := strconv.ParseInt(low, 10, 64)
	to, _ := strconv.ParseInt(high, 10, 64)
	return func(row []any) bool {
		v, ok := key(row)
		return ok && from <= v.(int64) && v.(int64) <= to
	}, nil
}

func selectRules() []rule {
	between := ` WHERE (.+) BETWEEN ` + boundPart + ` AND ` + boundPart
	return []rule{
		{shape: shape(`SELECT 1 FROM ` + tablePart + ` LIMIT 1`), run: func(f *Fake, s session, m []string) (result, error) {
			t, err := f.store.table(s.full(m[1]))
			if err != nil || len(t.rows) == 0 {
				return result{}, err
			}
			return single("1", "UInt8", "1"), nil
		}},
		{shape: shape(`SELECT COUNT\(\*\) FROM ` + tablePart), run: func(f *Fake, s session, m []string) (result, error) {
			t, err := f.store.table(s.full(m[1]))
			if err != nil {
				return result{}, err
			}
			return single("COUNT(*)", "UInt64", strconv.Itoa(len(t.rows))), nil
		}},
		{shape: shape(`SELECT COUNT\(\*\) FROM ` + tablePart + between), run: func(f *Fake, s session, m []string) (result, error) {
			_, found, err := f.within(s, m[1], m[2], m[3], m[4])
			return single("COUNT(*)", "UInt64", strconv.Itoa(len(found))), err
		}},
		{shape: shape(`SELECT COUNT\(DISTINCT (.+?)\) FROM ` + tablePart + between), run: func(f *Fake, s session, m []string) (result, error) {
			t, found, err := f.within(s, m[2], m[3], m[4], m[5])
			if err != nil {
				return result{}, err
			}
			n, err := t.number(m[1])
			different := make(map[int64]bool)
			for _, row := range found {
				if v, ok := n.of(row); ok {
					different[v] = true
				}
			}
			return single("COUNT(DISTINCT)", "UInt64", strconv.Itoa(len(different))), err
		}},
		{shape: shape(`SELECT bucket, COUNT\(\*\), MIN\(o\), MAX\(o\), .* FROM \(SELECT \((.+) - (-?\d+)\) DIV (\d+) AS bucket, ` +
			`.* % \d+ AS o(.*) FROM ` + tablePart + between + `\) t GROUP BY bucket`), run: (*Fake).buckets},
		{shape: shape(`SELECT (.+) FROM ` + tablePart + ` WHERE (.+) IN \(([^()]+)\)`), run: (*Fake).fetch},
		{shape: shape(`DELETE FROM ` + tablePart + between), kind: Delete, write: true, run: (*Fake).deleteRange},
	}
}

// within gives the rows whose key lies in a range.
func (f *Fake) within(s session, name, expression, low, high string) (t *table, found [][]any, err error) {
	if t, err = f.store.table(s.full(name)); err != nil {
		return nil, nil, err
	}
	in, err := t.between(expression, low, high)
	if err != nil {
		return nil, nil, err
	}
	for _, row := range t.rows {
		if in(row) {
			found = append(found, row)
		}
	}
	return t, found, nil
}

func (f *Fake) deleteRange(s session, m []string) (result, error) {
	t, err := f.store.table(s.full(m[1]))
	if err != nil {
		return result{}, err
	}
	in, err := t.between(m[2], m[3], m[4])
	if err != nil {
		return result{}, err
	}
	before := len(t.rows)
	t.rows = slices.DeleteFunc(slices.Clone(t.rows), in)
	deleted := before - len(t.rows)
	r := single("number of rows deleted", "UInt64", strconv.Itoa(deleted))
	r.written = int64(deleted)
	return r, nil
}

var lengthShape = regexp.MustCompile("(OCTET_LENGTH|LENGTH)\\((" + namePart + ")\\) AS l\\d+")

// buckets counts, bucket by bucket, what terapush compares: rows, offsets, their sums, and the lengths of columns.
func (f *Fake) buckets(s session, m []string) (result, error) {
	t, found, err := f.within(s, m[5], m[6], m[7], m[8])
	if err != nil {
		return result{}, err
	}
	n, err := t.number(m[1])
	if err != nil {
		return result{}, err
	}
	var lengths []int
	for _, l := range lengthShape.FindAllStringSubmatch(m[4], -1) {
		i, err := t.column(bare(l[2]))
		if err != nil {
			return result{}, err
		}
		lengths = append(lengths, i)
	}
	first, _ := strconv.ParseInt(m[2], 10, 64)
	size, _ := strconv.ParseInt(m[3], 10, 64)
	type bucket struct {
		rows, low, high int64
		sum, squares    big.Int
		lengths         []int64
	}
	all := make(map[int64]*bucket)
	for _, row := range found {
		v, ok := n.of(row)
		if !ok {
			return result{}, failed(1006, "a number cannot be read in row %v", row)
		}
		number, offset := (v-first)/size, (v-first)%size
		b := all[number]
		if b == nil {
			b = &bucket{low: offset, high: offset, lengths: make([]int64, len(lengths))}
			all[number] = b
		}
		b.rows++
		b.low, b.high = min(b.low, offset), max(b.high, offset)
		o := big.NewInt(offset)
		b.sum.Add(&b.sum, o)
		b.squares.Add(&b.squares, new(big.Int).Mul(o, o))
		for i, column := range lengths {
			text, _ := row[column].(string)
			b.lengths[i] += int64(len(text))
		}
	}
	r := result{names: []string{"bucket", "COUNT(*)", "MIN(o)", "MAX(o)", "SUM(o)", "SUM(o * o)"},
		types: []string{"Int64", "UInt64", "Nullable(Int64)", "Nullable(Int64)", "Nullable(Decimal(38, 0))", "Nullable(Decimal(38, 0))"}}
	for range lengths {
		r.names, r.types = append(r.names, "SUM(l)"), append(r.types, "Nullable(Decimal(38, 0))")
	}
	for number, b := range all {
		row := texts(decimal(number), decimal(b.rows), decimal(b.low), decimal(b.high), b.sum.String(), b.squares.String())
		for _, l := range b.lengths {
			row = append(row, texts(decimal(l))...)
		}
		r.rows = append(r.rows, row)
	}
	return r, nil
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }

var hexShape = regexp.MustCompile("(?i)^TO_HEX\\((" + namePart + ")\\)$")

// fetch reads rows by their numbers.
func (f *Fake) fetch(s session, m []string) (result, error) {
	t, err := f.store.table(s.full(m[2]))
	if err != nil {
		return result{}, err
	}
	first, items, _ := strings.Cut(m[1], ", ")
	n, err := t.number(first)
	if err != nil {
		return result{}, failed(1005, "the stand-in gives a row's number first, and then its columns: %v", err)
	}
	key, err := t.key(m[3], strings.Contains(m[4], "'"))
	if err != nil {
		return result{}, err
	}
	wanted := make(map[any]bool)
	for _, bound := range strings.Split(m[4], ",") {
		bound = strings.TrimSpace(bound)
		if isText(bound) {
			text, err := t.text(m[3], bound)
			if err != nil {
				return result{}, err
			}
			wanted[text] = true
			continue
		}
		number, err := strconv.ParseInt(bound, 10, 64)
		if err != nil {
			return result{}, failed(1005, "the stand-in does not know this value: %s", bound)
		}
		wanted[number] = true
	}
	var write []func(row []any) *string
	r := result{names: []string{"number"}, types: []string{"Int64"}}
	for _, item := range strings.Split(items, ", ") {
		name, how := item, plain
		if c := castShape.FindStringSubmatch(item); c != nil {
			name, how = c[1], asNumber
		} else if h := hexShape.FindStringSubmatch(item); h != nil {
			name, how = h[1], asHex
		}
		i, err := t.column(bare(name))
		if err != nil {
			return result{}, err
		}
		kind := t.columns[i].kind
		write = append(write, func(row []any) *string { return how(kind, row[i]) })
		r.names, r.types = append(r.names, item), append(r.types, "String")
	}
	for _, row := range t.rows {
		k, ok := key(row)
		v, readable := n.of(row)
		if !ok || !readable || !wanted[k] {
			continue
		}
		out := texts(decimal(v))
		for _, w := range write {
			out = append(out, w(row))
		}
		r.rows = append(r.rows, out)
	}
	return r, nil
}

func plain(_ string, v any) *string {
	switch v := v.(type) {
	case int64:
		return texts(decimal(v))[0]
	case string:
		return &v
	}
	return nil
}

func asHex(_ string, v any) *string {
	if text, ok := v.(string); ok {
		return texts(hex.EncodeToString([]byte(text)))[0]
	}
	return nil
}

// asNumber is days of a date, microseconds of a timestamp, and the digits of all others.
func asNumber(kind string, v any) *string {
	text, ok := v.(string)
	if !ok {
		return plain(kind, v)
	}
	switch kind {
	case "DATE":
		at, _ := time.Parse(time.DateOnly, text)
		return texts(decimal(at.Unix() / 86400))[0]
	case "TIMESTAMP":
		at, _ := time.Parse(timestampLayout, text)
		return texts(decimal(at.UnixMicro()))[0]
	}
	return &text
}
