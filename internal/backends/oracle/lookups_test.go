package oracle

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/sqlload"
)

// dictionaryOfTwo are the views, as far as lookups asks them, of table C, to which O refers, and of a materialized view.
const dictionaryOfTwo = `
CREATE TABLE all_indexes (owner text, index_name text, index_type text, table_owner text, table_name text, uniqueness text);
CREATE TABLE all_ind_columns (index_owner text, index_name text, column_name text, column_position int);
CREATE TABLE all_constraints (owner text, constraint_name text, constraint_type text, table_name text, r_owner text,
	r_constraint_name text, status text, index_owner text, index_name text, search_condition_vc text);
CREATE TABLE all_cons_columns (owner text, constraint_name text, column_name text, position int);
CREATE TABLE all_triggers (owner text, trigger_name text, triggering_event text, table_owner text, table_name text, status text);
CREATE TABLE all_part_tables (owner text, table_name text, partitioning_type text);
CREATE TABLE all_part_key_columns (owner text, name text, object_type text, column_name text, column_position int);
CREATE TABLE all_tables (owner text, table_name text, num_rows numeric, temporary text, nested text, secondary text, dropped text);
CREATE TABLE all_mviews (owner text, container_name text);
CREATE TABLE all_external_tables (owner text, table_name text);
CREATE FUNCTION nvl(text, text) RETURNS text LANGUAGE sql AS 'SELECT COALESCE($1, $2)';
CREATE FUNCTION nvl(numeric, integer) RETURNS numeric LANGUAGE sql AS 'SELECT COALESCE($1, $2)';
INSERT INTO all_tables VALUES ('S', 'C', 5, 'N', 'NO', 'N', 'NO'), ('S', 'O', NULL, 'N', 'NO', 'N', 'NO'), ('S', 'V', 1, 'N', 'NO', 'N', 'NO');
INSERT INTO all_mviews VALUES ('S', 'V');
INSERT INTO all_constraints VALUES ('S', 'PK_C', 'P', 'C', NULL, NULL, 'ENABLED', NULL, 'IX_C', NULL),
	('S', 'PK_O', 'P', 'O', NULL, NULL, 'ENABLED', 'S', 'IX_O', NULL), ('S', 'FK_O', 'R', 'O', 'S', 'PK_C', 'ENABLED', NULL, NULL, NULL),
	('S', 'CK', 'C', 'O', NULL, NULL, 'ENABLED', NULL, NULL, 'A > 1'), ('S', 'OFF', 'C', 'O', NULL, NULL, 'DISABLED', NULL, NULL, 'A > 2');
INSERT INTO all_cons_columns VALUES ('S', 'PK_C', 'ID', 1), ('S', 'PK_O', 'X', 1), ('S', 'PK_O', 'Y', 2), ('S', 'FK_O', 'CID', 1);
INSERT INTO all_indexes VALUES ('S', 'IX_C', 'NORMAL', 'S', 'C', 'UNIQUE'), ('S', 'IX_O', 'NORMAL', 'S', 'O', 'NONUNIQUE'),
	('S', 'UX', 'FUNCTION-BASED NORMAL', 'S', 'O', 'UNIQUE'), ('S', 'PLAIN', 'NORMAL', 'S', 'O', 'NONUNIQUE');
INSERT INTO all_ind_columns VALUES ('S', 'IX_C', 'ID', 1), ('S', 'IX_O', 'X', 1), ('S', 'IX_O', 'Y', 2), ('S', 'UX', 'SYS_NC00005$', 1), ('S', 'PLAIN', 'Z', 1);
INSERT INTO all_triggers VALUES ('S', 'TR', 'INSERT OR UPDATE', 'S', 'O', 'ENABLED'), ('S', 'TU', 'UPDATE', 'S', 'O', 'ENABLED');
INSERT INTO all_part_tables VALUES ('S', 'O', 'RANGE');
INSERT INTO all_part_key_columns VALUES ('S', 'O', 'TABLE', 'Y', 1);`

// withAlias gives a view in a question the name that PostgreSQL wants.
var withAlias = regexp.MustCompile(`\) (WHERE \w+_owner =)`)

// The questions are valid, and answered as the stand-in answers them, which evaluates no SQL: about one table, and about all.
func TestLookups(t *testing.T) {
	conn, exec := connectLikeOracle(t)
	exec(dictionaryOfTwo)
	ask := func(question, of, table string) (all []string) {
		question = strings.NewReplacer("$of ", of, "$schema", "'S'", "$table", table,
			"LISTAGG(k.column_name, ', ') WITHIN GROUP (ORDER BY k.column_position)", "STRING_AGG(k.column_name, ', ' ORDER BY k.column_position)",
		).Replace(question)
		found, err := sqlload.Rows(t.Context(), conn, withAlias.ReplaceAllString(question, ") q $1"))
		require.NoError(t, err)
		for _, row := range found {
			all = append(all, strings.Join(row, "|"))
		}
		return all
	}
	for question, want := range map[string][]string{
		lookups.Keys:       {"C|IX_C|PRIMARY KEY|ID||0", "O|IX_O|PRIMARY KEY|X||0", "O|IX_O|PRIMARY KEY|Y||0", "O|UX|UNIQUE||an expression|0"},
		lookups.References: {"O|FK_O|CID|S|C|ID"},
		lookups.Checks:     {"O|A > 1"},
		lookups.Costs: {
			`O|foreign key|FK_O|ALTER TABLE "S"."O" DISABLE CONSTRAINT "FK_O"`, `O|index|PLAIN|DROP INDEX "S"."PLAIN"`,
			`O|index|UX|DROP INDEX "S"."UX"`, `O|trigger|TR|ALTER TRIGGER "S"."TR" DISABLE`,
		},
		lookups.Partitions: {"O|RANGE (Y)"},
		lookups.Rows:       {"C|5", "O|0", "V|1"},
	} {
		assert.Equal(t, want, ask(question, "table_name, ", "table_name"))
		var of []string
		for _, row := range want {
			if rest, is := strings.CutPrefix(row, "O|"); is {
				of = append(of, rest)
			}
		}
		assert.Equal(t, of, ask(question, "", "'O'"))
	}
	assert.Equal(t, []string{"C", "O"}, ask(lookups.Tables, "", ""))
}
