package sqlload_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Only what the probe has put there is removed, and what did not arrive proves nothing.
func TestProbe(t *testing.T) {
	refused := errors.New("no partition for this key")
	const row, claim = `DELETE FROM "t" WHERE "id" = 7`, `DELETE FROM "c" WHERE run = 'r' AND batch = -2`
	for name, c := range map[string]struct {
		before, after found
		sent          error
		want          loader.Proof
		says          string
		removed       []string
		unsent        bool
		lost          bool
	}{
		"nothing survives":      {want: loader.Proof{Transactional: true}},
		"a row does":            {after: found{1, 0}, says: "is there after the probe was rolled back"},
		"a claim does":          {after: found{0, 1}, want: loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, removed: []string{claim}},
		"both do":               {after: found{1, 1}, want: loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, removed: []string{row, claim}},
		"somebody's row":        {before: found{1, 0}, says: "the row with key 7 of table \"t\", which the run would write, is there already", unsent: true},
		"somebody came between": {after: found{2, 0}, says: "is there 2 times"},
		"an earlier claim":      {before: found{0, 1}, after: found{0, 1}, want: loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, removed: []string{claim}, unsent: true},
		"the row is refused":    {sent: refused, says: refused.Error()},
		"refused for another's": {sent: refused, after: found{1, 0}, says: refused.Error()},
		"another has the run":   {lost: true, says: errTakenOver.Error()}, // which then begins it, and this process waits
		"refused, claim is in":  {sent: refused, after: found{1, 1}, says: refused.Error(), removed: []string{claim}},
	} {
		t.Run(name, func(t *testing.T) {
			server := &scripted{found: c.before}
			table := sqlload.ClaimedTable{Table: &sqlload.Table{
				Catalog: server, Failed: func(_ string, err error) error { return err }, Classify: func(error) loader.Verdict { return loader.Verdict{} },
				Connect: func(context.Context) (sqlload.Conn, error) { return server, nil },
			}}
			_, err := table.Prepare(t.Context(), loader.Preparation{Silent: true, Schema: documents()})
			require.NoError(t, err)
			sent := false
			ref := loader.Ref{ID: batch.ID{Run: "r"}, First: 7, Rows: 1}
			proof, err := table.ProbeBy(t.Context(), ref, func(context.Context) (sqlload.Session, sqlload.Send, error) {
				sent = true
				s := &conn{}
				if c.lost {
					return s, func(context.Context, loader.Ref) (sqlload.Sent, error) { return sqlload.Sent{}, nil }, nil
				}
				return s, sqlload.ClaimThen(s, func(context.Context) (int64, []string, error) {
					server.found = c.after
					return 1, nil, c.sent
				}), nil
			})
			if c.says == "" {
				assert.NoError(t, err)
			} else {
				assert.ErrorContains(t, err, c.says)
			}
			assert.Equal(t, c.want, proof)
			assert.Equal(t, c.removed, server.removed)
			assert.Equal(t, c.unsent, !sent)
		})
	}
}

// scripted is a server that knows how many rows and claims of the probe there are.
type scripted struct {
	sqlload.Catalog
	found   found
	removed []string
}

type found struct{ rows, claims int64 }

func (s *scripted) Plan(p loader.Preparation) sqlload.Statements {
	return sqlload.Statements{Dialect: postgres(), Schema: p.Schema, Table: `"t"`, Claims: `"c"`}
}

func (s *scripted) Exec(_ context.Context, statement string) (int64, error) {
	s.removed = append(s.removed, statement)
	return 1, nil
}

func (s *scripted) Query(_ context.Context, query string, each func([][]byte) error) error {
	if strings.Contains(query, `FROM "t"`) {
		return each([][]byte{strconv.AppendInt(nil, s.found.rows, 10)})
	}
	if s.found.claims > 0 {
		return each([][]byte{[]byte("1")})
	}
	return nil
}

func (s *scripted) Close() error { return nil }
