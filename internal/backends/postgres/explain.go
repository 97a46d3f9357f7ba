package postgres

import (
	"cmp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Explain lists the statements of a run into a missing table. It knows the flavour from scheme and method only.
func (driver) Explain(t loader.Target, p loader.Preparation) []loader.Statement {
	c := p.Contract
	_, o, _ := planOf(t) // Check returns the error
	f := postgreSQL
	switch {
	case t.Scheme == schemeYugabyte:
		f = yugabyteDB
	case c.Method == methodS3Copy:
		f = redshift
	}
	l := &opened{access: access{target: t}, method: c.Method, options: o, flavour: f, ahead: takesAhead[f]}
	table := &sqlload.Table{Catalog: catalog{l}, Claims: catalog{l}}
	s := l.statements(table.Example(p))
	setup, each := []string{f.sessionSetup(t)}, []string{}
	if o.NonTransactional {
		setup = append(setup, nonTransactional)
	}
	setup = append(setup, nameSession("RUN", ""))
	claims := c.Dedup == loader.DedupTx
	first := loader.Ref{ID: batch.ID{Run: "RUN"}, Rows: c.BatchRows * max(c.GroupBatches, 1)}
	load := s.load(c.Format, c.Dedup)
	switch {
	case claims && f == redshift:
		each = append(each, "BEGIN", lockClaims(s.Statements), s.SelectClaim("RUN", 0), s.InsertClaim(first))
	case claims && s.ahead:
		setup = append(setup, s.prepareClaim())
		load = s.claimAndLoad(first, c.Format)
	case claims:
		each = append(each, claim(s.Statements, first))
	case c.Staged():
		each = append(each, "BEGIN")
	}
	switch {
	case c.Staged():
		each = append(each, s.explainCopy(t)...)
	case s.method == methodInsert:
		each = append(each, load+"(…), (…), …")
	default:
		each = append(each, load)
	}
	if claims || c.Staged() {
		each = append(each, "COMMIT")
	}
	var all sqlload.Script
	add := all.Add
	if c.Staged() { // a connection for each group
		add("per group", slices.Concat(setup, each)...)
	} else {
		add("per session", setup...)
		add("per batch", each...)
	}
	return table.Explain(p, all)
}

// explainCopy shows how the first group is read. Region and keys are not known before the store is opened.
func (s statements) explainCopy(t loader.Target) []string {
	a := objstore.Access{Bucket: "…", Region: "…", KeyID: "…", Secret: "…"}
	folder := "RUN/g000000000000/"
	if t.Via != nil {
		a.Bucket, a.Region = strings.Join(t.Via.Hosts, ","), cmp.Or(t.Via.Params.Get("region"), a.Region)
		folder = strings.TrimPrefix(strings.Trim(t.Via.Database, "/")+"/", "/") + folder
	}
	return []string{s.copyObjects(a, folder), copyCount}
}
