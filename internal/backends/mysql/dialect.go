package mysql

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// tableName is a table with its schema, which MySQL calls a database; both unquoted.
type tableName struct{ schema, table string }

// targetTable reads the target's table.
func targetTable(t loader.Target) (tableName, error) {
	longest := sqlload.Length{Most: 64, Unit: "characters", Of: utf8.RuneCountInString}
	schema, table, err := sqlload.SplitTable(t, longest)
	return tableName{schema, table}, err
}

// String is the name as Table.Name shows it and Preparation.MayDrop gives it.
func (n tableName) String() string { return n.schema + "." + n.table }

func (n tableName) quoted() string {
	if n.table == everything {
		return quote(n.schema) + "." + everything
	}
	return quote(n.schema) + "." + quote(n.table)
}

// claims is the claim table in the same schema.
func (n tableName) claims() tableName { return tableName{n.schema, sqlload.ClaimsTable} }

// runs is the table of the runs' rows, in the same schema.
func (n tableName) runs() tableName { return tableName{n.schema, sqlload.RunsTable} }

// where is the condition that finds the table in information_schema.
func (n tableName) where() string {
	return "table_schema = " + literal(n.schema) + " AND table_name = " + literal(n.table)
}

// A backslash escapes: checkSettings refuses NO_BACKSLASH_ESCAPES.
var quote, literal = sqlload.Backtick, sqlload.EscapedLiteral

func dialect(f flavour) sqlload.Dialect {
	return sqlload.Dialect{
		Types: f.types(), Fold: true, Backslash: true,
		Quote: "`", Divide: "%s DIV %d", TextNumber: "CAST(%s AS SIGNED)", Decimal: "DECIMAL(65, 0)", Leading: true,
		HexNumber: "CAST(CONV(RIGHT(%s, 15), 16, 10) AS SIGNED)", UUIDText: "CASE LENGTH(%[1]s) WHEN 16 THEN HEX(%[1]s) ELSE %[1]s END",
		TimeNumber: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)", TimeLiteral: "CAST('%s' AS DATETIME(6))", Tuples: "(%s)",
	}
}

// statements writes the SQL about one table, with or without a server.
type statements struct {
	sqlload.Statements
	flavour flavour
	binary  map[string]bool // columns of the table that are BINARY, in small letters
}

func newStatements(n tableName, f flavour, s rows.Schema) statements {
	return statements{
		Statements: sqlload.Statements{Dialect: dialect(f), Schema: s, Table: n.quoted(), Claims: n.claims().quoted()},
		flavour:    f,
	}
}

// createTable creates the target table. Without a primary key InnoDB stores the rows in the order of their arrival, by
// a hidden key of six bytes, which is the fastest load there is.
//
// A key of text is always a VARCHAR: a LONGTEXT cannot be indexed without a length, and sorts and temporary tables with
// one go to disk.
func (s statements) createTable(primaryKey bool) string {
	var lines []string
	for _, c := range s.Schema.Columns {
		if c.Name == s.Schema.Key().Name && c.Type == rows.Text {
			c.SQL = fmt.Sprintf("VARCHAR(%d) CHARACTER SET utf8mb4", max(c.Declared, c.MaxBytes))
		}
		lines = append(lines, "  "+s.Define(c))
	}
	keys := s.KeyColumns(s.Schema)
	if primaryKey {
		lines = append(lines, "  PRIMARY KEY ("+keys+")")
	}
	if s.flavour == singleStore {
		lines = append(lines, "  SHARD KEY ("+quote(s.Schema.Key().Name)+")", "  SORT KEY ("+keys+")")
	}
	return fmt.Sprintf("CREATE TABLE IF NOT EXISTS %s (\n%s\n)%s COMMENT = '%s'",
		s.Table, strings.Join(lines, ",\n"), s.engine(), loader.MadeBy)
}

// engine names one that rolls back, where the server's default may not.
func (s statements) engine() string {
	if s.flavour == singleStore || s.flavour == tiDB {
		return ""
	}
	return " ENGINE = InnoDB"
}

// What holds texts and raw bytes, the longest first.
var (
	blobs = []string{"longblob", "mediumblob", "blob", "tinyblob", "varbinary"}
	texts = []string{"longtext", "mediumtext", "text", "tinytext", "varchar"}
)

// narrowTexts are the texts of an ASCII character set.
var narrowTexts = []string{
	"longtext" + narrowCharset, "mediumtext" + narrowCharset, "text" + narrowCharset, "tinytext" + narrowCharset, "varchar" + narrowCharset,
}

// asciiFits fits a text that is long enough, for values of ASCII alone.
func asciiFits(params []int, want rows.Column) bool {
	return want.ASCII && sqlload.LongEnough(params, want)
}

// types are those of the flavour. SingleStore's others are not known well enough: no server has been asked.
func (f flavour) types() sqlload.Types {
	switch f {
	case singleStore:
		return commonTypes
	case mySQL:
		return slices.Concat(unsignedTypes, commonTypes, moreTypes, vectorType("HEX(%s)"))
	case tiDB:
		return slices.Concat(unsignedTypes, commonTypes, moreTypes, vectorType("CAST(%s AS CHAR)"))
	default:
		return slices.Concat(unsignedTypes, commonTypes, moreTypes)
	}
}

