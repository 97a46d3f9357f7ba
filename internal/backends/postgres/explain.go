package postgres

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain shows what a run into a missing table says. The scheme is all there is to tell the flavour by.
func (driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	schema, c := p.Schema, p.Contract
	_, o, _ := planOf(t) // what is wrong with the options Check says
	f := postgreSQL
	if t.Scheme == schemeYugabyte {
		f = yugabyteDB
	}
	table := t.Table
	if table == "" {
		table = schema.Dataset
	}
	s := statementsFor(table, schema, c.Method, o, f)
	s.primaryKey = p.PrimaryKey || c.Dedup == loader.DedupRange

	var all []loader.Statement
	add := func(when, text string) { all = append(all, loader.Statement{When: when, Text: text}) }
	claims := c.Dedup == loader.DedupTx

	if claims {
		add("once", s.createClaims())
	}
	if p.Create == loader.CreateRecreate {
		add("once", "DROP TABLE "+s.Table)
	}
	if p.Create != loader.CreateNever {
		add("once", s.createTable())
		add("once", s.markTable())
	}
	add("per session", s.sessionSetup(t))
	add("per session", nameSession("RUN"))
	send := s.send(c.Format, c.Dedup)
	if s.method == methodInsert {
		send += "(…), (…), …"
	}
	if claims {
		add("per batch", s.claim(loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: c.BatchRows}))
		add("per batch", send)
		add("per batch", "COMMIT")
	} else {
		add("per batch", send)
	}
	add("to verify", s.SelectBuckets(loader.Grouping{KeyRange: loader.KeyRange{Last: c.BatchRows - 1}, Size: c.BatchRows}))
	if claims {
		add("afterwards", s.DeleteClaims("RUN"))
	}
	return all
}
