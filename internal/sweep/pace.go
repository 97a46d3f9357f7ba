package sweep

import (
	"time"

	"github.com/terapush/terapush/internal/results"
)

// pace is how long pushes take.
type pace struct {
	cells map[place]mean
	parts map[int]mean
	all   mean
}

type mean struct {
	sum time.Duration
	n   int
}

func (m mean) with(d time.Duration) mean { return mean{m.sum + d, m.n + 1} }

func (m mean) of() time.Duration { return m.sum / time.Duration(m.n) }

func newPace() pace { return pace{cells: map[place]mean{}, parts: map[int]mean{}} }

// add takes a push that ended. One that failed may have ended at once, and says nothing.
func (p *pace) add(e results.Entry) {
	if e.Status == results.Failed {
		return
	}
	d := seconds(e.Seconds)
	at := place{e.Part, e.Cell}
	p.cells[at] = p.cells[at].with(d)
	p.parts[e.Part] = p.parts[e.Part].with(d)
	p.all = p.all.with(d)
}

// guess is how long a push will take, 0 as long as nothing is known.
func (p *pace) guess(s step) time.Duration {
	for _, m := range []mean{p.cells[placeOf(s.cell)], p.parts[s.cell.Part], p.all} {
		if m.n > 0 {
			return m.of()
		}
	}
	return 0
}
