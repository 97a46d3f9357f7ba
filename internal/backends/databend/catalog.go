package databend

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// catalog is Databend's sqlload.Catalog.
type catalog struct{ *opened }

func (l catalog) Plan(p loader.Preparation) sqlload.Statements {
	return newStatements(l.plan.name, p.Schema).Statements
}

// Locate reads the table's id, which changes when the table is dropped and made again, and not when it is emptied
// (tried on 1.2.895): only the proof notices that.
func (l catalog) Locate(ctx context.Context, c sqlload.Conn, _ *sqlload.State) (*sqlload.Relation, error) {
	n := l.plan.name
	found, err := sqlload.Rows(ctx, c, fmt.Sprintf("SELECT table_id, engine, comment FROM system.tables"+
		" WHERE database = %s AND name = %s", literal(n.schema), literal(n.table)))
	if err != nil || len(found) == 0 {
		return nil, err
	}
	id, engine, comment := found[0][0], found[0][1], found[0][2]
	r := &sqlload.Relation{
		Schema: n.schema, Name: n.table, Table: n.quoted(),
		Identity: "table id " + id, Comment: comment, Traits: []string{engine},
	}
	if engine == "VIEW" {
		r.Kind = "view"
	}
	return r, nil
}

// lookups: the server has no keys, references, CHECKs or triggers.
var lookups = sqlload.Lookups{Rows: "SELECT COALESCE(num_rows, 0) FROM system.tables WHERE database = $schema AND name = $table"}

// Columns implements sqlload.Catalog. A column's kind is DEFAULT, STORED or VIRTUAL; of the last two the server
// computes the values by the expression.
func (l catalog) Columns(ctx context.Context, c sqlload.Conn, _ *sqlload.State, r *sqlload.Relation) ([]sqlload.Column, error) {
	return sqlload.ReadColumns(ctx, c, fmt.Sprintf("SELECT name, data_type, is_nullable, NULLIF(default_expression, ''),"+
		" default_kind, default_expression, comment FROM system.columns WHERE database = %s AND `table` = %s", literal(r.Schema), literal(r.Name)),
		func(column *sqlload.Column, _ []string) {
			if column.Generated != "" {
				column.Default = ""
			}
			if array, is := arrayType(column.Type); is {
				column.Is = array
			}
			is := strings.ToUpper(column.Type)
			text := is == "VARCHAR" || is == "STRING"
			column.NoEmpty, column.NoNull = !text, text && !column.Nullable
			column.NoZeroDay = strings.HasPrefix(is, "DATE") || strings.HasPrefix(is, "TIMESTAMP")
			column.FloatBits = map[string]int{"FLOAT": 32, "DOUBLE": 64}[is]
			column.Quoted = strings.HasPrefix(is, "DECIMAL")
		})
}

// Fits refuses other engines, which keep rows in the memory of one node, or nowhere, and have no labels.
func (catalog) Fits(_ context.Context, _ sqlload.Conn, _ *sqlload.State, r *sqlload.Relation) error {
	if engine := r.Traits[0]; engine != "FUSE" {
		return sqlload.Refuse(r.Elsewhere(), "table %s has engine %s; labels and atomic loads need FUSE", r, engine)
	}
	return nil
}

func (catalog) Create(_ context.Context, _ sqlload.Conn, s *sqlload.State) ([]string, error) {
	if like := s.Want.Like; like.Name != "" {
		return []string{
			"CREATE TABLE " + s.Table + " LIKE " + tableName{like.Schema, like.Name}.quoted(),
			fmt.Sprintf("ALTER TABLE %s COMMENT = %s", s.Table, literal(s.Want.Comment())),
		}, nil
	}
	return []string{statements{s.Statements}.createTable()}, nil
}

// Exists is never true: CREATE TABLE has IF NOT EXISTS.
func (catalog) Exists(error) bool { return false }

// Grant grants on the database, as CREATE needs; TRUNCATE takes the privilege DELETE (privilege_access.rs).
func (l catalog) Grant(_ context.Context, _ sqlload.Conn, privileges, _ string) string {
	return l.grant(strings.Replace(privileges, "TRUNCATE", "DELETE", 1))
}

func (l *opened) grant(privileges string) string {
	return fmt.Sprintf("GRANT %s ON %s.* TO USER %s", privileges, l.plan.name.schema, literal(l.plan.user))
}

// Stored reads the size in the object store.
func (l catalog) Stored(*sqlload.State) []string {
	return []string{fmt.Sprintf("SELECT COALESCE(data_compressed_size, 0) + COALESCE(index_size, 0)"+
		" FROM system.tables WHERE database = %s AND name = %s", literal(l.plan.name.schema), literal(l.plan.name.table))}
}

// fetchBytes is the column data in one answer of Fetch. JSON makes up to six bytes of one, and httpload.MaxAnswer is
// 16 MiB.
const fetchBytes = 2 << 20

// Fetch implements loader.Fetcher. The wider the rows, the fewer are in an answer.
func (l *opened) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	s, err := l.State()
	if err != nil {
		return err
	}
	page := statement{pageRows: max(fetchBytes/max(s.Schema.MaxRowBytes(), 1), 1)}
	return l.FetchOver(ctx, l.connect(page), numbers, f)
}
