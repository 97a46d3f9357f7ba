// Package target is a database as a run sees it: its address, its loader, what that can do, and the table. Every
// question goes through Ask, or has its own bound, and every error of the back-end gets its verdict here.
package target

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/internal/notes"
	"github.com/terapush/terapush/pkg/loader"
)

// Target is a database and a table of it. Ask may be called by several goroutines once it is open; the rest belongs to
// one.
type Target struct {
	loader.Target
	Driver loader.Driver
	Loader loader.Loader // nil until it is open
	Can    loader.Features
	// OfFiles says that its rows are of files, and have no numbers: nothing that needs some is in Can.
	OfFiles bool
	Found   loader.Table // as Prepare has found or made it
	Wire    netio.Dialer

	connect   *config.Connect
	patience  *config.Patience
	notes     *notes.Notes
	outage    retry.Outage
	encrypted atomic.Bool // a TLS handshake has succeeded
}

// New returns a target that is not open, and has neither Driver nor address yet.
func New(c *config.Connect, p *config.Patience, n *notes.Notes) *Target {
	return &Target{connect: c, patience: p, notes: n, outage: retry.Outage{Most: p.RetryFor, Log: n.Log}}
}

// PreflightTime bounds each question of the preflight: the first connection, the look at the table, the probe. A server
// that others keep busy may need all of it. Where nobody listens, the dialer says so sooner.
const PreflightTime = 30 * time.Second

// Open connects once, within PreflightTime.
func (t *Target) Open(ctx context.Context) error {
	addresses := netio.Spread{Dial: t.Wire.DialContext}
	deps := loader.Deps{Dial: t.Wire.DialContext, Spread: addresses.DialContext, TLS: t.tls, Log: t.notes.Log}
	err := Within(ctx, func(bound context.Context) (err error) {
		t.Loader, err = t.Driver.Open(bound, t.Target, deps)
		return err
	})
	if err != nil {
		return fmt.Errorf("opening %s: %w", t, t.Judged(err))
	}
	t.Can = loader.FeaturesOf(t.Loader)
	if t.OfFiles {
		t.Can = t.Can.WithoutNumbers()
	}
	if t.Uncounted() {
		t.notes.Warn("the target is a sink that drops the data unseen: no row is counted there, and the figures " +
			"are a ceiling, no database's")
	}
	return nil
}

