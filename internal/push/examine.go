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
	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// Examination is what Examine found out about a server, and what it needs to be said of the push that it was done for.
type Examination struct {
	Findings []loader.Finding
	// Endpoint is the server's host:port or the path of its socket; "" where none was reached, and for what has neither.
	Endpoint string
	Workers  int
	// Memory is the budget of all buffers, BatchBytes one batch's encoded length; the latter is 0 where no plan could be
	// made.
	Memory, BatchBytes int64
}

// Resources is what a push would take of this machine, were it to some server somewhere: connections that load at the
// same time, and the budget of all buffers in bytes.
func Resources(ctx context.Context, c *config.Push) (workers int, budget int64) {
	if workers = c.Workers; workers == 0 {
		workers = plan.Workers(runtime.GOMAXPROCS(0), fullLink(ctx).world(), loader.Caps{})
	}
	return workers, memory(c)
}

// world is the speed of the link by which all the world is reached.
func (l link) world() int64 {
	const documentation = "192.0.2.1" // RFC 5737: nobody's address, and the default route leads there
	return l.bits(documentation)
}

// Examine connects as a push would and looks at the server for what would stop or slow that push down. It changes
// nothing. What goes wrong on the way is a finding of grade fail; an error is one of usage, or says that the user
// stopped it.
func Examine(ctx context.Context, j Job) (Examination, error) {
	p, soft, end := newPush(ctx, j)
	defer end()
	if err := p.configure(); err != nil {
		return Examination{}, failed(Usage, err)
	}
	found := p.examineServer(soft)
	_ = p.close() // of a connection that was only looked at
	if soft.Err() != nil {
		return found, failed(report.Interrupted, errStopped)
	}
	found.Workers, found.Memory = p.crew.workers, memory(&p.Config)
	return found, nil
}

func (p *push) examineServer(ctx context.Context) (e Examination) {
	if err := p.open(ctx); err != nil {
		e.Findings = []loader.Finding{failure("connection", err)}
		return e
	}
	s := p.loader.Server()
	e.Endpoint = endpoint(s.Endpoint)
	draft, warnings, err := p.draft(p.loader.Caps())
	for _, w := range warnings {
		e.Findings = append(e.Findings, loader.Finding{Check: "plan", Grade: loader.GradeWarn, Found: w})
	}
	if err != nil {
		e.Findings = append(e.Findings, answered(s), failure("plan", err))
		return e
	}
	e.BatchBytes = draft.BatchBytes()
	e.Findings = append(e.Findings, p.checks(ctx, draft)...)
	e.Findings = append(e.Findings, p.look(ctx, e.Findings)...)
	return e
}

// look asks what the preflight asks of a table that is there, and no back-end's checks do: whether it holds rows, or some
// with the run's keys. Prepare makes and removes nothing for a contract without claims and a table that is not to be made.
// No row is probed with: rolled back or not, it moves an AUTO_INCREMENT.
func (p *push) look(ctx context.Context, found []loader.Finding) []loader.Finding {
	mode := loader.CreateMode(p.Config.Create)
	if p.silent() || mode == loader.CreateRecreate || mode == loader.CreateTruncate {
		return nil
	}
	looking := p.preparation(runlog.NewID(p.started), loader.CreateNever)
	looking.Hold = loader.HoldNone
	looking.Contract = loader.Contract{Method: p.contract.Method, Format: p.contract.Format, Delivery: loader.AtLeastOnce, BatchRows: p.contract.BatchRows}
	err := within(ctx, func(bound context.Context) (err error) {
		if p.table, err = p.loader.Prepare(bound, looking); err != nil {
			return err
		}
		if p.Config.Append && p.Config.FirstKey.Given {
			return p.unused(bound, p.Config.FirstKey.Key)
		}
		return p.unwantedRows()
	})
	failed := func(f loader.Finding) bool { return f.Grade == loader.GradeFail }
	switch {
	case err == nil, errors.Is(err, loader.ErrNoTable): // of which the back-end has said what follows
		return nil
	case !p.table.HasRows && slices.ContainsFunc(found, failed): // most likely the same again
		return nil
	}
	f := failure("rows", err)
	if errors.Is(err, errTooLate) { // a push takes its time to count
		f.Grade = loader.GradeUnknown
	}
	return []loader.Finding{f}
}

