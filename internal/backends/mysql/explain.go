package mysql

import (
	"cmp"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists what a run would say. Without a server the scheme stands for the flavour, mysql:// for MySQL.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	c := p.Contract
	name, err := targetTable(t)
	if err != nil {
		name = tableName{schema: t.Database, table: t.Table} // Open refuses it; --dry-run shows it as it stands
	}
	f := ofScheme(t.Scheme)
	l := catalog{&opened{name: name, server: server{flavour: f}}}
	table := &sqlload.Table{Catalog: l, Claims: l}
	s := l.statements(table.Plan(p))
	claims := c.Dedup == loader.DedupTx
	first := loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: c.BatchRows}

	var all []loader.Statement
	add := func(when string, texts ...string) {
		for _, text := range texts {
			all = append(all, loader.Statement{When: when, Text: text})
		}
	}
	if c.Method == pipeline {
		add("per group", explainPipeline(s, name, t)...)
		return table.Explain(p, all)
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
	return table.Explain(p, all)
}

// explainPipeline lists what is said about the first group. Region and keys are found out when the store is opened.
func explainPipeline(s statements, name tableName, t loader.Target) []string {
	p := pipe{
		statements: s, name: pipelineName(batch.ID{Run: "RUN"}), into: name.table, folder: "RUN/g000000000000/",
		access: objstore.Access{Region: "…", KeyID: "…", Secret: "…"},
	}
	if t.Via != nil {
		p.access.Bucket = strings.Join(t.Via.Hosts, ",")
		p.access.Endpoint = cmp.Or(t.Via.Params.Get("server_endpoint"), t.Via.Params.Get("endpoint"))
		p.access.Region = cmp.Or(t.Via.Params.Get("region"), p.access.Region)
		p.folder = strings.TrimPrefix(strings.Trim(t.Via.Database, "/")+"/", "/") + p.folder
	}
	return []string{
		p.create(), p.start(), "SELECT file_name, file_state FROM information_schema.pipelines_files …", dropPipeline(p.name),
	}
}
