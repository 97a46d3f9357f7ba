package push

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// ServerChecks is what CheckServer found out about a server, and what it needs to be said of the push that it was done for.
type ServerChecks struct {
	Findings []loader.Finding
	// Endpoint is the server's host:port or the path of its socket; "" where none was reached, and for what has neither.
	Endpoint string
	Workers  int
	// Memory is the budget of all buffers, BatchBytes one batch's encoded length; the latter is 0 where no plan could be
	// made.
	Memory, BatchBytes int64
}

// Resources returns what a push would take of this machine, were it to some server somewhere: connections that load at
// the same time, and the budget of all buffers in bytes.
func Resources(ctx context.Context, c *config.Push) (workers int, budget int64) {
	if workers = c.Workers; workers == 0 {
		workers = config.DefaultWorkers(runtime.GOMAXPROCS(0), host.FullLink(ctx).World(), loader.Caps{})
	}
	return workers, memory(c)
}

// CheckServer connects as a push would and looks at the server for what would stop or slow that push down. It changes
// nothing. What goes wrong on the way is a finding of grade fail; an error is one of usage, or says that the user
// stopped it.
func CheckServer(ctx context.Context, j Job) (ServerChecks, error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	if err := p.configure(); err != nil {
		return ServerChecks{}, failed(Usage, err)
	}
	found := p.checkServer(soft)
	_ = p.close() // of a connection that was only looked at
	if soft.Err() != nil {
		return found, failed(report.Interrupted, errStopped)
	}
	found.Workers, found.Memory = p.plan.workers, memory(&p.Config)
	return found, nil
}

func (p *push) checkServer(ctx context.Context) (c ServerChecks) {
	if err := p.target.open(ctx); err != nil {
		c.Findings = []loader.Finding{failure("connection", err)}
		return c
	}
	s := p.target.loader.Server()
	c.Endpoint = endpoint(s.Endpoint)
	var smaller notes
	p.plan.notes = &smaller // warnings of the plan are findings here
	draft, err := p.draft(p.target.loader.Caps())
	for _, w := range smaller.list {
		c.Findings = append(c.Findings, loader.Finding{Check: "plan", Grade: loader.GradeWarn, Found: w})
	}
	if err != nil {
		c.Findings = append(c.Findings, answered(s), failure("plan", err))
		return c
	}
	c.BatchBytes = draft.BatchBytes()
	c.Findings = append(c.Findings, p.allChecks(ctx, draft)...)
	c.Findings = append(c.Findings, p.checkRows(ctx, c.Findings)...)
	return c
}

// draft is the plan that the server allows, before anything is known of the table.
func (p *push) draft(caps loader.Caps) (config.Plan, error) {
	p.plan.adjustWorkers(caps)
	if err := p.plan.negotiate(caps); err != nil {
		return config.Plan{}, err
	}
	draft, _, warnings, err := p.plan.from(p.Config.FirstKey.Key)
	p.plan.notes.warnAll(warnings)
	return draft, err
}

// allChecks are the back-end's own, by somebody who asked for them.
func (p *push) allChecks(ctx context.Context, draft config.Plan) []loader.Finding {
	if p.target.can.Checker == nil {
		return []loader.Finding{answered(p.target.loader.Server())}
	}
	intent := p.intent("", draft)
	intent.Silent = false
	findings, err := p.runChecks(ctx, intent)
	if err != nil {
		findings = append(findings, failure("server", err))
	}
	return findings
}

func (p *push) runChecks(ctx context.Context, i loader.Intent) (findings []loader.Finding, err error) {
	err = p.target.askSoon(ctx, "checks", func(bound context.Context) (err error) {
		findings, err = p.target.can.Checker.CheckServer(bound, i)
		return err
	})
	return findings, err
}

// intent is the push that a server is checked for. Of a run by duration the whole length is not known.
func (p *push) intent(run string, draft config.Plan) loader.Intent {
	i := loader.Intent{
		Preparation: p.preparation(run, loader.CreateMode(p.Config.Create)),
		Workers:     draft.Workers, BatchBytes: draft.BatchBytes(),
	}
	if !draft.ByDuration {
		i.TotalBytes = draft.Rows * draft.EncodedRowBytes
	}
	return i
}

