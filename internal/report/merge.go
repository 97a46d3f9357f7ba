package report

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
)

// Merged is what a report of a whole run has in addition, if several processes sent it.
type Merged struct {
	Shards []ShardResult `json:"shards"`
	// Window is the time in which all shards moved rows and had ended their warm-ups, with what they moved in it. Result's
	// time is from the first row of any shard to the last, Measured from the first end of a warm-up.
	Window Window `json:"window"`
}

// ShardResult is one shard's part. Start and end are of its last process's rows, Rows of all its processes.
type ShardResult struct {
	Shard
	Outcome        Outcome   `json:"outcome"`
	Start          time.Time `json:"start"`
	End            time.Time `json:"end"`
	RowsPerSecond  float64   `json:"rows_per_second"`
	BytesPerSecond float64   `json:"bytes_per_second"`
	BoundBy        string    `json:"bound_by"`
}

// Window is a part of a run's time. Rates are 0 if it is empty.
type Window struct {
	Seconds        float64 `json:"seconds"`
	Rows           float64 `json:"rows"`
	RowsPerSecond  float64 `json:"rows_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`
}

// Merge makes one report of those of all shards of a run, in any order. A shard that is missing or there twice is an error,
// and so are reports that do not belong together. Counts and CPU time are summed, phases and peak memory are the largest;
// latencies are those of all batches. Cores of one machine count once. The machines' evidence is left out, but for the
// client's CPU.
func Merge(all []Report) (Report, error) {
	all = slices.Clone(all)
	slices.SortStableFunc(all, func(a, b Report) int { return cmp.Compare(a.index(), b.index()) })
	if err := belongTogether(all); err != nil {
		return Report{}, err
	}
	first := all[0]
	whole := Report{Run: first.Run, Target: first.Target, Plan: first.Plan, Merged: &Merged{}}
	whole.Run.Shard, whole.Run.Resumable = nil, false
	whole.Plan.Workers, whole.Plan.Buffers = 0, 0
	whole.Result.Outcome = OK
	whole.Verify = Verify{Mode: first.Verify.Mode, Ran: true, OK: true}
	whole.Latency.Loop = first.Latency.Loop
	latency := stats.NewHistogram()
	lost := make(map[event.Limit]float64)
	courses := make([]course, len(all))
	var problems []error
	for i, r := range all {
		courses[i] = r.course()
		whole.add(r)
		problems = append(problems, whole.addLatency(latency, r))
		for limit, seconds := range r.BoundBy.Seconds {
			lost[event.Limit(limit)] += seconds
		}
		whole.Merged.Shards = append(whole.Merged.Shards, ShardResult{
			Shard: *r.Run.Shard, Outcome: r.Result.Outcome, Start: courses[i].start, End: courses[i].end,
			RowsPerSecond: r.Result.RowsPerSecond, BytesPerSecond: r.Result.BytesPerSecond, BoundBy: r.BoundBy.Verdict,
		})
	}
	if err := errors.Join(problems...); err != nil {
		return Report{}, err
	}
	whole.Latency.BatchSeconds = Quantiles(stats.QuantilesOf(latency, whole.Latency.BatchSeconds.Max))
	text, err := stats.Encode(latency)
	if err != nil {
		return Report{}, err
	}
	whole.Latency.Histogram = text
	whole.BoundBy = NewBound(lost, Evidence{WirePerPayload: ratio(float64(whole.Result.WireBytes), float64(whole.Result.PayloadBytes))})
	whole.overTime(courses)
	for i, r := range all {
		courses[i] = courses[i].measured(r)
	}
	whole.measure(courses)
	moving := whole.Result.Seconds
	if whole.Measured != nil {
		moving = whole.Measured.Seconds
	}
	whole.Client.Cores = coresOf(all)
	whole.BoundBy.Evidence.ClientCPU = min(ratio(whole.Client.LoadSeconds, moving*float64(whole.Client.Cores)), 1)
	whole.Complete()
	return whole, nil
}

func (r Report) index() int64 {
	if r.Run.Shard == nil {
		return -1
	}
	return r.Run.Shard.Index
}

