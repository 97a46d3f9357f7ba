package doris

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const password = "p@ss hunter2"

// received is a request as a server saw it.
type received struct {
	method, path, user, password string
	header                       http.Header
	body                         string
}

// recorder is an HTTP server that keeps its requests, and answers by a handler.
type recorder struct {
	*httptest.Server
	mu       sync.Mutex
	requests []received
}

func listen(t *testing.T, answer http.HandlerFunc) *recorder {
	e := &recorder{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		e.mu.Lock()
		e.requests = append(e.requests, received{r.Method, r.URL.RequestURI(), user, password, r.Header, string(body)})
		e.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(e.Close)
	return e
}

func (e *recorder) all() []received {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]received(nil), e.requests...)
}

func (e *recorder) address() string { return e.Listener.Addr().String() }

// redirect leads to a server, with the password in the Location as Doris writes it.
func redirect(to string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Location", to)
		w.WriteHeader(http.StatusTemporaryRedirect)
	}
}

func says(format string, args ...any) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, format, args...) }
}

// loads answers like a backend that took n rows.
func loads(n int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, success(r.Header.Get("label"), n, n, 0, 0))
	}
}

// pointed is a target whose frontends are at the given addresses. The ports of HTTP differ between frontends in tests
// only, so they are set behind the target's back.
func pointed(t *testing.T, options map[string]string, fes ...string) *opened {
	target := loader.Target{
		Scheme: "doris", User: "admin", Password: password, Database: "shop", Table: "docu ments", Method: methodStreamLoad,
		TLS: loader.TLSOff, Options: options, Hosts: make([]string, len(fes)), Params: map[string][]string{},
	}
	for i := range fes {
		target.Hosts[i] = "127.0.0.1"
	}
	db := silent(t, target, documents(t))
	for i, fe := range fes {
		db.hosts.List[i].http.Host = fe
	}
	return db
}

// redirected is one frontend that redirects to a server.
func redirected(t *testing.T, to string) *opened {
	return pointed(t, nil, listen(t, redirect(to)).address())
}

func session(t *testing.T, db *opened) loader.Session {
	return backendtest.Session(t, db, contractOf(methodStreamLoad, batch.DorisCSV, 10))
}

func ten(t *testing.T) *batch.Batch {
	return batchOf(t, documents(t), batch.DorisCSV, batch.ID{Run: "r", Number: 3}, 30, 10)
}

// send loads the batch of ten in a session of its own.
func send(t *testing.T, db *opened) error {
	_, err := load(t.Context(), session(t, db), ten(t))
	return err
}

func TestStreamLoad(t *testing.T) {
	be := listen(t, loads(10))
	fe := listen(t, redirect("http://admin@default_cluster:somebody%20else@"+be.address()+"/api/shop/docu%20ments/_stream_load_forward?forward_to=1.2.3.4"))
	db := pointed(t, map[string]string{optRedirectPolicy: "public"}, fe.address())
	b := ten(t)
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	ack, err := load(ctx, session(t, db), b)
	require.NoError(t, err)
	assert.Equal(t, loader.Ack{Rows: 10}, ack)

	label := db.name.label(loader.RefOf(b), false)
	asked, sent := fe.all(), be.all()
	require.Len(t, asked, 1)
	require.Len(t, sent, 1)
	assert.Equal(t, "/api/shop/docu%20ments/_stream_load", asked[0].path)
	assert.Empty(t, asked[0].body)
	assert.Equal(t, "100-continue", asked[0].header.Get("Expect"))
	assert.Empty(t, asked[0].header.Get("label"), "a label on the probe would be used up if a backend were asked")
	assert.Equal(t, "off_mode", asked[0].header.Get("group_commit"))
	assert.Equal(t, "/api/shop/docu%20ments/_stream_load_forward?forward_to=1.2.3.4", sent[0].path, "the path is not ours to write")
	for _, h := range append(asked, sent...) {
		assert.Equal(t, http.MethodPut, h.method)
		assert.Equal(t, "admin", h.user)
		assert.Equal(t, password, h.password)
	}
	assert.Equal(t, string(b.Encoded), sent[0].body)
	for name, want := range map[string]string{
		"label": label, "format": "csv", "column_separator": `\x01`, "line_delimiter": `\x02`,
		"columns": "`document_id`, `payload`", "max_filter_ratio": "0", "strict_mode": "true", "timezone": "UTC",
		"group_commit": "off_mode", "redirect-policy": "public", "timeout": "90",
		"Content-Length": fmt.Sprint(len(b.Encoded)),
	} {
		assert.Equal(t, want, sent[0].header.Get(name), name)
	}
	assert.Empty(t, sent[0].header.Get("Transfer-Encoding"))
}

