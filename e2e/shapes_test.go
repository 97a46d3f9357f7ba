package e2e_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shapesTable has a column of each kind, of 100,000 rows. %s are the types of a time and of a truth value, and the time of a
// number of seconds.
const (
	shapesTable = `CREATE TABLE shapes_o (id bigint PRIMARY KEY, skew int NOT NULL, word varchar(60) NOT NULL, closed %s NULL,
		amount decimal(12,2) NOT NULL, ok boolean NOT NULL, kind varchar(9) NOT NULL CHECK (kind IN ('open', 'shut')))`
	shapesRows = `INSERT INTO shapes_o
		WITH d AS (SELECT 0 AS n UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
			UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
		s AS (SELECT a.n + 10*b.n + 100*c.n + 1000*d.n + 10000*e.n AS i FROM d a, d b, d c, d, d e),
		u AS (SELECT i, MOD(i*7919, 100003)/100003.0 AS a, MOD(i*1237, 100003)/100003.0 AS b, MOD(i*4519, 100003)/100003.0 AS c,
			MOD(i*9973, 100003)/100003.0 AS d, MOD(i*2749, 100003)/100003.0 AS e FROM s)
		SELECT i + 1, FLOOR(5000*POWER(a, 6)),
			CASE WHEN b < 0.4 THEN 'paid in full' WHEN b < 0.6 THEN 'o' WHEN b < 0.7 THEN 'secret'
				ELSE CONCAT('order ', MOD(i, 5000), ' of customer ', MOD(i, 5000)*MOD(i, 5000)) END,
			CASE WHEN c < 0.3 THEN NULL ELSE %s END, CAST(EXP(2 + 6*d) AS decimal(12,2)), e < 0.03,
			CASE WHEN a < 0.9 THEN 'open' ELSE 'shut' END
		FROM u`
)

// shapesOf is what the servers say in ways of their own.
var shapesOf = map[kind]struct {
	time, seconds, analyze, explain string
	estimate                        *regexp.Regexp
}{
	postgres: {
		"timestamp with time zone", "TIMESTAMP '2024-01-01 00:00:00' + INTERVAL '1' SECOND * FLOOR(30000000*SQRT(a))", "ANALYZE %s",
		"EXPLAIN ", regexp.MustCompile(` rows=(\d+)`),
	},
	mySQL: {
		"datetime", "TIMESTAMPADD(SECOND, FLOOR(30000000*SQRT(a)), '2024-01-01')",
		"ANALYZE TABLE %s UPDATE HISTOGRAM ON skew, word, closed, amount, ok, kind WITH 100 BUCKETS",
		"EXPLAIN FORMAT=TREE ", regexp.MustCompile(` rows=([0-9.e+]+)`),
	},
	mariaDB: {
		"datetime", "TIMESTAMPADD(SECOND, FLOOR(30000000*SQRT(a)), '2024-01-01')",
		"SET STATEMENT histogram_type = 'JSON_HB' FOR ANALYZE TABLE %s PERSISTENT FOR ALL",
		"EXPLAIN FORMAT=JSON ", regexp.MustCompile(`(?s)"rows": (\d+),.*"filtered": ([0-9.]+)`),
	},
}

// The planner takes a table of the same shapes for the original: what it expects of conditions differs by a factor of two at
// most. No text of the table leaves it, unless one asks for them.
func TestShapesOfATable(t *testing.T) {
	t.Parallel()
	onServers(t, []kind{postgres, mySQL, mariaDB}, func(t *testing.T, d *database) {
		own := shapesOf[d.kind]
		analyze := func(table string) {
			if d.kind == mySQL { // histograms have shares alone
				d.must(t, "ANALYZE TABLE "+table)
			}
			d.must(t, fmt.Sprintf(own.analyze, table))
		}
		d.must(t, fmt.Sprintf(shapesTable, own.time), fmt.Sprintf(shapesRows, own.seconds))
		analyze("shapes_o")

		shapes := run(t, "inspect", d.target(), "--table", "shapes_o", "--stats").ends(t, 0).stdout
		assert.Contains(t, shapes, "Shapes only: no text of that table is in this file.")
		assert.NotRegexp(t, "paid in full|secret|customer|order [0-9]", shapes)
		assert.Regexp(t, `ok: .*values: \{"true": [23]\.?\d*%, "false": 9[67]`, shapes)
		assert.Regexp(t, `kind: .*values: \{open: [89]\d(\.\d+)?%, shut: \d`, shapes)
		kept := run(t, "inspect", d.target(), "--table", "shapes_o", "--stats", "--keep-values").ends(t, 0).stdout
		assert.Contains(t, kept, `"paid in full": `)

		d.push("--like", "shapes_o", "--stats", "--table", "shapes_copy", "--rows", "100000").run(t).ends(t, 0)
		analyze("shapes_copy")
		expects := func(table, condition string) float64 {
			estimate := -1.0
			err := d.query(own.explain+"SELECT * FROM "+table+" WHERE "+condition, func(scan func(...any) error) error {
				var line string
				err := scan(&line)
				found := own.estimate.FindStringSubmatch(line)
				if found == nil || estimate >= 0 {
					return err
				}
				estimate, err = strconv.ParseFloat(found[1], 64)
				if len(found) > 2 {
					percent, _ := strconv.ParseFloat(found[2], 64)
					estimate *= percent / 100
				}
				return err
			})
			require.NoError(t, err, condition)
			require.GreaterOrEqual(t, estimate, 0.0, condition)
			return estimate
		}
		for _, condition := range []string{
			"skew = $1", "skew = $2", "skew < 3", "skew BETWEEN 100 AND 600", "skew > 3000",
			"word = $1", "word = $2", "word = $3",
			"closed IS NULL", "closed < '2024-04-01'", "closed BETWEEN '2024-06-01' AND '2024-07-01'", "closed > '2024-11-01'",
			"amount < 20", "amount BETWEEN 50 AND 90", "amount > 1500", "amount > 2500",
			"ok = true", "ok = false", "kind = 'shut'",
		} {
			original := expects("shapes_o", d.ranked(t, "shapes_o", condition))
			made := expects("shapes_copy", d.ranked(t, "shapes_copy", condition))
			t.Logf("%-50s %8.0f %8.0f", condition, original, made)
			const few = 30 // of 100,000 rows, too few for statistics of a sample
			most, least := max(original, made, few), max(min(original, made), few)
			assert.LessOrEqual(t, most, 2*least, "%s: %.0f and %.0f", condition, original, made)
		}
	})
}

// ranked puts the most common value of a column in the place of $1, the next in that of $2.
func (d *database) ranked(t *testing.T, table, condition string) string {
	column, _, _ := strings.Cut(condition, " ")
	for rank := range 3 {
		place := fmt.Sprintf("$%d", rank+1)
		if !strings.Contains(condition, place) {
			continue
		}
		var text string
		err := d.query(fmt.Sprintf("SELECT CONCAT(%s) FROM %s GROUP BY %s ORDER BY COUNT(*) DESC LIMIT 1 OFFSET %d", column, table, column, rank),
			func(scan func(...any) error) error { return scan(&text) })
		require.NoError(t, err)
		condition = strings.Replace(condition, place, "'"+text+"'", 1)
	}
	return condition
}
