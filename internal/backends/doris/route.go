package doris

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"github.com/terapush/terapush/pkg/loader"
)

// maxHops bounds redirects: an http frontend may send to its https port, and that to a backend.
const maxHops = 5

// loadPath is where a stream load of the table goes. Names are escaped: the server decodes them.
func (n tableName) loadPath() string {
	return "/api/" + url.PathEscape(n.schema) + "/" + url.PathEscape(n.table) + "/_stream_load"
}

// labelPath is where a frontend tells the state of a label, and cancelPath where it ends the load that has it.
func (n tableName) labelPath() string  { return "/api/" + url.PathEscape(n.schema) + "/get_load_state" }
func (n tableName) cancelPath() string { return "/api/" + url.PathEscape(n.schema) + "/_cancel" }

// route finds the backend for a load: by asking a frontend, from the session's first one on, or from --be. The error is
// certainly not applied, since no row was sent.
func (s *streamSession) route(ctx context.Context, headers http.Header) (*url.URL, error) {
	db := s.db
	if direct := db.options.direct; len(direct) > 0 {
		// The turn is the loader's: a session that met a dead backend is replaced, and its successor must not begin there.
		be := direct[(db.loads.Add(1)-1)%uint64(len(direct))]
		return url.Parse(db.frontends[0].http.Scheme + "://" + be + db.name.loadPath())
	}
	var be *url.URL
	_, err := db.anyFrontend(ctx, s.first, func(ctx context.Context, fe url.URL) (err error) {
		fe.RawPath = db.name.loadPath()
		fe.Path, _ = url.PathUnescape(fe.RawPath)
		be, err = s.ask(ctx, &fe, headers)
		return err
	})
	if err != nil {
		return nil, &loader.Error{Op: "ask for a backend", Applied: loader.No, Err: err, Hint: hint(err)}
	}
	return be, nil
}

// ask sends a frontend the head of a load without its rows and follows it to the backend. What a frontend reads of a
// body is lost, and net/http cannot be kept from sending one after a second or so of silence; an empty body costs
// nothing, and the connection stays usable. The label stays out, so that a backend which is asked by mistake loads no
// rows under it.
func (s *streamSession) ask(ctx context.Context, to *url.URL, headers http.Header) (*url.URL, error) {
	headers = headers.Clone()
	delete(headers, "label")
	for range maxHops {
		answer, err := s.db.do(ctx, http.MethodPut, to, headers, nil)
		if err != nil {
			return nil, err
		}
		next, err := s.db.redirected(to, answer.Status, answer.Header)
		switch {
		case err != nil:
			return nil, err
		case next == nil:
			_, err := readAnswer(answer.Status, answer.Body)
			return to, err // no error: something that takes loads without a redirect
		case to.Scheme == "http" && next.Scheme == "https":
			to = next // the frontend's own https port (enable_https): ask there
		default:
			return s.db.mapped(next), nil
		}
	}
	return nil, fmt.Errorf("more than %d redirects", maxHops)
}

// redirected reads where an answer leads; nil if it is no redirect. Doris writes user and password into it: they are
// cut off at once, and errors never repeat what the header says. The path is kept as it is: it may lead to
// _stream_load_forward with parameters of its own.
func (db *database) redirected(from *url.URL, status int, headers http.Header) (*url.URL, error) {
	switch status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther, http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	to, err := url.Parse(headers.Get("Location"))
	if err != nil || headers.Get("Location") == "" {
		return nil, &refusal{http: status, message: "a redirect whose Location is no address"}
	}
	to = from.ResolveReference(to)
	to.User = nil
	if to.Scheme != "http" && to.Scheme != "https" {
		return nil, &refusal{http: status, message: "a redirect to neither http nor https"}
	}
	if from.Scheme == "https" && to.Scheme == "http" && !db.plain() {
		return nil, &loader.Error{Op: "follow the redirect", Applied: loader.No,
			Err:  fmt.Errorf("frontend %s redirects to %s without TLS, where the password would go in the clear", from.Host, to.Host),
			Hint: "switch enable_https on for the backends; or take --tls prefer, which goes on without"}
	}
	return to, nil
}

// plain tells whether connections may go without TLS.
func (db *database) plain() bool { return db.frontends[0].http.Scheme == "http" }

// mapped replaces an address that cannot be reached from here, as --be says.
func (db *database) mapped(be *url.URL) *url.URL {
	if reachable, found := db.options.reachable[be.Host]; found {
		be.Host = reachable
	}
	return be
}

// unreachable says what to do about a backend that nobody answers at. Frontends name backends by the addresses that the
// cluster uses inside, which from outside of a container network or a cloud lead nowhere.
func (db *database) unreachable(be *url.URL, err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return err
	}
	hint := fmt.Sprintf("if the cluster knows the backend by an address that leads nowhere from here: --%s public, or --%s %s=HOST:PORT",
		optRedirectPolicy, optBackends, be.Host)
	if slices.Contains(db.options.direct, be.Host) {
		hint = fmt.Sprintf("--%s names it: give the address of its HTTP server, port 8040 by default, or leave it out", optBackends)
	}
	return &loader.Error{Op: "connect to backend " + be.Host, Applied: loader.No, Err: err, Hint: hint}
}
