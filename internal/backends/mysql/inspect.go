package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// found is what the server knows of the target table.
type found struct {
	engine        string
	transactional bool
	comment       string
	created       string
}

// inspect looks the target table up; nil if there is none.
func (db *database) inspect(ctx context.Context) (*found, error) {
	var f found
	var kind string
	err := db.control.QueryRowContext(ctx, `SELECT table_type, COALESCE(engine, ''), COALESCE(table_comment, ''),`+
		` COALESCE(create_time, '') FROM information_schema.tables WHERE table_schema = ? AND table_name = ?`,
		db.name.schema, db.name.table).Scan(&kind, &f.engine, &f.comment, &f.created)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if strings.Contains(kind, "VIEW") {
		return nil, fmt.Errorf("%s is a view; rows go into tables", db.name)
	}
	f.transactional, err = db.transactional(ctx, f.engine)
	return &f, err
}

// transactional asks whether the engine can roll back, which MyISAM and Aria cannot. TiDB and SingleStore name engines
// only to look like MySQL; for them the probe answers.
func (db *database) transactional(ctx context.Context, engine string) (bool, error) {
	if db.server.flavour == tiDB || db.server.flavour == singleStore {
		return true, nil
	}
	var can string
	err := db.control.QueryRowContext(ctx,
		"SELECT COALESCE(transactions, 'NO') FROM information_schema.engines WHERE engine = ?", engine).Scan(&can)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return can == "YES", err
}

// identity tells a table from another one of the same name.
//
// Tried on MariaDB 10.11 and MySQL 9.7: InnoDB's table id changes on DROP and CREATE and on TRUNCATE, and stays when
// an index is added; reading it takes the PROCESS privilege. The creation time, which everybody may read, changes on
// DROP and CREATE and also when an index is added, and stays on TRUNCATE: with it alone a resume does not notice that
// the table was emptied, and leaves that to the proof of arrival. TiDB shows its table id to everybody.
func (db *database) identity(ctx context.Context, f *found) (string, error) {
	query, name := "", storageName(db.name.schema)+"/"+storageName(db.name.table)
	args := []any{name, name + "#p#%"} // a partition is a table of its own to InnoDB
	switch db.server.flavour {
	case tiDB:
		query = "SELECT tidb_table_id FROM information_schema.tables WHERE table_schema = ? AND table_name = ?"
		args = []any{db.name.schema, db.name.table}
	case mariaDB:
		query = "SELECT table_id FROM information_schema.innodb_sys_tables WHERE name = ? OR name LIKE ? ORDER BY 1"
	case mySQL:
		query = "SELECT table_id FROM information_schema.innodb_tables WHERE name = ? OR name LIKE ? ORDER BY 1"
	}
	if query != "" {
		ids, err := column[string](ctx, db.control, query, args...)
		if err == nil && len(ids) > 0 {
			return "table id " + strings.Join(ids, ","), nil
		}
		if err != nil && !is(err, accessDenied...) {
			return "", err
		}
	}
	if f.created == "" {
		return "", nil
	}
	return "created " + f.created, nil
}

// storageName is an identifier as InnoDB writes it (MySQL manual, "Mapping of Identifiers to File Names"). Letters
// outside ASCII have codes of their own; names with them are not found, and the creation time has to do.
func storageName(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r == '_' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			b.WriteRune(r)
		} else {
			fmt.Fprintf(&b, "@%04x", r)
		}
	}
	return b.String()
}

// columnInfo is one column as information_schema.columns describes it.
type columnInfo struct {
	name, dataType, fullType, charset string
	length                            int64 // bytes of a blob or text, characters of a varchar
	optional                          bool  // gets a value when an INSERT leaves it out
}

