package host

import (
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// Want is the push that a machine is checked for.
type Want struct {
	BitsPerSecond int64 // to the target, on the wire
	// Target is the host:port that rows go to, or the path of a socket; "" if there is none to measure.
	Target  string
	Workers int
	// Memory is the budget of all buffers, BatchBytes one batch's encoded length; 0 if unknown.
	Memory, BatchBytes int64
}

// patience bounds finding the route and measuring the round trip.
const patience = 3 * time.Second

// Check returns what of this machine would stop or slow down a push, and the command that changes it. It changes
// nothing and takes seconds at most.
func Check(ctx context.Context, w Want) []loader.Finding { return judge(gather(ctx, w.Target), w) }

// gather reads the facts. target is Want.Target.
func gather(ctx context.Context, target string) Facts {
	f := readFacts()
	var asking sync.WaitGroup
	asking.Go(func() { f.EC2 = AskEC2(ctx) })
	bound, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if isPath(target) {
		f.Out = loopback
	} else {
		f.Out = Route(bound, target)
	}
	if target != "" && !isPath(target) {
		f.RoundTrip, _ = roundTrip(bound, target) // the check of the connection says why not
	}
	asking.Wait()
	return f
}

// isPath reports whether the target is a Unix socket, which has no round trip to measure.
func isPath(target string) bool {
	return strings.HasPrefix(target, "/") || strings.HasPrefix(target, "@")
}

// checks are the facts, and the push that they are checked for.
type checks struct {
	Facts
	want Want
}

// check is one question about the machine. A finding without a grade is left out.
type check struct {
	name  string
	judge func() loader.Finding
}

func run(all ...check) (findings []loader.Finding) {
	for _, c := range all {
		if f := c.judge(); f.Grade != "" {
			f.Check = c.name
			findings = append(findings, f)
		}
	}
	return findings
}

// judge grades facts. What would stop a push fails: files that cannot be opened, a batch that does not fit into memory.
// What keeps it below Want.BitsPerSecond is a warning. The order is outwards: cores, memory, network card, TCP, limits.
func judge(f Facts, w Want) []loader.Finding {
	e := checks{f, w}
	return run(check{"cores", e.cores}, check{"memory", e.memory},
		check{"NIC speed", e.speed}, check{"EC2 instance", e.instance}, check{"connections", e.flows},
		check{"TCP send buffers", e.buffers},
		check{"open files", e.files}, check{"local ports", e.ports}, check{"conntrack", e.tracking})
}

// CheckLimits returns the warnings and failures about memory and the number of connections, which are checked without
// waiting. A push calls it at its start.
func CheckLimits(w Want) []loader.Finding { return judgeLimits(readFacts(), w) }

func judgeLimits(f Facts, w Want) []loader.Finding {
	e := checks{f, w}
	all := run(check{"open files", e.files}, check{"local ports", e.ports}, check{"conntrack", e.tracking},
		check{"memory", e.memory})
	return slices.DeleteFunc(all, func(f loader.Finding) bool {
		return f.Grade != loader.GradeWarn && f.Grade != loader.GradeFail
	})
}

func ok(found string) loader.Finding { return loader.Finding{Grade: loader.GradeOK, Found: found} }

func warn(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeWarn, Found: found, Fix: fix}
}

func fail(found, fix string) loader.Finding {
	return loader.Finding{Grade: loader.GradeFail, Found: found, Fix: fix}
}

func unknown(found string) loader.Finding {
	return loader.Finding{Grade: loader.GradeUnknown, Found: found}
}

// gbps formats bits a second.
func gbps(bits int64) string { return figure(float64(bits)/1e9) + " Gbps" }

// figure formats a number with at most two decimals.
func figure(n float64) string { return strconv.FormatFloat(math.Round(n*100)/100, 'f', -1, 64) }

// flagSize formats a size as flags take it, in whole MiB.
func flagSize(n int64) string { return strconv.FormatInt(max(n>>20, 1), 10) + "MiB" }

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.2f ms", d.Seconds()*1000) }

// Report is what the command doctor prints.
type Report struct {
	Schema  string           `json:"schema"`
	Machine []loader.Finding `json:"machine"`
	Server  []loader.Finding `json:"server"` // empty without a target
	OK      bool             `json:"ok"`     // nothing would stop a push
}

// NewReport returns the report of findings; server is nil without a target.
func NewReport(machine, server []loader.Finding) Report {
	r := Report{
		Schema:  "terapush.doctor/v1",
		Machine: append([]loader.Finding{}, machine...), Server: append([]loader.Finding{}, server...),
	}
	r.OK = len(r.Failed()) == 0
	return r
}

// Failed returns the names of the checks that failed.
func (r Report) Failed() (names []string) {
	for _, f := range slices.Concat(r.Machine, r.Server) {
		if f.Grade == loader.GradeFail {
			names = append(names, f.Check)
		}
	}
	return names
}

// WriteJSON prints the report as one object.
func (r Report) WriteJSON(w io.Writer) error { return report.WriteJSON(w, r) }

// WriteText prints a line for each finding, and below it the command that fixes it.
func (r Report) WriteText(w io.Writer) error {
	var text strings.Builder
	grades, checks := 0, 0
	for _, f := range slices.Concat(r.Machine, r.Server) {
		grades, checks = max(grades, utf8.RuneCountInString(string(f.Grade))), max(checks, utf8.RuneCountInString(f.Check))
	}
	for part, findings := range [][]loader.Finding{r.Machine, r.Server} {
		if len(findings) > 0 {
			fmt.Fprintln(&text, [...]string{"this machine", "the server"}[part])
		}
		for _, f := range findings {
			fmt.Fprintf(&text, "  %-*s  %-*s  %s\n", grades, f.Grade, checks, units.Printable(f.Check), units.Printable(f.Found))
			if f.Fix != "" {
				fmt.Fprintf(&text, "  %-*s  fix: %s\n", grades, "", units.Printable(f.Fix))
			}
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}
