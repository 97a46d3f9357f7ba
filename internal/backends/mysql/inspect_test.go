package mysql

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/rows"
)

func TestCompareColumns(t *testing.T) {
	key := rows.Column{Name: "id", Type: rows.Int64}
	data := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: 512}
	words := rows.Column{Name: "payload", Type: rows.Text, MaxBytes: 512}
	price := rows.Column{Name: "price", Type: rows.Decimal, Digits: 15, Scale: 2}
	id := columnInfo{name: "ID", dataType: "bigint", fullType: "bigint(20) unsigned"}
	column := func(kind, charset string, length int64) columnInfo {
		return columnInfo{name: "payload", dataType: kind, fullType: kind, charset: charset, length: length}
	}
	for _, c := range []struct {
		want []rows.Column
		have []columnInfo
		text []string
	}{
		{[]rows.Column{key, data}, []columnInfo{id, column("longblob", "", 1<<32-1)}, nil},
		{[]rows.Column{key, data}, []columnInfo{id, column("blob", "", 65535)}, nil},
		{[]rows.Column{key, data}, []columnInfo{id, column("varbinary", "", 512)}, nil},
		{[]rows.Column{key, words}, []columnInfo{id, column("varchar", "utf8mb4", 512)}, nil},
		{[]rows.Column{key, words}, []columnInfo{id, column("longblob", "", 1<<32-1)}, nil},
		{
			[]rows.Column{key, data}, []columnInfo{id, column("tinyblob", "", 255)},
			[]string{"column payload is tinyblob, want LONGBLOB, or a smaller BLOB or VARBINARY that holds 512 bytes"},
		},
		{
			[]rows.Column{key, data}, []columnInfo{id, column("longtext", "utf8mb4", 1<<32-1)},
			[]string{"column payload is longtext, want LONGBLOB, or a smaller BLOB or VARBINARY that holds 512 bytes"},
		},
		{
			[]rows.Column{key, words}, []columnInfo{id, column("longtext", "latin1", 1<<32-1)},
			[]string{"column payload is longtext, want LONGTEXT, or a smaller TEXT or VARCHAR in utf8mb4 that holds 512 bytes"},
		},
		{
			[]rows.Column{key, data},
			[]columnInfo{
				{name: "id", dataType: "int", fullType: "int(11)"},
				{name: "made", dataType: "datetime", fullType: "datetime", optional: true},
				{name: "owner", dataType: "int", fullType: "int(11)"},
			},
			[]string{
				"column id is int(11), want BIGINT", "column payload (LONGBLOB) is missing",
				"column owner (int(11)) is unknown to the dataset and has no default",
			},
		},
		{[]rows.Column{price}, []columnInfo{{name: "price", dataType: "decimal", fullType: "decimal(15,2)"}}, nil},
		{
			[]rows.Column{price}, []columnInfo{{name: "price", dataType: "decimal", fullType: "decimal(15,3)"}},
			[]string{"column price is decimal(15,3), want DECIMAL(15,2)"},
		},
		{
			[]rows.Column{price}, []columnInfo{{name: "price", dataType: "decimal", fullType: "decimal(15,2) unsigned"}},
			[]string{"column price is decimal(15,2) unsigned, want DECIMAL(15,2)"},
		},
	} {
		assert.Equal(t, c.text, compareColumns(c.want, c.have))
	}
}

func TestUnsignedTerms(t *testing.T) {
	order, line := rows.Column{Name: "o", Type: rows.Int64, Derived: true}, rows.Column{Name: "l", Type: rows.Int64, Derived: true}
	columns := []rows.Column{order, line}
	unsigned := []columnInfo{
		{name: "O", dataType: "bigint", fullType: "bigint(20) unsigned zerofill"}, {name: "l", dataType: "bigint", fullType: "bigint unsigned"},
	}
	signed := []columnInfo{{name: "o", dataType: "bigint", fullType: "bigint(20)"}, {name: "l", dataType: "bigint", fullType: "bigint"}}
	of := func(terms ...rows.Term) rows.Schema { return rows.Schema{Columns: columns, Number: terms} }
	both := of(rows.Term{Column: 0, Minus: 1, Times: 4}, rows.Term{Column: 1, Minus: 1, Times: 1})
	for _, c := range []struct {
		s    rows.Schema
		have []columnInfo
		text []string
	}{
		{of(rows.Term{Column: 0, Times: 1}), unsigned, nil},
		{of(rows.Term{Column: 1, Minus: 1, Times: 1}), unsigned, []string{"column l is bigint unsigned, want it signed: row numbers are computed from it"}},
		{both, signed, nil},
		{both, unsigned, []string{
			"column o is bigint(20) unsigned zerofill, want it signed: row numbers are computed from it",
			"column l is bigint unsigned, want it signed: row numbers are computed from it",
		}},
		{both, nil, nil}, // compareColumns says that they are missing
	} {
		assert.Equal(t, c.text, unsignedTerms(c.s, c.have))
	}
}

func TestStorageName(t *testing.T) {
	assert.Equal(t, "shop_1", storageName("shop_1"))
	assert.Equal(t, "my@002dshop@0020", storageName("my-shop "))
}
