package doris

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
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
		_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
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
	_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
	require.ErrorContains(t, err, "Unauthorized")
	assert.Equal(t, loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}, New().Classify(err))
	assert.Empty(t, other.all())
	assert.NotContains(t, err.Error(), "hunter2")
}

func TestEveryFrontendIsDown(t *testing.T) {
	db := pointed(t, nil, closedPort(t), closedPort(t))
	_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
	v := New().Classify(err)
	assert.Equal(t, loader.No, v.Applied)
	assert.True(t, v.Retry)
	assert.ErrorContains(t, err, "http_port")
}

func TestBackendsByHand(t *testing.T) {
	one, two := listen(t, loads(10)), listen(t, loads(10))
	t.Run("without a frontend", func(t *testing.T) {
		db := pointed(t, map[string]string{optBackends: one.address() + "," + two.address()}, closedPort(t))
		s := session(t, db, loader.DedupKey)
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
		_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
		require.ErrorContains(t, err, "leave it out")
		assert.Equal(t, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}, New().Classify(err))
		_, err = load(t.Context(), session(t, db, loader.DedupKey), ten(t))
		require.NoError(t, err)
	})
	t.Run("with a redirect to an inner address", func(t *testing.T) {
		be := listen(t, loads(10))
		forward := listen(t, redirect("http://10.0.0.1:8040/x"))
		db := pointed(t, map[string]string{optBackends: forward.address() + ",10.0.0.1:8040=" + be.address()}, closedPort(t))
		_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
		require.NoError(t, err)
		assert.Len(t, be.all(), 1)
	})
	t.Run("in place of what the frontend names", func(t *testing.T) {
		fe := listen(t, redirect("http://10.0.0.1:8040/api/a/b/_stream_load"))
		db := pointed(t, map[string]string{optBackends: "10.0.0.1:8040=" + one.address()}, fe.address())
		_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
		require.NoError(t, err)
		assert.Len(t, one.all(), 2)
	})
	t.Run("nobody there", func(t *testing.T) {
		dead := closedPort(t)
		fe := listen(t, redirect("http://admin:"+"hunter2"+"@"+dead+"/x"))
		db := pointed(t, nil, fe.address())
		_, err := load(t.Context(), session(t, db, loader.DedupKey), ten(t))
		require.ErrorContains(t, err, "--be "+dead+"=HOST:PORT")
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Equal(t, loader.No, New().Classify(err).Applied)
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
				db.frontendTime = 50 * time.Millisecond
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

// closing tells when net/http has noticed the end of a connection and closes it.
type closing struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *closing) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A backend that closes an idle connection just when a load takes it: nobody knows, and the batch is asked about and sent
// again. It is no reason to end the run.
func TestIdleConnectionClosedUnderALoad(t *testing.T) {
	be := listen(t, loads(10))
	target := loader.Target{
		Scheme: "doris", Hosts: []string{"127.0.0.1"}, Database: "shop", Table: "t", Method: streamLoad, TLS: loader.TLSOff,
		Options: map[string]string{optBackends: be.address()},
	}
	conn := &closing{closed: make(chan struct{})}
	deps := testDeps()
	deps.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		inner, err := new(net.Dialer).DialContext(ctx, network, address)
		conn.Conn = inner
		return conn, err
	}
	db, err := unconnected(target, deps)
	require.NoError(t, err)
	defer db.Close()
	_, err = db.Prepare(t.Context(), loader.Preparation{Run: "r", Schema: documents(t).Schema(), Silent: true})
	require.NoError(t, err)
	s := session(t, db, loader.DedupKey)
	_, err = load(t.Context(), s, ten(t))
	require.NoError(t, err)
	_, err = load(httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		be.CloseClientConnections()
		<-conn.closed
	}}), s, ten(t))
	require.ErrorContains(t, err, "server closed idle connection")
	assert.Equal(t, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}, New().Classify(err))
}
