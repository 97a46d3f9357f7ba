package postgres_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/backends/postgres"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const documentsTable = "CREATE TABLE %s (document_id bigint, payload bytea); "

func suspectsOf(t *testing.T, l loader.Loader) string {
	t.Helper()
	found, err := loader.FeaturesOf(l).Suspecter.Suspects(t.Context())
	require.NoError(t, err)
	return strings.Join(found, "\n")
}

// What changes, diverts or hides rows is named before the first one, and for the error of a count that differs.
func TestEffects(t *testing.T) {
	const function = "CREATE FUNCTION $s.f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'; "
	for name, c := range map[string]struct {
		given, method string
		want          string // "" is nothing, of $t
		effect, fix   string
	}{
		"nothing": {method: "copy"},
		"a trigger before each row": {
			function + "CREATE TRIGGER away BEFORE INSERT OR UPDATE ON $t FOR EACH ROW EXECUTE FUNCTION $s.f()", "copy",
			"trigger away", "may change rows, drop them or put them elsewhere", "ALTER TABLE $t DISABLE TRIGGER away",
		},
		"triggers that see no row before it is in": {
			function + "CREATE TRIGGER a AFTER INSERT ON $t FOR EACH ROW EXECUTE FUNCTION $s.f(); CREATE TRIGGER b BEFORE INSERT ON $t " +
				"EXECUTE FUNCTION $s.f(); CREATE TRIGGER c BEFORE UPDATE ON $t FOR EACH ROW EXECUTE FUNCTION $s.f()", "copy", "", "", "",
		},
		"a trigger that is off": {
			function + "CREATE TRIGGER away BEFORE INSERT ON $t FOR EACH ROW EXECUTE FUNCTION $s.f(); ALTER TABLE $t DISABLE TRIGGER away",
			"copy", "", "", "",
		},
		"a rule":           {"CREATE RULE away AS ON INSERT TO $t DO INSTEAD NOTHING", "insert", "rule away", "may do something else in place of an INSERT", "--method copy, which ignores it"},
		"a rule, and COPY": {"CREATE RULE away AS ON INSERT TO $t DO INSTEAD NOTHING", "copy", "", "", ""},
		"policies, of a table that is the user's own": {"ALTER TABLE $t ENABLE ROW LEVEL SECURITY; CREATE POLICY half ON $t USING (document_id < 5)", "insert", "", "", ""},
		"a policy": {
			"ALTER TABLE $t ENABLE ROW LEVEL SECURITY, OWNER TO CURRENT_USER; GRANT ALL ON $t TO $r; " +
				"CREATE POLICY half ON $t FOR SELECT USING (document_id < 5); CREATE POLICY others ON $t TO postgres; CREATE POLICY change ON $t FOR UPDATE",
			"insert", "policy half", "may hide rows", "load as a role with BYPASSRLS",
		},
	} {
		t.Run(name, func(t *testing.T) {
			to, schema, role := ordinary(t)
			table := `"` + schema + `"."documents"`
			known := strings.NewReplacer("$t", table, "$s", schema, "$r", role)
			sql(t, fmt.Sprintf(documentsTable, table)+"ALTER TABLE "+table+" OWNER TO "+role)
			sql(t, known.Replace("SELECT 1; "+c.given))
			to.Method = c.method
			i := intent(t)
			want := loader.Finding{}
			if c.want != "" {
				want = warn("triggers, policies", table+" has "+c.want+", which "+c.effect, known.Replace(c.fix))
			}
			i.Contract.Method, i.Advice = c.method, false
			found := slices.DeleteFunc(complaints(t, to, i), func(f loader.Finding) bool { return f.Check == "indexes, triggers" })
			backendtest.Only(t, want, found)

			l := prepared(t, to, i.Preparation)
			if c.want == "" {
				assert.Empty(t, suspectsOf(t, l))
				return
			}
			assert.Equal(t, fmt.Sprintf("%s of table %s, which %s (%s)", c.want, table, c.effect, known.Replace(c.fix)), suspectsOf(t, l))
		})
	}
}