// vectorType is VECTOR. MySQL's VECTOR_TO_STRING shows six digits only, and so does all that OceanBase has (seekdb
// 1.4.0), whose vectors could not be proven. No server with MariaDB's has been asked.
func vectorType(read string) sqlload.Types {
	return sqlload.Types{{Ours: rows.Float32s, Name: "vector", SQL: "VECTOR(%d)", Most: 16_383, Fits: sqlload.SameDims, Read: read}}
}

// unsignedTypes are before the others, which take such columns for signed values.
var unsignedTypes = sqlload.Types{
	{Ours: rows.Uint64, Name: "bigint unsigned", SQL: "BIGINT UNSIGNED"},
	{Ours: rows.Uint32, Name: "int unsigned", Also: []string{"bigint unsigned"}, SQL: "INT UNSIGNED"},
	{Ours: rows.Uint16, Name: "smallint unsigned", Also: []string{"int unsigned"}, SQL: "SMALLINT UNSIGNED"},
}

// mostScale is how many digits a DECIMAL may have behind the point.
const mostScale = 30

// commonTypes are those of the family. A TIMESTAMP would be moved by the session's time zone; another scale, or fewer
// digits of a second, would round in silence.
var commonTypes = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", SQL: "BIGINT"},
	{Ours: rows.Int64, Name: "bigint unsigned", Unsigned: true}, // a difference below 0 is an error (1690)
	{Ours: rows.Date, Name: "date", SQL: "DATE"},
	{Ours: rows.Timestamp, Name: "datetime", SQL: "DATETIME(%d)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Decimal, Name: "decimal", SQL: "DECIMAL(%d,%d)", Fits: sqlload.SameScale},
	{Ours: rows.Bytes, Name: "longblob", Also: blobs, SQL: "LONGBLOB", Fits: sqlload.LongEnough},
	{
		Ours: rows.Text, Name: "longtext", Also: slices.Concat(texts, blobs),
		SQL: "LONGTEXT CHARACTER SET utf8mb4", Fits: sqlload.LongEnough,
	},
}

// moreTypes are those of all but SingleStore. A float whose digits are given rounds to them. A UUID is its text, which
// MariaDB's own type takes, too; of a BINARY(16) see loadData. MariaDB's JSON is a LONGTEXT. A TIMESTAMP is a moment,
// which sessions in UTC write and read as it is.
var moreTypes = sqlload.Types{
	{Ours: rows.Text, Name: narrowTexts[0], Also: narrowTexts[1:], Fits: asciiFits},
	{Ours: rows.Char, Name: narrowTexts[0], Also: narrowTexts[1:], Fits: asciiFits},
	{Ours: rows.Decimal, Name: "decimal unsigned", Fits: sqlload.SameScale},
	{Ours: rows.Wide, Name: "decimal", Also: []string{"decimal unsigned"}, SQL: "DECIMAL(%d,%d)", Most: mostScale, Fits: sqlload.SameScale},
	{Ours: rows.Time, Name: "time", SQL: "TIME(%d)", Fits: sqlload.SecondDigits(0)},
	{Ours: rows.Int16, Name: "tinyint", Least: math.MinInt8, Largest: math.MaxInt8, Fits: noBoolean},
	{Ours: rows.Int16, Name: "tinyint unsigned", Largest: math.MaxUint8, Fits: noBoolean, Unsigned: true},
	{Ours: rows.Int32, Name: "mediumint", Least: -1 << 23, Largest: 1<<23 - 1},
	{Ours: rows.Int32, Name: "mediumint unsigned", Largest: 1<<24 - 1, Unsigned: true},
	{Ours: rows.Int32, Name: "int", Also: []string{"bigint"}, SQL: "INT"},
	{Ours: rows.Int32, Name: "int unsigned", Also: []string{"bigint unsigned"}, Unsigned: true},
	{Ours: rows.Int16, Name: "smallint", Also: []string{"mediumint", "int", "bigint"}, SQL: "SMALLINT"},
	{Ours: rows.Int16, Name: "smallint unsigned", Also: []string{"mediumint unsigned", "int unsigned", "bigint unsigned"}, Unsigned: true},
	{Ours: rows.Bool, Name: "tinyint", Also: []string{"tinyint unsigned", "smallint", "int", "bigint"}, SQL: "TINYINT(1)"},
	{Ours: rows.Float64, Name: "double", Also: []string{"double unsigned"}, SQL: "DOUBLE", Fits: noDigits},
	{Ours: rows.Float32, Name: "float", Also: []string{"float unsigned", "double", "double unsigned"}, SQL: "FLOAT", Fits: noDigits, Read: "%s + 0e0"}, // alone it is shown with 6 digits
	{Ours: rows.Char, Name: "char", Also: texts, SQL: "CHAR(%d) CHARACTER SET utf8mb4", Fits: sqlload.LongEnough},
	{Ours: rows.UUID, Name: "char", Also: []string{"varchar", "varchar" + narrowCharset, "varchar" + otherCharset}, SQL: "CHAR(36)", Fits: uuidLong},
	{Ours: rows.UUID, Name: "uuid"},
	{Ours: rows.UUID, Name: "binary", Fits: func(params []int, _ rows.Column) bool { return slices.Equal(params, []int{rows.UUIDBytes}) }},
	{Ours: rows.JSON, Name: "json", SQL: "JSON"},
	{Ours: rows.JSON, Name: "longtext", Also: texts, Fits: sqlload.LongEnough},
	{Ours: rows.Enum, Name: "enum", SQL: "ENUM(%s) CHARACTER SET utf8mb4"},
	{Ours: rows.Enum, Name: "longtext", Also: append([]string{"char"}, texts...), Fits: sqlload.LongEnough},
	{Ours: rows.TimestampTZ, Name: "timestamp", SQL: "TIMESTAMP(%d)", Fits: sqlload.SecondDigits(0)},
}

