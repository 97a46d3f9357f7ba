package postgres

import "github.com/terapush/terapush/pkg/sqlload"

// lookups ask the catalog and not information_schema, which shows the constraints of one's own tables only, and no
// index.
//
// On PostgreSQL 15 (two million rows of pairs, one worker, three rounds) an index on random numbers left 5 to 8 % of
// the rows a second, one on rising numbers 25 to 31 %.
var lookups = sqlload.Lookups{
	Keys: "SELECT c.relname, CASE WHEN i.indisprimary THEN 'PRIMARY KEY' ELSE 'UNIQUE' END, COALESCE(a.attname, ''), " +
		"CASE WHEN k.attnum = 0 THEN 'an expression: ' || pg_get_indexdef(i.indexrelid) " +
		"WHEN i.indpred IS NOT NULL THEN 'where ' || pg_get_expr(i.indpred, i.indrelid) ELSE '' END " +
		"FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid " +
		"CROSS JOIN LATERAL unnest(CAST(i.indkey AS int2[])) WITH ORDINALITY k(attnum, at) " +
		"LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum " +
		"WHERE i.indrelid = $id AND i.indisunique AND k.at <= i.indnkeyatts ORDER BY NOT i.indisprimary, c.relname, k.at",
	References: "SELECT f.conname, a.attname, n.nspname, p.relname, b.attname FROM pg_constraint f " +
		"JOIN pg_class p ON p.oid = f.confrelid JOIN pg_namespace n ON n.oid = p.relnamespace " +
		"CROSS JOIN LATERAL unnest(f.conkey, f.confkey) WITH ORDINALITY k(mine, theirs, at) " +
		"JOIN pg_attribute a ON a.attrelid = f.conrelid AND a.attnum = k.mine " +
		"JOIN pg_attribute b ON b.attrelid = f.confrelid AND b.attnum = k.theirs " +
		"WHERE f.contype = 'f' AND f.conrelid = $id ORDER BY f.conname, k.at",
	Checks: "SELECT pg_get_constraintdef(oid) FROM pg_constraint WHERE contype = 'c' AND conrelid = $id ORDER BY conname",
	// Constraints of uniqueness have indexes that cannot be dropped alone.
	Costs: "SELECT 'foreign key', quote_ident(conname), format('ALTER TABLE %s DROP CONSTRAINT %I', CAST($id AS regclass), conname) " +
		"FROM pg_constraint WHERE conrelid = $id AND contype = 'f' " +
		"UNION ALL SELECT 'index', CAST(CAST(indexrelid AS regclass) AS text), 'DROP INDEX ' || CAST(CAST(indexrelid AS regclass) AS text) " +
		"FROM pg_index WHERE indrelid = $id AND NOT indisprimary " +
		"AND indexrelid NOT IN (SELECT conindid FROM pg_constraint WHERE conrelid = $id AND contype IN ('u', 'x')) " +
		"UNION ALL SELECT 'trigger', quote_ident(tgname), format('ALTER TABLE %s DISABLE TRIGGER %I', CAST($id AS regclass), tgname) " +
		"FROM pg_trigger WHERE tgrelid = $id AND NOT tgisinternal AND tgenabled IN ('O', 'A') AND tgtype & 4 <> 0 " +
		"UNION ALL SELECT 'unique constraint', quote_ident(conname), " +
		"format('ALTER TABLE %s DROP CONSTRAINT %I', CAST($id AS regclass), conname) " +
		"FROM pg_constraint WHERE conrelid = $id AND contype IN ('u', 'x') ORDER BY 1, 2",
	Partitions: "SELECT pg_get_partkeydef(oid) FROM pg_class WHERE oid = $id AND relkind = 'p'",
	Rows:       "SELECT CAST(reltuples AS bigint) FROM pg_class WHERE oid = $id",
}
