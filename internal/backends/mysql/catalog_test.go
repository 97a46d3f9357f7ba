package mysql

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/rows"
)

func TestTakes(t *testing.T) {
	key := rows.Column{Name: "id", Type: rows.Int64}
	data := rows.Column{Name: "payload", Type: rows.Bytes, MaxBytes: 512}
	words := rows.Column{Name: "payload", Type: rows.Text, MaxBytes: 512}
	price := rows.Column{Name: "price", Type: rows.Decimal, Digits: 15, Scale: 2}
	at := rows.Column{Name: "at", Type: rows.Timestamp}
	for _, c := range []struct {
		want          rows.Column
		full, charset string
		length        int64
		takes         bool
	}{
		{key, "bigint(20) unsigned", "", 0, true},
		{key, "bigint unsigned", "", 0, true},
		{key, "int(11)", "", 0, false},
		{data, "longblob", "", 1<<32 - 1, true},
		{data, "blob", "", 65535, true},
		{data, "varbinary(512)", "", 512, true},
		{data, "tinyblob", "", 255, false},
		{data, "longtext", "utf8mb4", 1<<32 - 1, false},
		{words, "varchar(512)", "utf8mb4", 512, true},
		{words, "longblob", "", 1<<32 - 1, true},
		{words, "longtext", "latin1", 1<<32 - 1, false},
		{price, "decimal(15,2)", "", 0, true},
		{price, "decimal(15,3)", "", 0, false},
		{price, "decimal(15,2) unsigned", "", 0, false},
		{at, "datetime(6)", "", 0, true},
		{at, "datetime(3)", "", 0, false},
		{at, "timestamp(6)", "", 0, false},
		{rows.Column{Type: rows.Date}, "date", "", 0, true},
		{rows.Column{Type: rows.Date}, "datetime", "", 0, false},
	} {
		assert.Equal(t, c.takes, takes(c.full, c.charset, c.length, c.want), "%s for %+v", c.full, c.want)
	}
}

// Row numbers must not be computed from columns that are unsigned.
func TestComputed(t *testing.T) {
	order, line := rows.Column{Name: "o", Type: rows.Int64, Derived: true}, rows.Column{Name: "l", Type: rows.Int64, Derived: true}
	of := func(terms ...rows.Term) rows.Schema {
		return rows.Schema{Columns: []rows.Column{order, line}, Number: terms}
	}
	both := of(rows.Term{Column: 0, Minus: 1, Times: 4}, rows.Term{Column: 1, Minus: 1, Times: 1})
	assert.False(t, computed(of(rows.Term{Column: 0, Times: 1}), order))
	assert.True(t, computed(of(rows.Term{Column: 1, Minus: 1, Times: 1}), line))
	assert.False(t, computed(of(rows.Term{Column: 1, Minus: 1, Times: 1}), order))
	assert.True(t, computed(both, order))
	assert.True(t, computed(both, line))
}
