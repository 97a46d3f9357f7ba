package sqlload

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

func TestParseType(t *testing.T) {
	for text, want := range map[string]ServerType{
		"bigint":                         {Name: "bigint"},
		"BIGINT(20) unsigned":            {Name: "bigint unsigned", Params: []int{20}},
		"timestamp(6) without time zone": {Name: "timestamp without time zone", Params: []int{6}},
		"decimalv3(15, 2)":               {Name: "decimalv3", Params: []int{15, 2}},
		"VARCHAR2(50 BYTE)":              {Name: "varchar2", Params: []int{50}},
		"NUMBER(25,-1)":                  {Name: "number", Params: []int{25, -1}},
		"varchar(max)":                   {Name: "varchar", Params: []int{0}},
		"numeric(15,2)[]":                {Name: "numeric []", Params: []int{15, 2}},
		"":                               {},
	} {
		assert.Equal(t, want, ParseType(text), text)
	}
}

// The first type that is large enough is made, and columns of others are taken.
func TestTypes(t *testing.T) {
	types := Types{
		{Ours: rows.Text, Name: "char"},
		{Ours: rows.Text, Name: "varchar", SQL: "VARCHAR(%d)", Most: 100, Fits: LongEnough},
		{Ours: rows.Text, Name: "string", SQL: "STRING"},
		{Ours: rows.Decimal, Name: "decimal", SQL: "DECIMAL(%d, %d)", Fits: SameScale},
		{Ours: rows.Float32s, Name: "vector", SQL: "VECTOR(%d)", Most: 7, Fits: SameDims},
		{Ours: rows.Arrays, Name: "[]", SQL: "%s[]", Read: "read %[1]s by %[2]s"},
	}
	text := func(length int) rows.Column { return rows.Column{Type: rows.Text, MaxBytes: length} }
	assert.Equal(t, "VARCHAR(100)", (Dialect{Types: types}).SQL(text(100)))
	assert.Equal(t, "STRING", (Dialect{Types: types}).SQL(text(101)))
	assert.Equal(t, "VARCHAR(1)", (Dialect{Types: types}).SQL(text(0)))
	assert.Equal(t, "VARCHAR(50)", (Dialect{Types: types}).SQL(rows.Column{Type: rows.Text, MaxBytes: 10, Declared: 50}))
	assert.Equal(t, "DECIMAL(15, 2)", (Dialect{Types: types}).SQL(rows.Column{Type: rows.Decimal, Digits: 15, Scale: 2}))
	assert.Empty(t, (Dialect{Types: types}).SQL(rows.Column{Type: rows.Bytes}), "the server has no such type")

	assert.True(t, types.Take(ServerType{Name: "char", Params: []int{1}}, text(100), false))
	assert.True(t, types.Take(ServerType{Name: "varchar"}, text(100), false))
	assert.False(t, types.Take(ServerType{Name: "varchar", Params: []int{99}}, text(100), false))
	assert.False(t, types.Take(ServerType{Name: "decimal"}, text(100), false))

	vector := func(dims int) rows.Column { return rows.Column{Type: rows.Float32s, MaxBytes: 4 * dims} }
	assert.Equal(t, "VECTOR(7)", (Dialect{Types: types}).SQL(vector(7)))
	assert.Empty(t, (Dialect{Types: types}).SQL(vector(8)), "longer than the server's")
	assert.True(t, types.Take(ServerType{Name: "vector", Params: []int{7}}, vector(7), false))
	assert.True(t, types.Take(ServerType{Name: "vector"}, vector(7), false), "of any number of dimensions")
	assert.False(t, types.Take(ServerType{Name: "vector", Params: []int{6}}, vector(7), false))

	array := func(of rows.Column) rows.Column { return rows.Column{Type: rows.Arrays, Of: &of} }
	assert.Equal(t, "VARCHAR(9)[]", (Dialect{Types: types}).SQL(array(text(9))))
	assert.Empty(t, (Dialect{Types: types}).SQL(array(rows.Column{Type: rows.Bytes})), "the server has no such type of elements")
	assert.Equal(t, "read c by e", types.read(array(text(9)), "c"))
	assert.True(t, types.Take(ServerType{Name: "varchar[]"}, array(text(9)), false))
	assert.False(t, types.Take(ServerType{Name: "char[]"}, array(text(9)), false), "binary arrays name the type of their elements")
	assert.False(t, types.Take(ServerType{Name: "varchar"}, array(text(9)), false))
	assert.False(t, types.Take(ServerType{Name: "varchar[]", Params: []int{8}}, array(text(9)), false))

	types[len(types)-1] = Type{Ours: rows.Arrays, Name: "json", SQL: "JSON"}
	assert.Equal(t, "JSON", (Dialect{Types: types}).SQL(array(text(9))))
	assert.Equal(t, "c", types.read(array(text(9)), "c"))
	assert.True(t, types.Take(ServerType{Name: "json"}, array(text(9)), false))
	assert.False(t, types.Take(ServerType{Name: "varchar"}, array(text(9)), false))

	money := rows.Column{Type: rows.Decimal, Digits: 15, Scale: 2}
	for _, params := range [][]int{{15, 2}, {38, 2}} {
		assert.True(t, types.Take(ServerType{Name: "decimal", Params: params}, money, false), params)
	}
	for _, params := range [][]int{nil, {15}, {14, 2}, {17, 3}, {17, 4}} {
		assert.False(t, types.Take(ServerType{Name: "decimal", Params: params}, money, false), params)
	}
}

