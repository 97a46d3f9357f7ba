package oracle

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/sqlload"
)

// effects is a query for triggers that see a row before it is inserted, and for policies of a virtual private database.
func (l *opened) effects(s *sqlload.State) string {
	schema, name := sqlload.Unquoted(s.Table)
	owner, table := ownerOf(schema), sqlload.Literal(name)
	return "SELECT 'trigger ' || g.trigger_name, 'may change rows or refuse them', 'ALTER TRIGGER ' || g.owner || '.' || g.trigger_name || " +
		"' DISABLE' FROM all_triggers g WHERE g.table_owner = " + owner + " AND g.table_name = " + table + " AND g.status = 'ENABLED' " +
		"AND (g.trigger_type LIKE 'BEFORE%' OR g.trigger_type = 'COMPOUND') AND g.triggering_event LIKE '%INSERT%' " +
		"UNION ALL SELECT 'policy ' || p.policy_name, 'may refuse or hide rows', 'GRANT EXEMPT ACCESS POLICY' FROM all_policies p " +
		"WHERE p.object_owner = " + owner + " AND p.object_name = " + table + " AND p.enable = 'YES' AND (p.sel = 'YES' OR p.ins = 'YES')"
}

// behind implements sqlload.Table.Behind for an identity column, which the load has given numbers. START WITH LIMIT
// VALUE is what the server itself finds behind the column's values (SQL Language Reference, "ALTER TABLE",
// identity_options).
func (l *opened) behind(ctx context.Context, c sqlload.Conn, s *sqlload.State, largest int64) (statements []string, err error) {
	key := s.Column(s.Schema.Key().Name)
	found, err := sqlload.Rows(ctx, c, fmt.Sprintf("SELECT k.default_on_null FROM all_tab_identity_cols i "+
		"JOIN all_tab_columns k ON k.owner = i.owner AND k.table_name = i.table_name AND k.column_name = i.column_name "+
		"LEFT JOIN all_sequences q ON q.sequence_owner = i.owner AND q.sequence_name = i.sequence_name "+
		"WHERE i.owner = %s AND i.table_name = %s AND i.column_name = %s AND i.generation_type = 'BY DEFAULT' "+
		"AND (q.last_number IS NULL OR q.last_number - q.cache_size <= %d AND q.increment_by > 0)",
		sqlload.Literal(s.Relation.Schema), sqlload.Literal(s.Relation.Name), sqlload.Literal(key[1:len(key)-1]), largest))
	for _, row := range found {
		how := "BY DEFAULT"
		if row[0] == "YES" {
			how += " ON NULL"
		}
		statements = append(statements, fmt.Sprintf("ALTER TABLE %s MODIFY (%s GENERATED %s AS IDENTITY (START WITH LIMIT VALUE))", s.Table, key, how))
	}
	return statements, err
}
