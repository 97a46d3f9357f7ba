package objstore

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestSessions(t *testing.T) {
	var failing bool
	server := fakeStore(t, func(w http.ResponseWriter, r *http.Request) bool {
		if failing {
			refuse(w, r, http.StatusInternalServerError, "InternalError", "try again")
		}
		return failing
	})
	s := open(t, targetOf(t, "s3://bucket/p", server.URL))
	staging := func(folders bool) loader.Session {
		session, err := (&Staging{Store: s, Folders: folders}).Session(t.Context(), loader.Contract{GroupBatches: 5})
		require.NoError(t, err)
		return session
	}
	for run, c := range map[string]struct {
		session loader.Session
		object  string // below the run's folder
		stored  bool
	}{
		"goal":   {Session(s.Run("goal")), "000000000014.csv", false},
		"staged": {staging(false), "000000000014.csv", true},
		"groups": {staging(true), "g000000000002/000000000014.csv", true},
	} {
		failing = false
		b := newBatch(run, 14, "row\n") // the last one of its group
		ack, err := c.session.Load(t.Context(), b.Batch)
		require.NoError(t, err)
		assert.Equal(t, loader.Ack{Stored: c.stored, Rows: 100}, ack)
		assert.Equal(t, []string{"p/" + run + "/" + c.object}, names(t, s.Run(run)))

		failing = true
		_, err = c.session.Load(t.Context(), b.Batch)
		assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassOther}, verdictOf(t, err), "the object may be there")
		require.NoError(t, c.session.Close())
	}
}