// answered tells what was found at the other end, where the back-end's own checks do not.
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

// draft is the plan that the server allows, before anything is known of the table.
func (p *push) draft(caps loader.Caps) (draft plan.Plan, warnings []string, err error) {
	if lowered := p.lower(caps); lowered != "" {
		warnings = append(warnings, lowered)
	}
	contract, less, err := loader.Negotiate(caps, p.want())
	if err != nil {
		return draft, warnings, err
	}
	p.contract = contract
	draft, _, smaller, err := p.planFrom(p.Config.FirstKey.Key)
	return draft, append(append(warnings, less...), smaller...), err
}

// checks are the back-end's own, by somebody who asked for them.
func (p *push) checks(ctx context.Context, draft plan.Plan) []loader.Finding {
	examiner, can := p.loader.(loader.Examiner)
	if !can {
		none := loader.Finding{Check: "server", Grade: loader.GradeUnknown, Found: "back-end " + p.driver.Name() + " has no checks of a server"}
		return []loader.Finding{answered(p.loader.Server()), none}
	}
	intent := p.intent("", draft)
	intent.Silent = false
	findings, err := p.ask(ctx, examiner, intent)
	if err != nil {
		findings = append(findings, failure("server", err))
	}
	return findings
}

func (p *push) ask(ctx context.Context, examiner loader.Examiner, i loader.Intent) (findings []loader.Finding, err error) {
	err = within(ctx, p.retried("checks", func(bound context.Context) (err error) {
		findings, err = examiner.Examine(bound, i)
		return err
	}))
	return findings, err
}

// intent is the push that a server is examined for. Of a run by duration the whole length is not known.
func (p *push) intent(run string, draft plan.Plan) loader.Intent {
	i := loader.Intent{
		Preparation: p.preparation(run, loader.CreateMode(p.Config.Create)),
		Workers:     draft.Workers, BatchBytes: draft.BatchBytes(),
	}
	if !draft.ByDuration {
		i.TotalBytes = draft.Rows * draft.EncodedRowBytes
	}
	return i
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

// fits refuses what this machine has no room for, and warns where it has little.
func (p *push) fits() error {
	findings := host.CheckLimits(host.Want{Workers: p.crew.workers, Memory: memory(&p.Config)})
	for _, f := range findings {
		if f.Grade == loader.GradeWarn {
			p.warn(said(f))
		}
	}
	return stopping("this machine", findings)
}

// examineAndPrepare makes the table, unless the server has something that would stop the push. What the making itself comes
// upon is told first, since that is in the server's own words; but no table is dropped or emptied for a run that cannot be.
func (p *push) examineAndPrepare(ctx context.Context, run string, draft plan.Plan) error {
	mode := loader.CreateMode(p.Config.Create)
	stops := p.examine(ctx, run, draft)
	if stops != nil && (ctx.Err() != nil || mode == loader.CreateRecreate || mode == loader.CreateTruncate) {
		return stops
	}
	if err := p.prepareTable(ctx, run, mode); err != nil {
		return err
	}
	return stops
}

// loudest is how many of a server's warnings a run repeats; doctor has them all.
const loudest = 3

// examine is the doctor's look at the server in front of a push. One who wants no statement but the load gets none, and
// an examination that fails is no reason not to try.
func (p *push) examine(ctx context.Context, run string, draft plan.Plan) error {
	examiner, can := p.loader.(loader.Examiner)
	if !can || p.silent() {
		return nil
	}
	findings, err := p.ask(ctx, examiner, p.intent(run, draft))
	if ctx.Err() != nil {
		return err
	}
	if err != nil {
		p.warn(fmt.Sprintf("the server could not be examined: %v", err))
	}
	warnings := 0
	for _, f := range findings {
		if f.Grade != loader.GradeWarn {
			continue
		}
		if warnings++; warnings <= loudest {
			p.warn(said(f))
		}
	}
	if more := warnings - loudest; more > 0 {
		p.warn(fmt.Sprintf("%d more about the server: terapush doctor lists them", more))
	}
	return stopping("the server", findings)
}

// stopping is an error of all failures among findings, nil without one.
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
