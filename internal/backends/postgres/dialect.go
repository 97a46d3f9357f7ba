package postgres

import (
	"fmt"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/rows"
)

// dialect returns the flavour's SQL.
//
// Microseconds since 1970 are whole seconds plus their fraction. date_part returns floating point, which holds both
// exactly. So did EXTRACT before PostgreSQL 14, and an EXTRACT of the whole loses microseconds in distant centuries.
func (f flavour) dialect() sqlload.Dialect {
	d := sqlload.Dialect{
		Type: f.columnType, AtomicDDL: true, Hex: true,
		Quote: `"`, Divide: "%s / %d", TextNumber: "CAST(%s AS bigint)", Decimal: "numeric", Leading: true,
		TimeNumber: "(CAST(date_part('epoch', date_trunc('second', %[1]s)) AS bigint) * 1000000" +
			" + CAST(date_part('microseconds', %[1]s) AS bigint) %% 1000000)",
		TimeLiteral: "CAST('%s' AS timestamp)",
		Reads: map[rows.Type]string{ // independent of the session's settings
			rows.Decimal: "CAST(%s AS text)", rows.Bytes: "encode(%s, 'hex')",
			rows.Date: "to_char(%s, 'YYYY-MM-DD')", rows.Timestamp: "to_char(%s, 'YYYY-MM-DD HH24:MI:SS.US')",
		},
	}
	if f == redshift {
		// date_part has no epoch there and reads the fields of a timestamp differently; DATEDIFF counts the
		// microseconds. A plain numeric has 18 digits.
		d.TimeNumber = "DATEDIFF(microsecond, CAST('1970-01-01' AS timestamp), %s)"
		d.Decimal = "decimal(38, 0)"
		d.Reads = map[rows.Type]string{rows.Decimal: "CAST(%s AS text)"}
		d.Hex = false
	}
	return d
}

// columnType returns the server's type for a column. Timestamps have no time zone: the session's would shift them.
func (f flavour) columnType(c rows.Column) string {
	switch c.Type {
	case rows.Int64:
		return "bigint"
	case rows.Date:
		return "date"
	case rows.Timestamp:
		return "timestamp without time zone"
	case rows.Decimal:
		return fmt.Sprintf("numeric(%d,%d)", c.Digits, c.Scale)
	case rows.Bytes:
		if f == redshift {
			return fmt.Sprintf("varbyte(%d)", max(c.MaxBytes, 1))
		}
		return "bytea"
	default:
		if f == redshift { // its text is a varchar of 256 bytes; lengths count bytes
			return fmt.Sprintf("character varying(%d)", max(c.Declared, c.MaxBytes, 1))
		}
		return "text"
	}
}
