package sweep

import (
	"fmt"
	"time"

	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

// Progress is how far a sweep is.
type Progress struct {
	Number, Total int           // of this push, from 1, and of all, including warm-ups and those of earlier processes
	Elapsed       time.Duration // of this process
	// Left is an estimate of the rest from the pushes of the same case, else of the sweep. It ignores that rows may end
	// early. It is 0 if nothing is known.
	Left time.Duration
}

func (r *runner) tell(i int, e results.Entry) {
	if r.End != nil {
		r.End(Progress{Number: i + 1, Total: len(r.steps), Elapsed: time.Since(r.started), Left: r.left(i)}, e)
	}
}

// left estimates the time for all steps after i.
func (r *runner) left(i int) time.Duration {
	var sum time.Duration
	if r.took.n == 0 {
		return 0
	}
	for _, s := range r.steps[i+1:] {
		if was, known := r.recorded[s.push()]; known && was.Status != results.Skipped || r.past(s) || r.known(s) {
			continue
		}
		sum += r.states[placeOf(s.one)].took.mean(r.took.mean(0)) + r.Plan.Settle
	}
	if r.Plan.Budget > 0 {
		sum = min(sum, max(r.Plan.Budget-r.spent(), 0))
	}
	return sum
}

// pace is how long pushes took.
type pace struct {
	sum time.Duration
	n   int
}

// add takes a push that ended. One that failed may have ended early, and does not count.
func (p *pace) add(e results.Entry) {
	if e.Status != results.Failed {
		p.sum += seconds(e.Seconds)
		p.n++
	}
}

// mean returns how long a push takes, or what is given if nothing is known.
func (p pace) mean(otherwise time.Duration) time.Duration {
	if p.n == 0 {
		return otherwise
	}
	return p.sum / time.Duration(p.n)
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Line describes a push that ended, and how far the sweep is. It may contain anything that a server sent.
func (s *Sweep) Line(p Progress, e results.Entry) string {
	what := s.describe(e.Part, e.Settings)
	switch {
	case e.WarmUp:
		what = "warm-up, " + what
	case s.Plan.Precision > 0:
		what += fmt.Sprintf(" (trial %d)", e.Repeat+1)
	case s.Plan.Repeats > 1:
		what += fmt.Sprintf(" (%d of %d)", e.Repeat+1, s.Plan.Repeats)
	}
	switch e.Status {
	case results.Measured, results.Limited:
		what += ": " + rates(e.Report.Result.RowsPerSecond, e.Report.Result.BytesPerSecond)
		if e.Status == results.Limited {
			what += " until the limit"
		}
	case results.Failed:
		what += ": FAILED: " + units.OneLine(e.Error)
	case results.Skipped:
		what += ": skipped, " + e.Error
	}
	line := fmt.Sprintf("[%*d/%d] %s | took %s | elapsed %s", len(fmt.Sprint(p.Total)), p.Number, p.Total, what,
		rounded(seconds(e.Seconds)), rounded(p.Elapsed))
	if p.Left > 0 {
		line += fmt.Sprintf(" | about %s left", rounded(p.Left))
	}
	return line
}
