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
	"sync"

	"github.com/terapush/terapush/pkg/loader"
)

// dialTime bounds one try to reach a backend.
const dialTime = questionTime / 2

// route asks where a frontend sends a load, with the empty one that every load begins with, and whether the backends
// answer there: they have addresses that the cluster knows them by inside, which from outside may lead nowhere. Of the
// methods only stream-load speaks to backends.
func (x *examination) route(ctx context.Context) []loader.Finding {
	db := x.db
	if db.method.Name != streamLoad {
		return nil
	}
	if direct := db.options.direct; len(direct) > 0 {
		return []loader.Finding{x.ports(ctx, direct)}
	}
	inTime, cancel := context.WithTimeout(ctx, questionTime)
	defer cancel()
	headers := http.Header{}
	for name, value := range db.options.headers(statements{}, x.intent.Contract.Format, "") {
		if name != "columns" {
			headers[name] = []string{value}
		}
	}
	s := &streamSession{db: db}
	be, err := s.route(inTime, headers)
	if err != nil {
		return []loader.Finding{x.unrouted(err)}
	}
	x.loaded = true
	f := x.named(ctx, be)
	addresses := x.addresses()
	if !slices.Contains(addresses, be.Host) { // the frontend names others than SHOW BACKENDS, so that those say nothing
		if f.Grade == loader.GradeFail && len(addresses) > 1 { // the next load is sent to another
			f.Grade = loader.GradeWarn
		}
		return []loader.Finding{f}
	}
	if f.Grade != loader.GradeOK && len(addresses) == 1 {
		return []loader.Finding{f}
	}
	if f.Grade == loader.GradeFail { // whether all are out of reach, the ports say
		f.Grade = loader.GradeWarn
	}
	return []loader.Finding{f, x.ports(ctx, addresses)}
}

const checkRoute = "stream-load route"

// unrouted is the finding for a frontend that names no backend.
func (x *examination) unrouted(err error) loader.Finding {
	f := loader.Finding{Check: checkRoute, Grade: loader.GradeFail}
	var known *loader.Error
	if errors.As(err, &known) {
		f.Fix, err = known.Hint, known.Err
	}
	f.Found = "no backend was named for a load: " + err.Error()
	if v := verdict(err); x.db.options.group.on() && v.Class != loader.ClassPermission && v.Class != loader.ClassConnection {
		// Under group commit the frontend chooses the backend by the table, and that need not be there yet.
		f.Grade = loader.GradeUnknown
	}
	if v := verdict(err); v.Retry && v.Class != loader.ClassConnection { // too slow, or too busy at the moment
		f.Grade = loader.GradeUnknown
	}
	if verdict(err).Class == loader.ClassPermission {
		f.Fix = fmt.Sprintf("GRANT LOAD_PRIV ON %s.* TO %s", x.db.name.schema, x.user())
	}
	return f
}

// named tells whether the address answers that a frontend has sent to.
func (x *examination) named(ctx context.Context, be *url.URL) loader.Finding {
	f := loader.Finding{Check: checkRoute, Grade: loader.GradeOK,
		Found: fmt.Sprintf("frontend %s sends loads to %s, where somebody answers", x.db.frontends[0].http.Host, be.Host)}
	if err := x.dial(ctx, be.Host); err != nil {
		f.Grade = loader.GradeFail
		f.Found = fmt.Sprintf("frontend %s sends loads to %s, where nobody answers from here: %v", x.db.frontends[0].http.Host, be.Host, err)
		f.Fix = fmt.Sprintf("--%s public, or --%s %s=HOST:PORT with the address that is reachable from here", optRedirectPolicy, optBackends, be.Host)
	}
	return f
}

func (x *examination) dial(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	conn, err := x.db.frontends[0].config.DialFunc(ctx, "tcp", address)
	if err != nil {
		return err
	}
	return conn.Close()
}

// addresses are the HTTP addresses of the backends that take loads, as they are reached from here.
func (x *examination) addresses() (all []string) {
	for _, b := range x.backends {
		if takes(b) {
			all = append(all, x.db.mapped(&url.URL{Host: net.JoinHostPort(b["Host"], b["HttpPort"])}).Host)
		}
	}
	return all
}

// maxDials is how many backends are tried: of a larger cluster these are enough to see what is wrong.
const maxDials = 64

func (x *examination) ports(ctx context.Context, addresses []string) loader.Finding {
	addresses = addresses[:min(len(addresses), maxDials)]
	failures := make([]error, len(addresses))
	var trying sync.WaitGroup
	for i, a := range addresses {
		trying.Go(func() { failures[i] = x.dial(ctx, a) })
	}
	trying.Wait()
	var silent []string
	for i, err := range failures {
		if err != nil {
			silent = append(silent, addresses[i])
		}
	}
	f := loader.Finding{Check: "backend ports", Grade: loader.GradeOK,
		Found: fmt.Sprintf("the HTTP ports of %d of %d backends answer", len(addresses)-len(silent), len(addresses))}
	if len(silent) == 0 {
		return f
	}
	f.Grade = loader.GradeWarn
	f.Found += ", and not " + strings.Join(silent, ", ") + ": every load that is sent there has to be sent again"
	f.Fix = fmt.Sprintf("--%s %s=HOST:PORT with the address that is reachable from here, or open the port", optBackends, silent[0])
	if len(silent) == len(addresses) {
		f.Grade = loader.GradeFail
	}
	if slices.Contains(x.db.options.direct, silent[0]) {
		f.Fix = fmt.Sprintf("take %s out of --%s, or open the port", silent[0], optBackends)
	}
	return f
}