// noBoolean fits a TINYINT that is no TINYINT(1), which is how the family writes BOOLEAN.
func noBoolean(params []int, _ rows.Column) bool { return !slices.Equal(params, []int{1}) }

// noDigits fits a type without parameters.
func noDigits(params []int, _ rows.Column) bool { return len(params) == 0 }

// uuidLong fits the text of a UUID.
func uuidLong(params []int, _ rows.Column) bool { return len(params) == 1 && params[0] >= 36 }

// loadData asks for the registered reader. FIELDS and LINES have the defaults, which are batch.TSV's. Without a
// CHARACTER SET clause the database's would be used, not the connection's, and gbk, big5 or sjis would take raw bytes
// for escapes. OceanBase takes raw bytes in utf8mb4 as they are, and with "binary" encodes them (seekdb 1.4.0).
func (s statements) loadData(reader string, l *batch.Layout) string {
	charset := "utf8mb4"
	raw := slices.ContainsFunc(s.Schema.Columns, func(c rows.Column) bool { return c.Type == rows.Bytes })
	if raw && s.flavour != oceanBase {
		charset = "binary"
	}
	columns, set := s.loadedColumns(charset)
	if l != nil {
		columns, set = s.fields(l.Columns), ""
	}
	return fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s CHARACTER SET %s (%s)%s",
		reader, s.Table, charset, columns, set)
}

// loadedColumns returns the list of columns and the SET clause, for those whose values have to be converted: MySQL
// takes a JSON document only as text (error 3144), which nothing is in a file of "binary", a BINARY(16) only the bytes
// of a UUID, and a VECTOR no text. MariaDB's UUID, INET6 and the like take what is no text for their 16 bytes.
func (s statements) loadedColumns(charset string) (columns, set string) {
	var names, sets []string
	for i, c := range s.Schema.Columns {
		name, value := quote(c.Name), ""
		switch {
		case c.Type == rows.UUID && s.binary[strings.ToLower(c.Name)]:
			value = "UNHEX(REPLACE(%s, '-', ''))"
		case c.Type == rows.Float32s && s.flavour == mySQL:
			value = "STRING_TO_VECTOR(%s)"
		case charset == "binary" && (c.Type == rows.JSON || c.SQL != "" || c.Type == rows.UUID && s.flavour == mariaDB):
			value = "CONVERT(%s USING utf8mb4)"
		}
		if value != "" {
			variable := fmt.Sprintf("@terapush_%d", i+1)
			sets = append(sets, name+" = "+fmt.Sprintf(value, variable))
			name = variable
		}
		names = append(names, name)
	}
	if len(sets) > 0 {
		set = " SET " + strings.Join(sets, ", ")
	}
	return strings.Join(names, ", "), set
}

// fields are the columns of the fields of a user's file. One that goes into no column goes into a variable.
func (s statements) fields(columns []string) string {
	names := make([]string, len(columns))
	for i, name := range columns {
		names[i] = "@terapush_skipped"
		if name != "" {
			names[i] = s.Quoted(name)
		}
	}
	return strings.Join(names, ", ")
}

// countRows keeps how many rows the last statement changed, beside its warnings. MySQL forgets those over any SELECT.
const (
	countRows   = "GET DIAGNOSTICS @terapush_rows = ROW_COUNT"
	countClaims = "GET DIAGNOSTICS @terapush_claims = ROW_COUNT"
)

// claimAndLoad is, in one message, the claim and the load, and what is to be known of both before the commit. The
// server shows each statement by itself, so both have the tag.
func (s statements) claimAndLoad(r loader.Ref, connection int64, reader string, l *batch.Layout) string {
	return strings.Join([]string{
		tag(r.ID) + s.insertClaim(r, connection), countClaims, tag(r.ID) + s.loadData(reader, l), countRows, "SHOW WARNINGS",
		"SELECT @terapush_claims, @terapush_rows",
	}, "; ")
}

// insertHead precedes a body of batch.Values.
func (s statements) insertHead() string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES ", s.Table, s.Columns(s.Schema))
}
