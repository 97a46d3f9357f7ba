package doris

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

const (
	// maxHops bounds redirects: an http frontend may redirect to its https port, and that to a backend.
	maxHops = 5
	// frontendTime is how long a frontend may take to answer if there is another one to ask: a quarter of the engine's
	// shortest deadline for a question.
	frontendTime = 15 * time.Second
	// errorTime and errorBytes bound what is read about rows that the server could not take.
	errorTime  = 5 * time.Second
	errorBytes = 2 << 10
)

// path returns a resource of the table's database. Names are escaped; the server decodes them.
func (n tableName) path(rest string) string { return "/api/" + url.PathEscape(n.schema) + "/" + rest }

// loadPath returns where a stream load of the table goes.
func (n tableName) loadPath() string { return n.path(url.PathEscape(n.table) + "/_stream_load") }

// at returns the address of an escaped path, with a label to ask about unless it is "".
func (f endpoint) at(path, label string) *url.URL {
	to := f.http
	to.RawPath = path
	to.Path, _ = url.PathUnescape(path)
	if label != "" {
		to.RawQuery = url.Values{"label": {label}}.Encode()
	}
	return &to
}

// follow sends a request with our own credentials and follows redirects, with a body of its own each time. It returns
// the answer that is not a redirect and the address that sent it; with an error, the address that failed.
//
// A PUT without a batch asks a frontend for a backend, and stops at the backend's address; the answer is nil then. What
// a frontend reads of a body is lost, and net/http sends one after about a second of silence whatever it is told. An
// empty body costs nothing, and the connection can be used again.
func (l *opened) follow(
	ctx context.Context, method string, to *url.URL, headers map[string]string, b *batch.Batch,
) (*httpload.Response, *url.URL, error) {
	findsBackend := method == http.MethodPut && b == nil
	for range maxHops {
		r, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
		if err != nil {
			return nil, to, err
		}
		for name, value := range headers {
			r.Header[name] = []string{value} // not canonical: the names of Doris' manual
		}
		r.SetBasicAuth(l.target.User, l.target.Password.Reveal())
		if b != nil {
			httpload.Attach(r, nil, b, nil)
		} else if findsBackend {
			r.Header.Set("Expect", "100-continue") // a frontend refuses a load without it
		}
		answer, err := l.http.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err() // we have closed the connection ourselves
			}
			return nil, to, err
		}
		next, err := l.redirect(to, answer)
		switch {
		case err != nil || next == nil:
			return answer, to, err
		case findsBackend && (to.Scheme != "http" || next.Scheme != "https"): // else its own https port (enable_https)
			return nil, next, nil
		}
		to = next
	}
	return nil, to, &refusal{http: http.StatusTemporaryRedirect, message: fmt.Sprintf("more than %d redirects", maxHops)}
}

// redirect returns where an answer redirects to, or nil. Doris writes user and password into the header: they are
// removed, and no error quotes it. The path is kept: it may be _stream_load_forward with parameters. --backend-hosts
// may replace the address.
func (l *opened) redirect(from *url.URL, answer *httpload.Response) (*url.URL, error) {
	switch answer.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := answer.Header.Get("Location")
	to, err := url.Parse(location)
	if err != nil || location == "" {
		return nil, &refusal{http: answer.Status, message: "a redirect to no address"}
	}
	to = from.ResolveReference(to)
	to.User = nil
	if to.Scheme != "http" && to.Scheme != "https" {
		return nil, &refusal{http: answer.Status, message: "a redirect to neither http nor https"}
	}
	encrypted := l.hosts.List[0].http.Scheme == "https" // not with --tls prefer, see httpURL
	if encrypted && from.Scheme == "https" && to.Scheme == "http" {
		return nil, &loader.Error{
			Op: "follow the redirect", Applied: loader.No,
			Err:  fmt.Errorf("frontend %s redirects to %s without TLS, which would show the password", from.Host, to.Host),
			Hint: "set enable_https on the backends; or take --tls prefer, which goes on without",
		}
	}
	to.Host = l.reachable(to.Host)
	return to, nil
}

// reachable returns the address to use for one that the cluster knows a backend by.
func (l *opened) reachable(address string) string {
	return cmp.Or(l.options.reachable[address], address)
}

// question asks a frontend about a label. Only the master knows labels; others redirect. It begins with the frontend
// that answered the last question. What is asked may be asked twice.
func (l *opened) question(ctx context.Context, method, path, label string) (a answer, err error) {
	err = l.hosts.Ask(ctx, func(ctx context.Context, fe endpoint) error {
		got, _, err := l.follow(ctx, method, fe.at(path, label), nil, nil)
		if err == nil {
			a, err = parseAnswer(got.Status, got.Body)
		}
		if err == nil && a.Code != 0 { // success is {"msg":"success","code":0,"data":…}
			err = &refusal{http: got.Status, code: a.Code, message: cmp.Or(string(a.Data), a.Msg) + ": " + a.Msg}
		}
		return fe.failed(err)
	})
	return a, err
}

// failed says which frontend an error is of.
func (f endpoint) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("frontend %s: %w", f.http.Host, err)
}

// dialError adds to an error what to do about a backend that cannot be reached. Frontends name backends by the
// cluster's inner addresses, which are of no use outside of a container network or a cloud.
func (l *opened) dialError(be *url.URL, err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return err
	}
	hint := "if the cluster knows the backend by an address that cannot be reached from here: " +
		"--redirect-policy public, or --backend-hosts " + be.Host + "=HOST:PORT"
	if slices.Contains(l.options.direct, be.Host) {
		hint = "--backend-hosts names it: give the address of its HTTP server, port 8040 by default, or leave it out"
	}
	return &loader.Error{Op: "connect to backend " + be.Host, Applied: loader.No, Err: err, Hint: hint}
}

// errorRows fetches what a backend wrote about rows it could not read; "" if there is nothing to fetch. Backends keep
// it for a short time only, at an address that may not be reachable from here.
func (l *opened) errorRows(ctx context.Context, be *url.URL, address string) string {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return ""
	}
	to.User, to.Host = nil, l.reachable(to.Host)
	ctx, cancel := context.WithTimeout(ctx, errorTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return ""
	}
	// For enable_all_http_auth. The address comes out of an answer: the password goes to no other host, and not in the
	// clear if the backend got it encrypted.
	if to.Scheme == be.Scheme && to.Host == be.Host {
		r.SetBasicAuth(l.target.User, l.target.Password.Reveal())
	}
	answer, err := l.http.Do(r)
	if err != nil || answer.Status != http.StatusOK {
		return ""
	}
	text := answer.Body[:min(len(answer.Body), errorBytes)]
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
}
