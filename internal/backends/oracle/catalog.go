package oracle

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// catalog reads the server's dictionary.
type catalog struct{ *opened }

// traitUser is the trait of a relation that names the session's user, whatever current_schema is.
const traitUser = 0

const anotherTable = "choose another --table"

// Plan implements sqlload.Catalog.
func (l catalog) Plan(p loader.Preparation) sqlload.Statements {
	s := newStatements(cmp.Or(l.target.Table, p.Schema.Dataset), p.Schema)
	if l.method == methodFast {
		s.Flush = flushWrites
	}
	return s
}

// Locate implements sqlload.Catalog. It refuses to create or empty a table for a run into one partition.
func (l catalog) Locate(ctx context.Context, c sqlload.Conn, s *sqlload.State) (*sqlload.Relation, error) {
	r, err := relationOf(ctx, c, s.Table)
	create := s.Want.Create
	if err == nil && l.options.Partition != "" && (r == nil && create != loader.CreateNever ||
		create == loader.CreateRecreate || create == loader.CreateTruncate) {
		return nil, sqlload.Refuse("create or empty it yourself (ALTER TABLE … TRUNCATE PARTITION …), and use --create never",
			"option partition names a partition, and terapush creates none and empties whole tables")
	}
	return r, err
}

// relationOf finds the object of a name, in the namespace of tables. The first part of its identity changes with DROP
// and the second with TRUNCATE: the lowest data object of the table's partitions, which stays when partitions are
// added. A materialized view comes before its table.
func relationOf(ctx context.Context, c sqlload.Conn, table string) (*sqlload.Relation, error) {
	schema, name := sqlload.Unquoted(table)
	found, err := sqlload.Rows(ctx, c, "SELECT o.owner, o.object_name, o.object_type, TO_CHAR(o.object_id), "+
		"(SELECT TO_CHAR(MIN(d.data_object_id)) FROM all_objects d WHERE d.owner = o.owner "+
		"AND d.object_name = o.object_name AND d.object_type IN ('TABLE', 'TABLE PARTITION', 'TABLE SUBPARTITION')), "+
		"(SELECT MAX(c.comments) FROM all_tab_comments c WHERE c.owner = o.owner AND c.table_name = o.object_name), "+
		"SYS_CONTEXT('USERENV', 'SESSION_USER') FROM all_objects o "+
		"WHERE o.owner = "+ownerOf(schema)+" AND o.object_name = "+sqlload.Literal(name)+
		" AND o.object_type IN ('FUNCTION', 'MATERIALIZED VIEW', 'OPERATOR', 'PACKAGE', 'PROCEDURE', 'SEQUENCE', 'SYNONYM', "+
		"'TABLE', 'TYPE', 'VIEW') ORDER BY o.object_type")
	if err != nil || len(found) == 0 {
		return nil, err
	}
	row := found[0]
	r := &sqlload.Relation{
		Schema: row[0], Name: row[1], Table: sqlload.Qualified(row[0], row[1]),
		Identity: row[3] + "/" + row[4], Comment: row[5],
		Claims: claimsTable(row[0]), Traits: row[6:],
	}
	if row[2] != "TABLE" {
		r.Kind = strings.ToLower(row[2])
	}
	return r, nil
}

// Columns implements sqlload.Catalog. A column with a default has a default_length, and so have virtual columns and
// those that a sequence fills. Only the views that are asked besides tell them apart; an INSERT of a value is ORA-54013
// or ORA-32795.
func (l catalog) Columns(ctx context.Context, c sqlload.Conn, _ *sqlload.State, r *sqlload.Relation) ([]sqlload.Column, error) {
	query := "SELECT " + aboutColumns + sqlload.Literal(r.Schema) +
		" AND c.table_name = " + sqlload.Literal(r.Name) + " ORDER BY c.column_id"
	return sqlload.ReadColumns(ctx, c, query, readType)
}

// AllColumns implements sqlload.Surveyor.
func (l catalog) AllColumns(
	ctx context.Context, c sqlload.Conn, _ *sqlload.State, schema string,
) (map[string][]sqlload.Column, error) {
	query := "SELECT c.table_name, " + aboutColumns + sqlload.Literal(schema) + " ORDER BY c.table_name, c.column_id"
	return sqlload.ReadAllColumns(ctx, c, query, readType)
}

const aboutColumns = "c.column_name, c.data_type, c.nullable, TO_CHAR(c.default_length), " +
	"(SELECT MAX(DECODE(v.virtual_column, 'YES', 'virtual generated')) FROM all_tab_cols v WHERE v.owner = c.owner " +
	"AND v.table_name = c.table_name AND v.column_name = c.column_name), NULL, NULL, " +
	"TO_CHAR(c.data_length), TO_CHAR(c.data_precision), TO_CHAR(c.data_scale), " +
	"(SELECT MAX(i.generation_type) FROM all_tab_identity_cols i " +
	"WHERE i.owner = c.owner AND i.table_name = c.table_name AND i.column_name = c.column_name) FROM all_tab_columns c " +
	"WHERE c.owner = "

