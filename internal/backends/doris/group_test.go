package doris

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// groupTable opens a table for s3-load with n of ten rows in it.
func groupTable(t *testing.T, n int64) *staged {
	s, via, _ := startWithStore(t)
	d := documents(t)
	target := s.table(methodStreamLoad, nil)
	if n > 0 {
		c := contractOf(methodStreamLoad, batch.DorisCSV, n)
		b := batchOf(t, d, batch.DorisCSV, batch.ID{Run: "other"}, 0, n)
		require.NoError(t, attempts(t.Context(), s.open(t, target, d, c), c, b))
	}
	target.Method, target.Via = methodS3Load, via
	return prepared(t, target, d, contractOf(methodS3Load, batch.DorisCSV, 5)).(*staged)
}

func tenOfAGroup() loader.Group {
	member := func(number int64) loader.Ref {
		return loader.Ref{ID: batch.ID{Run: "r", Number: number}, First: 5 * number, Rows: 5, Attempt: 1}
	}
	return loader.Group{Ref: loader.Ref{ID: batch.ID{Run: "r"}, Rows: 10, Attempt: 1}, Members: []loader.Ref{member(0), member(1)}}
}

// A group that is committed may lack rows, and is counted when it is visible: were it taken for applied, its objects would
// be removed.
func TestCommittedGroupsAreCounted(t *testing.T) {
	for n, want := range map[int64]loader.Applied{0: loader.No, 5: loader.Unknown, 10: loader.Yes} {
		var asked atomic.Int64
		fe := listen(t, func(w http.ResponseWriter, _ *http.Request) {
			state := stateCommitted
			if asked.Add(1) > 3 {
				state = stateVisible
			}
			fmt.Fprintf(w, `{"msg":"success","code":0,"data":%q}`, state)
		})
		db := groupTable(t, n)
		db.hosts.List[0].http.Host = fe.address()
		found, err := db.Resolve(t.Context(), tenOfAGroup().Ref)
		require.NoError(t, err)
		assert.Equal(t, want, found.Applied, "%d rows", n)
		assert.EqualValues(t, 4, asked.Load())
		for _, h := range fe.all() {
			assert.Equal(t, http.MethodGet, h.method, "what is committed cannot be cancelled")
		}
	}
}

// A statement that found no objects has used the label up. To send under it again would go on for ever.
func TestLabelUsedForNothing(t *testing.T) {
	db := groupTable(t, 0)
	g := tenOfAGroup()
	session := backendtest.Session(t, db, contractOf(methodS3Load, batch.DorisCSV, 5))
	for _, m := range g.Members {
		_, err := load(t.Context(), session, batchOf(t, documents(t), batch.DorisCSV, m.ID, m.First, m.Rows))
		require.NoError(t, err)
	}
	access, err := db.Store.Access(t.Context())
	require.NoError(t, err)
	nothing := source{uri: "s3://bucket/not-there", access: access, format: batch.DorisCSV}
	_, err = db.insertSelect(t.Context(), g, newStatements(db.name, documents(t).Schema()).loadObjects(db.name.label(g.Ref, true), nothing), access)
	require.ErrorContains(t, err, "the server took 0 of 10 rows")
	found, err := db.Resolve(t.Context(), g.Ref)
	require.NoError(t, err)
	assert.Equal(t, loader.No, found.Applied)
	_, err = db.Commit(t.Context(), g)
	require.ErrorContains(t, err, "put no rows in")
	require.Contains(t, loader.Explain(err), "another run id")
	assert.Equal(t, loader.Verdict{Class: loader.ClassOther, Applied: loader.No}, New().Classify(err))
}

// A syntax error quotes a piece of the statement, where keys are escaped.
func TestErrorsHoldNoKeys(t *testing.T) {
	const secret = `hunter2/K7MDENG"EX\AMPLE+hunter2`
	keys := objstore.Access{KeyID: "AKIAhunter2", Secret: secret, Token: secret + "hunter2"}
	text, db := statements{}.loadObjects("", source{access: keys}), groupTable(t, 0)
	for i := range len(text) - 1 {
		_, err := db.insertSelect(t.Context(), tenOfAGroup(), "near "+text[i:min(len(text), i+60)], keys)
		require.ErrorContains(t, err, "Syntax error")
		assert.NotContains(t, err.Error(), "hunter2")
		assert.NotContains(t, err.Error(), "K7MDENG")
		assert.NotContains(t, err.Error(), "AMPLE")
	}
}
