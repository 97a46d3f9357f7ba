package calibrate

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/calibrate/baseline"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/pkg/rows"
)

const gib = 1 << 30

// What a push has in flight and in its ring, encoded. Both together are more than the caches of most machines, and are
// filled in a fraction of a second.
const (
	inFlight      = 128 << 20
	distinctBytes = 128 << 20
	mostBatch     = 16 << 20
	leastBatch    = 256 << 10
)

const (
	// shortest is the least that a push is measured for: connections are made in that time as well.
	shortest = 250 * time.Millisecond
	longest  = 5 * time.Second
	// patience is how long a batch may take: a sink that says nothing more is given up.
	patience = 30 * time.Second
	// table is one that no server has, were a server there in the place of a sink.
	table = "terapush_calibrate"
)

// errMemory is a number of workers that memory has no batches for.
var errMemory = errors.New("--memory has no room for their batches")

// measureLoads goes through all protocols. Each series is kept as soon as it has come to its end.
func (c *Calibration) measureLoads(ctx, soft context.Context, drain <-chan struct{}, found *Found) error {
	for i, p := range c.Protocols {
		if err := c.protocol(ctx, soft, drain, p, len(c.Protocols)-i, found); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(found.Series, func(s Series) bool { return s.Complete }) {
		return errors.New("nothing could be sent: see what each protocol says")
	}
	return nil
}

// protocol measures one of them, with and without TLS; left is how many there are with this one.
func (c *Calibration) protocol(ctx, soft context.Context, drain <-chan struct{}, p Protocol, left int, found *Found) error {
	closes, err := c.open(soft, p)
	if err != nil {
		return err
	}
	defer closes()
	left *= len(c.TLS)
	for _, encrypted := range c.TLS {
		s := Series{Protocol: p.Name, Method: p.Method, TLS: encrypted, Points: []baseline.Measurement{}, Skipped: []Skipped{}}
		err := c.series(ctx, p, &s, c.budget.share(left), drain)
		left--
		if soft.Err() != nil && !s.Complete {
			s.Error, err = ErrStopped.Error(), ErrStopped
		}
		s.conclude()
		found.Series = append(found.Series, s)
		c.tell("%s", s.line())
		if s.Complete {
			err = errors.Join(err, baseline.Save(c.State, s.Points))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// series raises the workers of one protocol. What keeps this protocol from being measured is in the series; an error ends
// them all.
func (c *Calibration) series(ctx context.Context, p Protocol, s *Series, within time.Duration, drain <-chan struct{}) error {
	known := c.sink.known[p.Name]
	if known.refusal != "" {
		s.Error = known.refusal
		return nil
	}
	ends := budget{ends: time.Now().Add(within)}
	var around time.Duration // what a push takes besides the time that it sends for
	for i, workers := range c.Workers {
		why := s.enough()
		if why == "" && len(s.Points) > 0 && time.Now().After(c.budget.ends.Add(c.Time/2)) {
			why = fmt.Sprintf("no time left: this machine is slower than --time %s has room for", c.Time)
		}
		if why != "" {
			s.skip(c.Workers[i:], why)
			break
		}
		long := min(max(ends.share(len(c.Workers)-i)-around, shortest), longest)
		began := time.Now()
		r, err := c.push(ctx, p, s.TLS, workers, long, drain)
		switch {
		case errors.Is(err, errMemory):
			s.skip(c.Workers[i:], err.Error())
			s.Complete = len(s.Points) > 0
			if !s.Complete {
				s.Error = err.Error()
			}
			return nil
		case err != nil:
			s.Error = strings.Join(strings.Fields(err.Error()), " ") + c.hint(p)
			s.skip(c.Workers[i:], "failed")
			if c.sink.child != nil {
				return c.sink.child.gone()
			}
			return nil
		}
		around = max(time.Since(began)-long, 0)
		if refusal := known.unlike(r.Target.Server); refusal != "" && c.sink.child == nil {
			s.Error = refusal
			return nil
		}
		s.Points = append(s.Points, c.point(p, s, workers, r, known))
	}
	s.Complete = true
	return nil
}

// hint is what a sink that somebody else started may lack for a protocol.
func (c *Calibration) hint(p Protocol) string {
	if c.Host == "" || !p.compares {
		return ""
	}
	n, err := c.rowBytes(p)
	if err != nil || n == 0 {
		return "; the sink has to count rows for that: start it without --no-count"
	}
	return fmt.Sprintf("; a sink that does not count needs --row-bytes %d for that", n)
}

// push makes one push, for so long.
func (c *Calibration) push(ctx context.Context, p Protocol, encrypted bool, workers int, long time.Duration, drain <-chan struct{}) (*report.Report, error) {
	one, err := c.fit(p, c.sink.at, encrypted, workers, long)
	if err != nil {
		return nil, err
	}
	one.Config.State = c.work
	r, err := push.Run(ctx, push.Job{
		Config: one.Config, Drivers: c.Drivers, Given: one.Given, Explicit: func(string) bool { return true }, Drain: drain,
		Log: slog.New(slog.DiscardHandler), // what it warns of is its delivery, which nobody counts on
	})
	if err != nil {
		return nil, err
	}
	if r.Result.BytesPerSecond <= 0 {
		return nil, fmt.Errorf("nothing was acknowledged within %s", long)
	}
	return r, nil
}

// fit plans a push whose templates and batches on their way all have a place in memory: otherwise batches would be encoded
// while it sends, and that would be measured. Smaller batches and fewer distinct rows are better than that.
func (c *Calibration) fit(p Protocol, at addresses, encrypted bool, workers int, long time.Duration) (one sweep.Setup, err error) {
	from := sweep.Sources{Drivers: c.Drivers, LookupEnv: c.password}
	flags := c.flags(p, at, encrypted, workers, long)
	for each := min(mostBatch, inFlight/workers); each >= leastBatch; each /= 2 {
		for distinct := distinctBytes; distinct >= each; distinct /= 4 {
			flags["batch-bytes"], flags["distinct-bytes"] = []string{strconv.Itoa(each)}, []string{strconv.Itoa(distinct)}
			if one, err = from.Setup(flags); err != nil {
				return one, err
			}
			err = one.Outline(c.Drivers) // also refuses batches of which memory has not room for one
			if err == nil && int64(one.Plan.Buffers) >= one.Plan.Templates()+int64(workers) {
				return one, nil
			}
		}
	}
	if err != nil {
		return one, err
	}
	return one, fmt.Errorf("%w, %s for each at least", errMemory, size(leastBatch))
}

// flags are those of a push that asks the sink for nothing but to take rows.
func (c *Calibration) flags(p Protocol, at addresses, encrypted bool, workers int, long time.Duration) map[string][]string {
	flags := map[string][]string{
		"target": {p.target(at, encrypted)}, "table": {table}, "method": {p.Method}, "workers": {strconv.Itoa(workers)},
		"duration": {long.String()}, "verify": {"none"}, "retries": {"0"}, "progress": {"none"}, "batch-timeout": {patience.String()},
		"tls": {"off"}, "dataset": {c.Dataset},
	}
	if encrypted {
		flags["tls"] = []string{"require"} // the sink's certificate is one of its own
	}
	if !p.objects {
		flags["create"], flags["delivery"] = []string{"never"}, []string{"at-least-once"}
	}
	if c.PayloadBytes > 0 {
		flags["payload-bytes"] = []string{strconv.Itoa(c.PayloadBytes)}
	}
	kind := c.PayloadKind
	if kind == "" && p.textOnly && c.hasRawBytes() {
		kind = string(dataset.Text)
	}
	if kind != "" {
		flags["payload-kind"] = []string{kind}
	}
	if c.Memory != "" {
		flags["memory"] = []string{c.Memory}
	}
	return flags
}

// hasRawBytes tells whether the dataset has a column that is raw bytes unless it is told to be text.
func (c *Calibration) hasRawBytes() bool {
	d, err := dataset.New(c.Dataset, dataset.Options{PayloadBytes: c.PayloadBytes})
	return err == nil && slices.ContainsFunc(d.Schema().Columns, func(col rows.Column) bool { return col.Type == rows.Bytes })
}

// password is all that pushes take from the environment: what it says about other pushes does not hold for these, and a
// sink that was started for them takes every password.
func (c *Calibration) password(name string) (string, bool) {
	if name != "TERAPUSH_PASSWORD" || c.Host == "" || c.LookupEnv == nil {
		return "", false
	}
	return c.LookupEnv(name)
}

// point is what a push has shown.
func (c *Calibration) point(p Protocol, s *Series, workers int, r *report.Report, known acquaintance) baseline.Measurement {
	one, _ := c.fit(p, c.sink.at, s.TLS, workers, shortest) // which has just been possible
	s.Format, s.Method = r.Plan.Format, r.Plan.Method
	made := c.ceiling(baseline.Key{
		Stage: baseline.Load, Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format,
		Dataset: r.Plan.Dataset, PayloadBytes: one.Plan.PayloadBytes, PayloadKind: one.Plan.PayloadKind, TLS: s.TLS,
	}, workers)
	made.Host, made.Counting = c.Host, known.counts(r.Target.Server)
	made.RowsPerSecond, made.BytesPerSecond, made.BoundBy = r.Result.RowsPerSecond, r.Result.BytesPerSecond, r.BoundBy.Verdict
	made.CPUSecondsPerGiB = r.Client.LoadSeconds / (r.Result.BytesPerSecond * r.Result.Seconds / gib)
	return made
}

// ceiling is one of this machine, now, without a rate.
func (c *Calibration) ceiling(k baseline.Key, workers int) baseline.Measurement {
	return baseline.Measurement{Key: k, Measured: time.Now().UTC().Truncate(time.Second), Version: c.Version, Machine: c.machine, Workers: workers}
}
