package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/target"
	"github.com/terapush/terapush/pkg/loader"
)

// ServerChecks is what CheckServer found, and the size of the push that the server was checked for.
type ServerChecks struct {
	Findings []loader.Finding
	// Endpoint is the server's host:port or the path of its socket; without a connection, the target's if it has a
	// port.
	Endpoint string
	Workers  int
	Memory   int64 // the budget of all buffers
	// BatchBytes is the encoded length of a batch; 0 without a plan.
	BatchBytes int64
}

// Resources returns the workers of a push and the memory for its buffers, before a target is known.
func Resources(ctx context.Context, c *config.Pace) (workers int, budget int64) {
	r := machine(config.Shard{}, c, host.FullLink(ctx).World)
	workers, _ = r.Connections(loader.Caps{})
	return workers, r.Memory
}

// CheckServer connects as a push would, and checks the server for what would stop or slow it down. It changes nothing.
// What fails is a finding; errors are usage errors and interruptions.
func CheckServer(ctx context.Context, j Job) (ServerChecks, error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	asked, err := p.configureNew(ctx, runlog.NewID(p.started))
	if err != nil {
		return ServerChecks{}, failed(Usage, err)
	}
	checks := p.diagnose(soft, asked)
	_ = p.close() // nothing was changed over this connection
	if soft.Err() != nil {
		return checks, failed(report.Interrupted, errStopped)
	}
	return checks, nil
}

func (p *push) diagnose(ctx context.Context, asked facts) (c ServerChecks) {
	c.Workers, _ = asked.resources.Connections(asked.caps)
	c.Memory = asked.resources.Memory
	if err := p.target.Open(ctx); err != nil {
		if hosts := p.target.Hosts; len(hosts) > 0 {
			c.Endpoint = dialAddress(hosts[0]) // its distance may be the reason
		}
		c.Findings = []loader.Finding{failure("connection", err)}
		return c
	}
	server := p.target.Loader.Server()
	c.Endpoint = dialAddress(server.Endpoint)
	connected := loader.Finding{Check: "connection", Grade: loader.GradeOK}
	if connected.Found = strings.TrimSpace(server.Product + " " + server.Version); c.Endpoint != "" {
		connected.Found += " at " + c.Endpoint
	}
	asked.caps = p.target.Loader.Caps()
	err := p.firstPlan(asked)
	for _, text := range p.warnings {
		c.Findings = append(c.Findings, loader.Finding{Check: "plan", Grade: loader.GradeWarn, Found: text})
	}
	if err != nil {
		c.Findings = append(c.Findings, connected, failure("plan", err))
		return c
	}
	c.Workers, _ = p.resources.Connections(p.caps)
	c.BatchBytes = p.plan.BatchBytes()
	if p.target.Can.Checker == nil {
		c.Findings = append(c.Findings, connected)
	} else {
		intent := p.intent()
		intent.Silent, intent.Advice = false, true // the doctor may ask what this push would not
		findings, err := p.runChecks(ctx, intent)
		if c.Findings = append(c.Findings, findings...); err != nil {
			c.Findings = append(c.Findings, failure("server", err))
		}
	}
	c.Findings = append(c.Findings, p.checkRows(ctx, c.Findings)...)
	return c
}

func (p *push) runChecks(ctx context.Context, i loader.Intent) ([]loader.Finding, error) {
	return target.AskSoon(ctx, p.target, "checks", func(bound context.Context) ([]loader.Finding, error) {
		return p.target.Can.Checker.CheckServer(bound, i)
	})
}

// intent describes the push to a back-end's checks.
func (p *push) intent() loader.Intent {
	return loader.Intent{
		Preparation: p.preparationOfNew(),
		Workers:     p.plan.Workers, BatchBytes: p.plan.BatchBytes(), TotalBytes: p.plan.TotalBytes(),
	}
}

