package oracle

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"strings"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch over connections that write down what is sent. Transactions begin implicitly.
func (b backend) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	method, o, _ := planOf(b.client, t) // Check returns the error
	l := b.unconnected(t, loader.Deps{Log: slog.New(slog.DiscardHandler)}, method, o)
	l.server.Product = "Oracle" // which needs no look at what listens
	r := sqlload.NewRecorder(l.Table)
	r.Traits = []string{""}
	l.client.connector = func(loader.Target, loader.Deps, int) (driver.Connector, error) { return r.Connector(), nil }
	r.Missing = &serverError{number: codeNoTable}
	r.Answer = func(query string) [][]string {
		if query == selectWritten || query == selectApplied {
			return [][]string{{"1"}}
		}
		return nil
	}
	if o.Partition != "" {
		p.Create = loader.CreateNever // other modes are refused
	}

	r.Prepare(p, l.Prepare)
	r.Load(l, p)
	if st, err := l.State(); err == nil && p.Contract.Dedup == loader.DedupTx {
		first := loader.Ref{ID: batch.ID{Run: st.Want.Run}, Rows: p.Contract.BatchRows}
		r.Add("after a lost answer", st.TryClaim(first), st.SelectClaim(first.ID.Run, 0), "ROLLBACK")
	}
	r.Step("before verification", func(ctx context.Context) error {
		_, err := l.Finish(ctx, loader.KeyRange{}, 0)
		return err
	})
	r.Count(p)
	return byRow(method, r.Statements())
}

// byRow says what is sent for each row of a batch, of which only one was. A block has its own semicolon, and another
// one is added.
func byRow(method string, all []loader.Statement) []loader.Statement {
	for i := range all {
		s := &all[i]
		s.Text = strings.TrimSuffix(s.Text, ";")
		inserts := strings.HasPrefix(s.Text, "INSERT ")
		if s.When == "per batch" && (method == methodSingle || method == methodBatch && inserts) {
			s.When = "per row"
		}
	}
	return all
}
