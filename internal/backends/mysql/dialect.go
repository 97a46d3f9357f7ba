package mysql

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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

func dialect() sqlload.Dialect {
	return sqlload.Dialect{
		Types: types, Fold: true, Backslash: true,
		Quote: "`", Divide: "%s DIV %d", TextNumber: "CAST(%s AS SIGNED)", Decimal: "DECIMAL(65, 0)", Leading: true,
		HexNumber: "CAST(CONV(RIGHT(%s, 15), 16, 10) AS SIGNED)", UUIDText: "HEX(%s)",
		TimeNumber: "TIMESTAMPDIFF(MICROSECOND, '1970-01-01', %s)", TimeLiteral: "CAST('%s' AS DATETIME(6))",
	}
}

// statements writes the SQL about one table, with or without a server.
type statements struct {
	sqlload.Statements
	flavour flavour
}

func newStatements(n tableName, f flavour, s rows.Schema) statements {
	return statements{
		Statements: sqlload.Statements{Dialect: dialect(), Schema: s, Table: n.quoted(), Claims: n.claims().quoted()},
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
		kind := types.SQL(c)
		if c.Name == s.Schema.Key().Name && c.Type == rows.Text {
			kind = fmt.Sprintf("VARCHAR(%d) CHARACTER SET utf8mb4", max(c.Declared, c.MaxBytes))
		}
		lines = append(lines, "  "+quote(c.Name)+" "+kind+" NOT NULL")
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

// createClaims creates the claim table. Its column connection is for Resolve: who inserted the claim. SingleStore's
// default is a column store, made for scans; claims are single rows looked up by their key.
func (s statements) createClaims() string {
	create := "CREATE TABLE"
	if s.flavour == singleStore {
		create = "CREATE ROWSTORE TABLE"
	}
	return fmt.Sprintf("%s IF NOT EXISTS %s (\n  run VARCHAR(64) NOT NULL,\n  batch BIGINT NOT NULL,\n"+
		"  first_key BIGINT NOT NULL,\n  row_count BIGINT NOT NULL,\n"+
		"  connection BIGINT NOT NULL DEFAULT 0,\n  claimed_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,\n"+
		"  PRIMARY KEY (run, batch)\n)%s COMMENT = '%s'",
		create, s.Claims, s.engine(), loader.MadeBy)
}

// createRuns creates the table of the runs' rows.
func (s statements) createRuns() string {
	create := "CREATE TABLE"
	if s.flavour == singleStore {
		create = "CREATE ROWSTORE TABLE"
	}
	var lines []string
	for _, name := range [...]string{"name", "run", "part", "state", "epoch"} {
		lines = append(lines, "  "+name+" VARCHAR(64) NOT NULL")
	}
	for _, name := range [...]string{"target", "owner"} {
		lines = append(lines, "  "+name+" VARCHAR(255) CHARACTER SET utf8mb4 NOT NULL")
	}
	for _, name := range [...]string{"appends", "fingerprint", "first_key", "last_key", "changed"} {
		lines = append(lines, "  "+name+" BIGINT NOT NULL")
	}
	return fmt.Sprintf("%s IF NOT EXISTS %s (\n%s,\n  PRIMARY KEY (run, part)\n)%s COMMENT = '%s'",
		create, s.Runs(), strings.Join(lines, ",\n"), s.engine(), loader.MadeBy)
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

// types are those of the family. A TIMESTAMP would be moved by the session's time zone; another scale, or fewer digits of a
// second, would round in silence.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", SQL: "BIGINT"},
	{Ours: rows.Int64, Name: "bigint unsigned", Unsigned: true}, // a difference below 0 is an error (1690)
	{Ours: rows.Date, Name: "date", SQL: "DATE"},
	{Ours: rows.Timestamp, Name: "datetime", SQL: "DATETIME(6)", Fits: sqlload.Microseconds},
	{Ours: rows.Decimal, Name: "decimal", SQL: "DECIMAL(%d,%d)", Fits: sqlload.SameDigits},
	{Ours: rows.Bytes, Name: "longblob", Also: blobs, SQL: "LONGBLOB", Fits: sqlload.LongEnough},
	{
		Ours: rows.Text, Name: "longtext", Also: slices.Concat(texts, blobs),
		SQL: "LONGTEXT CHARACTER SET utf8mb4", Fits: sqlload.LongEnough,
	},
}

// loadData asks for the registered reader. FIELDS and LINES have the defaults, which are batch.TSV's. Without a
// CHARACTER SET clause the database's would be used, not the connection's, and gbk, big5 or sjis would take raw bytes
// for escapes. OceanBase takes raw bytes in utf8mb4 as they are, and with "binary" encodes them (seekdb 1.4.0).
func (s statements) loadData(reader string) string {
	charset := "utf8mb4"
	raw := slices.ContainsFunc(s.Schema.Columns, func(c rows.Column) bool { return c.Type == rows.Bytes })
	if raw && s.flavour != oceanBase {
		charset = "binary"
	}
	return fmt.Sprintf("LOAD DATA LOCAL INFILE 'Reader::%s' INTO TABLE %s CHARACTER SET %s (%s)",
		reader, s.Table, charset, s.Columns(s.Schema))
}

// countRows keeps how many rows the last statement changed, beside its warnings. MySQL forgets those over any SELECT.
const (
	countRows   = "GET DIAGNOSTICS @terapush_rows = ROW_COUNT"
	countClaims = "GET DIAGNOSTICS @terapush_claims = ROW_COUNT"
)

// claimAndLoad is, in one message, the claim and the load, and what is to be known of both before the commit. The server
// shows each statement by itself, so both have the tag.
func (s statements) claimAndLoad(r loader.Ref, connection int64, reader string) string {
	return strings.Join([]string{
		tag(r.ID) + s.insertClaim(r, connection), countClaims, tag(r.ID) + s.loadData(reader), countRows, "SHOW WARNINGS",
		"SELECT @terapush_claims, @terapush_rows",
	}, "; ")
}

// insertHead precedes a body of batch.Values.
func (s statements) insertHead() string {
	return fmt.Sprintf("INSERT INTO %s (%s) VALUES ", s.Table, s.Columns(s.Schema))
}

// insertClaim is sqlload's, with the number of the connection.
func (s statements) insertClaim(r loader.Ref, connection int64) string {
	return s.InsertClaimBy(r, "connection", strconv.FormatInt(connection, 10))
}

// selectHolder reads the connection of a batch's claim, for a session with dirtyReads.
func (s statements) selectHolder(r loader.Ref) string {
	return fmt.Sprintf("SELECT connection FROM %s WHERE run = '%s' AND batch = %d", s.Claims, cmp.Or(s.Row.Run, r.ID.Run), r.ID.Number)
}
