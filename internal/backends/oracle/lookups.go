package oracle

import (
	"github.com/terapush/terapush/pkg/sqlload"
)

// lookups are the questions about a table, of the Database Reference. Each column of an answer that others have the name
// of is renamed in a view of its own, since a question may be about all tables of a schema. What is a LONG there is not
// asked for, as the bodies of triggers and the bounds of partitions: it can neither be compared nor joined.
var lookups = sqlload.Lookups{
	StandIn: true,
	// An index on an expression, or a descending one, has a column with a name of the server's.
	Keys: "SELECT $of index_name, kind, CASE WHEN key_column NOT LIKE 'SYS@_NC%$' ESCAPE '@' THEN key_column END, " +
		"CASE WHEN key_column LIKE 'SYS@_NC%$' ESCAPE '@' THEN 'an expression' END, 0 FROM (" +
		"SELECT i.table_owner, i.table_name, i.index_name, c.column_name AS key_column, c.column_position, " +
		"CASE k.constraint_type WHEN 'P' THEN 'PRIMARY KEY' ELSE 'UNIQUE' END AS kind " +
		"FROM all_indexes i JOIN all_ind_columns c ON c.index_owner = i.owner AND c.index_name = i.index_name " +
		"LEFT JOIN all_constraints k ON " + indexOfKey + " WHERE i.uniqueness = 'UNIQUE' OR k.constraint_name IS NOT NULL) " +
		"WHERE table_owner = $schema AND table_name = $table ORDER BY kind, index_name, column_position",
	References: "SELECT $of constraint_name, own_column, parent_owner, parent_table, parent_column FROM (" +
		"SELECT f.owner AS child_owner, f.table_name, f.constraint_name, a.column_name AS own_column, " +
		"p.owner AS parent_owner, p.table_name AS parent_table, b.column_name AS parent_column, a.position FROM all_constraints f " +
		"JOIN all_cons_columns a ON a.owner = f.owner AND a.constraint_name = f.constraint_name " +
		"JOIN all_constraints p ON p.owner = f.r_owner AND p.constraint_name = f.r_constraint_name " +
		"JOIN all_cons_columns b ON b.owner = p.owner AND b.constraint_name = p.constraint_name AND b.position = a.position " +
		"WHERE f.constraint_type = 'R') WHERE child_owner = $schema AND table_name = $table ORDER BY constraint_name, position",
	Checks: "SELECT $of search_condition_vc FROM all_constraints WHERE owner = $schema AND table_name = $table " +
		"AND constraint_type = 'C' AND status = 'ENABLED' ORDER BY constraint_name",
	// The indexes of keys and of LOBs cannot be dropped alone.
	Costs: "SELECT $of kind, name, remedy FROM (" +
		"SELECT owner AS of_owner, table_name, 'foreign key' AS kind, constraint_name AS name, " +
		`'ALTER TABLE "' || owner || '"."' || table_name || '" DISABLE CONSTRAINT "' || constraint_name || '"' AS remedy ` +
		"FROM all_constraints WHERE constraint_type = 'R' AND status = 'ENABLED' " +
		"UNION ALL SELECT i.table_owner, i.table_name, 'index', i.index_name, " +
		`'DROP INDEX "' || i.owner || '"."' || i.index_name || '"' FROM all_indexes i ` +
		"WHERE i.index_type <> 'LOB' AND NOT EXISTS (SELECT 1 FROM all_constraints k WHERE " + indexOfKey + ") " +
		"UNION ALL SELECT g.table_owner, g.table_name, 'trigger', g.trigger_name, " +
		`'ALTER TRIGGER "' || g.owner || '"."' || g.trigger_name || '" DISABLE' ` +
		"FROM all_triggers g WHERE g.status = 'ENABLED' AND g.triggering_event LIKE '%INSERT%') " +
		"WHERE of_owner = $schema AND table_name = $table ORDER BY kind, name",
	Partitions: "SELECT $of t.partitioning_type || ' (' || (SELECT LISTAGG(k.column_name, ', ') WITHIN GROUP " +
		"(ORDER BY k.column_position) FROM all_part_key_columns k WHERE k.owner = t.owner AND k.name = t.table_name " +
		"AND k.object_type = 'TABLE') || ')' FROM all_part_tables t WHERE t.owner = $schema AND t.table_name = $table",
	Rows: "SELECT $of TO_CHAR(NVL(num_rows, 0)) FROM all_tables WHERE owner = $schema AND table_name = $table",
	// A materialized view's rows, and what has been dropped, are in tables as well.
	Tables: "SELECT t.table_name FROM all_tables t WHERE t.owner = $schema AND t.temporary = 'N' AND t.nested = 'NO' " +
		"AND t.secondary = 'N' AND t.dropped = 'NO' " +
		"AND NOT EXISTS (SELECT 1 FROM all_mviews v WHERE v.owner = t.owner AND v.container_name = t.table_name) " +
		"AND NOT EXISTS (SELECT 1 FROM all_external_tables e WHERE e.owner = t.owner AND e.table_name = t.table_name) " +
		"ORDER BY t.table_name",
}

// indexOfKey joins the primary or unique key k whose index is i.
const indexOfKey = "k.constraint_type IN ('P', 'U') AND k.index_name = i.index_name " +
	"AND NVL(k.index_owner, k.owner) = i.owner"