// belongTogether checks reports in the order of their shards.
func belongTogether(all []Report) error {
	if len(all) == 0 {
		return errors.New("no reports to merge")
	}
	first := all[0]
	if first.Run.Shard == nil {
		// Of a single run, or of a process that ended before it knew its rows.
		return fmt.Errorf("the report of run %q is of no shard: leave it out (%s)", first.Run.ID,
			cmp.Or(first.Result.Error, string(first.Result.Outcome)))
	}
	var problems []error
	count, next, key := first.Run.Shard.Count, int64(0), first.Plan.FirstKey
	for _, r := range all {
		s := r.Run.Shard
		if r.Run.ID != first.Run.ID || s.Count != count {
			return fmt.Errorf("shard %d/%d of run %s and shard %d/%d of run %s belong to different runs",
				first.Run.Shard.Index, count, first.Run.ID, s.Index, s.Count, r.Run.ID)
		}
		if a, b := rowsOf(first.Plan), rowsOf(r.Plan); a != b {
			return fmt.Errorf("shards %d and %d of run %s sent rows of different plans: %+v and %+v", first.Run.Shard.Index, s.Index, r.Run.ID, a, b)
		}
		switch {
		case s.Index < next:
			problems = append(problems, fmt.Errorf("shard %d is there twice: give the report of its last process", s.Index))
			continue
		case s.Index > next:
			problems = append(problems, missing(next, s.Index, key, s.FirstKey))
		case s.FirstKey != key:
			problems = append(problems, fmt.Errorf("shard %d begins with key %d, and the one before ends before key %d", s.Index, s.FirstKey, key))
		}
		next, key = s.Index+1, s.FirstKey+s.Rows
		if r.Run.ProcessStarted.IsZero() {
			problems = append(problems, fmt.Errorf("shard %d does not say when its process started", s.Index))
		}
	}
	end := first.Plan.FirstKey + first.Plan.Rows
	if next < count {
		problems = append(problems, missing(next, count, key, end))
	} else if len(problems) == 0 && key != end {
		problems = append(problems, fmt.Errorf("the last shard ends before key %d, and the run before key %d", key, end))
	}
	return errors.Join(problems...)
}

// missing is the error for shards from up to to, whose keys are from key up to end.
func missing(from, to, key, end int64) error {
	if to-from == 1 {
		return fmt.Errorf("shard %d is missing: keys %d to %d", from, key, end-1)
	}
	return fmt.Errorf("shards %d to %d are missing: keys %d to %d", from, to-1, key, end-1)
}

// rowsOf returns what all shards have to have alike.
func rowsOf(p Plan) any {
	return struct {
		Method, Format, Delivery, Dataset   string
		Seed                                uint64
		Rows, FirstKey, BatchRows, Distinct int64
	}{p.Method, p.Format, p.Delivery, p.Dataset, p.Seed, p.Rows, p.FirstKey, p.BatchRows, p.DistinctRows}
}

