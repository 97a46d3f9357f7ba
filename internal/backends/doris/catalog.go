package doris

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// catalog reads the server's catalog about the target table.
type catalog struct{ *opened }

// lookups ask the views of the standard. A table has one key, whose columns say there of which model it is: rows with
// the same values become one row where that is UNIQUE (UNI) or AGGREGATE (AGG), and not where it is DUPLICATE (DUP)
// (FrontendServiceImpl.describeTables). There are no references that the server enforces, no CHECKs and no triggers.
var lookups = sqlload.Lookups{
	Keys: "SELECT $of 'PRIMARY', 'PRIMARY KEY', column_name, '', 0 FROM information_schema.columns " +
		"WHERE table_schema = $schema AND table_name = $table AND column_key IN ('UNI', 'AGG', 'PRI') " +
		"ORDER BY ordinal_position",
	Rows: sqlload.InformationSchema.Rows, Tables: sqlload.InformationSchema.Tables, StandIn: true,
}

// Plan implements sqlload.Catalog.
func (l catalog) Plan(p loader.Preparation) sqlload.Statements {
	return newStatements(l.name, p.Schema).Statements
}

// from selects the target table in a table of information_schema.
func (l catalog) from(table string) string {
	return fmt.Sprintf(" FROM information_schema.%s WHERE table_schema = %s AND table_name = %s",
		table, literal(l.name.schema), literal(l.name.table))
}

// Locate implements sqlload.Catalog.
//
// The ids of the partitions identify a table: another one of the same name has others, and so has the table after a
// TRUNCATE, while loads keep them. If the server makes partitions by itself, with the rows (AUTO) or the days
// (dynamic), or the user may not list them, the creation time has to do.
func (l catalog) Locate(ctx context.Context, c sqlload.Conn, _ *sqlload.State) (*sqlload.Relation, error) {
	found, err := sqlload.Rows(ctx, c, "SELECT table_type, table_comment, create_time"+l.from("tables"))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	kind, comment, created := found[0][0], found[0][1], found[0][2]
	r := &sqlload.Relation{Schema: l.name.schema, Name: l.name.table, Table: l.name.quoted(), Comment: comment}
	if strings.Contains(strings.ToUpper(kind), "VIEW") {
		r.Kind = "view"
		return r, nil
	}
	if created != "" {
		r.Identity = "created " + created
	}
	definition, refused, err := ask(ctx, c.(sqlload.SQL), "SHOW CREATE TABLE "+r.Table)
	r.Traits = []string{""}
	if len(definition) > 0 {
		r.Traits[0] = definition[0]["Create Table"]
	}
	if err != nil || refused != nil || ownPartitions(r.Traits[0]) {
		return r, err
	}
	partitions, _, err := ask(ctx, c.(sqlload.SQL), "SHOW PARTITIONS FROM "+r.Table)
	var ids []string
	for _, p := range partitions {
		if id := p["PartitionId"]; id != "" {
			ids = append(ids, id)
		}
	}
	if len(ids) > 0 {
		slices.Sort(ids)
		r.Identity = "partitions " + strings.Join(ids, ",")
	}
	return r, err
}

// autoPartition finds a table whose partitions the server makes with the rows.
var autoPartition = regexp.MustCompile(`(?i)\bAUTO\s+PARTITION\s+BY\b`)

// ownPartitions reports whether the server makes and drops partitions of the table by itself.
func ownPartitions(definition string) bool {
	dynamic := property(definition, "dynamic_partition.enable")
	return autoPartition.MatchString(definition) || strings.EqualFold(dynamic, "true")
}

// propertyPair finds a name and its value among the PROPERTIES of a CREATE TABLE.
var propertyPair = regexp.MustCompile(`"([^"\s]+)"\s*=\s*"([^"]*)"`)

// property returns one of the PROPERTIES of a CREATE TABLE; "" if it is missing.
func property(definition, name string) string {
	for _, m := range propertyPair.FindAllStringSubmatch(definition, -1) {
		if m[1] == name {
			return m[2]
		}
	}
	return ""
}

// tableProperty returns a property of the prepared table.
func (l *opened) tableProperty(name string) string {
	if s, err := l.State(); err == nil && s.Relation != nil {
		return property(s.Relation.Traits[0], name)
	}
	return ""
}

// columnFields are what ReadColumns wants of a column, in information_schema.columns.
const columnFields = "column_name, LOWER(COALESCE(NULLIF(column_type, ''), data_type)), is_nullable, column_default"