// checkRows checks that an existing table is empty or may be appended to, as the preflight does. It makes nothing,
// since Prepare gets CreateNever and a contract without claims, and sends no probe: even when rolled back, that moves
// an AUTO_INCREMENT.
func (p *push) checkRows(ctx context.Context, findings []loader.Finding) []loader.Finding {
	if p.silent || p.empties() {
		return nil
	}
	look := p.preparation(loader.CreateNever)
	look.Contract.Delivery, look.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	look.Contract.GroupBatches, look.Contract.Commits = 0, 0
	err := target.Within(ctx, func(bound context.Context) (err error) {
		if p.target.Found, err = p.target.Loader.Prepare(bound, look); err != nil {
			return err
		}
		if p.Config.Append && p.Config.FirstKey.Given {
			return p.keysUnused(bound, p.Config.FirstKey.Key)
		}
		return p.refuseRows()
	})
	fails := func(f loader.Finding) bool { return f.Grade == loader.GradeFail }
	switch {
	case err == nil, errors.Is(err, loader.ErrNoTable): // the back-end's checks report a missing table
		return nil
	case !p.target.Found.HasRows && slices.ContainsFunc(findings, fails): // most likely the same failure again
		return nil
	}
	f := failure("rows", err)
	if errors.Is(err, target.ErrTooLate) { // the push itself counts without a time limit
		f.Grade = loader.GradeUnknown
	}
	return []loader.Finding{f}
}

// maxWarnings bounds a server's warnings in a run; doctor lists all.
const maxWarnings = 3

// checkServer asks the back-end what would stop the push, and logs warnings. It asks nothing for a silent push. Checks
// that cannot be made do not stop a push.
func (p *push) checkServer(ctx context.Context) error {
	if p.target.Can.Checker == nil || p.silent || p.checked {
		return nil
	}
	p.checked = true
	findings, err := p.runChecks(ctx, p.intent())
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		p.notes.Warnf("the server could not be checked: %v", err)
	}
	warnings := 0
	for _, f := range findings {
		if f.Grade != loader.GradeWarn {
			continue
		}
		if warnings++; warnings <= maxWarnings {
			p.notes.Warn(sentence(f))
		}
	}
	if more := warnings - maxWarnings; more > 0 {
		p.notes.Warnf("%d more about the server: terapush doctor lists them", more)
	}
	return failures("the server", findings)
}

// checkLimits returns an error if this machine has no room for the push, and warns if it has little.
func (p *push) checkLimits(asked facts) error {
	workers, _ := asked.resources.Connections(asked.caps)
	findings := host.CheckLimits(host.Want{Workers: workers, Memory: asked.resources.Memory})
	for _, f := range findings {
		if f.Grade == loader.GradeWarn {
			p.notes.Warn(sentence(f))
		}
	}
	return failures("this machine", findings)
}

// failures joins the failed findings into an error.
func failures(where string, findings []loader.Finding) error {
	var all []error
	for _, f := range findings {
		if f.Grade == loader.GradeFail {
			all = append(all, fmt.Errorf("%s would stop the push: %s", where, sentence(f)))
		}
	}
	return errors.Join(all...)
}

func sentence(f loader.Finding) string {
	if f.Fix == "" {
		return f.Check + ": " + f.Found
	}
	return fmt.Sprintf("%s: %s; fix: %s", f.Check, f.Found, f.Fix)
}

// failure converts an error to a finding, whose fix is the error's hint.
func failure(check string, err error) loader.Finding {
	found := strings.ReplaceAll(err.Error(), "\n", "; ")
	return loader.Finding{Check: check, Grade: loader.GradeFail, Found: found, Fix: loader.HintOf(err)}
}

// dialAddress returns the host:port or socket path in a server's endpoint, which is a URL for stores; "" if there is
// none.
func dialAddress(endpoint string) string {
	if strings.HasPrefix(endpoint, "/") {
		return endpoint
	}
	if u, err := url.Parse(endpoint); err == nil && u.Host != "" {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		endpoint = net.JoinHostPort(u.Hostname(), port)
	}
	if host, port, err := net.SplitHostPort(endpoint); err != nil || host == "" || port == "" {
		return ""
	}
	return endpoint
}
