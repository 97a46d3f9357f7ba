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
	"github.com/terapush/terapush/internal/sweep"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
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

// measureLoads measures all protocols. Each series is saved as soon as it is complete.
func (c *Calibration) measureLoads(ctx, soft context.Context, drain <-chan struct{}, found *Found) error {
	for _, p := range c.Protocols {
		if err := c.measureProtocol(ctx, soft, drain, p, found); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(found.Series, func(s Series) bool { return s.Complete }) {
		return errors.New("nothing could be sent: see what each protocol says")
	}
	return nil
}

// measureProtocol measures one of them, with and without TLS.
func (c *Calibration) measureProtocol(ctx, soft context.Context, drain <-chan struct{}, p Protocol, found *Found) error {
	if c.Host == "" {
		if err := c.openSink(soft, p); err != nil {
			return err
		}
		defer c.sink.child.stop()
	}
	for _, encrypted := range c.TLS {
		s := Series{Protocol: p.Name, Method: p.Method, TLS: encrypted, Points: []baseline.Measurement{}, Skipped: []Skipped{}}
		err := c.raise(ctx, p, &s, share(c.ends, len(c.Protocols)*len(c.TLS)-len(found.Series)), drain)
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

// openSink starts a sink for one protocol.
func (c *Calibration) openSink(ctx context.Context, p Protocol) error {
	rowBytes, err := c.rowBytes(p)
	if err != nil {
		return err
	}
	if c.sink.child, err = startChild(ctx, c.Binary, p.ports(), rowBytes); err != nil {
		return err
	}
	c.sink.at, c.sink.says[p.Name] = c.sink.child.at, loader.NoCountMark
	if rowBytes == 0 {
		c.sink.says[p.Name] = loader.SinkMark
	}
	return nil
}

// rowBytes is how many bytes a sink that does not count has to take for a row. Where its answers are compared with what
// was sent whatever --verify says, it is the length that all rows have, or 0 where they have several: then the sink has to
// count. Elsewhere any number will do that makes rows of every load.
func (c *Calibration) rowBytes(p Protocol) (int64, error) {
	one, err := c.fit(p, nowhere(), false, 1, shortest)
	if err != nil {
		return 0, err
	}
	if !p.compares {
		return one.Plan.RowBytes, nil
	}
	d, err := datasetOf(one)
	if err != nil {
		return 0, err
	}
	return lengthOfAll(d, one.Plan.Format, one.Plan.KeyRows)
}

// raise raises the workers of one protocol. What keeps this protocol from being measured is in the series; an error ends
// all of them.
func (c *Calibration) raise(ctx context.Context, p Protocol, s *Series, within time.Duration, drain <-chan struct{}) error {
	if s.Error = c.sink.refusal[p.Name]; s.Error != "" {
		return nil
	}
	ends := time.Now().Add(within)
	var around time.Duration // what a push takes besides the time that it sends for
	for i, workers := range c.Workers {
		why := s.enough()
		if why == "" && len(s.Points) > 0 && time.Now().After(c.ends.Add(c.Time/2)) {
			why = fmt.Sprintf("no time left: this machine is slower than --time %s has room for", c.Time)
		}
		if why != "" {
			s.skip(c.Workers[i:], why)
			break
		}
		long := min(max(share(ends, len(c.Workers)-i)-around, shortest), longest)
		began := time.Now()
		reached, err := c.load(ctx, p, s.TLS, workers, long, drain)
		switch {
		case errors.Is(err, errMemory):
			s.skip(c.Workers[i:], err.Error())
			s.Complete = len(s.Points) > 0
			if !s.Complete {
				s.Error = err.Error()
			}
			return nil
		case errors.Is(err, errNoSink):
			s.Error = err.Error()
			return nil
		case err != nil:
			s.Error = strings.Join(strings.Fields(err.Error()), " ") + c.hint(p)
			s.skip(c.Workers[i:], "failed")
			if c.sink.child != nil {
				return c.sink.child.failure()
			}
			return nil
		}
		around = max(time.Since(began)-long, 0)
		s.Method, s.Format = reached.Method, reached.Format
		s.Points = append(s.Points, reached)
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

// load makes one push for so long, and returns what it reached. It is none of sweep.Trials: those forget each run over a
// connection of its own, and a sink has nothing to forget.
func (c *Calibration) load(
	ctx context.Context, p Protocol, encrypted bool, workers int, long time.Duration, drain <-chan struct{},
) (m baseline.Measurement, err error) {
	one, err := c.fit(p, c.sink.at, encrypted, workers, long)
	if err != nil {
		return m, err
	}
	one.Config.State = c.work
	r, err := push.Run(ctx, push.Job{
		Config: one.Config, Drivers: c.Drivers, Given: one.Given, Explicit: func(string) bool { return true }, Drain: drain,
		Log: slog.New(slog.DiscardHandler), // what it warns of is its delivery, which nobody counts on
	})
	if err != nil {
		return m, err
	}
	if r.Result.BytesPerSecond <= 0 {
		return m, fmt.Errorf("nothing was acknowledged within %s", long)
	}
	says := r.Target.Server + c.sink.says[p.Name]
	m = c.measurement(baseline.Key{
		Stage: baseline.Load, Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format,
		Dataset: r.Plan.Dataset, PayloadBytes: one.Plan.PayloadBytes, PayloadKind: one.Plan.PayloadKind, TLS: encrypted,
	}, workers)
	m.Host, m.Counting = c.Host, !strings.Contains(says, loader.NoCountMark)
	m.RowsPerSecond, m.BytesPerSecond, m.BoundBy = r.Result.RowsPerSecond, r.Result.BytesPerSecond, r.BoundBy.Verdict
	m.CPUSecondsPerGiB = r.Client.LoadSeconds / (r.Result.BytesPerSecond * r.Result.Seconds / gib)
	return m, checkSink(says)
}

// measurement is one of this machine, now, without a rate.
func (c *Calibration) measurement(k baseline.Key, workers int) baseline.Measurement {
	return baseline.Measurement{
		Key: k, Measured: time.Now().UTC().Truncate(time.Second), Version: c.Version, Machine: c.machine, Workers: workers,
	}
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
	return one, fmt.Errorf("%w, %s for each at least", errMemory, units.Bytes(leastBatch))
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
	kind := c.PayloadKind
	if kind == "" && p.textOnly && c.hasRawBytes() {
		kind = string(dataset.Text)
	}
	for name, value := range map[string]string{"payload-kind": kind, "memory": c.Memory} {
		if value != "" {
			flags[name] = []string{value}
		}
	}
	if c.PayloadBytes > 0 {
		flags["payload-bytes"] = []string{strconv.Itoa(c.PayloadBytes)}
	}
	return flags
}

// hasRawBytes reports whether the dataset has a column that is raw bytes unless it is said to be text.
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
