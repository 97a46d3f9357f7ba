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
	for name, c := range map[string]struct {
		session func(run string) loader.Session
		object  string // below the run's folder
		stored  bool
	}{
		"at its goal": {
			session: func(run string) loader.Session { return Session(s.Run(run)) },
			object:  "000000000013.csv",
		},
		"staging": {
			session: func(string) loader.Session {
				staging := Staging{Store: s}
				session, err := staging.Session(t.Context(), loader.Contract{GroupBatches: 5})
				require.NoError(t, err)
				return session
			},
			object: "000000000013.csv", stored: true,
		},
		"in groups": {
			session: func(string) loader.Session {
				staging := Staging{Store: s, Folders: true}
				session, err := staging.Session(t.Context(), loader.Contract{GroupBatches: 5})
				require.NoError(t, err)
				return session
			},
			object: "g000000000002/000000000013.csv", stored: true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			run := "run" + string(name[0])
			failing = false
			session, b := c.session(run), newBatch(run, 13, "row\n")
			ack, err := session.Load(t.Context(), b.Batch)
			require.NoError(t, err)
			assert.Equal(t, loader.Ack{Stored: c.stored, Rows: 100}, ack)
			assert.Equal(t, []string{"p/" + run + "/" + c.object}, names(t, s.Run(run)))

			failing = true
			_, err = session.Load(t.Context(), b.Batch)
			v, _ := classify(err)
			assert.Equal(t, loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassOther}, v, "the object may be there")
			require.NoError(t, session.Close())
		})
	}
}
