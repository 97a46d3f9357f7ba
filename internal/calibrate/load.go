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

// What a push has in flight and in its ring, encoded. Both together exceed the caches of most machines, and are filled in a
// fraction of a second.
const (
	inFlight      = 128 << 20
	distinctBytes = 128 << 20
	mostBatch     = 16 << 20
	leastBatch    = 256 << 10
)

const (
	// shortest is the least time of a push, which includes connecting.
	shortest = 250 * time.Millisecond
	longest  = 5 * time.Second
	// batchTimeout is how long a batch may take before the sink is given up.
	batchTimeout = 30 * time.Second
	// table is one that no server has, in case there is a server instead of a sink.
	table = "terapush_calibrate"
)

// errMemory is a number of workers that memory has no batches for.
var errMemory = errors.New("--memory has no room for their batches")

// measureLoads measures all protocols. Each series is saved when it is complete.
func (c *Calibration) measureLoads(ctx, soft context.Context, drain <-chan struct{}, found *Found) error {
	for _, p := range c.Protocols {
		if err := c.measureProtocol(ctx, soft, drain, p, found); err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(found.Series, func(s Series) bool { return s.Complete }) {
		return errors.New("nothing could be sent: see the error of each protocol")
	}
	return nil
}

// measureProtocol measures one protocol, with and without TLS.
func (c *Calibration) measureProtocol(ctx, soft context.Context, drain <-chan struct{}, p Protocol, found *Found) error {
	if c.Host == "" {
		if err := c.openSink(soft, p); err != nil {
			return err
		}
		defer c.sink.child.stop()
	}
	for _, encrypted := range c.TLS {
		s := Series{Protocol: p.Name, Method: p.Method, TLS: encrypted, Points: []baseline.Measurement{}, Skipped: []Skipped{}}
		err := c.measureSeries(ctx, p, &s, share(c.ends, len(c.Protocols)*len(c.TLS)-len(found.Series)), drain)
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
	c.sink.at, c.sink.versions[p.Name] = c.sink.child.at, loader.NoCountMark
	if rowBytes == 0 {
		c.sink.versions[p.Name] = loader.SinkMark
	}
	return nil
}

// rowBytes returns how many bytes are a row for a sink that does not count, or 0 if the sink has to count: where the
// back-end compares rows and they differ in length. Where nothing is compared any number will do.
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
	return fixedLength(d, one.Plan.Format, one.Plan.KeyRows)
}

// measureSeries measures one protocol with rising workers. What prevents that is in the series; an error ends the
// calibration.
func (c *Calibration) measureSeries(
	ctx context.Context, p Protocol, s *Series, within time.Duration, drain <-chan struct{},
) error {
	if s.Error = c.sink.refusal[p.Name]; s.Error != "" {
		return nil
	}
	ends := time.Now().Add(within)
	var overhead time.Duration // of a push, before and after it sends
	for i, workers := range c.Workers {
		why := s.enough()
		if why == "" && len(s.Points) > 0 {
			if _, err := c.fit(p, c.sink.at, s.TLS, workers, shortest); errors.Is(err, errMemory) {
				why = err.Error()
			} else if time.Now().After(c.ends.Add(c.Time / 2)) {
				why = fmt.Sprintf("no time left: --time %s is too short for this machine", c.Time)
			}
		}
		if why != "" {
			s.skip(c.Workers[i:], why)
			break
		}
		duration := min(max(share(ends, len(c.Workers)-i)-overhead, shortest), longest)
		began := time.Now()
		m, err := c.load(ctx, p, s.TLS, workers, duration, drain)
		if err != nil {
			s.Error = units.OneLine(err.Error())
			if !errors.Is(err, errMemory) && !errors.Is(err, errNoSink) {
				s.Error += c.hint(p)
			}
			s.skip(c.Workers[i:], "failed")
			if c.sink.child != nil && !errors.Is(err, errMemory) {
				return c.sink.child.failure()
			}
			return nil
		}
		overhead = max(time.Since(began)-duration, 0)
		s.Method, s.Format = m.Method, m.Format
		s.Points = append(s.Points, m)
	}
	s.Complete = true
	return nil
}

// hint says what a sink at Host may lack for a protocol.
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

// load makes one push of a duration, and returns its rate. It does not use sweep.Trials, which forgets each run over a
// connection of its own; a sink has nothing to forget.
func (c *Calibration) load(
	ctx context.Context, p Protocol, encrypted bool, workers int, duration time.Duration, drain <-chan struct{},
) (m baseline.Measurement, err error) {
	one, err := c.fit(p, c.sink.at, encrypted, workers, duration)
	if err != nil {
		return m, err
	}
	one.Config.State = c.work
	r, err := push.Run(ctx, push.Job{
		Config: one.Config, Drivers: c.Drivers, Given: one.Given, Explicit: func(string) bool { return true }, Drain: drain,
		Log: slog.New(slog.DiscardHandler), // it warns of the delivery, which does not matter here
	})
	if err != nil {
		return m, err
	}
	if r.Result.BytesPerSecond <= 0 {
		return m, fmt.Errorf("nothing was acknowledged within %s", duration)
	}
	version := r.Target.Server + c.sink.versions[p.Name]
	m = c.measurement(baseline.Key{
		Stage: baseline.Load, Backend: r.Target.Backend, Method: r.Plan.Method, Format: r.Plan.Format,
		Dataset: r.Plan.Dataset, PayloadBytes: one.Plan.PayloadBytes, PayloadKind: one.Plan.PayloadKind, TLS: encrypted,
	}, workers)
	m.Host, m.Counting = c.Host, !strings.Contains(version, loader.NoCountMark)
	m.RowsPerSecond, m.BytesPerSecond, m.BoundBy = r.Result.RowsPerSecond, r.Result.BytesPerSecond, r.BoundBy.Verdict
	m.CPUSecondsPerGiB = r.Client.LoadSeconds / (r.Result.BytesPerSecond * r.Result.Seconds / gib)
	return m, checkSink(version)
}

// measurement returns one of this machine, without a rate.
func (c *Calibration) measurement(k baseline.Key, workers int) baseline.Measurement {
	return baseline.Measurement{
		Key: k, Measured: time.Now().UTC().Truncate(time.Second), Version: c.Version, Machine: c.machine, Workers: workers,
	}
}

// fit plans a push that has memory for all its templates and for a batch of every worker: otherwise the encoding of batches
// would be measured, too. It makes batches smaller and distinct rows fewer until they fit.
func (c *Calibration) fit(
	p Protocol, at addresses, encrypted bool, workers int, duration time.Duration,
) (one sweep.Setup, err error) {
	from := sweep.Sources{Drivers: c.Drivers, LookupEnv: c.password}
	flags := c.flags(p, at, encrypted, workers, duration)
	for each := min(mostBatch, inFlight/workers); each >= leastBatch; each /= 2 {
		for distinct := distinctBytes; distinct >= each; distinct /= 4 {
			flags["batch-bytes"], flags["distinct-bytes"] = []string{strconv.Itoa(each)}, []string{strconv.Itoa(distinct)}
			if one, err = from.Setup(flags); err != nil {
				return one, err
			}
			err = one.Outline(c.Drivers) // also refuses batches that memory cannot hold one of
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

// flags returns those of a push that sends rows to the sink and nothing else.
func (c *Calibration) flags(p Protocol, at addresses, encrypted bool, workers int, duration time.Duration) map[string][]string {
	flags := map[string][]string{
		"target": {p.target(at, encrypted)}, "table": {table}, "method": {p.Method}, "workers": {strconv.Itoa(workers)},
		"duration": {duration.String()}, "verify": {"none"}, "retries": {"0"}, "retry-for": {"0s"}, "progress": {"none"},
		"batch-timeout": {batchTimeout.String()}, "tls": {"off"}, "dataset": {c.Dataset},
	}
	if encrypted {
		flags["tls"] = []string{"require"} // the sink's certificate is self-signed
	}
	if !p.objects {
		flags["create"], flags["delivery"] = []string{"never"}, []string{"at-least-once"}
	}
	if c.Memory != "" {
		flags["memory"] = []string{c.Memory}
	}
	if c.PayloadBytes > 0 {
		flags["payload-bytes"] = []string{strconv.Itoa(c.PayloadBytes)}
	}
	if c.PayloadKind != "" {
		flags["payload-kind"] = []string{c.PayloadKind}
	} else if p.textOnly && c.hasRawBytes() {
		flags["payload-kind"] = []string{string(dataset.Text)}
	}
	return flags
}

// hasRawBytes reports whether the dataset has a column of raw bytes by default.
func (c *Calibration) hasRawBytes() bool {
	d, err := dataset.New(c.Dataset, dataset.Options{PayloadBytes: c.PayloadBytes})
	return err == nil && slices.ContainsFunc(d.Schema().Columns, func(col rows.Column) bool { return col.Type == rows.Bytes })
}

// password is the environment of these pushes, in which the user's settings for pushes do not apply. The sink of a child
// accepts every password.
func (c *Calibration) password(name string) (string, bool) {
	if name != "TERAPUSH_PASSWORD" || c.Host == "" || c.LookupEnv == nil {
		return "", false
	}
	return c.LookupEnv(name)
}
