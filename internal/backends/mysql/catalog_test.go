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
		length        string
		takes         bool
	}{
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
		{price, "decimal(15,2) unsigned", "", "0", false},
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
		{words, "text", "utf8mb4", "", false},
		{words, "json", "utf8mb4", "4294967295", false},
	} {
		have := typeOf(c.full, c.charset, c.length)
		assert.Equal(t, c.takes, mySQL.types().Take(have, c.want, false), "%s for %+v", c.full, c.want)
	}
}
