package mysql

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/sqlload"
)

// options are those of method pipeline.
type options struct {
	BatchInterval int64 `option:"batch-interval" default:"2500" help:"milliseconds between the pipeline's checks for new objects, its BATCH_INTERVAL"`
}

// planOf reads method and options of a target. Its error names all that cannot work on any server.
func planOf(t loader.Target) (m loader.Method, o options, err error) {
	m, unread := loader.ReadOptions(New(), t, &o)
	name, noTable := targetTable(t)
	return m, o, errors.Join(unread, noTable, checkParams(t), checkSettings(t.Settings), checkVia(t, m, name, o))
}

// checkVia refuses a staged method without an object store.
func checkVia(t loader.Target, m loader.Method, name tableName, o options) error {
	switch {
	case !m.Caps.Staged:
		return nil
	case ofScheme(t.Scheme) != singleStore && t.Scheme != "mysql":
		return fmt.Errorf("method %s is SingleStore's; the target says %s://", m.Name, t.Scheme)
	case t.Via == nil:
		return fmt.Errorf("method %s needs an object store: --staging s3://bucket/prefix", m.Name)
	case t.Database == "":
		return errors.New("a pipeline belongs to a database: write it into the URL, as in singlestore://user@host/database")
	case name != tableName{} && name.schema != t.Database:
		return fmt.Errorf("a pipeline of database %s loads no table of %s: name the table's database in the URL",
			t.Database, name.schema)
	case strings.ContainsAny(t.Via.Database, "*?[]{}"):
		return fmt.Errorf("a pipeline would read prefix %q as a pattern: name one without * ? [ ] { }", t.Via.Database)
	case o.BatchInterval > math.MaxInt32:
		return fmt.Errorf("--batch-interval %d: want a number of milliseconds", o.BatchInterval)
	}
	return objstore.Check(*t.Via)
}

// checkParams refuses unknown parameters, which must not be ignored silently.
func checkParams(t loader.Target) error {
	p, err := mysqlconn.ReadParams(t.Params)
	return errors.Join(err, p.Unknown("socket"))
}

// tableName is a table with its schema, which MySQL calls a database; both unquoted.
type tableName struct{ schema, table string }

// targetTable reads the target's table.
func targetTable(t loader.Target) (tableName, error) {
	longest := sqlload.Length{Most: 64, Unit: "characters", Of: utf8.RuneCountInString}
	schema, table, err := sqlload.SplitTable(t, longest)
	return tableName{schema, table}, err
}

// String is the name as Table.Name shows it and Preparation.MayDrop gives it.
func (n tableName) String() string { return n.schema + "." + n.table }

func (n tableName) quoted() string {
	if n.table == everything {
		return quote(n.schema) + "." + everything
	}
	return quote(n.schema) + "." + quote(n.table)
}

// claimsTable is the claim table in the same schema.
func (n tableName) claimsTable() tableName { return tableName{n.schema, sqlload.ClaimsTable} }

// runs is the table of the runs' rows, in the same schema.
func (n tableName) runs() tableName { return tableName{n.schema, sqlload.RunsTable} }

// where is the condition that finds the table in information_schema.
func (n tableName) where() string {
	return "table_schema = " + literal(n.schema) + " AND table_name = " + literal(n.table)
}
