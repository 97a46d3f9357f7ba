package sweep

import (
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/results"
)

// Progress is where a sweep is.
type Progress struct {
	Number, Total int // of this push, from 1, and of all, warm-ups and those of earlier processes included
	Case          Case
	Repeat        int
	WarmUp        bool
	Elapsed       time.Duration // since this process began
	// Left is what the rest will take if pushes take as long as those of the same case, or else of the same part, have
	// taken; less where rows end early. It is 0 as long as nothing is known.
	Left time.Duration
}

func (r *runner) progress(i int, s step) Progress {
	return Progress{
		Number: i + 1, Total: len(r.steps), Case: s.one, Repeat: s.repeat, WarmUp: s.warmUp,
		Elapsed: time.Since(r.started), Left: r.left(i),
	}
}

// left guesses the time for everything behind step i.
func (r *runner) left(i int) time.Duration {
	var sum time.Duration
	if len(r.took) == 0 {
		return 0
	}
	for _, s := range r.steps[i+1:] {
		if was, known := r.recorded[s.push()]; known && was.Status != results.Skipped || r.past(s) {
			continue
		}
		sum += r.took.guess(placeOf(s.one)) + r.Plan.Settle
	}
	if r.Plan.Budget > 0 {
		sum = min(sum, max(r.Plan.Budget-r.spent(), 0))
	}
	return sum
}

// pace is how long pushes take: of a case, of a part (its number is whole) and of the sweep (its part is whole, too).
type pace map[place]mean

const whole = -1

type mean struct {
	sum time.Duration
	n   int
}

// levels lists what a case is part of, the nearest first.
func (p place) levels() []place { return []place{p, {p.part, whole}, {whole, whole}} }

// add takes a push that ended. One that failed may have ended at once, and says nothing.
func (p pace) add(e results.Entry) {
	if e.Status == results.Failed {
		return
	}
	for _, at := range (place{e.Part, e.Cell}).levels() {
		p[at] = mean{p[at].sum + seconds(e.Seconds), p[at].n + 1}
	}
}

// guess returns how long a push will take, 0 as long as nothing is known.
func (p pace) guess(at place) time.Duration {
	for _, level := range at.levels() {
		if m := p[level]; m.n > 0 {
			return m.sum / time.Duration(m.n)
		}
	}
	return 0
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// Line returns what is shown of a push that ended, and of where the sweep is. It may hold whatever a server says.
func (s *Sweep) Line(p Progress, e results.Entry) string {
	words := []string{s.Describe(p.Case)}
	switch {
	case p.WarmUp:
		words[0] = "warm-up, " + words[0]
	case s.Plan.Repeats > 1:
		words[0] += fmt.Sprintf(" (%d of %d)", p.Repeat+1, s.Plan.Repeats)
	}
	switch e.Status {
	case results.Measured, results.Limited:
		res := e.Report.Result
		words[0] += fmt.Sprintf(": %s rows/s, %s/s", count(res.RowsPerSecond), size(res.BytesPerSecond))
		if e.Status == results.Limited {
			words[0] += " until the limit"
		}
	case results.Failed:
		words[0] += ": FAILED: " + strings.Join(strings.Fields(e.Error), " ")
	case results.Skipped:
		words[0] += ": skipped, " + e.Error
	}
	words = append(words, "took "+rounded(time.Duration(e.Seconds*float64(time.Second))), "elapsed "+rounded(p.Elapsed))
	if p.Left > 0 {
		words = append(words, "about "+rounded(p.Left)+" left")
	}
	return fmt.Sprintf("[%*d/%d] %s", len(fmt.Sprint(p.Total)), p.Number, p.Total, strings.Join(words, " | "))
}
