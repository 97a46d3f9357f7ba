package doris

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"

	"github.com/terapush/terapush/pkg/loader"
)

// dialTime bounds one attempt to reach a backend.
const dialTime = questionTime / 2

const checkRoute = "stream-load route"

// route asks where a frontend sends a load, with the empty one that every load begins with, and whether the backends
// answer there: they have addresses that the cluster knows them by inside, which from outside may lead nowhere. Of the
// methods only stream-load speaks to backends.
func (x *doctor) route(ctx context.Context) error {
	if x.method.Name != streamLoad {
		return nil
	}
	if direct := x.options.direct; len(direct) > 0 {
		x.ports(ctx, direct)
		return nil
	}
	inTime, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	headers := x.options.headers(statements{}, x.intent.Contract.Format)
	delete(headers, "columns")
	be, err := x.backend(inTime, 0, headers)
	if err != nil {
		x.unrouted(err)
		return nil
	}
	x.loaded = true
	x.ok(checkRoute, fmt.Sprintf("frontend %s redirects loads to %s", x.frontends[0].http.Host, be.Host))
	addresses := x.addresses()
	if !slices.Contains(addresses, be.Host) { // the frontend names others than SHOW BACKENDS: those say nothing
		addresses = []string{be.Host}
	}
	x.ports(ctx, addresses)
	return nil
}

// unrouted is the finding for a frontend that names no backend.
func (x *doctor) unrouted(err error) {
	fix := ""
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		fix, err = known.Hint, known.Err
	}
	grade, v := loader.GradeFail, verdict(err)
	switch {
	case v.Class == loader.ClassPermission:
		fix = x.grant("LOAD_PRIV")
	case v.Class == loader.ClassConnection:
	case x.options.group.on(): // then the frontend chooses the backend by the table, and that need not be there yet
		grade = loader.GradeUnknown
	}
	if v.Retry && v.Class != loader.ClassConnection { // too slow, or too busy at the moment
		grade = loader.GradeUnknown
	}
	x.add(checkRoute, grade, "no backend was named for a load: "+err.Error(), fix)
}

func (x *doctor) dial(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := x.frontends[0].config.DialFunc(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// addresses are the HTTP addresses of the backends that take loads, as they are reached from here.
func (x *doctor) addresses() (all []string) {
	for _, b := range x.backends {
		if takesLoads(b) {
			all = append(all, x.reached(net.JoinHostPort(b["Host"], b["HttpPort"])))
		}
	}
	return all
}

// maxDials is how many backends are tried: of a larger cluster these are enough to see what is wrong.
const maxDials = 64

func (x *doctor) ports(ctx context.Context, addresses []string) {
	addresses = addresses[:min(len(addresses), maxDials)]
	failures := make([]error, len(addresses))
	var dials sync.WaitGroup
	for i, a := range addresses {
		dials.Go(func() { failures[i] = x.dial(ctx, a) })
	}
	dials.Wait()
	var silent []string
	for i, err := range failures {
		if err != nil {
			silent = append(silent, addresses[i])
		}
	}
	const check = "backend ports"
	found := fmt.Sprintf("the HTTP ports of %d of %d backends answer", len(addresses)-len(silent), len(addresses))
	if len(silent) == 0 {
		x.ok(check, found)
		return
	}
	grade := loader.GradeWarn
	if len(silent) == len(addresses) {
		grade = loader.GradeFail
	}
	fix := fmt.Sprintf("open the port, or --%s public, or --%s %s=HOST:PORT with the address that is reachable from here",
		optRedirectPolicy, optBackends, silent[0])
	if slices.Contains(x.options.direct, silent[0]) {
		fix = fmt.Sprintf("take %s out of --%s, or open the port", silent[0], optBackends)
	}
	found += ", and not " + strings.Join(silent, ", ") + ": every load that is sent there has to be sent again"
	x.add(check, grade, found, fix)
}
