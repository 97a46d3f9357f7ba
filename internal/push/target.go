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

// target is the database that is pushed to: its address, then its loader with what that can do, then its table.
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
	encrypted atomic.Bool // a connection was
}

// preflightTime is how long each question of the preflight may take: the first connection, the look at the table, the
// probe.
const preflightTime = 10 * time.Second

// configure finds driver and method, and returns what the method can do before a server is asked.
func (t *target) configure(drivers *loader.Registry) (caps loader.Caps, err error) {
	if t.driver, _, t.Target, err = t.config.LoaderTarget(drivers); err != nil {
		return caps, err
	}
	return t.driver.Check(t.Target)
}

// open connects and probes, once, within the preflight's time.
func (t *target) open(ctx context.Context) error {
	addresses := netio.Spread{Dial: t.wire.DialContext}
	deps := loader.Deps{Dial: t.wire.DialContext, Spread: addresses.DialContext, TLS: t.tls, Log: t.notes.log}
	err := within(ctx, func(bound context.Context) (err error) {
		t.loader, err = t.driver.Open(bound, t.Target, deps)
		return err
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", t, err)
	}
	t.can = loader.FeaturesOf(t.loader)
	if t.uncounted() {
		t.notes.warn("the target is a sink that drops the data unseen: no row is counted there, and the figures are a ceiling, no database's")
	}
	return nil
}

// tls returns what back-ends encrypt with. It notes that somebody did: a mode that only prefers TLS does not tell.
func (t *target) tls(mode loader.TLSMode, host string) (config *tls.Config, plain bool, err error) {
	config, plain, err = t.config.Connect.Trust.TLS(mode, host)
	if config != nil {
		config.VerifyConnection = func(tls.ConnectionState) error { // called at the end of every handshake
			t.encrypted.Store(true)
			return nil
		}
	}
	return config, plain, err
}

// uncounted reports whether the target says of itself that it does not count rows.
func (t *target) uncounted() bool {
	return strings.Contains(t.loader.Server().Version, loader.NoCountMark)
}

// caps returns the loader's, or none before it is open.
func (t *target) caps() loader.Caps {
	if t.loader == nil {
		return loader.Caps{}
	}
	return t.loader.Caps()
}

// prepare makes the table ready, or looks at it. What is dropped or emptied may be large and takes as long as it takes.
func (t *target) prepare(ctx context.Context, p loader.Preparation) error {
	prepare := func(ctx context.Context) (err error) {
		t.table, err = t.loader.Prepare(ctx, p)
		return err
	}
	if removes(p.Create) {
		return prepare(ctx)
	}
	err := t.askSoon(ctx, "table", prepare)
	if errors.Is(err, errTooLate) {
		return fmt.Errorf("making table %s ready, or looking at it: %w", t.Table, err)
	}
	return err
}

// removes reports whether rows that are there are removed first.
func removes(mode loader.CreateMode) bool {
	return mode == loader.CreateRecreate || mode == loader.CreateTruncate
}

// forget removes what the claim table has of a run, and returns how many rows that were. A claim table that is gone has
// nothing to remove.
func (t *target) forget(ctx context.Context, run string) (rows int64, err error) {
	rows, err = t.can.Claims.Forget(ctx, run)
	if err != nil && t.driver.Classify(err).Class == loader.ClassMissing {
		err = nil
	}
	return rows, err
}

// ask asks the database, and asks again where the answer is lost, as for a batch. f begins anew each time and must be
// idempotent.
func (t *target) ask(ctx context.Context, what string, f func(context.Context) error) error {
	lost := func(err error) { t.notes.log.Warn("asking again", "what", what, "error", err) }
	return t.retries().Ask(ctx, t.driver.Classify, lost, f)
}

// askSoon is ask within the preflight's time.
func (t *target) askSoon(ctx context.Context, what string, f func(context.Context) error) error {
	return within(ctx, func(bound context.Context) error { return t.ask(bound, what, f) })
}

func (t *target) retries() retry.Policy { return retry.Policy{Retries: t.config.Retries} }

// errTooLate is the cause of the end of a step that took too long.
var errTooLate = fmt.Errorf("no answer within %s", preflightTime)

// within bounds a step of the preflight, and says so where that is what ended it.
func within(ctx context.Context, step func(context.Context) error) error {
	bound, cancel := context.WithTimeoutCause(ctx, preflightTime, errTooLate)
	defer cancel()
	err := step(bound)
	if err != nil && bound.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(bound), err)
	}
	return err
}

// rowsIn counts, by one scan, the rows with the keys of a range, in buckets of so many keys each.
func (t *target) rowsIn(ctx context.Context, what string, keys loader.KeyRange, size int64) (there map[int64]int64, err error) {
	err = t.ask(ctx, what, func(ctx context.Context) error {
		there = make(map[int64]int64)
		return t.can.Counter.Count(ctx, loader.Grouping{KeyRange: keys, Size: size}, func(b loader.Bucket) error {
			there[b.Number] = b.Rows
			return nil
		})
	})
	return there, err
}

// destination returns the host that the sessions send to; "" for this machine, and where nothing goes over a network. A store has
// its host in the parameter endpoint; without one it is a bucket that stands there, which is as good as any name.
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
	host, _, err := net.SplitHostPort(t.Address(0, "0"))
	if err != nil {
		return ""
	}
	return host
}
