package mysql

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists what a run would say. Without a server the scheme stands for the flavour, mysql:// for MySQL.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	schema, c := p.Schema, p.Contract
	name, err := targetTable(t)
	if err != nil {
		name = tableName{schema: t.Database, table: t.Table} // Open refuses it; --dry-run shows it as it stands
	}
	f := ofScheme(t.Scheme)
	s := newStatements(name, f, schema)
	claims := c.Dedup == loader.DedupTx
	first := loader.Ref{ID: batch.ID{Run: "RUN", Number: 0}, First: 0, Rows: c.BatchRows}

	var all []loader.Statement
	add := func(when string, texts ...string) {
		for _, text := range texts {
			all = append(all, loader.Statement{When: when, Text: text})
		}
	}
	if claims {
		add("once", s.createClaims())
	}
	if p.Create == loader.CreateRecreate {
		add("once", "DROP TABLE "+s.Table)
	}
	if p.Create != loader.CreateNever {
		add("once", s.createTable(p.PrimaryKey))
	}
	add("per session", f.setup(t.Settings)...)
	add("per session", autocommit(!claims))
	if claims {
		add("per batch", tag(first.ID)+s.insertClaim(first, 0))
	}
	if c.Method == insert {
		add("per batch", tag(first.ID)+s.insertHead()+"(…), …")
	} else {
		add("per batch", tag(first.ID)+s.loadData("NAME"))
	}
	if claims || c.Method != insert {
		add("per batch", "SHOW WARNINGS")
	}
	if claims {
		add("per batch", "COMMIT")
	}
	add("to verify", s.SelectBuckets(loader.Grouping{KeyRange: loader.KeyRange{Last: c.BatchRows - 1}, Size: c.BatchRows}))
	if claims {
		add("afterwards", s.DeleteClaims("RUN"))
	}
	return all
}
