package sqlload

import (
	"context"

	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists what a run says to the server, beginning without a table: loads are the statements that load a batch or a
// group, of which the table knows nothing.
func (t *Table) Explain(p loader.Preparation, loads []loader.Statement) (all []loader.Statement) {
	s := t.Plan(p)
	add := func(when string, statements ...string) {
		for _, text := range statements {
			all = append(all, loader.Statement{When: when, Text: text})
		}
	}
	if s.claims() {
		add("once", t.Claims.CreateClaims(s))
	}
	if p.Create == loader.CreateRecreate {
		add("once", s.DropTable())
	}
	if p.Create != loader.CreateNever {
		create, _ := t.Catalog.Create(context.Background(), nil, s) // asks nothing without a connection
		add("once", create...)
	}
	if p.Create == loader.CreateTruncate { // the table that is there, of which what stands above is not said
		if s.Flush != "" {
			add("once", s.Flush)
		}
		add("once", s.Truncate())
	}
	all = append(all, loads...)
	rows := p.Contract.BatchRows
	add("to verify", s.SelectBuckets(loader.Grouping{KeyRange: loader.KeyRange{Last: rows - 1}, Size: rows}))
	if s.claims() {
		add("afterwards", s.DeleteClaims("RUN"))
	}
	return all
}
