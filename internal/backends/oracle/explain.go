package oracle

import (
	"context"
	"database/sql/driver"
	"log/slog"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Explain lets a run load a batch over connections that write down what is sent. Transactions begin implicitly.
func (d Driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	method, o, _ := planOf(d.client, t) // Check returns the error
	l := d.unconnected(t, loader.Deps{Log: slog.New(slog.DiscardHandler)}, method, o)
	l.server.Product = "Oracle" // which needs no look at what listens

	const selectClaim = "SELECT TO_CHAR(row_count)"
	r := sqlload.NewRecorder(l.Table)
	r.Traits = []string{""}
	l.client.connector = func(loader.Target, loader.Deps, int) (driver.Connector, error) { return r.Connector(), nil }
	r.Missing = &serverError{number: codeNoTable}
	r.Answer = func(query string) [][]string {
		switch {
		case query == selectWritten, query == selectApplied:
			return [][]string{{"1"}}
		case strings.HasPrefix(query, selectClaim):
			return [][]string{{strconv.FormatInt(p.Contract.BatchRows, 10)}}
		}
		return nil
	}
	if o.Partition != "" {
		p.Create = loader.CreateNever // other modes are refused
	}

	r.Prepare(p, l.Prepare)
	r.Load(l, p)
	if p.Contract.Dedup == loader.DedupTx {
		r.When(sqlload.LostAnswer, selectClaim, sqlload.LostAnswer+", if the claim is taken")
		r.Resolve(sqlload.LostAnswer, l, p.Contract)
		r.Refuse = func(statement string) (taken error) {
			if strings.HasPrefix(statement, "INSERT ") {
				taken = &serverError{number: codeUnique}
			}
			return taken
		}
		r.Resolve(sqlload.LostAnswer, l, p.Contract)
	}
	r.Step("before verification", func(ctx context.Context) error {
		_, err := l.Finish(ctx, loader.KeyRange{}, 0)
		return err
	})
	r.Count(p)

	switch method { // of a batch one row was sent
	case methodSingle:
		r.When("per batch", "", "per row")
	case methodBatch:
		r.When("per batch", "INSERT ", "per row")
	}
	return r.Statements()
}
