package postgres

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain shows what a run into a missing table says. The scheme is all there is to tell the flavour by.
func (driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	c := p.Contract
	_, o, _ := planOf(t) // what is wrong with the options Check says
	f := postgreSQL
	switch {
	case t.Scheme == schemeYugabyte:
		f = yugabyteDB
	case c.Method == methodS3Copy:
		f = redshift
	}
	l := &opened{access: access{target: t}, method: c.Method, options: o, flavour: f}
	table := &sqlload.Table{Catalog: catalog{l}, Claims: catalog{l}}
	s := l.statements(table.Plan(p))
	var all []loader.Statement
	add := func(when, text string) { all = append(all, loader.Statement{When: when, Text: text}) }
	claims := c.Dedup == loader.DedupTx
	when := "per batch"
	if c.Staged() {
		when = "per group" // on a connection of its own
		add(when, f.sessionSetup(t))
		add(when, nameSession("RUN"))
	} else {
		add("per session", f.sessionSetup(t))
		if o.nonTransactional {
			add("per session", nonTransactional)
		}
		add("per session", nameSession("RUN"))
	}
	send := s.send(c.Format, c.Dedup)
	if s.method == methodInsert {
		send += "(…), (…), …"
	}
	first := loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: c.BatchRows * max(c.GroupBatches, 1)}
	switch {
	case claims && f == redshift:
		for _, text := range []string{"BEGIN", lockClaims(s.Statements), s.SelectClaim("RUN", 0), s.InsertClaim(first)} {
			add(when, text)
		}
	case claims:
		add(when, claim(s.Statements, first))
	case c.Staged():
		add(when, "BEGIN")
	}
	if c.Staged() {
		for _, text := range s.explainFetch(t, c.Format) {
			add(when, text)
		}
	} else {
		add(when, send)
	}
	if claims || c.Staged() {
		add(when, "COMMIT")
	}
	return table.Explain(p, all)
}

// explainFetch shows how the first group is read. Region and keys are found out when the store is opened.
func (s statements) explainFetch(t loader.Target, f batch.Format) []string {
	a := objstore.Access{Bucket: "…", Region: "…", KeyID: "…", Secret: "…"}
	folder := "RUN/g000000000000/"
	if t.Via != nil {
		a.Bucket, a.Region = strings.Join(t.Via.Hosts, ","), cmp.Or(t.Via.Params.Get("region"), a.Region)
		folder = strings.TrimPrefix(strings.Trim(t.Via.Database, "/")+"/", "/") + folder
	}
	if s.flavour == redshift {
		return []string{s.copyObjects(a, folder), copyCount}
	}
	call := s.importObject()
	for i, v := range slices.Backward(s.importValues(a, folder+"000000000000."+string(f), f)) {
		call = strings.Replace(call, fmt.Sprintf("$%d", i+1), sqlload.Literal(v), 1)
	}
	return []string{call}
}