// A COPY under row-level security is refused by the server; the finding names the policies.
func TestPoliciesThatRefuseCopy(t *testing.T) {
	to, _, role := ordinary(t)
	sql(t, fmt.Sprintf(documentsTable, to.Table)+fmt.Sprintf("GRANT ALL ON %[1]s TO %[2]s; ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY; "+
		"CREATE POLICY half ON %[1]s USING (true)", to.Table, role))
	found := complaints(t, to, intent(t))
	require.NotEmpty(t, found)
	assert.Contains(t, found[0].Found, "has row-level security for user "+role+" (policies: half), under which COPY is refused")
}

// The server names a policy that refuses a row only if it is restrictive.
func TestPolicyRefusesRows(t *testing.T) {
	to, _, role := ordinary(t)
	sql(t, fmt.Sprintf(documentsTable, to.Table)+fmt.Sprintf("GRANT ALL ON %[1]s TO %[2]s; ALTER TABLE %[1]s ENABLE ROW LEVEL SECURITY; "+
		"CREATE POLICY half ON %[1]s USING (true) WITH CHECK (document_id < 5)", to.Table, role))
	to.Method = "insert"
	p := preparation(t, loader.CreateIfMissing)
	p.Contract = contract("insert", batch.PGValues)
	l := prepared(t, to, p)
	b := backendtest.Batch(t, documents(t), batch.PGValues, batch.ID{Run: "run-1"}, 0, 10)
	b.Hold()
	_, err := backendtest.Session(t, l, p.Contract).Load(t.Context(), b)
	assert.Equal(t, loader.ClassPermission, postgres.New().Classify(err).Class)
	assert.Contains(t, loader.Explain(err), "a policy of row-level security refuses the rows")
	assert.Contains(t, suspectsOf(t, l), "policy half of table")
}

// New tables of a database that is published stop a subscriber that lacks them. Without one it is a warning.
func TestPublications(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE PUBLICATION pub_"+schema+" FOR TABLES IN SCHEMA "+schema)
	t.Cleanup(func() { sql(t, "DROP PUBLICATION IF EXISTS pub_"+schema) })
	both := fmt.Sprintf(`publication pub_%s takes up what the run makes, "%[1]s"."documents" and "%[1]s"."terapush_claims"`, schema)
	backendtest.Only(t, warn("publication", both, "name a schema that is not published"), complaints(t, to, intent(t)))

	// A table that is there is what the publication is for, and stays it when it is made again.
	sql(t, fmt.Sprintf(documentsTable, to.Table)+"COMMENT ON TABLE "+to.Table+" IS 'made by terapush'")
	claims := fmt.Sprintf(`takes up what the run makes, "%[1]s"."terapush_claims" and "%[1]s"."terapush_runs"; nobody subscribes`, schema)
	for _, create := range []loader.CreateMode{loader.CreateIfMissing, loader.CreateRecreate} {
		i := intent(t)
		i.Create = create
		backendtest.Only(t, warn("publication", claims, "or --delivery at-least-once"), complaints(t, to, i))
	}
	i := intent(t)
	i.Contract.Delivery, i.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	backendtest.Only(t, loader.Finding{}, complaints(t, to, i))

	// Unlogged tables are in no publication.
	sql(t, "DROP TABLE "+to.Table)
	to.Options = options("unlogged", "true")
	backendtest.Only(t, loader.Finding{}, complaints(t, to, intent(t)))
}

