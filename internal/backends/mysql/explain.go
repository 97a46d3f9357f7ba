package mysql

import (
	"cmp"
	"strings"

	"github.com/terapush/terapush/internal/mysqlconn"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists the statements of a run without asking a server: the scheme stands for the flavour, mysql:// for MySQL.
func (Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	name, err := targetTable(t)
	if err != nil {
		name = tableName{schema: t.Database, table: t.Table} // Open refuses it; --dry-run shows it
	}
	f := ofScheme(t.Scheme)
	l := catalog{&opened{name: name, server: server{flavour: f}}}
	table := &sqlload.Table{Catalog: l, Claims: l}
	s := l.statements(table.Example(p))
	method, claims := p.Contract.Method, p.Contract.Dedup == loader.DedupTx
	first := loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: p.Contract.BatchRows}

	var all sqlload.Script
	add := all.Add
	if method == pipeline {
		first.Rows *= p.Contract.GroupBatches
		s.explainPipeline(add, name, t, first)
		return append(table.Explain(p, all), loader.Statement{When: "afterwards", Text: dropPipeline(pipelineName("RUN"))})
	}
	if claims && method == loadData && f.joins() {
		add("per session", mysqlconn.SetNames)
		add("per session", append(f.setup(t.Settings).all(), autocommit(false)+"; "+countRows)...)
		add("per batch", s.claimAndLoad(first, 0, "NAME"), "COMMIT")
		return table.Explain(p, all)
	}
	add("per session", mysqlconn.SetNames)
	add("per session", append(f.setup(t.Settings).all(), autocommit(!claims))...)
	if claims {
		add("per batch", tag(first.ID)+s.insertClaim(first, 0))
	}
	load := s.loadData("NAME")
	if method == insert {
		load = s.insertHead() + "(…), …"
	}
	add("per batch", tag(first.ID)+load)
	if claims || method != insert {
		add("per batch", "SHOW WARNINGS")
	}
	if claims {
		add("per batch", "COMMIT")
	}
	return table.Explain(p, all)
}

// explainPipeline lists what starts the pipeline, and what is asked about the first group. Region and keys are known only once the
// store is opened.
func (s statements) explainPipeline(add func(when string, texts ...string), name tableName, t loader.Target, group loader.Ref) {
	p := pipe{
		statements: s, name: pipelineName("RUN"), into: name.table, folder: "RUN/",
		access: objstore.Access{Region: "…", KeyID: "…", Secret: "…"},
	}
	_, _ = loader.ReadOptions(New(), t, &p.options) // Check returns the error
	if t.Via != nil {
		p.access.Bucket = strings.Join(t.Via.Hosts, ",")
		p.access.Endpoint = cmp.Or(t.Via.Params.Get("server_endpoint"), t.Via.Params.Get("endpoint"))
		p.access.Region = cmp.Or(t.Via.Params.Get("region"), p.access.Region)
		p.folder = strings.TrimPrefix(strings.Trim(t.Via.Database, "/")+"/", "/") + p.folder
	}
	add("once", p.create(), p.start())
	add("per group", "SELECT file_name, file_state, file_size FROM information_schema.pipelines_files …", p.countOf(group))
}
