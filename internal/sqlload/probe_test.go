package sqlload_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Only what the probe has put there is removed, and what did not arrive proves nothing.
func TestProbe(t *testing.T) {
	type found struct{ rows, claims int64 }
	refused := errors.New("no partition for this key")
	const row, claim = `DELETE FROM "t" WHERE "id" = 7`, `DELETE FROM "c" WHERE run = 'r' AND batch = -2`
	for name, c := range map[string]struct {
		before, after found
		sent          error
		want          loader.Proof
		says          string
		removed       []string
		unsent        bool
	}{
		"nothing survives":      {want: loader.Proof{Transactional: true}},
		"a row does":            {after: found{1, 0}, says: "is there after the probe was rolled back"},
		"a claim does":          {after: found{0, 1}, want: loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, removed: []string{claim}},
		"both do":               {after: found{1, 1}, want: loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, removed: []string{row, claim}},
		"somebody's row":        {before: found{1, 0}, says: "the row with key 7 of table \"t\", which is to be the run's, is there already", unsent: true},
		"somebody came between": {after: found{2, 0}, says: "is there 2 times"},
		"an earlier claim":      {before: found{0, 1}, after: found{0, 1}, want: loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, removed: []string{claim}, unsent: true},
		"the row is refused":    {sent: refused, says: refused.Error()},
		"refused for another's": {sent: refused, after: found{1, 0}, says: refused.Error()},
		"refused, claim is in":  {sent: refused, after: found{1, 1}, says: refused.Error(), removed: []string{claim}},
	} {
		t.Run(name, func(t *testing.T) {
			s := sqlload.Statements{Dialect: postgres(), Schema: documents(), Table: `"t"`, Claims: `"c"`}
			there, sent := c.before, false
			var removed []string
			proof, err := s.Probe(t.Context(), loader.Ref{ID: batch.ID{Run: "r", Number: sqlload.Probe}, First: 7, Rows: 1}, sqlload.Trial{
				Look: func(_ context.Context, rows, claims string) (int64, int64, error) {
					assert.Equal(t, s.SelectRow(7), rows)
					assert.Equal(t, s.SelectClaim("r", sqlload.Probe), claims)
					return there.rows, there.claims, nil
				},
				Send: func(context.Context) error {
					there, sent = c.after, true
					return c.sent
				},
				Remove: func(_ context.Context, statement string) error {
					removed = append(removed, statement)
					return nil
				},
			})
			if c.says == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.says)
			}
			assert.Equal(t, c.want, proof)
			assert.Equal(t, c.removed, removed, strings.Join(removed, "; "))
			assert.Equal(t, c.unsent, !sent)
		})
	}
}
