package sqlload_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// interrupted is a server that ends queries. It answers SELECT 1 unless the connection is lost.
type interrupted struct{ lost bool }

var errEnded = errors.New("the query was interrupted")

func (i interrupted) Query(_ context.Context, query string, each func([][]byte) error) error {
	if i.lost || query == "SELECT interrupted" {
		return errEnded
	}
	return each([][]byte{[]byte("1")})
}

func (interrupted) Exec(context.Context, string) (int64, error) { return 0, nil }
func (interrupted) Close() error                                { return nil }

// A query that the server ends is one unanswered question; a lost connection ends them all.
func TestAskGoesOnAfterAnInterruptedQuery(t *testing.T) {
	table := &sqlload.Table{Classify: func(err error) (v loader.Verdict) {
		if err != nil {
			v = loader.Reconnect(loader.ClassConnection)
		}
		return v
	}}
	ok := func([]string) loader.Finding { return sqlload.OK("answered") }
	checks := []sqlload.Check{{Name: "a", Ask: "SELECT interrupted", Judge: ok}, {Name: "b", Ask: "SELECT b", Judge: ok}}
	none := func(error) string { return "" }

	findings, err := table.Ask(t.Context(), interrupted{}, loader.Intent{}, checks, none)
	require.NoError(t, err)
	require.Equal(t, []loader.Finding{
		{Check: "a", Grade: loader.GradeUnknown, Found: "the server does not say: the query was interrupted"},
		{Check: "b", Grade: loader.GradeOK, Found: "answered"},
	}, findings)

	findings, err = table.Ask(t.Context(), interrupted{lost: true}, loader.Intent{}, checks, none)
	require.ErrorIs(t, err, errEnded)
	require.Len(t, findings, 1)
}

func TestAdviceIsForTheDoctor(t *testing.T) {
	table := &sqlload.Table{Classify: func(error) loader.Verdict { return loader.Verdict{} }}
	judge := func([]string) loader.Finding { return sqlload.OK("") }
	checks := []sqlload.Check{{Name: "stops", Judge: judge}, {Name: "costs time", Advice: true, Judge: judge}}
	for advice, want := range map[bool]int{false: 1, true: 2} {
		findings, err := table.Ask(t.Context(), nil, loader.Intent{Advice: advice}, checks, nil)
		require.NoError(t, err)
		require.Len(t, findings, want)
	}
}

// A back-end without a doctor of its own asks about its table.
func TestCheckServer(t *testing.T) {
	m := newMemory(false)
	findings, err := m.table().CheckServer(t.Context(), loader.Intent{Preparation: preparation(never)})
	require.NoError(t, err)
	require.Len(t, findings, 1)
	require.Equal(t, loader.GradeFail, findings[0].Grade)
	require.Contains(t, findings[0].Found, "table "+target+" does not exist")

	m.tables[target] = existing["full"]
	findings, err = m.table().CheckServer(t.Context(), loader.Intent{Preparation: preparation(never)})
	require.NoError(t, err)
	require.Equal(t, target+" exists and takes the rows of dataset ", findings[0].Found)
}
