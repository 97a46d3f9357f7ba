package oracle

import (
	"strings"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain shows the statements of a run into a missing table. Transactions begin implicitly.
func (b backend) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	c := p.Contract
	_, o, _ := planOf(b.client, t) // Check returns the error
	l := catalog{&opened{target: t, method: c.Method, options: o}}
	table := &sqlload.Table{Catalog: l, Claims: l}
	s := l.statements(table.Example(p))
	if err := checkLengths(p.Schema); err != nil {
		// Check does not know the schema.
		return []loader.Statement{{When: "refused: " + strings.ReplaceAll(loader.Explain(err), "\n", "; "), Text: s.createTable()}}
	}
	var loads sqlload.Script
	add := loads.Add
	s.explainBatch(t, c, add)
	first := loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: c.BatchRows}
	if c.Dedup == loader.DedupTx {
		add("after a lost answer", s.TryClaim(first), s.SelectClaim("RUN", 0), "ROLLBACK")
	}
	const end = "when a session ends"
	if s.method == methodFast {
		add(end, selectWritten)
	}
	if !p.Silent {
		add(end, selectCost())
	}
	if s.method == methodFast {
		add("before verification", flushWrites, selectApplied)
	}
	if o.Partition != "" {
		p.Create = loader.CreateNever // other modes are refused
	}
	all := table.Explain(p, loads)
	for i := range all { // a block has its own semicolon, and another one is added
		all[i].Text = strings.TrimSuffix(all[i].Text, ";")
	}
	return all
}

func (s statements) explainBatch(t loader.Target, c loader.Contract, add func(when string, texts ...string)) {
	add("per session", s.sessionSetup(t.Settings)...)
	if c.Dedup == loader.DedupTx {
		add("per batch", s.claim())
	}
	switch s.method {
	case methodSingle:
		add("per row", s.insert(), "COMMIT")
	case methodBatch:
		add("per row", s.insert())
		add("per batch", "COMMIT")
	default:
		add("per batch", s.insert(), "COMMIT")
	}
}