// tls returns the back-ends' TLS configuration. It records handshakes, since under TLSPrefer the mode does not tell
// whether there was one.
func (t *Target) tls(mode loader.TLSMode, host string) (config *tls.Config, plain bool, err error) {
	config, plain, err = t.connect.Trust.TLS(mode, host)
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

// Uncounted reports whether the target is a sink that does not count rows.
func (t *Target) Uncounted() bool { return t.Says(loader.NoCountMark) }

// Says reports whether the server calls itself so.
func (t *Target) Says(mark string) bool { return strings.Contains(t.Loader.Server().Version, mark) }

// Prepare makes or checks the table, within PreflightTime and, where a run begins, the time that batches of others may
// take. To remove rows takes as long as it takes.
func (t *Target) Prepare(ctx context.Context, p loader.Preparation) error {
	prepare := func(ctx context.Context) (err error) {
		t.Found, err = t.Loader.Prepare(ctx, p)
		return err
	}
	if Removes(p.Create) {
		return t.Judged(prepare(ctx))
	}
	limit := PreflightTime
	if p.Begin != nil {
		limit += fenceTime
	}
	err := withinTime(ctx, limit, func(bound context.Context) error { return t.Ask(bound, "table", prepare) })
	if errors.Is(err, ErrTooLate) {
		err = fmt.Errorf("preparing table %s: %w", t.Table, err)
	}
	if err != nil && t.Says(loader.SinkMark) {
		err = fmt.Errorf("%w; a sink has no tables: push into it with --create never --delivery at-least-once "+
			"--verify ack", err)
	}
	return err
}

// Removes reports whether existing rows are removed first.
func Removes(mode loader.CreateMode) bool {
	return mode == loader.CreateRecreate || mode == loader.CreateTruncate
}

// Ask calls f, and calls it again if the answer is lost, as for a batch. f must be idempotent. That the table is gone
// is final.
func (t *Target) Ask(ctx context.Context, what string, f func(context.Context) error) error {
	lost := func(err error) { t.notes.Log.Warn("asking again", "what", what, "error", err) }
	err := t.Retries().Ask(ctx, t.Driver.Classify, lost, f)
	if loader.VerdictOf(err).Class == loader.ClassMissing {
		return loader.Final(err)
	}
	return err
}

// Judged gives an error the back-end's verdict. What the back-end is asked without ask needs it.
func (t *Target) Judged(err error) error {
	if err == nil {
		return nil
	}
	return loader.Judged(err, t.Driver.Classify(err))
}

// Ask is Target.Ask for a question that has an answer.
func Ask[T any](ctx context.Context, t *Target, what string, f func(context.Context) (T, error)) (answer T, err error) {
	err = t.Ask(ctx, what, func(ctx context.Context) (err error) {
		answer, err = f(ctx)
		return err
	})
	return answer, err
}

// AskSoon is Ask within PreflightTime.
func AskSoon[T any](
	ctx context.Context, t *Target, what string, f func(context.Context) (T, error),
) (answer T, err error) {
	err = Within(ctx, func(bound context.Context) (err error) {
		answer, err = Ask(bound, t, what, f)
		return err
	})
	return answer, err
}

// Retries is the policy of questions and batches, which wait together for a server that is away.
func (t *Target) Retries() retry.Policy {
	return retry.Policy{Retries: t.patience.Retries, Outage: &t.outage}
}

// ErrTooLate is in the cause of a context that ended after PreflightTime.
var ErrTooLate = errors.New("no answer")

// fenceTime is how long the beginning of a run may wait for the batches of others.
const fenceTime = 70 * time.Second

// Within calls step with a context of PreflightTime, whose end is part of the error.
func Within(ctx context.Context, step func(context.Context) error) error {
	return withinTime(ctx, PreflightTime, step)
}

// WithinFence is Within for a step that waits for the batches of others.
func WithinFence(ctx context.Context, step func(context.Context) error) error {
	return withinTime(ctx, PreflightTime+fenceTime, step)
}

func withinTime(ctx context.Context, limit time.Duration, step func(context.Context) error) error {
	bound, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("%w within %s", ErrTooLate, limit))
	defer cancel()
	err := step(bound)
	if err != nil && bound.Err() != nil {
		return fmt.Errorf("%w: %w", context.Cause(bound), err)
	}
	return err
}

// RowsIn counts the rows in a range of keys by one scan, in buckets of size keys.
func (t *Target) RowsIn(
	ctx context.Context, what string, keys loader.KeyRange, size int64,
) (counted map[int64]int64, err error) {
	err = t.Ask(ctx, what, func(ctx context.Context) error {
		counted = make(map[int64]int64)
		return t.Can.Counter.Count(ctx, loader.Grouping{KeyRange: keys, Size: size}, func(b loader.Bucket) error {
			counted[b.Number] = b.Rows
			return nil
		})
	})
	return counted, err
}

// Store is the object store of a staged method, without secrets; "" if there is none.
func (t *Target) Store() string {
	if t.Via == nil {
		return ""
	}
	return t.Via.String()
}

// Encrypted reports whether a TLS handshake has succeeded.
func (t *Target) Encrypted() bool { return t.encrypted.Load() }

// Blame adds to an error of rows that the server refused what the table does by itself, which may be its reason.
func (t *Target) Blame(err error) error {
	switch loader.VerdictOf(err).Class {
	case loader.ClassRows, loader.ClassPermission, loader.ClassConstraint, loader.ClassData:
		return t.Suspect(err)
	}
	return err
}

// Suspect is Blame for an error of any kind.
func (t *Target) Suspect(err error) error {
	can := t.Can.Suspecter
	if can == nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), PreflightTime) // the run may have ended
	defer cancel()
	found, problem := can.Suspects(ctx)
	if problem != nil || len(found) == 0 {
		return err
	}
	return fmt.Errorf("%w; the reason may be %s", err, strings.Join(found, ", or "))
}