// A time is made with the digits of its values, and taken by a column with as many or more.
// A column of more digits than an int64 has is a wide decimal where the server has one, and is cut to 18 where it has none.
func TestDigitsOfColumns(t *testing.T) {
	narrow := Types{{Ours: rows.Decimal, Name: "numeric", SQL: "numeric(%d,%d)", Fits: AnyScale}}
	both := append(slices.Clone(narrow), Type{Ours: rows.Wide, Name: "numeric", SQL: "numeric(%d,%d)", Most: 30, Fits: AnyScale})
	for kind, want := range map[string][2]rows.Column{
		"numeric(9,2)":   {{Type: rows.Decimal, Digits: 9, Scale: 2}, {Type: rows.Decimal, Digits: 9, Scale: 2}},
		"numeric":        {{Type: rows.Decimal, Digits: 18, Scale: 2}, {Type: rows.Decimal, Digits: 18, Scale: 2}},
		"numeric(38,10)": {{Type: rows.Decimal, Digits: 18, Scale: 10}, {Type: rows.Wide, Digits: 38, Scale: 10}},
		"numeric(65,0)":  {{Type: rows.Decimal, Digits: 18}, {Type: rows.Wide, Digits: 38}},
	} {
		for i, types := range []Types{narrow, both} {
			assert.Equal(t, &want[i], types.ours(ColumnOf("", kind)), kind)
		}
	}
	assert.True(t, WholeNumber(20)(nil, rows.Column{}))
	assert.True(t, WholeNumber(20)([]int{20, 0}, rows.Column{}))
	assert.False(t, WholeNumber(20)([]int{19}, rows.Column{}), "too short")
	assert.True(t, WholeNumber(20)([]int{3}, rows.Column{Most: 999}))
	assert.False(t, WholeNumber(20)([]int{3}, rows.Column{Most: 1000}), "too short for the last one")
	assert.False(t, WholeNumber(20)([]int{30, 2}, rows.Column{}), "it is read with two digits more")
}

func TestDigitsOfSeconds(t *testing.T) {
	types := Types{
		{Ours: rows.Timestamp, Name: "datetime", SQL: "DATETIME(%d)", Fits: SecondDigits(0)},
		{Ours: rows.TimestampTZ, Name: "timestamp", SQL: "timestamp(%d)", Most: 5, Fits: SecondDigits(6)},
		{Ours: rows.TimestampTZ, Name: "timestamp", SQL: "timestamp", Fits: SecondDigits(6)},
	}
	with := func(kind rows.Type, digits int) rows.Column { return rows.Column{Type: kind, Scale: 6 - digits} }
	for want, c := range map[string]rows.Column{
		"DATETIME(0)": with(rows.Timestamp, 0), "DATETIME(6)": with(rows.Timestamp, 6),
		"timestamp(0)": with(rows.TimestampTZ, 0), "timestamp(5)": with(rows.TimestampTZ, 5), "timestamp": with(rows.TimestampTZ, 6),
	} {
		assert.Equal(t, want, Dialect{Types: types}.SQL(c))
	}
	for digits := range 7 {
		for have := range 7 {
			assert.Equal(t, have >= digits, types.Take(ServerType{Name: "datetime", Params: []int{have}}, with(rows.Timestamp, digits), false))
		}
		assert.Equal(t, digits == 0, types.Take(ServerType{Name: "datetime"}, with(rows.Timestamp, digits), false))
		assert.True(t, types.Take(ServerType{Name: "timestamp"}, with(rows.TimestampTZ, digits), false))
	}
}