func readType(column *sqlload.Column, more []string) {
	column.Type = typeOf(column.Type, more[0], more[1], more[2])
	column.Is = sqlload.ParseType(column.Type)
	switch {
	case more[3] == "ALWAYS":
		column.Generated = "ALWAYS AS IDENTITY"
	case more[3] != "":
		column.Numbered = loader.IdentityByDefault
	}
	if column.Default != "" { // its length
		column.Default = "…"
	}
}

// typeOf writes the type in ALL_TAB_COLUMNS as a table declares it. A NUMBER without precision has 38 digits.
func typeOf(name, bytes, precision, scale string) string {
	switch name {
	case "NUMBER":
		if precision != "" || scale != "" {
			return fmt.Sprintf("NUMBER(%s,%s)", cmp.Or(precision, "38"), cmp.Or(scale, "0"))
		}
	case "VARCHAR2", "CHAR":
		return fmt.Sprintf("%s(%s BYTE)", name, bytes)
	case "RAW", "NVARCHAR2", "NCHAR":
		return fmt.Sprintf("%s(%s)", name, bytes)
	}
	return name
}

// Fits implements sqlload.Catalog.
func (l catalog) Fits(ctx context.Context, c sqlload.Conn, s *sqlload.State, r *sqlload.Relation) error {
	traits, err := sqlload.Rows(ctx, c, l.selectTraits(r))
	if err != nil {
		return err
	}
	if len(traits) != 1 {
		return sqlload.Refuse(fmt.Sprintf("GRANT SELECT, INSERT ON %s TO %s", r.Table, l.target.User),
			"ALL_TABLES does not show it to this user")
	}
	if err := l.checkTraits(r, traits[0]); err != nil {
		return err
	}
	if err := l.checkPartition(ctx, c, r); err != nil || !s.Want.PrimaryKey {
		return err
	}
	names := make([]string, len(s.Schema.Primary))
	for i, name := range s.Schema.Primary {
		names[i] = strings.ToUpper(name)
	}
	there, err := hasUniqueIndex(ctx, c, r, names...)
	if err == nil && !there {
		err = sqlload.Refuse("add it, or "+r.Elsewhere(), "it has no primary key (%s)", strings.Join(names, ", "))
	}
	return err
}

// selectTraits reads which tables a method can load: temporary, index-organized, cluster, enabled triggers, enabled
// foreign keys, external; and for Fast Ingest memoptimize_write, which ALL_TABLES has since 18c.
func (l catalog) selectTraits(r *sqlload.Relation) string {
	count := func(of, owner, condition string) string {
		return fmt.Sprintf("(SELECT TO_CHAR(COUNT(*)) FROM %s x WHERE x.%s = t.owner AND x.table_name = t.table_name%s)",
			of, owner, condition)
	}
	columns := []string{
		"t.temporary", "t.iot_type", "t.cluster_name",
		count("all_triggers", "table_owner", " AND x.status = 'ENABLED'"),
		count("all_constraints", "owner", " AND x.constraint_type = 'R' AND x.status = 'ENABLED'"),
		count("all_external_tables", "owner", ""),
	}
	if l.method == methodFast {
		columns = append(columns, "t.memoptimize_write")
	}
	return "SELECT " + strings.Join(columns, ", ") + " FROM all_tables t WHERE t.owner = " + sqlload.Literal(r.Schema) +
		" AND t.table_name = " + sqlload.Literal(r.Name)
}

// checkTraits judges a row of selectTraits. Where a table does not support Fast Ingest or direct path, the server
// inserts conventionally without saying so. A server without Fast Ingest into compressed tables refuses to create one
// (ORA-62146).
func (l catalog) checkTraits(r *sqlload.Relation, row []string) error {
	table := r.Table
	temporary, organized, cluster, triggers, foreign, external := row[0], row[1], row[2], row[3], row[4], row[5]
	var reason, hint string
	switch {
	case external != "0":
		return sqlload.Refuse(anotherTable, "it is an external table")
	case temporary == "Y":
		return sqlload.Refuse(anotherTable, "it is temporary: each session has its own rows")
	case l.method != methodFast && l.method != methodDirect:
		return nil
	case triggers != "0":
		reason, hint = "it has enabled triggers", "ALTER TABLE "+table+" DISABLE ALL TRIGGERS"
	case foreign != "0":
		reason, hint = "it has enabled foreign keys", "ALTER TABLE "+table+" DISABLE CONSTRAINT …"
	case cluster != "" || organized != "":
		reason, hint = "it is in a cluster or organized as an index", anotherTable
	case l.method == methodFast && row[6] != "ENABLED":
		reason = "it is not MEMOPTIMIZE FOR WRITE"
		hint = "ALTER TABLE " + table + " MEMOPTIMIZE FOR WRITE, or " + r.Elsewhere()
	default:
		return nil
	}
	return sqlload.Refuse(hint+", or use method "+methodArray,
		"%s, so that method %s would insert conventionally without saying so", reason, l.method)
}