func closedPort(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return l.Addr().String()
}

// A backend that sends on to another one gets a body each time; whoever sends on for ever gets none any more.
func TestSentOn(t *testing.T) {
	be := listen(t, loads(10))
	forward := listen(t, redirect(be.URL+"/x"))
	b := ten(t)
	_, err := load(t.Context(), session(t, redirected(t, forward.URL+"/y")), b)
	require.NoError(t, err)
	assert.Equal(t, string(b.Encoded), be.all()[0].body)
	assert.NotEmpty(t, be.all()[0].header.Get("label"))

	loop := listen(t, redirect("/z"))
	err = send(t, redirected(t, loop.URL))
	require.ErrorContains(t, err, "more than 5 redirects")
	assert.Len(t, loop.all(), maxHops)
}

func TestRedirectsThatLeadNowhere(t *testing.T) {
	for location, want := range map[string]string{
		"":                           "redirect to no address",
		"http://u:hunter2@h:1%zz/":   "redirect to no address",
		"ftp://u:hunter2@h/":         "neither http nor https",
		"https://127.0.0.1:1/nobody": "connection refused", // the frontend's own https port is asked as a frontend
	} {
		err := send(t, redirected(t, location))
		require.Error(t, err, location)
		assert.Contains(t, err.Error(), want)
		assert.NotContains(t, err.Error(), "hunter2")
		assert.Equal(t, loader.No, New().Classify(err).Applied, location)
	}
}

// From TLS to a backend without it, the password would go in the clear.
func TestNoWayBackFromTLS(t *testing.T) {
	for mode, refused := range map[loader.TLSMode]bool{loader.TLSRequire: true, loader.TLSPrefer: false} {
		be := listen(t, loads(10))
		fe := httptest.NewTLSServer(redirect(be.URL))
		t.Cleanup(fe.Close)
		target := loader.Target{Scheme: "doris", Hosts: []string{"127.0.0.1"}, Database: "d", Table: "t", Method: methodStreamLoad, TLS: mode}
		db := silent(t, target, documents(t))
		entry := listen(t, redirect(fe.URL)) // prefer: an http frontend that sends to its https port
		db.hosts.List[0].http.Host = entry.address()
		if refused {
			db.hosts.List[0].http.Host = fe.Listener.Addr().String()
		}
		err := send(t, db)
		if refused {
			require.ErrorContains(t, err, "without TLS")
			assert.Contains(t, loader.Explain(err), "--tls prefer")
			assert.Zero(t, len(be.all()))
			continue
		}
		require.NoError(t, err)
		assert.Len(t, be.all(), 1)
	}
}

// What a backend wrote about the rows is fetched. Where it cannot be, its address is shown, and only the backend gets the
// password.
func TestErrorURL(t *testing.T) {
	elsewhere := listen(t, says("column(document_id) values is null"))
	for address, want := range map[string]string{
		elsewhere.URL + "/log":                  "values is null",
		"/log":                                  "values is null", // of the backend
		"http://" + closedPort(t) + "/log?f=/x": "/log",
	} {
		var be *recorder
		be = listen(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				says("values is null")(w, r)
				return
			}
			if address == "/log" {
				address = be.URL + address
			}
			fmt.Fprintf(w, `{"Status":"Fail","Message":"too many filtered rows","ErrorURL":%q}`, address)
		})
		err := send(t, redirected(t, be.URL))
		require.ErrorContains(t, err, want)
		for _, h := range be.all() {
			assert.Equal(t, password, h.password)
		}
	}
	assert.Empty(t, elsewhere.all()[0].user)
}