// A type that is narrower than ours takes columns whose values are known to be in it.
func TestNarrowIntegers(t *testing.T) {
	types := Types{{Ours: rows.Int16, Name: "tinyint", Least: -128, Largest: 127}, {Ours: rows.Int16, Name: "byte", Largest: 255}}
	takes := func(name string, least, most int64) bool {
		return types.Take(ServerType{Name: name}, rows.Column{Type: rows.Int16, Least: least, Most: most}, false)
	}
	assert.True(t, takes("tinyint", -128, 127))
	assert.True(t, takes("tinyint", 5, 5))
	assert.True(t, takes("byte", 0, 255))
	assert.False(t, takes("tinyint", -129, 0))
	assert.False(t, takes("tinyint", 0, 128))
	assert.False(t, takes("byte", -1, 9))
	assert.False(t, takes("tinyint", 0, 0), "as wide as the type")

	c := types.ours(ColumnOf("c", "tinyint"))
	assert.Equal(t, &rows.Column{Name: "c", Type: rows.Int16, Least: -128, Most: 127}, c)
}

// A label is one, whatever is in it, to servers of either kind. So is the name of a column.
func TestDefineQuotes(t *testing.T) {
	types := Types{{Ours: rows.Enum, Name: "enum", SQL: "ENUM(%s)", Check: "%[1]s IN (%[2]s)"}}
	c := rows.Column{Name: "a.b", Type: rows.Enum, Labels: []string{`\`, `') ) AS SELECT`, "\n"}}
	plain, escaped := `'\', ''') ) AS SELECT', '`+"\n'", `'\\', '\') ) AS SELECT', '`+"\n'"
	assert.Equal(t, `"a.b" ENUM(`+plain+`) NOT NULL CHECK ("a.b" IN (`+plain+`))`, Statements{Dialect: Dialect{Quote: `"`, Types: types}}.Define(c))
	assert.Equal(t, "`a.b` ENUM("+escaped+") NOT NULL CHECK (`a.b` IN ("+escaped+"))",
		Statements{Dialect: Dialect{Quote: "`", Types: types, Backslash: true}}.Define(c))
}

// A table is not replaced by one like itself, in whatever case it is named.
func TestLikeItself(t *testing.T) {
	s := State{Want: loader.Preparation{Like: loader.TableName{Schema: "S", Name: "orders"}}}
	assert.False(t, s.isLike(&Relation{Schema: "S", Name: "Orders"}))
	assert.True(t, s.isLike(&Relation{Schema: "S", Name: "orders"}))
	s.Fold = true
	assert.True(t, s.isLike(&Relation{Schema: "s", Name: "Orders"}))
	s.Want.Like = loader.TableName{}
	assert.False(t, s.isLike(&Relation{}))
}

// What a probe of many rows would move for good, and what it uses up.
func TestNumbered(t *testing.T) {
	column := func(name string, by loader.Numbering) Column {
		return Column{Column: loader.Column{Name: name, Numbered: by}}
	}
	for key, want := range map[loader.Numbering]bool{
		loader.AutoIncrement: true, loader.AutoRandom: true, loader.IdentityAlways: false, "": false,
	} {
		s := State{Statements: Statements{Dialect: Dialect{Fold: true}, Schema: rows.Schema{Columns: []rows.Column{{Name: "id"}}}}}
		names, moved := s.numbered([]Column{column("ID", key), column("no", loader.IdentityByDefault), column("x", "")})
		assert.Equal(t, []string{"no"}, names)
		assert.Equal(t, want, moved, key)
	}
}

// Row numbers must not be computed from columns that are unsigned.
func TestUnsignedKey(t *testing.T) {
	types := Types{{Ours: rows.Int64, Name: "bigint", SQL: "BIGINT"}, {Ours: rows.Int64, Name: "bigint unsigned", Unsigned: true}}
	order, line := rows.Column{Name: "o", Type: rows.Int64}, rows.Column{Name: "l", Type: rows.Int64}
	takes := func(c rows.Column, number ...rows.Term) bool {
		s := State{Statements: Statements{Dialect: Dialect{Types: types}}}
		s.Schema = rows.Schema{Columns: []rows.Column{order, line}, Number: number}
		return len(s.differences([]Column{
			ColumnOf(c.Name, "bigint unsigned"), ColumnOf(map[string]string{"o": "l", "l": "o"}[c.Name], "bigint"),
		})) == 0
	}
	both := []rows.Term{{Column: 0, Minus: 1, Times: 4}, {Column: 1, Minus: 1, Times: 1}}
	assert.True(t, takes(order, rows.Term{Column: 0, Times: 1}))
	assert.True(t, takes(line, rows.Term{Column: 1, Minus: 1, Times: 1}), "conditions are about the column's own values")
	assert.True(t, takes(order, rows.Term{Column: 1, Minus: 1, Times: 1}))
	assert.False(t, takes(order, both...))
	assert.False(t, takes(line, both...))
}

// A column with its NULLs, its labels and what the server checks of it.
func TestDefine(t *testing.T) {
	d := Dialect{Quote: "`", Types: Types{
		{Ours: rows.Text, Name: "text", SQL: "TEXT"},
		{Ours: rows.Char, Name: "char", SQL: "CHAR(%d)", Fits: LongEnough},
		{Ours: rows.Enum, Name: "enum", SQL: "ENUM(%s)"},
		{Ours: rows.JSON, Name: "text", SQL: "TEXT", Check: "%[1]s IS JSON"},
	}}
	labels := []string{"it's", "100%"}
	for want, c := range map[string]rows.Column{
		"`a` TEXT NULL":                                 {Name: "a", Type: rows.Text, Nullable: true},
		"`a` CHAR(9) NOT NULL":                          {Name: "a", Type: rows.Char, MaxBytes: 3, Declared: 9},
		"`a` ENUM('it''s', '100%') NOT NULL":            {Name: "a", Type: rows.Enum, Labels: labels},
		"`a``%d` TEXT NOT NULL CHECK (`a``%d` IS JSON)": {Name: "a`%d", Type: rows.JSON},
		"`a` inet NULL":                                 {Name: "a", Type: rows.Text, SQL: "inet", Nullable: true},
		"`b` TEXT NULL":                                 {Name: "b", Type: rows.Text, TakesNull: true},
		"`a` json NOT NULL":                             {Name: "a", Type: rows.JSON, SQL: "json"},
	} {
		assert.Equal(t, want, Statements{Dialect: d}.Define(c))
	}
	d.Types[2] = Type{Ours: rows.Enum, Name: "text", SQL: "TEXT", Check: "%[1]s IN (%[2]s)"}
	assert.Equal(t, "`a` TEXT NOT NULL CHECK (`a` IN ('it''s', '100%'))", Statements{Dialect: d}.Define(rows.Column{Name: "a", Type: rows.Enum, Labels: labels}))
	assert.Equal(t, "CASE WHEN `a` IS NOT NULL THEN 1 END", d.Types.read(rows.Column{Type: rows.Text, SQL: "inet"}, "`a`"))
	assert.Contains(t, d.Types.Lacks(), rows.UUID)
	assert.NotContains(t, d.Types.Lacks(), rows.JSON)
}

// An enum of the table has all of ours, or its labels are not known; a type that the user names is as he says.
func TestTakesLabelsAndNames(t *testing.T) {
	types := Types{{Ours: rows.Enum, Name: "enum"}, {Ours: rows.Text, Name: "text", SQL: "TEXT"}}
	mood := rows.Column{Type: rows.Enum, Labels: []string{"a", "b"}}
	assert.True(t, types.Take(ServerType{Name: "enum", Labels: []string{"b", "c", "a"}}, mood, false))
	assert.False(t, types.Take(ServerType{Name: "enum", Labels: []string{"b", "c"}}, mood, false))
	assert.True(t, types.Take(ServerType{Name: "enum"}, mood, false))
	assert.True(t, types.Take(ServerType{Name: "inet"}, rows.Column{Type: rows.Text, SQL: "inet"}, false))
	assert.False(t, types.Take(ServerType{Name: "inet"}, rows.Column{Type: rows.Text}, false))
}