// checkColumns refuses a table that cannot take the rows, with everything that is wrong about it.
func (db *database) checkColumns(ctx context.Context, s rows.Schema) error {
	list, err := db.control.QueryContext(ctx, `SELECT column_name, data_type, column_type, COALESCE(character_set_name, ''),`+
		` COALESCE(character_maximum_length, 0), is_nullable = 'YES' OR column_default IS NOT NULL OR extra <> ''`+
		` FROM information_schema.columns WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position`,
		db.name.schema, db.name.table)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	var have []columnInfo
	for list.Next() {
		var c columnInfo
		if err := list.Scan(&c.name, &c.dataType, &c.fullType, &c.charset, &c.length, &c.optional); err != nil {
			return err
		}
		have = append(have, c)
	}
	if err := list.Err(); err != nil {
		return err
	}
	if wrong := append(compareColumns(s.Columns, have), unsignedTerms(s, have)...); len(wrong) > 0 {
		return fmt.Errorf("table %s cannot take the rows of dataset %s: %s", db.name, s.Dataset, strings.Join(wrong, "; "))
	}
	return nil
}

// compareColumns lists what keeps rows of the wanted columns out of a table. Columns that the dataset does not know
// may be there as long as the server can fill them in.
func compareColumns(want []rows.Column, have []columnInfo) (wrong []string) {
	for _, w := range want {
		i := slices.IndexFunc(have, func(h columnInfo) bool { return strings.EqualFold(h.name, w.Name) })
		if i < 0 {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is missing", w.Name, columnType(w)))
		} else if !have[i].takes(w) {
			wrong = append(wrong, fmt.Sprintf("column %s is %s, want %s", w.Name, have[i].fullType, wantedType(w)))
		}
	}
	for _, h := range have {
		known := slices.ContainsFunc(want, func(w rows.Column) bool { return strings.EqualFold(w.Name, h.name) })
		if !known && !h.optional {
			wrong = append(wrong, fmt.Sprintf("column %s (%s) is unknown to the dataset and has no default", h.name, h.fullType))
		}
	}
	return wrong
}

// unsignedTerms lists the unsigned columns that the row number is computed from. A key that is the number itself may well
// be unsigned; but a difference below 0, as of a bound that is looked for, is an error there (1690) and no number.
func unsignedTerms(s rows.Schema, have []columnInfo) (wrong []string) {
	if len(s.Number) == 1 && s.Number[0].Minus == 0 {
		return nil
	}
	for _, term := range s.Number {
		name := s.Columns[term.Column].Name
		i := slices.IndexFunc(have, func(h columnInfo) bool { return strings.EqualFold(h.name, name) })
		if i >= 0 && strings.Contains(strings.ToLower(have[i].fullType), "unsigned") {
			wrong = append(wrong, fmt.Sprintf("column %s is %s, want it signed: row numbers are computed from it", name, have[i].fullType))
		}
	}
	return wrong
}

func (c columnInfo) takes(w rows.Column) bool {
	kind := strings.ToLower(c.dataType)
	blob := strings.HasSuffix(kind, "blob") || kind == "varbinary"
	text := (strings.HasSuffix(kind, "text") || kind == "varchar") && c.charset == "utf8mb4"
	switch w.Type {
	case rows.Int64:
		return kind == "bigint"
	case rows.Date:
		return kind == "date"
	case rows.Decimal: // another scale would round, or be read back otherwise
		return strings.EqualFold(c.fullType, columnType(w))
	case rows.Timestamp:
		// With fewer digits the server rounds, and nobody is told.
		return strings.EqualFold(c.fullType, "datetime(6)")
	case rows.Bytes:
		return blob && c.length >= int64(w.MaxBytes)
	case rows.Text:
		// A character of a varchar has at least one byte, so as many characters as bytes are always enough.
		return (blob || text) && c.length >= int64(w.MaxBytes)
	default:
		return false
	}
}

func wantedType(w rows.Column) string {
	switch w.Type {
	case rows.Bytes:
		return fmt.Sprintf("LONGBLOB, or a smaller BLOB or VARBINARY that holds %d bytes", w.MaxBytes)
	case rows.Text:
		return fmt.Sprintf("LONGTEXT, or a smaller TEXT or VARCHAR in utf8mb4 that holds %d bytes", w.MaxBytes)
	default:
		return columnType(w)
	}
}
