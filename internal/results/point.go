package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/report"
)

// Point is one cell, measured once or several times.
type Point struct {
	Settings Settings `json:"settings"`
	Status   Status   `json:"status"`  // Measured if any of its pushes was
	Error    string   `json:"error"`   // of the first that failed or was skipped
	Limited  int      `json:"limited"` // pushes that were cut by the cell's time limit, and count
	Failed   int      `json:"failed"`  // pushes that failed, and do not count

	RowsPerSecond        Sample `json:"rows_per_second"`         // of the load, until the rows were visible
	OverallRowsPerSecond Sample `json:"overall_rows_per_second"` // with the time for filling buffers
	BytesPerSecond       Sample `json:"bytes_per_second"`        // of column data
	Seconds              Sample `json:"seconds"`                 // of the load, until the rows were visible
	StageSeconds         Sample `json:"stage_seconds"`           // uploading, of staged methods
	CommitSeconds        Sample `json:"commit_seconds"`
	VisibleSeconds       Sample `json:"visible_seconds"` // from the last ack until the rows were visible
	P50                  Sample `json:"batch_p50_seconds"`
	P90                  Sample `json:"batch_p90_seconds"`
	P99                  Sample `json:"batch_p99_seconds"`
	Max                  Sample `json:"batch_max_seconds"`
	CPUPerGiB            Sample `json:"cpu_seconds_per_gib"` // of the client while rows moved, for a GiB of columns
	BytesPerRow          Sample `json:"stored_bytes_per_row"`
	Retries              int64  `json:"retries"` // of all its pushes

	Fact *Fact `json:"fact,omitempty"` // what was published about this cell
	// Typical is the report of the push with the median rate; nil if none was measured.
	Typical *report.Report `json:"-"`
	// Pushes are the reports of those that count, in the order of their repeats.
	Pushes []*report.Report `json:"-"`

	unproven bool // a push's proof of arrival failed
}

// measured reports whether any push of the point counts.
func (p Point) measured() bool { return p.RowsPerSecond.N > 0 }

// rate returns the median rows per second, 0 for a point that was not measured.
func (p Point) rate() float64 { return p.RowsPerSecond.Median }

// newPoint makes a cell of its entries, one for each repeat.
func newPoint(settings Settings, entries []Entry) Point {
	p := Point{Settings: append(Settings{}, settings...), Status: Skipped} // [] in JSON
	if len(entries) == 0 {
		p.Error = "not begun"
	}
	byRepeat := func(a, b Entry) int { return cmp.Compare(a.Repeat, b.Repeat) }
	for _, e := range slices.SortedStableFunc(slices.Values(entries), byRepeat) {
		p.add(e)
	}
	p.summarise()
	return p
}

func (p *Point) add(e Entry) {
	better := func(status Status) {
		order := []Status{Skipped, Failed, Limited, Measured}
		p.Status = order[max(slices.Index(order, p.Status), slices.Index(order, status))]
	}
	p.unproven = p.unproven || e.Report != nil && e.Report.Verify.Ran && !e.Report.Verify.OK
	if (e.Status == Measured || e.Status == Limited) && e.Report != nil {
		p.Pushes = append(p.Pushes, e.Report)
		p.Retries += e.Report.Result.Retries
		if better(e.Status); e.Status == Limited {
			p.Limited++
		}
		return
	}
	if e.Status != Skipped {
		p.Failed++
		better(Failed)
	}
	p.Error = cmp.Or(p.Error, e.Error, string(e.Status))
}

// fact returns what was published about a cell, nil if nothing was. A fact that names what no cell here has stays in
// Table.Facts alone.
func (p Part) fact(settings Settings) *Fact {
	if p.Facts == nil {
		return nil
	}
	for i, f := range p.Facts.Points {
		if p.isOf(f, settings) {
			return &p.Facts.Points[i]
		}
	}
	return nil
}

// isOf reports whether a fact is about a cell: whatever it names is so in the cell, be it an axis or a flag that all
// cells share, and every axis that varies is named. Targets are the exception: the article had its own.
func (p Part) isOf(f Fact, settings Settings) bool {
	for name, want := range f.At {
		same := func(have string) bool { return have == want || parseValue(have) == parseValue(want) }
		if !slices.ContainsFunc(p.valuesOf(name, settings), same) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Axes, func(a Axis) bool {
		return len(a.Values) > 1 && a.Name != axisTarget && a.Name != axisRecord && f.Value(a.Name) == ""
	})
}

// valuesOf returns the value of an axis in a cell, or those of a flag that all cells share.
func (p Part) valuesOf(name string, settings Settings) []string {
	for _, s := range settings {
		if sameName(s.Axis, name) {
			return []string{s.Value}
		}
	}
	for flag, values := range p.Push {
		if sameName(flag, name) {
			return values
		}
	}
	return nil
}

// ceiling is what calibrate found the client of a push able to do, with the same protocol and rows.
type ceiling struct {
	name           string // for people, with the figure
	bytesPerSecond float64
	rowsPerSecond  float64 // of rows as the push's
}

// ceiling returns that of the point's typical push; false where nobody has calibrated the machine.
func (p Point) ceiling() (ceiling, bool) {
	r := p.Typical
	if r == nil {
		return ceiling{}, false
	}
	bytes := r.BoundBy.Evidence.Ceiling
	rows, ok := finite(bytes*r.Result.RowsPerSecond/r.Result.BytesPerSecond, bytes > 0 && r.Result.BytesPerSecond > 0)
	if !ok || rows <= 0 || bytes >= math.MaxUint64/2 {
		return ceiling{}, false
	}
	name := fmt.Sprintf("this client: %s/s (%s %s)", humanize.IBytesN(uint64(bytes), 2), r.Target.Backend, r.Plan.Method)
	return ceiling{name, bytes, rows}, true
}

// ceilings returns those of all points, each once, in the points' order.
func (t Table) ceilings() []ceiling {
	var all []ceiling
	for _, p := range t.Points {
		c, ok := p.ceiling()
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
func (c ceiling) same(as ceiling) bool {
	return c.name == as.name && math.Abs(c.rowsPerSecond-as.rowsPerSecond) <= 0.02*c.rowsPerSecond
}

// under returns the fastest point below a ceiling, and the share of it that this point reached; -1 if there is none.
func (t Table) under(c ceiling) (point int, share float64) {
	point = -1
	for i, p := range t.Points {
		if own, ok := p.ceiling(); !ok || !own.same(c) || p.BytesPerSecond.N == 0 {
			continue
		}
		if s := p.BytesPerSecond.Median / c.bytesPerSecond; point < 0 || s > share {
			point, share = i, s
		}
	}
	return point, share
}
