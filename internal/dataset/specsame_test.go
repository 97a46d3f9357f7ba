package dataset

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// A column whose values come from another one's has room for all of them.
func TestDependentsFit(t *testing.T) {
	for columns, want := range map[string]string{
		`a: {type: "decimal(9,2)", uniform: {min: 0, max: 99999.99}}
  b: {type: "decimal(4,2)", same: a}`: "same: column a has values from 0.00 to 99999.99, which are not all decimal(4,2)",
		`a: {type: "decimal(9,2)", uniform: {min: -999.99, max: 1}}
  b: {type: "decimal(4,2)", after: {column: a, by: 1..2}}`: "after: by 1..2: 1.00 after -999.99 is below the smallest decimal",
		`a: {type: "decimal(9,2)", uniform: {min: -99.99, max: 99.99}}
  b: {type: "decimal(4,2)", same: a}`: "",
		`a: {type: boolean, values: [true, false]}
  b: {type: boolean, same: a}`: "",
	} {
		_, err := ParseSpec("t.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n  "+columns+"\n"), nil)
		if want == "" {
			require.NoError(t, err, columns)
			continue
		}
		require.ErrorContains(t, err, want)
	}
}

// What a server has of types is a type, and nothing else of a column's definition is.
func TestSQLTypes(t *testing.T) {
	for _, text := range []string{
		"inet", "tsvector", "numeric(20, 4)", "text[]", "int[][]", "public.mood", "timestamp(3) with time zone", "time without time zone",
		"character varying(40)", "double precision", "bigint unsigned", "bit varying(9)", "interval day to second", "DOUBLE PRECISION",
	} {
		require.True(t, isSQLType(text), text)
	}
	for _, text := range []string{
		"inet NOT NULL", "int AUTO_INCREMENT", "text PRIMARY KEY", "int GENERATED", "text CHECK(1)", "text INVISIBLE", "text COMMENT", "",
		"json AS", "varchar(9) ON", "int CONSTRAINT c", "int, x int", "text\n, x int", "text COLLATE x", "varchar(9) UNIQUE",
	} {
		require.False(t, isSQLType(text), text)
	}
}
