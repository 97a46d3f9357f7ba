package results_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
)

// seedRates are the article's database-only rows a second, by batch size and then method, for the sizes below.
var (
	seedBatches = []int{2000, 3000, 4000, 5000, 10000, 20000, 30000, 40000, 50000, 100000, 200000}
	seedRates   = map[string][]float64{
		"insert":            {3670, 5258, 6738, 7965, 13722, 22350, 27477, 30966, 35429, 42547, 57713},
		"insert-no-presign": {3929, 5564, 7015, 8330, 14209, 22290, 25015, 28858, 31329, 37159, 46836},
		"streaming-load":    {6958, 9971, 12773, 15283, 25380, 41066, 51693, 63355, 66232, 88356, 127643},
		"stage-load":        {69565, 76746, 82237, 86319, 121803, 173310, 188324, 214133, 234192, 261780, 260417},
	}
	seedMethods = []string{"insert", "insert-no-presign", "streaming-load", "stage-load"}
)

// methods is a sweep as the article's: 44 cells, faster here by half, with one that failed.
func methods() results.Table {
	random := rand.New(rand.NewPCG(1, 2))
	facts := &results.Facts{
		Source:  "wubx/databend_ingestion, README and t_results.csv, January 2026",
		Machine: "one client thread, Databend and MinIO on a customer's hardware, not told",
		Note:    "rows per second of the timed calls alone, without making the rows; stage-load as write and copy together",
	}
	t := results.Table{
		Name: "databend-four-methods", Title: "Databend: four ways in, eleven batch sizes", Scale: "laptop", Facts: facts,
		Axes:   []results.Axis{{Name: "method", Values: seedMethods}, {Name: "batch-rows"}},
		Inputs: []results.Input{{Name: "server", Value: "Databend 1.2.790"}, {Name: "durability", Value: "fsync=on"}, {Name: "machine", Value: "AMD EPYC 7R13, 2 cores, 7.6 GiB memory, Linux 6.1 amd64"}, {Name: "dataset", Value: "people"}, {Name: "seed", Value: "42"}, {Name: "rows", Value: "200,000"}, {Name: "loop", Value: "closed: batches are timed from when they were sent"}, {Name: "--workers", Value: "1"}},
		Warnings: []string{
			"insert and insert-no-presign at batch-rows 20000 differ by 0.3 %, which is less than the 4.1 % their pushes differ by",
			"the server keeps its data on the client's own disk",
		},
		Best: -1, Smallest: -1,
	}
	for _, b := range seedBatches {
		t.Axes[1].Values = append(t.Axes[1].Values, strconv.Itoa(b))
	}
	for _, method := range seedMethods {
		for n, batch := range seedBatches {
			at := map[string]string{"method": method, "batch-rows": strconv.Itoa(batch)}
			facts.Points = append(facts.Points, results.Fact{At: at, RowsPerSecond: seedRates[method][n]})
			p := point(random, seedRates[method][n]*(1.3+0.4*random.Float64()), 3)
			p.Settings = []results.Setting{{Axis: "method", Value: method}, {Axis: "batch-rows", Value: strconv.Itoa(batch)}}
			if method == "insert" && batch == 200000 {
				p = results.Point{Settings: p.Settings, Status: results.Failed, Failed: 3, Error: "databend: 1104: code 4000: memory limit of the query exceeded <1 GiB>"}
			}
			t.Points = append(t.Points, p)
		}
		t.Knees = append(t.Knees, results.Knee{Axis: "batch-rows", Row: []results.Setting{{Axis: "method", Value: method}}, At: "100000", Best: "200000", Reached: true})
	}
	for n := range t.Points {
		t.Points[n].Fact = &facts.Points[n]
	}
	conclude(&t)
	return t
}

// workersTable is a second part: throughput by workers for two settings of durability.
func workersTable() results.Table {
	random := rand.New(rand.NewPCG(3, 4))
	t := results.Table{
		Name: "databend-four-methods/workers", Title: "Databend: four ways in, eleven batch sizes: by workers, with group commit", Scale: "laptop",
		Axes: []results.Axis{{Name: "group_commit", Values: []string{"off", "sync", "async"}}, {Name: "workers", Values: []string{"1", "2", "4", "8", "16", "32"}}},
		Best: -1, Smallest: -1,
	}
	for g, mode := range t.Axes[0].Values {
		for _, w := range t.Axes[1].Values {
			n, _ := strconv.ParseFloat(w, 64)
			p := point(random, float64(g+2)*9000*n/(1+n/5), 3)
			p.Settings = []results.Setting{{Axis: "group_commit", Value: mode}, {Axis: "workers", Value: w}}
			calibrated(&p, 180e6)
			t.Points = append(t.Points, p)
		}
		t.Knees = append(t.Knees, results.Knee{Axis: "workers", Row: []results.Setting{{Axis: "group_commit", Value: mode}}, At: "16", Best: "32", Reached: true})
	}
	conclude(&t)
	return t
}

