package results

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/dustin/go-humanize"

	"github.com/terapush/terapush/internal/report"
)

// Point is one case with its pushes.
type Point struct {
	Settings Settings `json:"settings"`
	Status   Status   `json:"status"`  // Measured if any of its pushes was
	Error    string   `json:"error"`   // of the first that failed or was skipped
	Limited  int      `json:"limited"` // pushes that the time limit cut; they count
	Failed   int      `json:"failed"`  // pushes that failed; they do not count

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
	P999                 Sample `json:"batch_p999_seconds"`
	Max                  Sample `json:"batch_max_seconds"`
	CPUPerGiB            Sample `json:"cpu_seconds_per_gib"` // of the client while rows moved, per GiB of columns
	BytesPerRow          Sample `json:"stored_bytes_per_row"`
	TotalRows            Sample `json:"total_rows"` // acknowledged
	StoredBytes          Sample `json:"stored_bytes"`
	SentRate             Sample `json:"sent_bytes_per_second"`  // what the sockets took
	CommitRate           Sample `json:"commit_rows_per_second"` // of the commits alone, of staged methods
	CommitByteRate       Sample `json:"commit_bytes_per_second"`
	ClientCPU            Sample `json:"client_cpu_percent"` // of its cores while rows moved
	ServerCPU            Sample `json:"server_cpu_percent"` // likewise, by --server-metrics
	Retries              int64  `json:"retries"`            // of all its pushes

	Fact *Fact `json:"fact,omitempty"` // what was published about this case
	// Typical is the report of the push with the median rate; nil if none was measured.
	Typical *report.Report `json:"-"`
	// Pushes are the reports of the pushes that count, in the order of their repeats.
	Pushes []*report.Report `json:"-"`

	missed   bool        // a threshold
	unproven bool        // the proof of arrival of a push failed
	begun    []time.Time // the pushes that count
	speeds   []float64   // of the machine, likewise
}

// measured reports whether any push of the point counts.
func (p Point) measured() bool { return p.RowsPerSecond.N > 0 }

// rate returns the median rows per second, 0 for a point that was not measured.
func (p Point) rate() float64 { return p.RowsPerSecond.Median }

// newPoint makes a point from the entries of a case, one for each repeat.
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
	if e.Report != nil {
		p.unproven = p.unproven || e.Report.Verify.Ran && !e.Report.Verify.OK
	}
	status := e.Status
	if (status == Measured || status == Limited) && e.Report != nil {
		p.Pushes, p.begun, p.speeds = append(p.Pushes, e.Report), append(p.begun, e.Started), append(p.speeds, e.Speed)
		p.Retries += e.Report.Result.Retries
		if status == Limited {
			p.Limited++
		}
	} else {
		p.Error = cmp.Or(p.Error, e.Error, string(status))
		if status != Skipped {
			status = Failed
			p.Failed++
		}
	}
	order := []Status{Skipped, Failed, Limited, Measured}
	p.Status = order[max(slices.Index(order, p.Status), slices.Index(order, status))]
}

// fact returns what was published about a case, nil without anything.
func (p Part) fact(settings Settings) *Fact {
	if p.Facts == nil {
		return nil
	}
	i := slices.IndexFunc(p.Facts.Points, func(f Fact) bool { return p.describes(f, settings) })
	if i < 0 {
		return nil
	}
	return &p.Facts.Points[i]
}

// published returns what was published of a quantity, 0 if nothing was.
func (p Point) published(quantity string) float64 {
	if p.Fact == nil {
		return 0
	}
	return p.Fact.Figures[quantity]
}

// describes reports whether a fact is about a case: all that it names, axes and flags, is equal there, and it names
// every axis that varies. The target need not be named: the article had its own.
func (p Part) describes(f Fact, settings Settings) bool {
	for name, want := range f.At {
		same := func(have string) bool { return SameValue(have, want) }
		if !slices.ContainsFunc(p.valuesOf(name, settings), same) {
			return false
		}
	}
	return !slices.ContainsFunc(p.Axes, func(a Axis) bool {
		return len(a.Values) > 1 && a.Name != axisTarget && a.Name != axisRecord && f.Value(a.Name) == ""
	})
}

// valuesOf returns the value of an axis in a case, or the values of a flag.
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

// ceiling is what calibrate found the client able to push, with the same protocol and rows.
type ceiling struct {
	name           string // for people, with the figure
	bytesPerSecond float64
	rowsPerSecond  float64 // of rows like the push's
}

// ceiling returns the ceiling of the point's typical push; false if the machine was not calibrated.
func (p Point) ceiling() (ceiling, bool) {
	r := p.Typical
	if r == nil {
		return ceiling{}, false
	}
	bytes := r.BoundBy.Evidence.Ceiling
	rows := bytes * r.Result.RowsPerSecond / r.Result.BytesPerSecond
	if !finite(rows) || rows <= 0 || bytes <= 0 || bytes >= math.MaxUint64/2 {
		return ceiling{}, false
	}
	name := fmt.Sprintf("this client: %s/s (%s %s)", humanize.IBytesN(uint64(bytes), 2), r.Target.Backend, r.Plan.Method)
	return ceiling{name, bytes, rows}, true
}

func (t Table) ceilings() []ceiling {
	var all []ceiling
	for _, p := range t.Points {
		if c, ok := p.ceiling(); ok && !slices.ContainsFunc(all, c.same) {
			all = append(all, c)
		}
	}
	return all
}

// same reports whether two ceilings are equal except for rows of varying lengths.
func (c ceiling) same(other ceiling) bool {
	return c.name == other.name && math.Abs(c.rowsPerSecond-other.rowsPerSecond) <= 0.02*c.rowsPerSecond
}

// under returns the fastest point below a ceiling and the share of the ceiling it reached; -1 without one.
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