// Columns implements sqlload.Catalog. What the server computes or counts is in the table's definition only.
func (l catalog) Columns(ctx context.Context, c sqlload.Conn, _ *sqlload.State, r *sqlload.Relation) ([]sqlload.Column, error) {
	all, err := sqlload.ReadColumns(ctx, c, "SELECT "+columnFields+l.from("columns")+" ORDER BY ordinal_position", nil)
	complete(all, r.Traits[0])
	return all, err
}

// AllColumns implements sqlload.Surveyor. The definitions come table by table.
func (l catalog) AllColumns(
	ctx context.Context, c sqlload.Conn, _ *sqlload.State, schema string,
) (map[string][]sqlload.Column, error) {
	query := "SELECT table_name, " + columnFields + " FROM information_schema.columns WHERE table_schema = " +
		literal(schema) + " ORDER BY table_name, ordinal_position"
	all, err := sqlload.ReadAllColumns(ctx, c, query, nil)
	if err != nil {
		return nil, err
	}

	for table, columns := range all {
		definition, _, err := ask(ctx, c.(sqlload.SQL), "SHOW CREATE TABLE "+tableName{schema, table}.quoted())
		if err != nil {
			return nil, err
		}
		if len(definition) > 0 { // it is a table, and this user may see it
			complete(columns, definition[0]["Create Table"])
		}
	}
	return all, nil
}

// complete adds to columns what the definition of their table says.
func complete(all []sqlload.Column, definition string) {
	for i := range all {
		column := &all[i]
		if declares(definition, column.Name, `AS \(`) {
			column.Generated = "AS (…)"
		}
		if declares(definition, column.Name, `AUTO_INCREMENT\(`) {
			column.Numbered = loader.AutoIncrement
		}
	}
}

// declares reports whether a column of a CREATE TABLE, as the server writes it, has one of the words that a pattern
// finds: its type, AS (…), NULL or NOT NULL, AUTO_INCREMENT(…), and then what is quoted (Column.toSql in its sources).
func declares(definition, column, words string) bool {
	return regexp.MustCompile("(?m)^\\s*" + regexp.QuoteMeta(sqlload.Backtick(column)) + " [^\"'\n]*?\\b(" + words + ")").MatchString(definition)
}

// Fits implements sqlload.Catalog: only the columns matter.
func (catalog) Fits(context.Context, sqlload.Conn, *sqlload.State, *sqlload.Relation) error {
	return nil
}

// Create implements sqlload.Catalog. Some releases show backends to administrators only: then none is known to be
// alive. Without a server the shape is that for one backend.
func (l catalog) Create(ctx context.Context, c sqlload.Conn, s *sqlload.State) ([]string, error) {
	if like := s.Want.Like; like.Name != "" {
		return []string{
			"CREATE TABLE " + s.Table + " LIKE " + tableName{like.Schema, like.Name}.quoted(),
			"ALTER TABLE " + s.Table + " MODIFY COMMENT " + literal(s.Want.Comment()),
		}, nil
	}

	h, alive := plannedShape(l.options, s.Want), int64(0)
	switch {
	case c == nil:
		alive = 1
	case h.buckets == 0 || h.replication == 0:
		backends, refused, err := ask(ctx, c.(sqlload.SQL), showBackends)
		if err != nil {
			return nil, err
		}
		for _, b := range backends {
			if strings.EqualFold(b["Alive"], "true") {
				alive++
			}
		}
		if refused != nil {
			l.log.Debug("backends cannot be listed", "error", refused)
		}
	}
	h = h.fill(alive)
	return []string{statements{s.Statements}.createTable(h)}, nil
}

// Exists implements sqlload.Catalog. IF NOT EXISTS leaves no such error; a table that is made like another has none, so
// that its comment is given to no other's.
func (catalog) Exists(err error) bool { return mysqlconn.Exists(err) }

// Grant implements sqlload.Catalog. TRUNCATE needs the right to load.
func (l catalog) Grant(_ context.Context, _ sqlload.Conn, privileges, _ string) string {
	return l.grant(map[string]string{"CREATE": "CREATE_PRIV", "TRUNCATE": "LOAD_PRIV"}[privileges])
}

// grant returns the statement that grants rights on the table's database, which need not have the table yet.
func (l *opened) grant(rights string) string {
	return fmt.Sprintf("GRANT %s ON %s.* TO %s", rights, l.name.schema, literal(l.target.User))
}

// Stored implements sqlload.Catalog: the size with all replicas, which the frontend counts every few minutes.
func (l catalog) Stored(*sqlload.State) []string {
	return []string{"SELECT COALESCE(SUM(data_length), 0)" + l.from("tables")}
}
