package mysql

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

func TestTakes(t *testing.T) {
	key := rows.Column{Name: "id", Type: rows.Int64}
	data := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: 512}
	words := rows.Column{Name: "payload", Type: rows.Text, MaxBytes: 512}
	price := rows.Column{Name: "price", Type: rows.Decimal, Digits: 15, Scale: 2}
	at := rows.Column{Name: "at", Type: rows.Timestamp}
	yes, short, id := rows.Column{Type: rows.Bool}, rows.Column{Type: rows.Int16}, rows.Column{Type: rows.UUID}
	mood := rows.Column{Type: rows.Enum, MaxBytes: 4, Labels: []string{"x, y", "it's"}}
	ascii := rows.Column{Type: rows.Text, MaxBytes: 9, ASCII: true}
	for _, c := range []struct {
		want          rows.Column
		full, charset string
		length        string
		takes         bool
	}{
		{rows.Column{Type: rows.Enum, MaxBytes: 6, Labels: []string{"a/*b", "İ", "Ⱥ"}}, "enum('a/*b','İ','Ⱥ')", "utf8mb4", "4", true},
		{rows.Column{Type: rows.Enum, MaxBytes: 6, Labels: []string{`x\n`, "y\n", `z\`}}, `enum('x\\n','y\n','z\\')`, "utf8mb4", "3", true},
		{rows.Column{Type: rows.Enum, MaxBytes: 6, Labels: []string{"Ⱥ"}}, "ENUM('İ')", "utf8mb4", "1", false},
		{key, "bigint(20) unsigned", "", "0", true},
		{key, "bigint unsigned", "", "0", true},
		{key, "int(11)", "", "0", false},
		{data, "longblob", "", "4294967295", true},
		{data, "blob", "", "65535", true},
		{data, "varbinary(512)", "", "512", true},
		{data, "tinyblob", "", "255", false},
		{data, "longtext", "utf8mb4", "4294967295", false},
		{words, "varchar(512)", "utf8mb4", "512", true},
		{words, "longblob", "", "4294967295", true},
		{words, "longtext", "latin1", "4294967295", false},
		{price, "decimal(15,2)", "", "0", true},
		{price, "decimal(15,3)", "", "0", false},
		{price, "decimal(15,2) unsigned", "", "0", true},
		{price, "decimal(14,2) unsigned", "", "0", false},
		{at, "datetime(6)", "", "0", true},
		{at, "datetime(3)", "", "0", false},
		{at, "timestamp(6)", "", "0", false},
		{rows.Column{Type: rows.Date}, "date", "", "0", true},
		{rows.Column{Type: rows.Date}, "datetime", "", "0", false},
		{key, "bigint(20) unsigned zerofill", "", "0", true},
		{words, "char(512)", "utf8mb4", "512", false},
		{data, "longblob /*M!100301 COMPRESSED*/", "", "4294967295", true},
		{data, "longblob", "binary", "4294967295", true},
		{words, "varchar(512) /*M!100301 COMPRESSED*/", "utf8mb4", "512", true},
		{words, "text", "", "65535", false},
		{words, "text", "latin1", "65535", false},
		{ascii, "text", "latin1", "65535", true},
		{ascii, "varchar(9)", "utf8mb3", "9", true},
		{ascii, "varchar(8)", "utf8mb3", "8", false},
		{ascii, "varchar(9)", "utf16", "9", false},
		{words, "text", "utf8mb4", "", false},
		{words, "json", "utf8mb4", "4294967295", false},
		{yes, "tinyint(1)", "", "0", true},
		{yes, "bit(1)", "", "0", false},
		{short, "smallint(6)", "", "0", true},
		{short, "mediumint(9)", "", "0", true},
		{short, "tinyint(4)", "", "0", false},
		{rows.Column{Type: rows.Int32}, "int(11)", "", "0", true},
		{rows.Column{Type: rows.Int32}, "mediumint(9)", "", "0", false},
		{rows.Column{Type: rows.Float64}, "double(10,2)", "", "0", false},
		{rows.Column{Type: rows.Float32}, "float", "", "0", true},
		{id, "char(36)", "latin1", "36", true},
		{id, "char(32)", "latin1", "32", false},
		{id, "varchar(64)", "utf8mb4", "64", true},
		{id, "binary(16)", "", "16", true},
		{id, "binary(20)", "", "20", false},
		{id, "uuid", "", "0", true},
		{rows.Column{Type: rows.TimestampTZ}, "timestamp(6)", "", "0", true},
		{rows.Column{Type: rows.TimestampTZ}, "timestamp", "", "0", false},
		{rows.Column{Type: rows.TimestampTZ}, "datetime(6)", "", "0", false},
		{mood, "enum('a','it''s','x, y')", "utf8mb4", "4", true},
		{mood, "ENUM('a','x, y')", "utf8mb4", "4", false},
		{mood, "enum('a','it's','x, y')", "utf8mb4", "4", true}, // as OceanBase writes it
		{mood, "varchar(4)", "utf8mb4", "4", true},
	} {
		have := typeOf(c.full, c.charset, c.length)
		assert.Equal(t, c.takes, mySQL.types().Take(have, c.want, false), "%s for %+v", c.full, c.want)
	}
}

// Of a UUID and of JSON among raw bytes other values are stored than sent.
func TestLoadedColumns(t *testing.T) {
	s := statements{flavour: mySQL, binary: map[string]bool{"u": true}}
	s.Table = "`t`"
	s.Schema.Columns = []rows.Column{
		{Name: "id", Type: rows.Int64}, {Name: "U", Type: rows.UUID}, {Name: "v", Type: rows.UUID}, {Name: "d`oc", Type: rows.JSON},
	}
	assert.Equal(t, "LOAD DATA LOCAL INFILE 'Reader::r' INTO TABLE `t` CHARACTER SET utf8mb4 (`id`, @terapush_2, `v`, `d``oc`)"+
		" SET `U` = UNHEX(REPLACE(@terapush_2, '-', ''))", s.loadData("r", nil))
	s.Schema.Columns = append(s.Schema.Columns, rows.Column{Name: "raw", Type: rows.Bytes})
	assert.Equal(t, "LOAD DATA LOCAL INFILE 'Reader::r' INTO TABLE `t` CHARACTER SET binary (`id`, @terapush_2, `v`, @terapush_4, `raw`)"+
		" SET `U` = UNHEX(REPLACE(@terapush_2, '-', '')), `d``oc` = CONVERT(@terapush_4 USING utf8mb4)", s.loadData("r", nil))

	s.flavour = mariaDB // whose own types of 16 bytes take a binary text for them
	s.Schema.Columns[0] = rows.Column{Name: "ip", Type: rows.Text, SQL: "inet6"}
	assert.Equal(t, "LOAD DATA LOCAL INFILE 'Reader::r' INTO TABLE `t` CHARACTER SET binary (@terapush_1, @terapush_2, @terapush_3, @terapush_4, `raw`)"+
		" SET `ip` = CONVERT(@terapush_1 USING utf8mb4), `U` = UNHEX(REPLACE(@terapush_2, '-', '')),"+
		" `v` = CONVERT(@terapush_3 USING utf8mb4), `d``oc` = CONVERT(@terapush_4 USING utf8mb4)", s.loadData("r", nil))
}

// What would arrive as something else is refused before the run.
func TestRowsThatASessionWouldChange(t *testing.T) {
	schema := func(columns ...rows.Column) rows.Schema { return rows.Schema{Columns: columns} }
	last := rows.Column{Name: "note", Type: rows.Text, MaxBytes: 5}
	null := last
	null.Nullable = true
	number := rows.Column{Name: "n", Type: rows.Int64, Nullable: true}
	moment := rows.Column{Name: "at", Type: rows.TimestampTZ}
	to := func(f flavour, method string, settings ...loader.Setting) *opened {
		return &opened{server: server{flavour: f}, method: loader.Method{Name: method}, target: loader.Target{Settings: settings}}
	}
	zone := loader.Setting{Name: "Time_Zone", Value: "SYSTEM"}
	assert.ErrorContains(t, to(oceanBase, methodLoadData).refuses(schema(number, null)), "the last column, note, may hold both")
	assert.NoError(t, to(oceanBase, methodLoadData).refuses(schema(null, number)))
	assert.NoError(t, to(oceanBase, methodInsert).refuses(schema(number, null)))
	assert.NoError(t, to(mySQL, methodLoadData).refuses(schema(number, null)))
	assert.ErrorContains(t, to(mySQL, methodLoadData, zone).refuses(schema(moment)), "--set time_zone would move them")
	assert.NoError(t, to(mySQL, methodLoadData, zone).refuses(schema(number)))

	fits := func(method string, want rows.Column, have sqlload.Column) error {
		s := &sqlload.State{Statements: sqlload.Statements{Schema: schema(number, want)}}
		return catalog{to(oceanBase, method)}.Fits(t.Context(), nil, s, &sqlload.Relation{Columns: []sqlload.Column{have}})
	}
	nullable, plain := sqlload.ColumnOf("NOTE", "varchar(5)"), sqlload.ColumnOf("note", "varchar(5)")
	nullable.Nullable = true
	assert.ErrorContains(t, fits(methodLoadData, last, nullable), "the last column, note, may hold both")
	assert.NoError(t, fits(methodLoadData, last, plain))
	assert.NoError(t, fits(methodInsert, last, nullable))
	id := rows.Column{Name: "u", Type: rows.UUID}
	assert.ErrorContains(t, fits(methodInsert, id, sqlload.ColumnOf("u", "binary(16)")), "method insert sends the text of a UUID")
	assert.NoError(t, fits(methodLoadData, id, sqlload.ColumnOf("u", "binary(16)")))
}

// Row numbers are computed from narrow unsigned columns as signed numbers, and from wide ones not at all.
func TestUnsignedKeys(t *testing.T) {
	for kind, c := range map[string]rows.Column{
		"tinyint unsigned": {Type: rows.Int16, Most: 255}, "mediumint unsigned": {Type: rows.Int32, Most: 1<<24 - 1},
		"smallint unsigned": {Type: rows.Int16}, "int unsigned": {Type: rows.Int32}, "bigint unsigned": {Type: rows.Int64},
	} {
		assert.Equal(t, kind != "bigint unsigned", mariaDB.types().Take(sqlload.ParseType(kind), c, true), kind)
	}
}