// checkPartition checks that the partition of option partition exists.
func (l catalog) checkPartition(ctx context.Context, c sqlload.Conn, r *sqlload.Relation) error {
	if l.options.Partition == "" {
		return nil
	}
	name := strings.ToUpper(l.options.Partition)
	n, err := sqlload.Number(ctx, c, "SELECT TO_CHAR(COUNT(*)) FROM all_tab_partitions p "+
		"WHERE p.table_owner = "+sqlload.Literal(r.Schema)+" AND p.table_name = "+sqlload.Literal(r.Name)+
		" AND p.partition_name = "+sqlload.Literal(name))
	if err == nil && n == 0 {
		err = sqlload.Refuse("see ALL_TAB_PARTITIONS for their names", "it has no partition %s", name)
	}
	return err
}

// hasUniqueIndex reports whether there is a unique index on exactly the columns. A deferrable constraint has an index
// that is not unique, and finds a taken claim at the commit, which is too late. The status of a partitioned index is
// N/A.
func hasUniqueIndex(ctx context.Context, c sqlload.Conn, r *sqlload.Relation, columns ...string) (bool, error) {
	n, err := sqlload.Number(ctx, c, fmt.Sprintf("SELECT TO_CHAR(COUNT(*)) FROM (SELECT i.index_name FROM all_indexes i "+
		"JOIN all_ind_columns c ON c.index_owner = i.owner AND c.index_name = i.index_name "+
		"WHERE i.table_owner = %s AND i.table_name = %s AND i.uniqueness = 'UNIQUE' AND i.status IN ('VALID', 'N/A') "+
		"GROUP BY i.owner, i.index_name "+
		"HAVING COUNT(*) = %d AND SUM(CASE WHEN c.column_name IN (%s) THEN 1 ELSE 0 END) = %[3]d)",
		sqlload.Literal(r.Schema), sqlload.Literal(r.Name), len(columns), sqlload.Literals(columns)))
	return n > 0, err
}

// Create implements sqlload.Catalog. There is no LIKE: a copy has the columns that the dataset has, with their types
// and NOT NULL, and the dataset's keys.
func (l catalog) Create(_ context.Context, _ sqlload.Conn, s *sqlload.State) ([]string, error) {
	st := l.statements(s)
	mark := st.markTable(s.Want.Comment())
	if s.Want.Like.Name == "" {
		return []string{st.createTable(), mark}, nil
	}
	if l.method == methodFast {
		return nil, sqlload.Refuse("use another method, or make the table yourself", "a copy is not MEMOPTIMIZE FOR WRITE")
	}
	return slices.Concat([]string{st.createLike(s.Want.Like), mark}, st.addKeys()), nil
}

// Exists implements sqlload.Catalog.
func (l catalog) Exists(err error) bool { return is(err, codeNameTaken) }

// Grant implements sqlload.Catalog.
func (l catalog) Grant(_ context.Context, _ sqlload.Conn, privileges, table string) string {
	schema, _ := sqlload.Unquoted(table)
	switch others := schema != "" && !strings.EqualFold(schema, l.target.User); {
	case privileges == "TRUNCATE":
		return "GRANT DROP ANY TABLE TO " + l.target.User + ", or have the owner empty it and use --create never"
	case others:
		return "GRANT CREATE ANY TABLE TO " + l.target.User
	}
	return "GRANT CREATE TABLE and a quota on a tablespace to " + l.target.User
}

// Stored implements sqlload.Catalog by the segments of the table, its partitions and its indexes. In another user's
// schema it is 0: DBA_SEGMENTS needs a privilege.
func (l catalog) Stored(s *sqlload.State) []string {
	schema, name := sqlload.Unquoted(s.Table)
	return []string{"SELECT TO_CHAR(NVL(SUM(g.bytes), 0)) FROM user_segments g WHERE " + ownerOf(schema) +
		" = SYS_CONTEXT('USERENV', 'SESSION_USER') AND (g.segment_name = " + sqlload.Literal(name) +
		" OR g.segment_name IN (SELECT i.index_name FROM user_indexes i WHERE i.table_name = " + sqlload.Literal(name) + "))"}
}