// calibrated makes the client of a point's typical push one that can do so many bytes a second.
func calibrated(p *results.Point, bytes float64) {
	p.Typical.Target.Backend, p.Typical.Plan.Method = "databend", "streaming-load"
	p.Typical.Result.RowsPerSecond, p.Typical.Result.BytesPerSecond = p.RowsPerSecond.Median, p.RowsPerSecond.Median*766
	p.Typical.BoundBy.Evidence.Ceiling = bytes
}

// point is a measured one, about so fast.
func point(random *rand.Rand, rate float64, pushes int) results.Point {
	around := func(median, share float64) results.Sample {
		s := results.Sample{N: pushes, Median: median, Low: median, High: median}
		if pushes > 1 {
			s.Low, s.High = median*(1-share*random.Float64()), median*(1+share*random.Float64())
		}
		return s
	}
	took := 200000 / rate
	return results.Point{
		Status: results.Measured, RowsPerSecond: around(rate, .06), OverallRowsPerSecond: around(rate*.8, .06),
		BytesPerSecond: around(rate*766, .06), Seconds: around(took, .06), P50: around(took/40, .1), P90: around(took/30, .1),
		P99: around(took/12, .3), Max: around(took/9, .3), CPUPerGiB: around(.4, .1), BytesPerRow: around(771, 0), Retries: 2,
		Typical: typical(random, rate),
	}
}

// typical is a run of a minute with a stall in it.
func typical(random *rand.Rand, rate float64) *report.Report {
	r := &report.Report{
		Run:           report.Run{ID: "r1", Started: time.Date(2026, 11, 22, 6, 30, 0, 0, time.UTC)},
		Phases:        report.Phases{Prepare: .8, Fill: 3.1, Load: 46, Finish: 1.5, Verify: 6},
		WorkerSeconds: map[string]float64{"send": 21 + 9*random.Float64(), "wait_ack": 60 * random.Float64(), "wait_buffer": 2, "connect": .4, "backoff": 3 * random.Float64(), "idle": 4},
		Timeline:      report.Timeline{Interval: 1},
	}
	rows, retries := 0.0, int64(0)
	for second := 1; second <= 58; second++ {
		phase := map[bool]string{true: "load", false: "verify"}[second < 50]
		if second <= 4 {
			phase = []string{"", "prepare", "fill", "fill", "fill"}[second]
		}
		if phase == "load" {
			speed := rate * (.95 + .1*random.Float64())
			if second > 25 && second < 30 {
				speed *= .15
				retries++
			}
			rows += speed
		}
		r.Timeline.Moments = append(r.Timeline.Moments, report.Moment{At: float64(second), Phase: phase, Rows: int64(rows), PayloadBytes: int64(rows * 766), Retries: retries})
	}
	end := r.Timeline.Moments[len(r.Timeline.Moments)-1]
	end.Phase = "done" // no interval, and no name in the chart
	r.Timeline.Moments = append(r.Timeline.Moments, end)
	return r
}

// conclude finds the best, as package analysis does.
func conclude(t *results.Table) {
	best := math.Inf(-1)
	for n, p := range t.Points {
		if p.RowsPerSecond.N > 0 && p.RowsPerSecond.Median > best {
			best, t.Best, t.Smallest = p.RowsPerSecond.Median, n, n
		}
	}
	for n := len(t.Points) - 1; n >= 0; n-- {
		if p := t.Points[n]; p.RowsPerSecond.N > 0 && p.RowsPerSecond.Median > .95*best {
			t.Smallest = n
		}
	}
}

// largeTable is a sweep of so many cells: method, batch and workers.
func largeTable(cells int) results.Table {
	random := rand.New(rand.NewPCG(5, 6))
	t := results.Table{Name: "large", Title: "A large sweep", Best: -1, Smallest: -1, Axes: []results.Axis{{Name: "method"}, {Name: "batch-rows"}, {Name: "workers"}}}
	for n := range 10 {
		t.Axes[0].Values = append(t.Axes[0].Values, fmt.Sprintf("method-%d", n))
		t.Axes[1].Values = append(t.Axes[1].Values, strconv.Itoa(1000<<n))
	}
	for n := range (cells + 99) / 100 {
		t.Axes[2].Values = append(t.Axes[2].Values, strconv.Itoa(1<<n))
	}
	for n := range cells {
		w := n / 100
		p := point(random, (1+float64(n%10))*1000*math.Sqrt(float64(1+n/10%10))*float64(1+w), 5)
		p.Settings = []results.Setting{{Axis: "method", Value: t.Axes[0].Values[n%10]}, {Axis: "batch-rows", Value: t.Axes[1].Values[n/10%10]}, {Axis: "workers", Value: t.Axes[2].Values[w]}}
		t.Points = append(t.Points, p)
	}
	conclude(&t)
	return t
}
