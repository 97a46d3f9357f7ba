package doris

import (
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

// maxHops bounds redirects: an http frontend may send to its https port, and that to a backend.
const maxHops = 5

// frontendTime is how long a frontend may take to answer where there is another one to ask: a quarter of the least time
// that the engine gives a question.
const frontendTime = 15 * time.Second

// path is a resource of the table's database. Names are escaped: the server decodes them.
func (n tableName) path(rest string) string { return "/api/" + url.PathEscape(n.schema) + "/" + rest }

// loadPath is where a stream load of the table goes.
func (n tableName) loadPath() string { return n.path(url.PathEscape(n.table) + "/_stream_load") }

// at is the address of an escaped path, with a label to ask about unless it is "".
func (f frontend) at(path, label string) *url.URL {
	to := f.http
	to.RawPath = path
	to.Path, _ = url.PathUnescape(path)
	if label != "" {
		to.RawQuery = url.Values{"label": {label}}.Encode()
	}
	return &to
}

// follow sends a request with our own credentials and goes where it is redirected, with a body of its own each time. It
// returns the answer that is no redirect, and from where it came; an error has the address that it is about.
//
// A PUT without a batch asks a frontend for a backend, and ends where that is named: the answer is nil then. What a
// frontend reads of a body is lost, and net/http cannot be kept from sending one after a second or so of silence; an
// empty body costs nothing, and the connection stays usable.
func (l *opened) follow(
	ctx context.Context, method string, to *url.URL, headers map[string]string, b *batch.Batch,
) (*httpload.Response, *url.URL, error) {
	asks := method == http.MethodPut && b == nil
	for range maxHops {
		r, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
		if err != nil {
			return nil, to, err
		}
		for name, value := range headers {
			r.Header[name] = []string{value} // under the names of Doris' manual
		}
		r.SetBasicAuth(l.target.User, l.target.Password.Reveal())
		if b != nil {
			httpload.Attach(r, nil, b, nil)
		} else if asks {
			// A frontend refuses a load without the header. Go sends the head at once where there is no body to hold back.
			r.Header.Set("Expect", "100-continue")
		}
		answer, err := l.http.Do(r)
		if err != nil {
			if ctx.Err() != nil {
				err = ctx.Err() // what became of the connection is our own doing
			}
			return nil, to, err
		}
		next, err := l.redirected(to, answer)
		switch {
		case err != nil || next == nil:
			return answer, to, err
		case asks && (to.Scheme != "http" || next.Scheme != "https"): // else its own https port (enable_https): ask there
			return nil, next, nil
		}
		to = next
	}
	return nil, to, &refusal{http: http.StatusTemporaryRedirect, message: "redirects without end"}
}

// redirected reads where an answer leads; nil if it is no redirect. Doris writes user and password into it: they are
// cut off at once, and errors never repeat what the header says. The path is kept as it is: it may lead to
// _stream_load_forward with parameters of its own. An address that cannot be reached from here is replaced as --be
// says.
func (l *opened) redirected(from *url.URL, answer *httpload.Response) (*url.URL, error) {
	switch answer.Status {
	case http.StatusMovedPermanently, http.StatusFound, http.StatusSeeOther,
		http.StatusTemporaryRedirect, http.StatusPermanentRedirect:
	default:
		return nil, nil
	}
	location := answer.Header.Get("Location")
	to, err := url.Parse(location)
	if err != nil || location == "" {
		return nil, &refusal{http: answer.Status, message: "a redirect whose Location is no address"}
	}
	to = from.ResolveReference(to)
	to.User = nil
	if to.Scheme != "http" && to.Scheme != "https" {
		return nil, &refusal{http: answer.Status, message: "a redirect to neither http nor https"}
	}
	encrypted := l.frontends[0].http.Scheme == "https" // not for --tls prefer, see httpURL
	if encrypted && from.Scheme == "https" && to.Scheme == "http" {
		const leak = "frontend %s redirects to %s without TLS, where the password would go in the clear"
		return nil, &loader.Error{
			Op: "follow the redirect", Applied: loader.No, Err: fmt.Errorf(leak, from.Host, to.Host),
			Hint: "switch enable_https on for the backends; or take --tls prefer, which goes on without",
		}
	}
	to.Host = l.reached(to.Host)
	return to, nil
}

// reached is the address to use for one that the cluster knows a backend by.
func (l *opened) reached(address string) string {
	if reachable, found := l.options.reachable[address]; found {
		return reachable
	}
	return address
}

// question asks a frontend about a label, and follows redirects: only the master knows labels. It begins with the one
// that answered the last question. What is asked may be asked twice.
func (l *opened) question(ctx context.Context, method, path, label string) (a answer, err error) {
	i, err := l.anyFrontend(ctx, int(l.spoke.Load()), func(ctx context.Context, fe frontend) error {
		got, _, err := l.follow(ctx, method, fe.at(path, label), nil, nil)
		if err == nil {
			a, err = parseReply(got.Status, got.Body)
		}
		return err
	})
	if err == nil {
		l.spoke.Store(uint64(i))
	}
	return a, err
}

// anyFrontend calls f with one frontend after the other, from the first on, until one has spoken, and tells which.
// One that hangs, or has nothing to say but that it cannot, is passed over; a refusal is what another one would say
// too.
func (l *opened) anyFrontend(ctx context.Context, first int, f func(context.Context, frontend) error) (i int, all error) {
	for n := range l.frontends {
		i = (first + n) % len(l.frontends)
		bound, cancel := context.WithTimeout(ctx, l.bound)
		if n == len(l.frontends)-1 { // the last one has all the time there is
			bound = ctx
		}
		err := f(bound, l.frontends[i])
		cancel()
		if err == nil {
			return i, nil
		}
		all = and(all, fmt.Errorf("frontend %s: %w", l.frontends[i].http.Host, err))
		silent := []loader.Class{loader.ClassConnection, loader.ClassTimeout, loader.ClassShutdown}
		if ctx.Err() != nil || !slices.Contains(silent, verdict(err).Class) {
			break
		}
	}
	return i, all
}

// unreachable says what to do about a backend that nobody answers at. Frontends name backends by the addresses that the
// cluster uses inside, which from outside of a container network or a cloud lead nowhere.
func (l *opened) unreachable(be *url.URL, err error) error {
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "dial" {
		return err
	}
	hint := fmt.Sprintf("if the cluster knows the backend by an address that leads nowhere from here: "+
		"--%s public, or --%s %s=HOST:PORT", optRedirectPolicy, optBackends, be.Host)
	if slices.Contains(l.options.direct, be.Host) {
		hint = "--" + optBackends + " names it: give the address of its HTTP server, port 8040 by default, or leave it out"
	}
	return &loader.Error{Op: "connect to backend " + be.Host, Applied: loader.No, Err: err, Hint: hint}
}

// Bounds of what is read about rows that the server could not take.
const (
	errorURLTime  = 5 * time.Second
	errorURLBytes = 2 << 10
)

// errorRows fetches what a backend wrote about rows it could not read. That is kept for a short time only and at an
// address that may lead nowhere from here, so it is fetched at once, and an answer to be had is a courtesy.
func (l *opened) errorRows(ctx context.Context, be *url.URL, address string) string {
	to, err := url.Parse(address)
	if err != nil || to.Scheme != "http" && to.Scheme != "https" || to.Host == "" {
		return ""
	}
	to.User, to.Host = nil, l.reached(to.Host)
	ctx, cancel := context.WithTimeout(ctx, errorURLTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), nil)
	if err != nil {
		return ""
	}
	// enable_all_http_auth. The address comes out of an answer: nobody else gets the password, and nobody in the clear who
	// had it encrypted.
	if to.Scheme == be.Scheme && to.Host == be.Host {
		r.SetBasicAuth(l.target.User, l.target.Password.Reveal())
	}
	answer, err := l.http.Do(r)
	if err != nil || answer.Status != http.StatusOK {
		return ""
	}
	text := answer.Body[:min(len(answer.Body), errorURLBytes)]
	return strings.TrimSpace(strings.ToValidUTF8(string(text), "?"))
}
