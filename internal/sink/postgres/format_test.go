package postgres_test

import (
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
	"github.com/terapush/terapush/internal/sink/sinktest"
)

// copyCases are options of COPY, with the rows that a real server makes of a text.
var copyCases = []struct {
	options, text string
	rows          int64
}{
	{"", "1\ta\n2\tb\n", 2},
	{"", "1\ta\\\nb\n2\t\\\\\n3\t\\N\n", 3},
	{"", "1\ta\n\\.\n2\tb\n", 1},
	{"", "1\ta\r\n2\tb\r\n", 2},
	{"WITH DELIMITER E'\\t' NULL 'csv'", "1\t\"a\n2\tb\"\n", 2},
	{"(HEADER, FORMAT text)", "a\tb\n2\tb", 1},
	{"CSV", "1,\"a\nb\"\n2,\"c\"\"\n\"\"d\"\n3,x\"y\nz\"\n", 3},
	{"(FORMAT csv, HEADER true)", "a,b\n1,\"\\.\n\"\n", 1},
	{"WITH CSV HEADER QUOTE '''' ESCAPE '\\'", "a,b\n1,'a\\'\nb'\n2,'\\\\'\n", 2},
	{"WITH (FORMAT 'csv', HEADER off, DELIMITER '|', ENCODING 'UTF8')", "1|\"\n|\"\n2|\n", 2},
	{"(FORMAT csv, QUOTE E'\\b', DELIMITER E'\\t', NULL '')", "1\t\"\n2\t\"\n", 2},
}

func TestCopyCounts(t *testing.T) {
	for name, c := range map[string]*pgconn.PgConn{"the sink": connect(t, listen(t, sink.Options{})), "PostgreSQL": nil} {
		t.Run(name, func(t *testing.T) {
			if c == nil {
				var err error
				c, err = pgconn.Connect(t.Context(), sinktest.Env(t, "TERAPUSH_TEST_POSTGRES"))
				require.NoError(t, err)
				defer c.Close(t.Context())
			}
			exec1(t, c, "CREATE TEMPORARY TABLE sink_counts (a TEXT, b TEXT)")
			for _, one := range copyCases {
				rows, err := copyIn(t, c, "COPY sink_counts (a, b) FROM STDIN "+one.options, one.text)
				require.NoError(t, err, one.options)
				require.Equal(t, one.rows, rows, "%s: %q", one.options, one.text)
			}
		})
	}
}

func TestWhatCannotBeCountedIsRefused(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	for options, state := range map[string]string{"CSV": "22P04", "(FORMAT csv, HEADER) WHERE a > 1": "0A000", "CSV QUOTE 'ab'": "0A000",
		"(FORMAT csv, FORCE_NULL (a))": "0A000", "DELIMITER $$,$$": "0A000"} {
		_, err := copyIn(t, c, "COPY t FROM STDIN "+options, "1,\"a\n")
		refused(t, err, state, options)
	}
	for _, statement := range []string{
		"INSERT INTO t SELECT generate_series(1, 100)", "WITH v AS (VALUES (1), (2)) INSERT INTO t SELECT * FROM v",
		"MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN DO NOTHING", "COPY t TO STDOUT",
		"WITH x AS (SELECT 1) INSERT INTO t VALUES (1), (2)", "INSERT INTO t VALUES ($$a$$)", "INSERT INTO t DEFAULT VALUES",
	} {
		_, err := c.Exec(t.Context(), statement).ReadAll()
		refused(t, err, "0A000", statement)
	}
	require.Zero(t, s.Stats().Rows)
	rows, err := copyIn(t, connect(t, listen(t, sink.Options{NoCount: true, RowBytes: 2})), "COPY t FROM STDIN WHERE a > 1", "1\n")
	require.NoError(t, err, "where nothing is counted, nothing is refused")
	require.EqualValues(t, 1, rows)
}
