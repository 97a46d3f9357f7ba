package host

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Want is the push that a machine is checked for.
type Want struct {
	BitsPerSecond int64 // to the target, on the wire
	// Target is the host:port that rows go to, or the path of a socket; "" where there is none to measure.
	Target  string
	Workers int
	// Memory is the budget of all buffers, BatchBytes one batch's encoded length; 0 where it is not known.
	Memory, BatchBytes int64
}

// patience bounds the look-up of the route and the measuring of a round trip.
const patience = 3 * time.Second

// Check returns what of this machine would stop or slow a push down, and the command that changes it. It changes nothing
// and takes seconds at most.
func Check(ctx context.Context, w Want) []loader.Finding { return judge(gather(ctx, w.Target), w) }

// gather reads the facts. target is Want.Target.
func gather(ctx context.Context, target string) Facts {
	f := readFacts()
	var asking sync.WaitGroup
	asking.Go(func() { f.EC2 = AskEC2(ctx) })
	bound, cancel := context.WithTimeout(ctx, patience) // both look names up
	defer cancel()
	if isPath(target) {
		f.Out = loopback
	} else {
		f.Out = Route(bound, target)
	}
	if target != "" && !isPath(target) {
		var err error
		if f.RoundTrip, err = roundTrip(bound, target); err != nil {
			f.Unmeasured = err.Error()
		}
	}
	asking.Wait()
	return f
}

// loopback is the interface by which a target on this machine is reached.
const loopback = "lo"

// isPath reports whether the target is a Unix socket, which has no round trip to measure.
func isPath(target string) bool {
	return strings.HasPrefix(target, "/") || strings.HasPrefix(target, "@")
}

// judge is pure. Only what would stop a push is a failure: files that cannot be opened, a batch that does not fit into
// memory. Everything else costs speed, and is a warning where it keeps a push below Want.BitsPerSecond. Findings are
// ordered from the core outwards: cores, memory, network card, TCP, limits of the process.
func judge(f Facts, w Want) []loader.Finding {
	e := checks{f, w}
	all := append(e.computer(), e.card()...)
	all = append(all, e.cloud()...)
	all = append(all, e.tcp()...)
	return append(all, e.limits()...)
}

// CheckLimits returns the warnings and failures about memory and the number of connections, which take no time to check.
// A push calls it at its start.
func CheckLimits(w Want) []loader.Finding { return judgeLimits(readFacts(), w) }

func judgeLimits(f Facts, w Want) []loader.Finding {
	e := checks{f, w}
	return slices.DeleteFunc(append(e.limits(), e.memory()), func(f loader.Finding) bool {
		return f.Grade != loader.GradeWarn && f.Grade != loader.GradeFail
	})
}

// checks holds what is known of this machine, and the push that it is checked for.
type checks struct {
	Facts
	want Want
}

func ok(check, found string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeOK, Found: found}
}

func warn(check, found, fix string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeWarn, Found: found, Fix: fix}
}

func fail(check, found, fix string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeFail, Found: found, Fix: fix}
}

func unknown(check, found string) loader.Finding {
	return loader.Finding{Check: check, Grade: loader.GradeUnknown, Found: found}
}
