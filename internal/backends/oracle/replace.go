package oracle

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// codeReferenced is what TRUNCATE fails with where enabled foreign keys of other tables refer to the table.
const codeReferenced = 2266

// replace drops a table that terapush made, or that the user names, and makes it anew. The claim table comes first, since
// a missing privilege is found there while the old table still stands.
func (r *ready) replace(ctx context.Context, k *link, found *relation, p loader.Preparation) (*relation, error) {
	if err := r.mayRemove(found, p); err != nil {
		return nil, err
	}
	if found.kind != "TABLE" {
		return nil, &loader.Error{
			Op: "recreate", Applied: loader.No, Err: fmt.Errorf("%s is a %s, so it is not dropped", found, strings.ToLower(found.kind)),
			Hint: "choose another --table",
		}
	}
	r.Table = qualified(found.owner, found.name)
	if err := r.claimsFirst(ctx, k, found, p); err != nil {
		return nil, err
	}
	if err := k.run(ctx, "drop the table "+r.Table, r.dropTable()); err != nil {
		return nil, err
	}
	return r.make(ctx, k)
}

// mayRemove compares names in upper case, as the server would that is given them without quotation marks.
func (r *ready) mayRemove(found *relation, p loader.Preparation) error {
	p.MayDrop = strings.ToUpper(p.MayDrop)
	return p.MayRemove(found.String(), found.comment, strings.ToUpper(found.String()), strings.ToUpper(r.asked))
}

// claimsFirst makes the claim table that belongs to a table whose rows are about to go.
func (r *ready) claimsFirst(ctx context.Context, k *link, found *relation, p loader.Preparation) error {
	if p.Contract.Dedup != loader.DedupTx {
		return nil
	}
	r.Claims = claimsTable(found.owner)
	return r.makeClaims(ctx, k, p.Resume)
}

// empty removes the rows of a table that fits. What else could keep the run from starting comes first, as in replace: a
// TRUNCATE commits, and nothing brings the rows back. It gives the table another data object, so the table is looked up
// again.
//
// What Fast Ingest still has in memory of an earlier run would come in behind it, and is written before.
func (r *ready) empty(ctx context.Context, k *link, found *relation, p loader.Preparation) (*relation, error) {
	if err := r.mayRemove(found, p); err != nil {
		return nil, err
	}
	r.Table = qualified(found.owner, found.name)
	if r.options.partition != "" {
		return nil, &loader.Error{
			Op: string(p.Create), Applied: loader.No,
			Err:  fmt.Errorf("option %s names a partition, and TRUNCATE TABLE would empty all of them", optionPartition),
			Hint: fmt.Sprintf("ALTER TABLE %s TRUNCATE PARTITION %s yourself, and use --create never", r.Table, r.Identifier(r.options.partition)),
		}
	}
	if err := r.claimsFirst(ctx, k, found, p); err != nil {
		return nil, err
	}
	if r.method == methodFast {
		_, _ = k.exec(ctx, flushWrites) // where it is refused, the look for rows below is what is left
	}
	if err := k.run(ctx, "empty the table "+r.Table, r.truncateTable()); err != nil {
		return nil, r.notEmptied(k, err)
	}
	emptied, err := r.locate(ctx, k)
	if err == nil && emptied == nil {
		err = fmt.Errorf("table %s is gone right after it was emptied", r.Table)
	}
	return emptied, err
}

// notEmptied says what to do about a TRUNCATE that the server refused.
func (r *ready) notEmptied(k *link, err error) error {
	hint := ""
	switch {
	case k.is(err, codeBusy):
		hint = "somebody has uncommitted rows in it: wait for that session or end it, and try again"
	case k.is(err, codePrivileges):
		hint = "in another user's schema it takes DROP ANY TABLE: grant that, or have the owner empty it and use --create never"
	case k.is(err, codeReferenced):
		hint = "disable the foreign keys of other tables that refer to it"
	default:
		return err
	}
	return &loader.Error{Op: "empty the table " + r.Table, Applied: loader.No, Err: errors.Unwrap(err), Hint: hint}
}
