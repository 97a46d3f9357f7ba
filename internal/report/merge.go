package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// Merge makes one report of those of all shards of a run, in any order. Keys that no shard has, or that two have, are
// an error, and so are reports that do not belong together. Counts and CPU time are summed, phases and peak memory are
// the largest; latencies are those of all batches. Cores of one machine count once. The time line is left out, and of
// the machines' evidence all but the client's CPU.
func Merge(all []Report) (Report, error) {
	if err := sameRun(all); err != nil {
		return Report{}, err
	}
	all = slices.SortedStableFunc(slices.Values(all), func(a, b Report) int {
		x, y := a.Run.Shard, b.Run.Shard
		return cmp.Or(cmp.Compare(x.FirstKey, y.FirstKey), cmp.Compare(x.Index, y.Index))
	})
	if err := wholeRun(all); err != nil {
		return Report{}, err
	}

	first := all[0]
	whole := Report{Run: first.Run, Target: first.Target, Plan: first.Plan, Merged: &Merged{}}
	whole.Run.Shard, whole.Run.Resumable, whole.Run.ResumedRows = nil, false, 0
	whole.Plan.Workers, whole.Plan.Buffers = 0, 0
	whole.Result.Outcome = OK
	whole.Verify = Verify{Mode: first.Verify.Mode, Ran: true, OK: true}
	whole.Latency.Loop = first.Latency.Loop

	lost := make(map[event.Limit]float64)
	for _, r := range all {
		whole.add(r)
		for limit, seconds := range r.BoundBy.Seconds {
			lost[event.Limit(limit)] += seconds
		}
	}
	if err := whole.addLatencies(all); err != nil {
		return Report{}, err
	}
	whole.addRates(all)

	moving := whole.Result.Seconds
	if whole.Measured != nil {
		moving = whole.Measured.Seconds
	}
	whole.Client.Cores = coresOf(all)
	whole.BoundBy = NewBound(lost, Evidence{
		MachineEvidence: MachineEvidence{
			ClientCPU: min(ratio(whole.Client.LoadSeconds, moving*float64(whole.Client.Cores)), 1),
		},
		WirePerPayload: ratio(float64(whole.Result.WireBytes), float64(whole.Result.PayloadBytes)),
	})
	if !slices.ContainsFunc(all, func(r Report) bool { return !r.OnOneMachine() }) {
		whole.BoundBy.Evidence.NIC = first.BoundBy.Evidence.NIC
	}
	whole.Complete()
	return whole, nil
}

// sameRun refuses reports that are of no shard, or of shards of different runs or plans.
func sameRun(all []Report) error {
	if len(all) == 0 {
		return errors.New("no reports to merge")
	}
	for _, r := range all {
		if r.Run.Shard == nil {
			// Of a single run, or of a process that ended before it knew its rows.
			return fmt.Errorf("the report of run %q is of no shard: leave it out (%s)", r.Run.ID,
				cmp.Or(r.Result.Error, string(r.Result.Outcome)))
		}
	}

	first := all[0]
	for _, r := range all {
		a, b := first.Run.Shard, r.Run.Shard
		one := r.Run.ID == first.Run.ID || r.Plan.Files != nil // whose shards are runs of their own
		if !one || a.Count != b.Count {
			return fmt.Errorf("shard %d/%d of run %s and shard %d/%d of run %s belong to different runs",
				a.Index, a.Count, first.Run.ID, b.Index, b.Count, r.Run.ID)
		}
		if r.Plan.Files != nil && first.Plan.Files != nil && r.Plan.Files.Digest != first.Plan.Files.Digest {
			return fmt.Errorf("shard %d (run %s) and shard %d (run %s) had other files: their sizes, hashes, columns or batches differ, "+
				"so records may be missing or there twice", a.Index, first.Run.ID, b.Index, r.Run.ID)
		}
		if was, is := rowsOf(first.Plan), rowsOf(r.Plan); was != is {
			return fmt.Errorf("shards %d and %d of run %s sent rows of different plans: %+v and %+v",
				a.Index, b.Index, r.Run.ID, was, is)
		}
	}
	return nil
}

// rowsOf returns what all shards have to have alike. The records of a load's are counted.
func rowsOf(p Plan) any {
	if p.Files != nil {
		p.Rows = 0
	}
	return struct {
		Method, Format, Delivery, Dataset   string
		Seed                                uint64
		Rows, FirstKey, BatchRows, Distinct int64
	}{p.Method, p.Format, p.Delivery, p.Dataset, p.Seed, p.Rows, p.FirstKey, p.BatchRows, p.DistinctRows}
}