// add adds a shard's numbers, except those over time.
func (r *Report) add(of Report) {
	if of.Result.Outcome != OK {
		if r.Result.Outcome == OK {
			r.Result.Outcome = of.Result.Outcome
		}
		r.Result.Error += fmt.Sprintf("shard %d: %s; ", of.Run.Shard.Index, cmp.Or(of.Result.Error, string(of.Result.Outcome)))
	}
	if of.Run.Started.Before(r.Run.Started) {
		r.Run.Started = of.Run.Started
	}
	if of.Run.ProcessStarted.Before(r.Run.ProcessStarted) {
		r.Run.ProcessStarted = of.Run.ProcessStarted
	}
	r.Run.Resumed = r.Run.Resumed || of.Run.Resumed
	if of.Run.Shard.Index > 0 {
		r.Run.ResumedRows += of.Run.ResumedRows
	}
	r.Plan.Workers += of.Plan.Workers
	r.Plan.Buffers += of.Plan.Buffers
	is, sum := of.Result, &r.Result
	for into, n := range map[*int64]int64{
		&sum.Rows: is.Rows, &sum.Batches: is.Batches, &sum.PayloadBytes: is.PayloadBytes, &sum.EncodedBytes: is.EncodedBytes,
		&sum.WireBytes: is.WireBytes, &sum.StoredBytes: is.StoredBytes, &sum.Attempts: is.Attempts, &sum.Retries: is.Retries,
		&sum.Refills: is.Refills, &sum.Duplicates: is.Duplicates, &sum.Unknown: is.Unknown, &sum.GivenUp: is.GivenUp, &sum.Missing: is.Missing,
		&r.Verify.ExpectedRows: of.Verify.ExpectedRows, &r.Verify.FoundRows: of.Verify.FoundRows,
	} {
		*into += n
	}
	addAll(&sum.Errors, is.Errors)
	sum.Failures = append(sum.Failures, is.Failures...)
	addAll(&r.WorkerSeconds, of.WorkerSeconds)
	addAll(&r.Cost, of.Cost)
	r.Verify.Ran, r.Verify.OK = r.Verify.Ran && of.Verify.Ran, r.Verify.OK && of.Verify.OK
	for into, seconds := range map[*float64]float64{
		&r.Phases.Prepare: of.Phases.Prepare, &r.Phases.Fill: of.Phases.Fill, &r.Phases.Load: of.Phases.Load, &r.Phases.Stage: of.Phases.Stage,
		&r.Phases.Commit: of.Phases.Commit, &r.Phases.Finish: of.Phases.Finish, &r.Phases.Verify: of.Phases.Verify,
		&r.Latency.VisibleSeconds: of.Latency.VisibleSeconds, &r.Plan.ZstdRatio: of.Plan.ZstdRatio,
	} {
		*into = max(*into, seconds)
	}
	r.Client.UserSeconds += of.Client.UserSeconds
	r.Client.SystemSeconds += of.Client.SystemSeconds
	r.Client.LoadSeconds += of.Client.LoadSeconds
	r.Client.PeakRSSBytes = max(r.Client.PeakRSSBytes, of.Client.PeakRSSBytes)
	if of.Measured != nil {
		r.Measured = new(Measured)
	}
	for _, w := range of.Warnings {
		if !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
}

// coresOf returns the cores of all processes, those that several of them shared once: a host's, and of several hosts of
// one machine, which are containers, no more than the machine has.
func coresOf(all []Report) int {
	type place struct{ machine, host string }
	hosts, machines, unknown := map[place]int{}, map[string]int{}, 0
	for _, r := range all {
		c := r.Client
		if c.Host == "" && c.Machine == "" { // by an earlier version
			unknown += c.Cores
			continue
		}
		at := place{c.Machine, c.Host}
		hosts[at] = max(hosts[at], c.Cores)
		machines[c.Machine] = max(machines[c.Machine], c.MachineCores)
	}
	used := map[string]int{}
	for at, cores := range hosts {
		used[at.machine] += cores
	}
	sum := unknown
	for machine, cores := range used {
		if most := machines[machine]; machine != "" && most > 0 {
			cores = min(cores, most)
		}
		sum += cores
	}
	return sum
}

func addAll[M ~map[string]N, N int64 | float64](into *M, more M) {
	if *into == nil {
		*into = make(M)
	}
	for name, n := range more {
		(*into)[name] += n
	}
}

func (r *Report) addLatency(all *hdrhistogram.Histogram, of Report) error {
	r.Latency.BatchSeconds.Max = max(r.Latency.BatchSeconds.Max, of.Latency.BatchSeconds.Max)
	one, err := stats.Decode(of.Latency.Histogram)
	if err != nil {
		return fmt.Errorf("the latencies of shard %d: %w", of.Run.Shard.Index, err)
	}
	all.Merge(one)
	return nil
}

// course is how the rows of a process moved.
type course struct {
	start, end time.Time // of the phases that move rows; equal if none moved
	points     []point
}

// point is what had moved at a time.
type point struct {
	at          time.Time
	rows, bytes float64
}

func (r Report) course() course {
	at := func(seconds float64) time.Time {
		return r.Run.ProcessStarted.Add(time.Duration(seconds * float64(time.Second)))
	}
	c := course{start: r.Run.ProcessStarted, end: r.Run.ProcessStarted}
	var before Moment
	for _, m := range r.Timeline.Moments {
		switch event.Phase(m.Phase) {
		case event.Load, event.Stage, event.Commit, event.Finish:
			if c.points == nil {
				c.start = at(before.At)
				c.points = []point{{c.start, float64(before.Rows), float64(before.PayloadBytes)}}
			}
			c.end = at(m.At)
			c.points = append(c.points, point{c.end, float64(m.Rows), float64(m.PayloadBytes)})
		}
		before = m
	}
	if n := len(c.points); n > 0 && c.points[n-1].rows == c.points[0].rows {
		c.points = nil // a process that found all of its rows in
	}
	return c
}

// until returns what this process had moved at a time, evenly between two points.
func (c course) until(t time.Time) (rows, bytes float64) {
	for i, p := range c.points {
		if p.at.Before(t) && i < len(c.points)-1 {
			continue
		}
		first := c.points[0]
		if i > 0 && t.Before(p.at) {
			q := c.points[i-1]
			share := ratio(t.Sub(q.at).Seconds(), p.at.Sub(q.at).Seconds())
			p.rows, p.bytes = q.rows+share*(p.rows-q.rows), q.bytes+share*(p.bytes-q.bytes)
		}
		return p.rows - first.rows, p.bytes - first.bytes
	}
	return 0, 0
}

// measured returns the course of the measured part of a push.
func (c course) measured(r Report) course {
	m := r.Measured
	if m == nil || c.points == nil {
		return c
	}
	if r.Unmeasured() {
		return course{}
	}
	last := c.points[len(c.points)-1]
	c.start = r.Run.ProcessStarted.Add(time.Duration(m.From * float64(time.Second)))
	rest := slices.DeleteFunc(slices.Clone(c.points), func(p point) bool { return !p.at.After(c.start) })
	c.points = append([]point{{c.start, last.rows - float64(m.Rows), last.bytes - float64(m.PayloadBytes)}}, rest...)
	return c
}

// moving leaves out the shards that had nothing left to send, which have no part in the time of the others, and returns
// when the first of the others began and the last ended.
func moving(courses []course) (moved []course, first, last time.Time) {
	for _, c := range courses {
		switch {
		case c.points == nil:
			continue
		case moved == nil:
			first, last = c.start, c.end
		}
		moved, first, last = append(moved, c), earlier(first, c.start), later(last, c.end)
	}
	return moved, first, last
}

// measure sets what is measured of the courses.
func (r *Report) measure(courses []course) {
	courses, first, last := moving(courses)
	if len(courses) == 0 {
		return
	}
	begin, end := first, last // of the window
	for _, c := range courses {
		begin, end = later(begin, c.start), earlier(end, c.end)
	}
	between := func(from, to time.Time) Window {
		w := Window{Seconds: max(to.Sub(from).Seconds(), 0)}
		bytes := 0.0
		for _, c := range courses {
			rows, payload := c.until(to)
			rowsBefore, payloadBefore := c.until(from)
			w.Rows, bytes = w.Rows+rows-rowsBefore, bytes+payload-payloadBefore
		}
		w.RowsPerSecond, w.BytesPerSecond = ratio(w.Rows, w.Seconds), ratio(bytes, w.Seconds)
		return w
	}
	all := between(first, last)
	r.Result.RowsPerSecond, r.Result.BytesPerSecond, r.Rates.Load = all.RowsPerSecond, all.BytesPerSecond, all.RowsPerSecond
	if r.Measured != nil {
		*r.Measured = Measured{
			From: first.Sub(r.Run.ProcessStarted).Seconds(), Seconds: all.Seconds,
			Rows: int64(math.Round(all.Rows)), PayloadBytes: int64(math.Round(all.BytesPerSecond * all.Seconds)),
		}
	}
	if begin.Before(end) {
		r.Merged.Window = between(begin, end)
	}
}

// overTime sets how the shards moved their rows, warm-ups included.
func (r *Report) overTime(courses []course) {
	courses, first, last := moving(courses)
	if len(courses) == 0 {
		return
	}
	seconds := last.Sub(first).Seconds()
	r.Result.Seconds = seconds
	step := max(math.Ceil(seconds/mostMoments), 1)
	offset := first.Sub(r.Run.ProcessStarted).Seconds()
	r.Timeline = Timeline{Interval: step, Moments: []Moment{{At: offset, Phase: string(event.Fill)}}}
	for at := step; at-step < seconds; at += step {
		at := min(at, seconds)
		m := Moment{At: offset + at, Phase: string(event.Load)}
		rows, bytes := 0.0, 0.0
		for _, c := range courses {
			n, b := c.until(first.Add(time.Duration(at * float64(time.Second))))
			rows, bytes = rows+n, bytes+b
		}
		m.Rows, m.PayloadBytes = int64(math.Round(rows)), int64(math.Round(bytes))
		r.Timeline.Moments = append(r.Timeline.Moments, m)
	}
	done := r.Timeline.Moments[len(r.Timeline.Moments)-1]
	done.Phase = string(event.Done)
	r.Timeline.Moments = append(r.Timeline.Moments, done)
}

// mostMoments bounds a merged timeline, as that of one process is.
const mostMoments = 600

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}

// writeText writes a line a shard, and one about the window. There is at least one shard.
func (m Merged) writeText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "shard\toutcome\trows\tfrom\tfor\trows/s\tpayload/s\tbound by\t")
	var first time.Time
	for _, s := range m.Shards {
		if first.IsZero() || s.Start.Before(first) {
			first = s.Start
		}
	}
	for _, s := range m.Shards {
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%s\t%s/s\t%s\t\n", s.Index, s.Outcome, units.Count(s.Rows), duration(s.Start.Sub(first).Seconds()),
			duration(s.End.Sub(s.Start).Seconds()), units.Count(int64(s.RowsPerSecond)), units.Bytes(int64(s.BytesPerSecond)), s.BoundBy)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "all at once for %s: %s rows/s, %s/s payload\n", duration(m.Window.Seconds),
		units.Count(int64(m.Window.RowsPerSecond)), units.Bytes(int64(m.Window.BytesPerSecond)))
	return err
}