// A backend that has the password encrypted is not told it in the clear, wherever its error file is said to be.
func TestErrorURLWithoutTLS(t *testing.T) {
	be := listen(t, says("rows"))
	db := pointed(t, nil, closedPort(t))
	encrypted, err := url.Parse("https://" + be.address())
	require.NoError(t, err)
	assert.Equal(t, "rows", db.errorRows(t.Context(), encrypted, be.URL+"/log"))
	assert.Empty(t, be.all()[0].password)
}

func TestErrorURLsHoldNoSecrets(t *testing.T) {
	for address, want := range map[string]string{
		"http://u:hunter2@h:1/log?signature=hunter2#hunter2": "see http://h:1/log",
		"http://u:hunter2@h:1%zz/":                           "see an address that cannot be read",
	} {
		err := &refusal{http: http.StatusOK, status: "Fail", message: "m", url: address}
		assert.Contains(t, err.Error(), want)
		assert.NotContains(t, err.Error(), "hunter2")
	}
}

func TestLoadSeconds(t *testing.T) {
	assert.Equal(t, 30, loadSeconds(time.Second))
	assert.Equal(t, 91, loadSeconds(90*time.Second+time.Millisecond))
	assert.Equal(t, 259200, loadSeconds(time.Duration(1<<62)))
}

// get_load_state is answered by the master: others redirect, with the password in the Location.
func TestLabelState(t *testing.T) {
	states := []string{"PREPARE", "PREPARE", "ABORTED"}
	master := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			io.WriteString(w, `{"msg":"success","code":0,"data":"","count":0}`)
			return
		}
		fmt.Fprintf(w, `{"msg":"success","code":0,"data":%q,"count":0}`, states[0])
		states = states[1:]
	})
	follower := listen(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", strings.Replace(master.URL, "//", "//admin:hunter2@", 1)+r.URL.RequestURI())
		w.WriteHeader(http.StatusFound)
	})
	db := pointed(t, nil, closedPort(t), follower.address())
	ref := loader.RefOf(ten(t))
	found, err := db.Resolve(t.Context(), ref)
	require.NoError(t, err)
	assert.Equal(t, loader.No, found.Applied)
	var asked []string
	for _, h := range master.all() {
		asked = append(asked, h.method+" "+h.path)
		assert.Equal(t, password, h.password)
	}
	label := db.name.label(ref, false)
	assert.Equal(t, []string{
		"GET /api/shop/get_load_state?label=" + label, "POST /api/shop/_cancel?label=" + label,
		"GET /api/shop/get_load_state?label=" + label, "GET /api/shop/get_load_state?label=" + label,
	}, asked)
}

func TestLabelStateThatIsNone(t *testing.T) {
	for body, want := range map[string]string{
		`{"msg":"Error","code":1,"data":"Unknown database 'shop'","count":0}`: "Unknown database",
		`{"msg":"success","code":0,"data":"LIMBO"}`:                           "LIMBO",
		`{"msg":"success","code":0,"data":null}`:                              `state ""`,
		`<html>`:                                                              "cannot be read",
	} {
		fe := listen(t, says("%s", body))
		db := pointed(t, nil, fe.address())
		found, err := db.Resolve(t.Context(), loader.RefOf(ten(t)))
		require.ErrorContains(t, err, want)
		assert.Equal(t, loader.Unknown, found.Applied)
	}
}

// A load that stays under way is waited for no longer than the caller waits.
func TestResolveGivesUp(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	fe := listen(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			io.WriteString(w, `{"msg":"Error","code":1,"data":"no LOAD privilege","count":0}`)
			return
		}
		if asked++; asked == 3 {
			cancel()
		}
		io.WriteString(w, `{"msg":"success","code":0,"data":"PRECOMMITTED","count":0}`)
	})
	_, err := pointed(t, nil, fe.address()).Resolve(ctx, loader.RefOf(ten(t)))
	require.ErrorContains(t, err, "cancel")
	assert.Equal(t, loader.Unknown, New().Classify(err).Applied)
}