// A load does not move the sequence that other programs take their keys from.
func TestSequences(t *testing.T) {
	for name, column := range map[string]string{
		"serial":    "bigserial",
		"identity":  "bigint GENERATED BY DEFAULT AS IDENTITY",
		"always":    "bigint GENERATED ALWAYS AS IDENTITY",
		"a default": "bigint DEFAULT nextval('%s')",
		"nothing":   "bigint",
		"downwards": "bigint GENERATED BY DEFAULT AS IDENTITY (INCREMENT -1)",
	} {
		t.Run(name, func(t *testing.T) {
			to := target(t)
			schema, _, _ := strings.Cut(to.Table, ".")
			own := schema + ".own"
			column = strings.ReplaceAll(column, "%s", own)
			sql(t, "CREATE SEQUENCE "+own+"; CREATE TABLE "+to.Table+" (document_id "+column+", payload bytea DEFAULT 'x')")
			l := prepared(t, to, preparation(t, loader.CreateIfMissing))
			can := loader.FeaturesOf(l).Sequencer
			found, err := can.Sequences(t.Context(), 1099, false)
			require.NoError(t, err)
			if name == "nothing" || name == "downwards" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Regexp(t, `^SELECT setval\('"`+schema+`"\."\w+"', GREATEST\(last_value, 1099\)\) FROM "`+schema+`"\."\w+"$`, found[0])
			late, sequence := found[0], found[0][strings.LastIndex(found[0], " ")+1:]
			next := func() string {
				return sql(t, "INSERT INTO "+to.Table+" VALUES (DEFAULT) RETURNING document_id")[0][0]
			}
			assert.Equal(t, "1", next())
			_, err = can.Sequences(t.Context(), 1099, true)
			require.NoError(t, err)
			assert.Equal(t, "1100", next())
			found, err = can.Sequences(t.Context(), 1099, true)
			require.NoError(t, err)
			assert.Empty(t, found, "it is behind the rows")

			sql(t, "SELECT setval('"+sequence+"', 5000)")
			sql(t, late)
			assert.Equal(t, "5001", next(), "a statement that comes late moves nothing back")
		})
	}
}

// A copy made by LIKE takes its keys from the sequence of its model, which is not the run's to move.
func TestSequenceOfAnotherTable(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	model := schema + ".model"
	sql(t, "CREATE TABLE "+model+" (document_id bigserial, payload bytea); CREATE TABLE "+to.Table+" (LIKE "+model+" INCLUDING ALL)")
	l := prepared(t, to, preparation(t, loader.CreateIfMissing))
	_, err := loader.FeaturesOf(l).Sequencer.Sequences(t.Context(), 1099, false)
	require.ErrorContains(t, err, "numbers the key and belongs to table "+model+", so rows without a key get its numbers; "+
		`for numbers of its own: ALTER TABLE "`+schema+`".`)
	_, fix, _ := strings.Cut(err.Error(), "for numbers of its own: ")
	sql(t, fix)
	require.Equal(t, "1100", sql(t, "INSERT INTO "+to.Table+" DEFAULT VALUES RETURNING document_id")[0][0])
}

// The serial columns of a table that is made like another have numbers of their own, and the original can be dropped.
func TestCopyHasItsOwnNumbers(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, "CREATE SEQUENCE "+schema+".shared; CREATE TABLE "+schema+".model (document_id bigserial, payload bytea, \"No\" serial, "+
		"of int NOT NULL DEFAULT nextval('"+schema+".shared'))")
	p := preparation(t, loader.CreateIfMissing)
	p.Like = loader.TableName{Schema: schema, Name: "model"}
	l := prepared(t, to, p)
	moves, err := loader.FeaturesOf(l).Sequencer.Sequences(t.Context(), 1099, true)
	require.NoError(t, err)
	require.Len(t, moves, 1)
	sql(t, "INSERT INTO "+schema+".model DEFAULT VALUES; DROP TABLE "+schema+".model")
	row := sql(t, "INSERT INTO "+to.Table+" DEFAULT VALUES RETURNING document_id, \"No\", of")
	require.Equal(t, []string{"1100", "1", "2"}, row[0])
}

func TestDescribeAll(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, `SET search_path TO `+schema+`;
		CREATE TYPE mood AS ENUM ('glad', 'sad');
		CREATE TABLE "A b" (id bigserial PRIMARY KEY, a int NOT NULL, b text DEFAULT 'x' CHECK (length(b) < 9), UNIQUE (a, b));
		CREATE TABLE c (x int, y mood, z numeric(9, 2)[], r bigint REFERENCES "A b", e int GENERATED ALWAYS AS (x + 1) STORED);
		CREATE UNIQUE INDEX c_some ON c (x) WHERE x > 5; CREATE INDEX c_y ON c (abs(x));
		CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
		CREATE TRIGGER t BEFORE INSERT ON c FOR EACH ROW EXECUTE FUNCTION f();
		CREATE TABLE p (id int NOT NULL) PARTITION BY RANGE (id); CREATE TABLE p1 PARTITION OF p FOR VALUES FROM (0) TO (9);
		CREATE TABLE heir () INHERITS (c);
		CREATE TABLE empty (); CREATE MATERIALIZED VIEW m AS SELECT 1; CREATE VIEW v AS SELECT 1`)
	unfit := backendtest.DescribedAlike(t, schema, []string{"A b", "c", "heir", "p"}, func(table string) loader.Loader {
		to.Table = schema + "." + table
		return backendtest.Open(t, postgres.New(), to, backendtest.Deps())
	})
	require.Equal(t, map[string]string{"empty": "it has no columns", "m": "it is a materialized view", "v": "it is a view"}, unfit)
}