// checkRows asks what the preflight asks of a table that is there, and no back-end's checks do: whether it holds rows, or
// some with the run's keys. Prepare makes and removes nothing for a contract without claims and a table that is not to be
// made. No row is probed with: rolled back or not, it moves an AUTO_INCREMENT.
func (p *push) checkRows(ctx context.Context, found []loader.Finding) []loader.Finding {
	if p.silent() || removes(loader.CreateMode(p.Config.Create)) {
		return nil
	}
	looking := p.preparation(runlog.NewID(p.started), loader.CreateNever)
	looking.Hold = loader.HoldNone
	looking.Contract.Delivery, looking.Contract.Dedup = loader.AtLeastOnce, loader.DedupNone
	looking.Contract.GroupBatches, looking.Contract.Commits = 0, 0
	err := within(ctx, func(bound context.Context) (err error) {
		if p.target.table, err = p.target.loader.Prepare(bound, looking); err != nil {
			return err
		}
		if p.Config.Append && p.Config.FirstKey.Given {
			return p.keysUnused(bound, p.Config.FirstKey.Key)
		}
		return p.unwantedRows()
	})
	fails := func(f loader.Finding) bool { return f.Grade == loader.GradeFail }
	switch {
	case err == nil, errors.Is(err, loader.ErrNoTable): // of which the back-end has said what follows
		return nil
	case !p.target.table.HasRows && slices.ContainsFunc(found, fails): // most likely the same again
		return nil
	}
	f := failure("rows", err)
	if errors.Is(err, errTooLate) { // a push takes its time to count
		f.Grade = loader.GradeUnknown
	}
	return []loader.Finding{f}
}

// maxWarnings is how many of a server's warnings a run repeats; doctor has them all.
const maxWarnings = 3

// check is the doctor's look at the server in front of a push. One who wants no statement but the load gets none, and
// checks that fail are no reason not to try.
func (p *push) check(ctx context.Context, run string, draft config.Plan) error {
	if p.target.can.Checker == nil || p.silent() {
		return nil
	}
	findings, err := p.runChecks(ctx, p.intent(run, draft))
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		p.notes.warnf("the server could not be examined: %v", err)
	}
	warnings := 0
	for _, f := range findings {
		if f.Grade != loader.GradeWarn {
			continue
		}
		if warnings++; warnings <= maxWarnings {
			p.notes.warn(said(f))
		}
	}
	if more := warnings - maxWarnings; more > 0 {
		p.notes.warnf("%d more about the server: terapush doctor lists them", more)
	}
	return stopping("the server", findings)
}

// checkLimits refuses what this machine has no room for, and warns where it has little.
func (p *push) checkLimits() error {
	findings := host.CheckLimits(host.Want{Workers: p.plan.workers, Memory: memory(&p.Config)})
	for _, f := range findings {
		if f.Grade == loader.GradeWarn {
			p.notes.warn(said(f))
		}
	}
	return stopping("this machine", findings)
}

// stopping joins all failures among findings into an error.
func stopping(where string, findings []loader.Finding) error {
	var all []error
	for _, f := range findings {
		if f.Grade == loader.GradeFail {
			all = append(all, fmt.Errorf("%s would stop the push: %s", where, said(f)))
		}
	}
	return errors.Join(all...)
}

func said(f loader.Finding) string {
	if f.Fix == "" {
		return f.Check + ": " + f.Found
	}
	return fmt.Sprintf("%s: %s; fix: %s", f.Check, f.Found, f.Fix)
}

// failure is an error as a finding, with its advice apart.
func failure(check string, err error) loader.Finding {
	f := loader.Finding{Check: check, Grade: loader.GradeFail, Found: strings.ReplaceAll(err.Error(), "\n", "; ")}
	var known *loader.Error
	if errors.As(err, &known) && known.Hint != "" {
		f.Found, f.Fix = strings.Replace(f.Found, " ("+known.Hint+")", "", 1), known.Hint
	}
	return f
}

// answered is what was found at the other end, where the back-end's own checks do not say it.
func answered(s loader.Server) loader.Finding {
	found := strings.TrimSpace(s.Product + " " + s.Version)
	if at := endpoint(s.Endpoint); at != "" {
		found += " at " + at
	}
	return loader.Finding{Check: "connection", Grade: loader.GradeOK, Found: found}
}

// endpoint is what can be measured of what a back-end calls its endpoint: stores have a URL, or words.
func endpoint(said string) string {
	if strings.HasPrefix(said, "/") {
		return said
	}
	if u, err := url.Parse(said); err == nil && u.Host != "" {
		port := u.Port()
		if port == "" {
			port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
		}
		said = net.JoinHostPort(u.Hostname(), port)
	}
	if host, port, err := net.SplitHostPort(said); err != nil || host == "" || port == "" {
		return ""
	}
	return said
}
