package postgres_test

import (
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/sink"
)

// copyCases are options of COPY, with the rows that a real server makes of a text: TestCopyCountsAsServers asks it.
var copyCases = []struct {
	options, text string
	rows          int64
}{
	{"", "1\ta\n2\tb\n", 2},
	{"", "1\ta\\\nb\n2\t\\\\\n3\t\\N\n", 3},
	{"", "1\ta\n\\.\n2\tb\n", 1},
	{"", "1\ta\r\n2\tb\r\n", 2},
	{"WITH DELIMITER AS E'\\t' NULL AS 'csv'", "1\t\"a\n2\tb\"\n", 2},
	{"(HEADER, FORMAT text)", "a\tb\n2\tb", 1},
	{"CSV", "1,\"a\nb\"\n2,\"c\"\"\n\"\"d\"\n3,x\"y\nz\"\n", 3},
	{"(FORMAT csv, HEADER true, FORCE_NULL (a, b))", "a,b\n1,\"\\.\n\"\n", 1},
	{"WITH CSV HEADER QUOTE AS '''' ESCAPE AS '\\'", "a,b\n1,'a\\'\nb'\n2,'\\\\'\n", 2},
	{"WITH (FORMAT 'csv', HEADER off, DELIMITER '|', ENCODING 'UTF8')", "1|\"\n|\"\n2|\n", 2},
	{"(FORMAT csv, QUOTE E'\\b', DELIMITER E'\\t', NULL '')", "1\t\"\n2\t\"\n", 2},
}

func TestCopyFormats(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	var all int64
	for _, one := range copyCases {
		tag, err := c.CopyFrom(t.Context(), strings.NewReader(one.text), "COPY t (a, b) FROM STDIN "+one.options)
		require.NoError(t, err, one.options)
		require.Equal(t, one.rows, tag.RowsAffected(), "%s: %q", one.options, one.text)
		all += one.rows
	}
	require.Equal(t, all, s.Stats().Rows)
	for options, state := range map[string]string{"CSV": "22P04", "(FORMAT csv, HEADER) WHERE a > 1": "0A000", "CSV QUOTE 'ab'": "0A000"} {
		_, err := c.CopyFrom(t.Context(), strings.NewReader("1,\"a\n"), "COPY t FROM STDIN "+options)
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, options)
		require.Equal(t, state, refused.Code, options)
	}
	require.Equal(t, all, s.Stats().Rows, "what was refused does not count")
	tag, err := connect(t, listen(t, sink.Options{NoCount: true, RowBytes: 2})).CopyFrom(t.Context(), strings.NewReader("1\n"), "COPY t FROM STDIN WHERE a > 1")
	require.NoError(t, err, "where nothing is counted, nothing is refused")
	require.EqualValues(t, 1, tag.RowsAffected())
	tag, err = c.CopyFrom(t.Context(), strings.NewReader(string(tuples(3, 10))), "COPY BINARY t FROM STDIN")
	require.NoError(t, err)
	require.EqualValues(t, 3, tag.RowsAffected())
}

func TestCopyCountsAsServers(t *testing.T) {
	target, is := os.LookupEnv("TERAPUSH_TEST_POSTGRES")
	if !is && os.Getenv("CI") != "" {
		t.Fatal("TERAPUSH_TEST_POSTGRES is not set")
	}
	if !is {
		t.Skip("TERAPUSH_TEST_POSTGRES is not set")
	}
	c, err := pgconn.Connect(t.Context(), target)
	require.NoError(t, err)
	defer c.Close(t.Context())
	exec1(t, c, "CREATE TEMPORARY TABLE sink_counts (a TEXT, b TEXT)")
	for _, one := range copyCases {
		tag, err := c.CopyFrom(t.Context(), strings.NewReader(one.text), "COPY sink_counts FROM STDIN "+one.options)
		require.NoError(t, err, one.options)
		require.Equal(t, one.rows, tag.RowsAffected(), "%s: %q", one.options, one.text)
	}
}

func TestUnknownFormatsAreRefused(t *testing.T) {
	s := listen(t, sink.Options{})
	c := connect(t, s)
	for _, statement := range []string{
		"INSERT INTO t SELECT generate_series(1, 100)", "WITH v AS (VALUES (1), (2)) INSERT INTO t SELECT * FROM v",
		"MERGE INTO t USING s ON t.a = s.a WHEN NOT MATCHED THEN DO NOTHING",
	} {
		_, err := c.Exec(t.Context(), statement).ReadAll()
		var refused *pgconn.PgError
		require.ErrorAs(t, err, &refused, statement)
		require.Equal(t, "0A000", refused.Code)
	}
	require.Zero(t, s.Stats().Rows)
	require.Equal(t, "INSERT 0 2", exec1(t, c, "WITH x AS (SELECT 1) INSERT INTO t VALUES (1), (2)").CommandTag.String())
}
