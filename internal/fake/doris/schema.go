package doris

import (
	"fmt"
	"slices"
	"strings"
)

// describe is DESC and SHOW COLUMNS.
func (s *session) describe(db, name string) (*result, error) {
	t, err := s.table(db, name)
	if err != nil {
		return nil, err
	}
	r := &result{names: []string{"Field", "Type", "Null", "Key", "Default", "Extra"}}
	for i, c := range t.columns {
		null, key := "Yes", "false"
		if c.notNull {
			null = "No"
		}
		if i < len(t.keys) {
			key = "true"
		}
		var otherwise value
		if c.defaultValue != nil {
			otherwise = *c.defaultValue
		}
		extra := "NONE"
		if i < len(t.keys) {
			extra = ""
		}
		r.rows = append(r.rows, []value{c.name, c.kind.String(), null, key, otherwise, extra})
	}
	return r, nil
}

// informationSchema gives one of the tables that clients look at.
func (s *session) informationSchema(name string) ([]string, [][]value, error) {
	var rows [][]value
	switch name {
	case "schemata":
		for _, db := range append(sorted(s.store.databases), "information_schema") {
			rows = append(rows, []value{"internal", db, "utf8mb4", "utf8mb4_0900_bin"})
		}
		return []string{"CATALOG_NAME", "SCHEMA_NAME", "DEFAULT_CHARACTER_SET_NAME", "DEFAULT_COLLATION_NAME"}, rows, nil
	case "tables":
		for _, t := range s.tables() {
			rows = append(rows, []value{"internal", t.database.name, t.name, "BASE TABLE", "Doris", int64(len(t.rows)), t.bytes(),
				moment(t.created), t.comment})
		}
		return []string{"TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "TABLE_TYPE", "ENGINE", "TABLE_ROWS", "DATA_LENGTH", "CREATE_TIME",
			"TABLE_COMMENT"}, rows, nil
	case "columns":
		for _, t := range s.tables() {
			for i, c := range t.columns {
				rows = append(rows, columnRow(t, i, c))
			}
		}
		return []string{"TABLE_CATALOG", "TABLE_SCHEMA", "TABLE_NAME", "COLUMN_NAME", "ORDINAL_POSITION", "COLUMN_DEFAULT", "IS_NULLABLE",
			"DATA_TYPE", "CHARACTER_MAXIMUM_LENGTH", "CHARACTER_OCTET_LENGTH", "NUMERIC_PRECISION", "NUMERIC_SCALE", "DATETIME_PRECISION",
			"COLUMN_TYPE", "COLUMN_KEY", "EXTRA", "COLUMN_COMMENT", "COLUMN_SIZE", "DECIMAL_DIGITS"}, rows, nil
	case "backends_active_tasks", "processlist", "partitions":
	}
	return nil, nil, &sqlError{1051, "42S02", fmt.Sprintf("errCode = 2, detailMessage = Table [%s] does not exist in database [information_schema]. (this stand-in has schemata, tables and columns)", name)}
}

func (s *session) tables() []*table {
	var all []*table
	for _, db := range sorted(s.store.databases) {
		for _, name := range sorted(s.store.databases[db].tables) {
			all = append(all, s.store.databases[db].tables[name])
		}
	}
	return all
}

// bytes is roughly what the rows take; Doris reports a compressed size, minutes late.
func (t *table) bytes() int64 {
	var n int64
	for _, row := range t.rows {
		for _, v := range row {
			n += int64(len(text(v)))
		}
	}
	return n
}

func columnRow(t *table, i int, c column) []value {
	nullable, key := "YES", ""
	if c.notNull {
		nullable = "NO"
	}
	if i < len(t.keys) {
		key = map[string]string{"DUPLICATE": "DUP", "UNIQUE": "UNI"}[t.model]
	}
	var chars, precision, scale, seconds, otherwise value
	switch k := c.kind; {
	case slices.Contains([]string{"CHAR", "VARCHAR"}, k.name):
		chars = int64(k.length)
	case k.name == "STRING":
		chars = int64(2147483643)
	case k.name == "DECIMAL":
		precision, scale = int64(k.length), int64(k.scale)
	case k.name == "DATETIME":
		seconds = int64(k.length)
	case k.bits() > 0:
		precision, scale = map[int]value{8: int64(3), 16: int64(5), 32: int64(10), 64: int64(19)}[k.bits()], int64(0)
	}
	if c.defaultValue != nil {
		otherwise = *c.defaultValue
	}
	name, full := strings.ToLower(c.kind.name), c.kind.String()
	switch name {
	case "string":
		name = "text"
	case "decimal": // as schema_columns_scanner.cpp writes it, whatever the table was made with
		full = fmt.Sprintf("decimalv3(%d, %d)", c.kind.length, c.kind.scale)
	}
	return []value{"internal", t.database.name, t.name, c.name, int64(i + 1), otherwise, nullable, name, chars, chars, precision, scale, seconds,
		full, key, "", c.comment, chars, scale}
}