// wholeRun refuses shards, in the order of their keys, that do not have each key of the run once, and shards of a load of
// which one is missing or there twice.
func wholeRun(all []Report) error {
	if all[0].Plan.Files != nil {
		return wholeLoad(all)
	}
	var problems []error
	plan, before := all[0].Plan, "the run's begin"
	next := plan.FirstKey
	reach := func(key int64, what string) {
		switch {
		case key > next:
			problems = append(problems, fmt.Errorf("keys %d to %d are missing: no report has them, between %s and %s",
				next, key-1, before, what))
		case key < next:
			problems = append(problems, fmt.Errorf("keys %d to %d are there twice, in %s and in %s: "+
				"give the report of a shard's last process", key, next-1, before, what))
		}
	}

	for _, r := range all {
		what := fmt.Sprintf("shard %d", r.Run.Shard.Index)
		reach(r.Run.Shard.FirstKey, what)
		next, before = max(next, r.Run.Shard.FirstKey+r.Run.Shard.Rows), what
	}
	reach(plan.FirstKey+plan.Rows, "the run's end")

	if count := all[0].Run.Shard.Count; len(problems) == 0 && int64(len(all)) != count { // a shard may have no rows
		return fmt.Errorf("%d reports of %d shards: give one of each", len(all), count)
	}
	return errors.Join(problems...)
}

func wholeLoad(all []Report) error {
	count := all[0].Run.Shard.Count
	for i, r := range all {
		switch is := r.Run.Shard.Index; {
		case is < int64(i):
			return fmt.Errorf("shard %d/%d is there twice, in runs %s and %s: its records are in the table twice, unless one of them was "+
				"forgotten: give the report of the other", is, count, all[i-1].Run.ID, r.Run.ID)
		case is > int64(i):
			return fmt.Errorf("shard %d/%d is missing: give one report of each", i, count)
		}
	}
	if int64(len(all)) != count {
		return fmt.Errorf("shard %d/%d is missing: give one report of each", len(all), count)
	}
	return nil
}

// add adds a shard's numbers, except those over time.
func (r *Report) add(of Report) {
	if of.Result.Outcome != OK {
		if r.Result.Outcome == OK {
			r.Result.Outcome = of.Result.Outcome
		}
		why := cmp.Or(of.Result.Error, string(of.Result.Outcome))
		r.Result.Error += fmt.Sprintf("shard %d: %s; ", of.Run.Shard.Index, why)
	}
	if of.Run.Started.Before(r.Run.Started) {
		r.Run.Started = of.Run.Started
	}
	if of.Run.ProcessStarted.Before(r.Run.ProcessStarted) {
		r.Run.ProcessStarted = of.Run.ProcessStarted
	}
	r.Run.Resumed = r.Run.Resumed || of.Run.Resumed
	r.Verify.Ran, r.Verify.OK = r.Verify.Ran && of.Verify.Ran, r.Verify.OK && of.Verify.OK

	is, sum := of.Result, &r.Result
	for into, n := range map[*int64]int64{
		&sum.Rows: is.Rows, &sum.Batches: is.Batches, &sum.PayloadBytes: is.PayloadBytes,
		&sum.EncodedBytes: is.EncodedBytes, &sum.WireBytes: is.WireBytes, &sum.StoredBytes: is.StoredBytes,
		&sum.Attempts: is.Attempts, &sum.Retries: is.Retries, &sum.Refills: is.Refills,
		&sum.Duplicates: is.Duplicates, &sum.Unknown: is.Unknown, &sum.GivenUp: is.GivenUp, &sum.Missing: is.Missing,
		&r.Verify.ExpectedRows: of.Verify.ExpectedRows, &r.Verify.FoundRows: of.Verify.FoundRows,
		&r.Run.ResumedRows: of.Run.ResumedRows,
	} {
		*into += n
	}
	if of.Plan.Files != nil && of.Run.Shard.Index > 0 {
		r.Plan.Rows += of.Plan.Rows
	}
	r.addFiles(of.Verify.Files)
	r.Plan.Workers += of.Plan.Workers
	r.Plan.Buffers += of.Plan.Buffers
	r.Client.UserSeconds += of.Client.UserSeconds
	r.Client.SystemSeconds += of.Client.SystemSeconds
	r.Client.LoadSeconds += of.Client.LoadSeconds
	sum.Failures = append(sum.Failures, is.Failures...)
	addAll(&sum.Errors, is.Errors)
	addAll(&r.WorkerSeconds, of.WorkerSeconds)
	addAll(&r.Cost, of.Cost)

	for into, seconds := range map[*float64]float64{
		&r.Phases.Prepare: of.Phases.Prepare, &r.Phases.Fill: of.Phases.Fill, &r.Phases.Load: of.Phases.Load,
		&r.Phases.Stage: of.Phases.Stage, &r.Phases.Commit: of.Phases.Commit, &r.Phases.Finish: of.Phases.Finish,
		&r.Phases.Verify: of.Phases.Verify, &r.Plan.ZstdRatio: of.Plan.ZstdRatio,
		&r.Latency.VisibleSeconds: of.Latency.VisibleSeconds, &r.Latency.BatchSeconds.Max: of.Latency.BatchSeconds.Max,
	} {
		*into = max(*into, seconds)
	}
	r.Client.PeakRSSBytes = max(r.Client.PeakRSSBytes, of.Client.PeakRSSBytes)
	for _, w := range of.Warnings {
		if !slices.Contains(r.Warnings, w) {
			r.Warnings = append(r.Warnings, w)
		}
	}
}