// A partitioned table takes what one of its partitions takes; a foreign key to it is one, however many these are.
func TestDescribePartitions(t *testing.T) {
	to := target(t)
	schema, _, _ := strings.Cut(to.Table, ".")
	sql(t, `SET search_path TO `+schema+`;
		CREATE TABLE r (id int PRIMARY KEY) PARTITION BY RANGE (id);
		CREATE TABLE r1 PARTITION OF r FOR VALUES FROM (0) TO (9); CREATE TABLE r2 PARTITION OF r FOR VALUES FROM (9) TO (MAXVALUE);
		CREATE TABLE gap (day date) PARTITION BY RANGE (day);
		CREATE TABLE g1 PARTITION OF gap FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
		CREATE TABLE g2 PARTITION OF gap FOR VALUES FROM ('2025-03-01') TO ('2025-04-01');
		CREATE TABLE list (a text) PARTITION BY LIST (a);
		CREATE TABLE l1 PARTITION OF list FOR VALUES IN ('x', 'it''s'); CREATE TABLE l2 PARTITION OF list FOR VALUES IN ('y');
		CREATE TABLE rest (a text) PARTITION BY LIST (a); CREATE TABLE o1 PARTITION OF rest DEFAULT;
		CREATE TABLE months (m timestamptz) PARTITION BY RANGE (date_trunc('month', m AT TIME ZONE 'UTC'));
		CREATE TABLE m1 PARTITION OF months FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
		CREATE TABLE local (m timestamptz) PARTITION BY RANGE (date_trunc('month', m AT TIME ZONE 'Asia/Tokyo'));
		CREATE TABLE n1 PARTITION OF local FOR VALUES FROM ('2025-01-01') TO ('2025-02-01');
		CREATE TABLE years ("Day" date) PARTITION BY RANGE (extract(year FROM "Day"));
		CREATE TABLE y1 PARTITION OF years FOR VALUES FROM (2024) TO (2025); CREATE TABLE y2 PARTITION OF years FOR VALUES FROM (2025) TO (2026);
		CREATE TABLE two (d date, a text) PARTITION BY RANGE (d);
		CREATE TABLE t25 PARTITION OF two FOR VALUES FROM ('2025-01-01') TO ('2026-01-01') PARTITION BY LIST (a);
		CREATE TABLE t25x PARTITION OF t25 FOR VALUES IN ('x', 'y');
		CREATE TABLE t26 PARTITION OF two FOR VALUES FROM ('2026-01-01') TO ('2027-01-01') PARTITION BY LIST (a);
		CREATE TABLE t26x PARTITION OF t26 FOR VALUES IN ('x', 'y');
		CREATE TABLE child (r int REFERENCES r)`)
	to.Table = schema + ".child"
	all, err := loader.FeaturesOf(backendtest.Open(t, postgres.New(), to, backendtest.Deps())).Describer.DescribeAll(t.Context(), schema)
	require.NoError(t, err)
	checks := map[string][]string{}
	for _, d := range all {
		checks[d.Table] = d.Checks
	}
	require.Equal(t, map[string][]string{
		"r": {"CHECK (id >= 0 AND id < MAXVALUE)"}, "gap": nil, "list": {"CHECK (a IN ('x', 'it''s', 'y'))"}, "rest": nil, "child": nil,
		"months": {"CHECK (m >= '2025-01-01 00:00:00' AND m < '2025-02-01 00:00:00')"}, "local": nil,
		"two":   {"CHECK (a IN ('x', 'y'))", "CHECK (d >= '2025-01-01' AND d < '2027-01-01')"},
		"years": {`CHECK ("Day" >= '2024-01-01' AND "Day" < '2026-01-01')`},
	}, checks)
	require.Len(t, all[0].References, 1)
	require.Equal(t, []string{"foreign key child_r_fkey"}, all[0].Costs)
}
