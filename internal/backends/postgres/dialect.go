package postgres

import (
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// dialect returns the flavour's SQL.
//
// Microseconds since 1970 are whole seconds plus their fraction. date_part returns floating point, which holds both
// exactly. So did EXTRACT before PostgreSQL 14, and an EXTRACT of the whole loses microseconds in distant centuries.
func (f flavour) dialect() sqlload.Dialect {
	d := sqlload.Dialect{
		Types: types, AtomicDDL: true, Hex: true,
		Quote: `"`, Divide: "%s / %d", TextNumber: "CAST(%s AS bigint)", Decimal: "numeric", Leading: true,
		HexNumber: "CAST(CAST('x0' || RIGHT(%s, 15) AS bit(64)) AS bigint)", UUIDText: "CAST(%s AS text)",
		TimeNumber: "(CAST(date_part('epoch', date_trunc('second', %[1]s)) AS bigint) * 1000000" +
			" + CAST(date_part('microseconds', %[1]s) AS bigint) %% 1000000)",
		Tuples:      "(VALUES %s)", // of ten thousand conditions it makes ten thousand scans of an index
		TimeLiteral: "CAST('%s' AS timestamp)", MomentLiteral: "CAST('%s+00' AS timestamp with time zone)",
	}
	if f == yugabyteDB { // rows in key order would all go to one tablet
		d.FirstInKey = " HASH"
	}
	if f == redshift {
		// date_part has no epoch there and reads the fields of a timestamp differently; DATEDIFF counts the
		// microseconds. A plain numeric has 18 digits.
		d.TimeNumber = "DATEDIFF(microsecond, CAST('1970-01-01' AS timestamp), %s)"
		d.Decimal = "decimal(38, 0)"
		d.HexNumber, d.UUIDText = "STRTOL(RIGHT(%s, 15), 16)", "" // a UUID is a text there
		d.Types, d.Keys = redshiftTypes, sqlload.NoKeys
		d.Hex, d.Tuples = false, ""
	}
	return d
}

// types are PostgreSQL's and YugabyteDB's. Binary COPY converts nothing, so a column is of the very type. Timestamps
// have no time zone unless they are moments: the session's would shift them. What is read is independent of the
// session's settings. JSON is jsonb, in whose binary form it is sent; a column of type json takes it by
// rows.Column.SQL.
var types = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", SQL: "bigint"},
	{Ours: rows.Int32, Name: "integer", SQL: "integer"},
	{Ours: rows.Date, Name: "date", SQL: "date", Read: "to_char(%s, 'YYYY-MM-DD')"},
	{
		Ours: rows.Timestamp, Name: "timestamp without time zone", SQL: "timestamp(%d) without time zone", Most: 5,
		Fits: sqlload.SecondDigits(rows.SecondDigits), Read: readTimestamp,
	},
	{
		Ours: rows.Timestamp, Name: "timestamp without time zone", SQL: "timestamp without time zone",
		Fits: sqlload.SecondDigits(rows.SecondDigits), Read: readTimestamp,
	},
	{Ours: rows.Decimal, Name: "numeric", SQL: "numeric(%d,%d)", Fits: sqlload.AnyScale, Read: "CAST(%s AS text)"},
	{Ours: rows.Wide, Name: "numeric", SQL: "numeric(%d,%d)", Fits: sqlload.AnyScale, Read: "CAST(%s AS text)"},
	// Unsigned integers, which PostgreSQL does not have, are the next wider ones.
	{Ours: rows.Uint16, Name: "integer", SQL: "integer"},
	{Ours: rows.Uint32, Name: "bigint", SQL: "bigint"},
	{Ours: rows.Uint64, Name: "numeric", SQL: "numeric(20)", Fits: sqlload.WholeNumber(20), Read: "CAST(%s AS text)"},
	{
		Ours: rows.Time, Name: "time without time zone", SQL: "time(%d) without time zone", Most: 5,
		Fits: sqlload.SecondDigits(rows.SecondDigits), Read: "CAST(%s AS text)",
	},
	{
		Ours: rows.Time, Name: "time without time zone", SQL: "time without time zone",
		Fits: sqlload.SecondDigits(rows.SecondDigits), Read: "CAST(%s AS text)",
	},
	{Ours: rows.Bytes, Name: "bytea", SQL: "bytea", Read: "encode(%s, 'hex')"},
	{Ours: rows.Text, Name: "text", SQL: "text"},
	{Ours: rows.Text, Name: "character varying", Fits: sqlload.LongEnough},
	{Ours: rows.Int16, Name: "smallint", SQL: "smallint"},
	{Ours: rows.Bool, Name: "boolean", SQL: "boolean"},
	{Ours: rows.Float64, Name: "double precision", SQL: "double precision", Read: floatBits},
	{Ours: rows.Float32, Name: "real", SQL: "real", Read: floatBits},
	{Ours: rows.UUID, Name: "uuid", SQL: "uuid"},
	{Ours: rows.JSON, Name: "jsonb", SQL: "jsonb", Read: "CAST(%s AS text)"},
	{Ours: rows.Char, Name: "character", SQL: "character(%d)", Fits: sqlload.LongEnough, Read: "CAST(%s AS text)"},
	{Ours: rows.Char, Name: "text", Also: []string{"character varying"}, Fits: sqlload.LongEnough},
	{Ours: rows.Enum, Name: "text", SQL: "text", Check: "%[1]s IN (%[2]s)", Read: "CAST(%s AS text)"},
	{Ours: rows.Enum, Name: "enum"},
	{Ours: rows.Enum, Name: "character varying", Fits: sqlload.LongEnough},
	{Ours: rows.Arrays, Name: "[]", SQL: "%s[]", Read: readArray},
	{Ours: rows.Float32s, Name: "vector", SQL: "vector(%d)", Most: 16_000, Fits: sqlload.SameDims, Read: "CAST(%s AS text)"}, // pgvector's
	{
		Ours: rows.TimestampTZ, Name: "timestamp with time zone", SQL: "timestamp(%d) with time zone", Most: 5,
		Fits: sqlload.SecondDigits(rows.SecondDigits), Read: readMoment,
	},
	{
		Ours: rows.TimestampTZ, Name: "timestamp with time zone", SQL: "timestamp with time zone",
		Fits: sqlload.SecondDigits(rows.SecondDigits), Read: readMoment,
	},
}