// addFiles adds what the proof of a load's shard has compared; nil of one that has not come to it.
func (r *Report) addFiles(of *VerifiedFiles) {
	if of == nil {
		return
	}
	if r.Verify.Files == nil {
		r.Verify.Files = &VerifiedFiles{Labels: of.Labels}
	}
	all := r.Verify.Files
	all.Records += of.Records
	all.Rejected += of.Rejected
	all.Acknowledged += of.Acknowledged
	all.Claimed += of.Claimed
}

func addAll[M ~map[string]N, N int64 | float64](into *M, more M) {
	if *into == nil {
		*into = make(M)
	}
	for name, n := range more {
		(*into)[name] += n
	}
}

// addLatencies merges the histograms. BatchSeconds.Max is that of all shards by then.
func (r *Report) addLatencies(all []Report) error {
	merged := stats.NewHistogram()
	for _, of := range all {
		one, err := stats.Decode(of.Latency.Histogram)
		if err != nil {
			return fmt.Errorf("the latencies of shard %d: %w", of.Run.Shard.Index, err)
		}
		merged.Merge(one)
	}
	r.Latency.BatchSeconds = Quantiles(stats.QuantilesOf(merged, r.Latency.BatchSeconds.Max))

	var err error
	r.Latency.Histogram, err = stats.Encode(merged)
	return err
}

// coresOf returns the cores of all processes, those that several of them shared once: a host's, and of several hosts of
// one machine, which are containers, no more than the machine has.
func coresOf(all []Report) (sum int) {
	type place struct{ machine, host string }
	hosts := map[place]int{}
	used, has := map[string]int{}, map[string]int{} // by machine
	for _, r := range all {
		c := r.Client
		at := place{c.Machine, c.Host}
		more := max(c.Cores-hosts[at], 0)
		hosts[at] += more
		used[c.Machine] += more
		has[c.Machine] = max(has[c.Machine], c.MachineCores)
	}

	for machine, cores := range used {
		if most := has[machine]; machine != "" && most > 0 {
			cores = min(cores, most)
		}
		sum += cores
	}
	return sum
}

// span is a part of the time.
type span struct{ start, end time.Time }

// widen makes the span hold another one. The zero value holds none.
func (s *span) widen(by span) {
	if s.start.IsZero() || by.start.Before(s.start) {
		s.start = by.start
	}
	if by.end.After(s.end) {
		s.end = by.end
	}
}

func (s span) seconds() float64 { return s.end.Sub(s.start).Seconds() }

// at returns the time so many seconds after the process began.
func (r Report) at(seconds float64) time.Time {
	return r.Run.ProcessStarted.Add(time.Duration(seconds * float64(time.Second)))
}

// moved returns the phases of the process that move rows, of no length if there were none, and what moved in them.
func (r Report) moved() (during span, rows, bytes int64) {
	during = span{r.Run.ProcessStarted, r.Run.ProcessStarted}
	var before, first, last Moment
	began := false
	for _, m := range r.Timeline.Moments {
		switch event.Phase(m.Phase) {
		case event.Load, event.Stage, event.Commit, event.Finish:
			if !began {
				first, began = before, true
			}
			last = m
		}
		before = m
	}

	if began {
		during = span{r.at(first.At), r.at(last.At)}
	}
	return during, last.Rows - first.Rows, last.PayloadBytes - first.PayloadBytes
}

// addRates sets what is over time: from the first row of any shard to the last; where they warmed up, of the rows after
// the warm-ups, from the end of the first. Shards that had nothing left to send have no part in it.
func (r *Report) addRates(all []Report) {
	var moving, measured span
	var rows, bytes int64
	for _, of := range all {
		during, moved, payload := of.moved()
		r.Merged.Shards = append(r.Merged.Shards, ShardResult{
			Shard: *of.Run.Shard, Outcome: of.Result.Outcome, Start: during.start, End: during.end,
			RowsPerSecond: of.Result.RowsPerSecond, BytesPerSecond: of.Result.BytesPerSecond, BoundBy: of.BoundBy.Verdict,
		})
		if of.Measured != nil {
			r.Measured = new(Measured)
		}
		if moved == 0 {
			continue
		}

		moving.widen(during)
		if m := of.Measured; m != nil {
			during.start, moved, payload = of.at(m.From), m.Rows, m.PayloadBytes
		}
		if moved == 0 { // it ended within its warm-up
			continue
		}
		measured.widen(during)
		rows, bytes = rows+moved, bytes+payload
	}

	seconds := measured.seconds()
	r.Result.Seconds = moving.seconds()
	r.Result.RowsPerSecond, r.Result.BytesPerSecond = ratio(float64(rows), seconds), ratio(float64(bytes), seconds)
	r.Rates.Load = r.Result.RowsPerSecond
	if r.Measured != nil && rows > 0 {
		*r.Measured = Measured{
			From: measured.start.Sub(r.Run.ProcessStarted).Seconds(), Seconds: seconds, Rows: rows, PayloadBytes: bytes,
		}
	}
}
