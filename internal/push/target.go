package push

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/host"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
)

// target is the database: its address, its loader and the table.
type target struct {
	loader.Target
	config *config.Push
	notes  *notes
	link   host.Link
	driver loader.Driver

	loader    loader.Loader // nil until it is open
	can       loader.Features
	table     loader.Table
	wire      netio.Dialer
	outage    retry.Outage
	encrypted atomic.Bool // a TLS handshake has succeeded
}

// preflightTime bounds each question of the preflight: the first connection, the look at the table, the probe.
const preflightTime = 10 * time.Second

// configure finds driver and method, and returns the method's capabilities on any server.
func (t *target) configure(drivers *loader.Registry, earlier config.Earlier) (caps loader.Caps, err error) {
	t.outage.Most, t.outage.Log = t.config.RetryFor, t.notes.log
	if t.driver, t.Target, err = t.config.LoaderTarget(drivers, earlier); err != nil {
		return caps, err
	}
	return t.driver.Check(t.Target)
}

// open connects once, within preflightTime.
func (t *target) open(ctx context.Context) error {
	addresses := netio.Spread{Dial: t.wire.DialContext}
	deps := loader.Deps{Dial: t.wire.DialContext, Spread: addresses.DialContext, TLS: t.tls, Log: t.notes.log}
	err := within(ctx, func(bound context.Context) (err error) {
		t.loader, err = t.driver.Open(bound, t.Target, deps)
		return err
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", t, t.judged(err))
	}
	t.can = loader.FeaturesOf(t.loader)
	if t.uncounted() {
		t.notes.warn("the target is a sink that drops the data unseen: no row is counted there, and the figures are a ceiling, no database's")
	}
	return nil
}

// tls returns the back-ends' TLS configuration. It records handshakes, since under TLSPrefer the mode does not tell
// whether there was one.
func (t *target) tls(mode loader.TLSMode, host string) (config *tls.Config, plain bool, err error) {
	config, plain, err = t.config.Connect.Trust.TLS(mode, host)
	if config != nil {
		verify := config.VerifyConnection
		config.VerifyConnection = func(s tls.ConnectionState) error { // called at the end of every handshake
			if verify != nil {
				if err := verify(s); err != nil {
					return err
				}
			}
			t.encrypted.Store(true)
			return nil
		}
	}
	return config, plain, err
}

// uncounted reports whether the target is a sink that does not count rows.
func (t *target) uncounted() bool { return t.says(loader.NoCountMark) }

func (t *target) says(mark string) bool { return strings.Contains(t.loader.Server().Version, mark) }

// prepare makes or checks the table, within preflightTime unless it removes rows, which takes as long as it takes.
func (t *target) prepare(ctx context.Context, p loader.Preparation) error {
	prepare := func(ctx context.Context) (err error) {
		t.table, err = t.loader.Prepare(ctx, p)
		return err
	}
	if removes(p.Create) {
		return t.judged(prepare(ctx))
	}
	limit := preflightTime
	if p.Begin != nil {
		limit += fenceTime
	}
	err := withinTime(ctx, limit, func(bound context.Context) error { return t.ask(bound, "table", prepare) })
	if errors.Is(err, errTooLate) {
		err = fmt.Errorf("preparing table %s: %w", t.Table, err)
	}
	if err != nil && t.says(loader.SinkMark) {
		err = fmt.Errorf("%w; a sink has no tables: push into it with --create never --delivery at-least-once --verify ack", err)
	}
	return err
}

// removes reports whether existing rows are removed first.
func removes(mode loader.CreateMode) bool {
	return mode == loader.CreateRecreate || mode == loader.CreateTruncate
}

// ask calls f, and calls it again if the answer is lost, as for a batch. f must be idempotent. That the table is gone is
// final.
func (t *target) ask(ctx context.Context, what string, f func(context.Context) error) error {
	lost := func(err error) { t.notes.log.Warn("asking again", "what", what, "error", err) }
	err := t.retries().Ask(ctx, t.driver.Classify, lost, f)
	if loader.VerdictOf(err).Class == loader.ClassMissing {
		return loader.Final(err)
	}
	return err
}

// judged gives an error the back-end's verdict. What the back-end is asked without ask needs it.
func (t *target) judged(err error) error {
	if err == nil {
		return nil
	}
	return loader.Judged(err, t.driver.Classify(err))
}

// ask is target.ask for a question that has an answer.
func ask[T any](ctx context.Context, t *target, what string, f func(context.Context) (T, error)) (answer T, err error) {
	err = t.ask(ctx, what, func(ctx context.Context) (err error) {
		answer, err = f(ctx)
		return err
	})
	return answer, err
}

// askSoon is ask within preflightTime.
func askSoon[T any](ctx context.Context, t *target, what string, f func(context.Context) (T, error)) (answer T, err error) {
	err = within(ctx, func(bound context.Context) (err error) {
		answer, err = ask(bound, t, what, f)
		return err
	})
	return answer, err
}

func (t *target) retries() retry.Policy {
	return retry.Policy{Retries: t.config.Retries, Outage: &t.outage}
}

// errTooLate is in the cause of a context that ended after preflightTime.
var errTooLate = errors.New("no answer")

// fenceTime is how long the beginning of a run may wait for the batches of others.
const fenceTime = 70 * time.Second

// within calls step with a context of preflightTime, whose end is part of the error.
func within(ctx context.Context, step func(context.Context) error) error {
	return withinTime(ctx, preflightTime, step)
}

func withinTime(ctx context.Context, limit time.Duration, step func(context.Context) error) error {
	bound, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within %s", errTooLate, limit))
	defer cancel()
	err := step(bound)
	if err != nil && bound.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(bound), err)
	}
	return err
}

// rowsIn counts the rows in a range of keys by one scan, in buckets of size keys.
func (t *target) rowsIn(ctx context.Context, what string, keys loader.KeyRange, size int64) (counted map[int64]int64, err error) {
	err = t.ask(ctx, what, func(ctx context.Context) error {
		counted = make(map[int64]int64)
		return t.can.Counter.Count(ctx, loader.Grouping{KeyRange: keys, Size: size}, func(b loader.Bucket) error {
			counted[b.Number] = b.Rows
			return nil
		})
	})
	return counted, err
}

// destination returns the host that sessions send to; "" for a socket or no server. Of a store it is that of the
// endpoint, or else the bucket, whose name stands for Amazon's.
func destination(t loader.Target) string {
	if t.Via != nil {
		t = *t.Via
	}
	if u, err := url.Parse(t.Params.Get("endpoint")); err == nil && u.Host != "" {
		return u.Hostname()
	}
	if len(t.Hosts) == 0 {
		return ""
	}
	host, _, _ := net.SplitHostPort(t.Address(0, "0"))
	return host
}
