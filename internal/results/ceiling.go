package results

import (
	"fmt"
	"math"

	"github.com/dustin/go-humanize"
)

// Ceiling is what calibrate found the client of a push able to do, with the same protocol and rows.
type Ceiling struct {
	Name           string // for people, with the figure
	BytesPerSecond float64
	RowsPerSecond  float64 // of rows as the push's
}

// Ceiling is that of the point's typical push; false where nobody has calibrated the machine.
func (p Point) Ceiling() (Ceiling, bool) {
	r := p.Typical
	if r == nil {
		return Ceiling{}, false
	}
	bytes := r.BoundBy.Evidence.Ceiling
	rows, ok := finite(bytes*r.Result.RowsPerSecond/r.Result.BytesPerSecond, bytes > 0 && r.Result.BytesPerSecond > 0)
	if !ok || rows <= 0 || bytes >= math.MaxUint64/2 {
		return Ceiling{}, false
	}
	return Ceiling{
		Name:           fmt.Sprintf("this client: %s/s (%s %s)", humanize.IBytesN(uint64(bytes), 2), r.Target.Backend, r.Plan.Method),
		BytesPerSecond: bytes, RowsPerSecond: rows,
	}, true
}

// Ceilings are those of all points, each once, in the points' order.
func (t Table) Ceilings() []Ceiling {
	var all []Ceiling
	for _, p := range t.Points {
		c, ok := p.Ceiling()
		for _, had := range all {
			ok = ok && !had.same(c)
		}
		if ok {
			all = append(all, c)
		}
	}
	return all
}

// same reports whether two ceilings are one: rows of varying lengths make it a little higher or lower.
func (c Ceiling) same(as Ceiling) bool {
	return c.Name == as.Name && math.Abs(c.RowsPerSecond-as.RowsPerSecond) <= 0.02*c.RowsPerSecond
}

// Under is the fastest point below a ceiling, and the share of it that this point reached; -1 if there is none.
func (t Table) Under(c Ceiling) (point int, share float64) {
	point = -1
	for i, p := range t.Points {
		if own, ok := p.Ceiling(); !ok || !own.same(c) || p.BytesPerSecond.N == 0 {
			continue
		}
		if s := p.BytesPerSecond.Median / c.BytesPerSecond; point < 0 || s > share {
			point, share = i, s
		}
	}
	return point, share
}
