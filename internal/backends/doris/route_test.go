package doris

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Frontends are taken in turn; one that nobody answers at is passed over.
func TestFrontendsInTurn(t *testing.T) {
	be := listen(t, loads(10))
	one, two := listen(t, redirect(be.URL+"/x")), listen(t, redirect(be.URL+"/x"))
	db := pointed(t, nil, one.address(), closedPort(t), two.address())
	for range 3 {
		err := send(t, db)
		require.NoError(t, err)
	}
	assert.Len(t, one.all(), 1)
	assert.Len(t, two.all(), 2)
	assert.Len(t, be.all(), 3)
}

// An error that a frontend speaks is the same at the next one, so it is not asked.
func TestFrontendRefuses(t *testing.T) {
	fe := listen(t, says(`{"msg":"Unauthorized","code":401,"data":"Access denied","count":0}`))
	other := listen(t, says(""))
	db := pointed(t, nil, fe.address(), other.address())
	err := send(t, db)
	require.ErrorContains(t, err, "Unauthorized")
	assert.Equal(t, loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}, New().Classify(err))
	assert.Empty(t, other.all())
	assert.NotContains(t, err.Error(), "hunter2")
}

// A backend that takes loads is not asked for again for a while; one that fails is.
func TestBackendIsRemembered(t *testing.T) {
	var failing atomic.Bool
	be := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if failing.Load() {
			panic(http.ErrAbortHandler)
		}
		loads(10)(w, r)
	})
	for name, c := range map[string]struct {
		to   string
		stay time.Duration
		want []int // questions after each load
	}{
		"for a while":     {be.URL + "/x", time.Hour, []int{1, 1, 1, 2, 2}}, // the third fails
		"not for ever":    {be.URL + "/x", 0, []int{1, 2, 3, 4, 5}},
		"with parameters": {be.URL + "/x?forward_to=1.2.3.4", time.Hour, []int{1, 2, 3, 4, 5}},
	} {
		t.Run(name, func(t *testing.T) {
			fe := listen(t, redirect(c.to))
			db := pointed(t, nil, fe.address())
			db.backendTime = c.stay
			s := session(t, db).(*streamSession)
			for n, want := range c.want {
				failing.Store(n == 2)
				_, err := load(t.Context(), s, ten(t))
				assert.Equal(t, n == 2, err != nil)
				s.dead = false // the engine would open another one
				assert.Len(t, fe.all(), want, "after load %d", n)
			}
		})
	}
}

func TestBackendsByHand(t *testing.T) {
	one, two := listen(t, loads(10)), listen(t, loads(10))
	t.Run("without a frontend", func(t *testing.T) {
		db := pointed(t, map[string]string{optBackends: one.address() + "," + two.address()}, closedPort(t))
		s := session(t, db)
		for range 2 {
			_, err := load(t.Context(), s, ten(t))
			require.NoError(t, err)
		}
		assert.Len(t, one.all(), 1)
		assert.Len(t, two.all(), 1)
		assert.Equal(t, "/api/shop/docu%20ments/_stream_load", two.all()[0].path)
	})
	// The turn goes on although every session that meets the dead backend ends.
	t.Run("one is dead", func(t *testing.T) {
		alive := listen(t, loads(10))
		db := pointed(t, map[string]string{optBackends: closedPort(t) + "," + alive.address()}, closedPort(t))
		err := send(t, db)
		require.Contains(t, loader.Explain(err), "leave it out")
		assert.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}, New().Classify(err))
		err = send(t, db)
		require.NoError(t, err)
	})
	t.Run("with a redirect to an inner address", func(t *testing.T) {
		be := listen(t, loads(10))
		forward := listen(t, redirect("http://10.0.0.1:8040/x"))
		db := pointed(t, map[string]string{optBackends: forward.address() + ",10.0.0.1:8040=" + be.address()}, closedPort(t))
		err := send(t, db)
		require.NoError(t, err)
		assert.Len(t, be.all(), 1)
	})
	t.Run("nobody there", func(t *testing.T) {
		dead := closedPort(t)
		db := redirected(t, "http://admin:"+"hunter2"+"@"+dead+"/x")
		err := send(t, db)
		require.Contains(t, loader.Explain(err), "--backend-hosts "+dead+"=HOST:PORT")
		assert.Equal(t, loader.No, New().Classify(err).Applied)
		be, err := db.findBackend(t.Context(), 0, nil)
		require.NoError(t, err)
		assert.Nil(t, be.User, "an address that errors may show")
	})
}

// A frontend that hangs, breaks off or has no master is passed over, and the one that answered is asked first from then on.
func TestQuestionsGoToTheNextFrontend(t *testing.T) {
	for name, bad := range map[string]http.HandlerFunc{
		"hangs":   func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"breaks":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
		"503":     func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) },
		"no JSON": says("<html>"),
	} {
		t.Run(name, func(t *testing.T) {
			first, second := listen(t, bad), listen(t, says(`{"msg":"success","code":0,"data":"VISIBLE"}`))
			db := pointed(t, nil, first.address(), second.address())
			if name == "hangs" {
				db.hosts.Patience = 50 * time.Millisecond
			}
			for range 2 {
				found, err := db.Resolve(t.Context(), loader.Ref{ID: batch.ID{Run: "r"}, Rows: 10})
				require.NoError(t, err)
				assert.Equal(t, loader.Yes, found.Applied)
			}
			assert.Len(t, first.all(), 1)
			assert.Len(t, second.all(), 2)
		})
	}
}
