package sqlload

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Forget implements loader.Claims. The claims go after the fence, in pieces: nobody can add any.
func (t ClaimedTable) Forget(ctx context.Context, name string) (removed int64, known bool, err error) {
	s, err := t.State()
	if err != nil {
		return 0, false, err
	}
	op := "forget run " + name
	var claims, runs []string
	err = t.connect(ctx, func(c Conn) error {
		if s, err = t.find(ctx, c, s, name); err != nil || s == nil {
			return err
		}
		found, err := readRuns(ctx, c, s.SelectRuns(named(name)))
		if err != nil {
			return err
		}
		for _, r := range found {
			runs = append(runs, r.Run)
		}
		claims, err = t.claimTables(ctx, c, s)
		return err
	})
	if err != nil || len(runs) == 0 {
		return 0, false, t.Failed(op, err)
	}
	err = t.fence(ctx, s, Fence{Claims: claims, Run: name, Shard: ""}, func(c Conn) error {
		set := fmt.Sprintf("state = '%s', ", loader.RunForgotten) + s.signed(newEpoch(""), s.Want.Owner, time.Now())
		_, err := c.Exec(ctx, s.updateRuns(set, fmt.Sprintf("%s AND state <> '%s'", named(name), loader.RunForgotten)))
		return err
	})
	if err != nil {
		return 0, true, t.Failed(op, err)
	}
	slices.Sort(runs)
	err = t.connect(ctx, func(c Conn) error {
		for _, run := range slices.Compact(runs) {
			for _, table := range claims {
				n, err := deleteClaims(ctx, c, s, table, run)
				if removed += n; err != nil {
					return err
				}
			}
		}
		return nil
	})
	return removed, true, t.Failed(op, err)
}

// find returns the state whose runs have the name: that of the target's schema, or of another one that this user sees;
// nil if there is none.
func (t *Table) find(ctx context.Context, c Conn, s *State, name string) (*State, error) {
	found, err := readRuns(ctx, c, s.SelectRuns(named(name)))
	if err == nil && len(found) > 0 {
		return s, nil
	}
	if err != nil && !t.isMissing(err) {
		return nil, err
	}
	schemas, err := Rows(ctx, c, t.Claims.SelectRunSchemas())
	if err != nil {
		return nil, err
	}
	for _, row := range schemas {
		in := *s
		in.Claims, in.OtherClaims = s.claimsIn(row[0], ClaimsTable), ""
		if s.OtherClaims != "" {
			in.OtherClaims = s.claimsIn(row[0], UnloggedClaims)
		}
		found, err := readRuns(ctx, c, in.SelectRuns(named(name)))
		if err == nil && len(found) > 0 {
			return &in, nil
		}
	}
	return nil, nil
}

// claimsPiece is the number of claims that one statement removes at most, so that no transaction becomes large.
const claimsPiece = 10_000

func deleteClaims(ctx context.Context, c Conn, s *State, claims, run string) (removed int64, err error) {
	in := s.Statements
	in.Claims = claims
	bounds, err := Rows(ctx, c, in.SelectBounds(run))
	if err != nil || len(bounds) == 0 || bounds[0][0] == "" {
		return 0, err
	}
	first, err := ParseNumber(bounds[0][0])
	if err != nil {
		return 0, err
	}
	last, err := ParseNumber(bounds[0][1])
	if err != nil {
		return 0, err
	}
	for ; first <= last; first += claimsPiece {
		n, err := c.Exec(ctx, in.DeleteClaims(run, first, min(first+claimsPiece-1, last)))
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}
