package doris

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// Bounds of a question to a frontend, and of one attempt to reach a backend.
const (
	questionTime = 4 * time.Second
	dialTime     = 2 * time.Second
)

// findRoute asks a frontend where it redirects a load, as every stream load does first.
func (d *doctor) findRoute(ctx context.Context) {
	if d.method.Name != methodStreamLoad || len(d.options.direct) > 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	headers := d.options.headers(statements{}, d.intent.Contract.Format)
	delete(headers, "columns")
	d.backend, d.routeErr = d.findBackend(ctx, 0, headers)
}

func (d *doctor) checkRoute([]string) (none loader.Finding) {
	err := d.routeErr
	switch {
	case err == nil && d.backend == nil:
		return none
	case err == nil:
		return sqlload.OK(fmt.Sprintf(
			"frontend %s redirects loads to %s", d.hosts.List[0].http.Host, d.backend.Host))
	}
	f, v := sqlload.Fail("no frontend named a backend: "+loader.Explain(err), ""), verdict(err)
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		f.Found, f.Fix = "no frontend named a backend: "+known.Err.Error(), loader.HintOf(err)
	}
	// A server may be too slow or too busy at the moment. With group commit the frontend chooses the backend by the table,
	// which need not exist yet.
	if v.Class != loader.ClassConnection && (v.Retry || d.options.group.on() && v.Class != loader.ClassPermission) {
		f.Grade = loader.GradeUnknown
	}
	return f
}

// checkPorts dials the backends: the cluster may know them by addresses that lead nowhere from here.
func (d *doctor) checkPorts(ctx context.Context) (none loader.Finding) {
	addresses := d.options.direct
	if d.backend != nil {
		for _, b := range d.answers[showBackends] {
			if takesLoads(b) {
				addresses = append(addresses, d.reachable(net.JoinHostPort(b["Host"], b["HttpPort"])))
			}
		}
		if !slices.Contains(addresses, d.backend.Host) { // the frontend names others than SHOW BACKENDS
			addresses = []string{d.backend.Host}
		}
	}
	if len(addresses) == 0 {
		return none
	}
	failed := make([]bool, len(addresses))
	var dials sync.WaitGroup
	for i, a := range addresses {
		dials.Go(func() { failed[i] = d.dial(ctx, a) != nil })
	}
	dials.Wait()
	var silent []string
	for i, a := range addresses {
		if failed[i] {
			silent = append(silent, a)
		}
	}
	found := fmt.Sprintf("the HTTP ports of %d of %d backends answer", len(addresses)-len(silent), len(addresses))
	if len(silent) == 0 {
		return sqlload.OK(found)
	}
	fix := "open the port, or --redirect-policy public, or --backend-hosts " + silent[0] +
		"=HOST:PORT with the address that is reachable from here"
	if d.backend == nil {
		fix = fmt.Sprintf("take %s out of --backend-hosts, or open the port", silent[0])
	}
	f := sqlload.Warn(found+"; not "+strings.Join(silent, ", ")+": loads sent there fail and are sent again", fix)
	if len(silent) == len(addresses) {
		f.Grade = loader.GradeFail
	}
	return f
}

func (d *doctor) dial(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := d.hosts.List[0].config.DialFunc(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}