// Times are read with all their digits, whatever DateStyle is.
const (
	readTimestamp = "to_char(%s, 'YYYY-MM-DD HH24:MI:SS.US')"
	readMoment    = "to_char(%s AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US')"
)

// readArray reads the elements as columns are, and makes an array of texts of them.
const readArray = "CASE WHEN %[1]s IS NOT NULL THEN COALESCE((SELECT CAST(array_agg(CAST(%[2]s AS text) ORDER BY at) AS text) " +
	"FROM unnest(%[1]s) WITH ORDINALITY u(e, at)), '{}') END"

// floatBits reads a number by its bits, in hexadecimal: its text depends on extra_float_digits.
const floatBits = "'x' || encode(float8send(CAST(%s AS double precision)), 'hex')"

// redshiftTypes are Redshift's. Its text is a varchar of 256 bytes, and lengths count bytes. Of decimals with more digits
// no sum is exact, since a numeric has no more than 38. JSON is a text: a SUPER would write it in another form.
var redshiftTypes = sqlload.Types{
	{Ours: rows.Int64, Name: "bigint", SQL: "bigint"},
	{Ours: rows.Date, Name: "date", SQL: "date"},
	{
		Ours: rows.Timestamp, Name: "timestamp without time zone", SQL: "timestamp without time zone",
		Fits: sqlload.SecondDigits(rows.SecondDigits),
	},
	{Ours: rows.Decimal, Name: "numeric", SQL: "numeric(%d,%d)", Fits: sqlload.SameScale, Read: "CAST(%s AS text)"},
	{Ours: rows.Bytes, Name: "varbyte", SQL: "varbyte(%d)", Fits: sqlload.LongEnough},
	{Ours: rows.Text, Name: "character varying", SQL: "character varying(%d)", Fits: sqlload.LongEnough},
	{Ours: rows.Int32, Name: "integer", Also: []string{"bigint"}, SQL: "integer"},
	{Ours: rows.Int16, Name: "smallint", Also: []string{"integer", "bigint"}, SQL: "smallint"},
	{Ours: rows.Bool, Name: "boolean", SQL: "boolean"},
	{Ours: rows.Float64, Name: "double precision", SQL: "double precision"},
	{Ours: rows.UUID, Name: "character", Also: []string{"character varying"}, SQL: "character(36)", Fits: uuidLong},
	{Ours: rows.JSON, Name: "character varying", SQL: "character varying(%d)", Most: 65535, Fits: sqlload.LongEnough},
}

// uuidLong fits the text of a UUID.
func uuidLong(params []int, want rows.Column) bool {
	want.MaxBytes = len("00000000-0000-0000-0000-000000000000")
	return sqlload.LongEnough(params, want)
}
