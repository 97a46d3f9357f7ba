package retry_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/pkg/loader"
)

var errRefused = errors.New("connection refused")

// A server that is away is waited for by time, also without a single retry, and not for longer; the log says when that
// begins, once a minute, and when it is over.
func TestOutage(t *testing.T) {
	away := loader.Again(loader.ClassConnection)
	for name, c := range map[string]struct {
		verdict   loader.Verdict
		most      time.Duration
		back      time.Duration
		asked     bool // answered in the end
		still     int  // lines
		atLeast   time.Duration
		noWaiting bool
	}{
		"a failover of three minutes": {verdict: away, most: 10 * time.Minute, back: 3 * time.Minute, asked: true, still: 1, atLeast: 3 * time.Minute},
		"too long":                    {verdict: away, most: 10 * time.Minute, back: time.Hour, still: 5, atLeast: 10 * time.Minute},
		"by number":                   {verdict: away, back: time.Minute, noWaiting: true},
		"refused":                     {verdict: loader.Again(loader.ClassLock), most: time.Minute, back: time.Minute, noWaiting: true},
		"TLS that will not heal":      {verdict: loader.Verdict{Class: loader.ClassConnection}, most: time.Minute, back: time.Minute, noWaiting: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				policy := retry.Policy{Outage: &retry.Outage{Most: c.most, Log: slog.New(slog.NewTextHandler(&log, nil))}}
				start := time.Now()
				err := policy.Ask(t.Context(), func(error) loader.Verdict { return c.verdict }, func(error) { t.Error("the outage logs itself") },
					func(context.Context) error {
						if time.Since(start) < c.back {
							return errRefused
						}
						return nil
					})
				require.Equal(t, c.asked, err == nil)
				if c.noWaiting {
					require.Zero(t, time.Since(start))
					require.Empty(t, log.String())
					return
				}
				require.GreaterOrEqual(t, time.Since(start), c.atLeast)
				require.Less(t, time.Since(start), c.atLeast+time.Minute)
				require.Equal(t, 1, strings.Count(log.String(), `msg="the server is away: waiting for it" most=10m0s error="connection refused"`))
				require.GreaterOrEqual(t, strings.Count(log.String(), "still away"), c.still)
				require.LessOrEqual(t, strings.Count(log.String(), "still away"), int(c.atLeast.Minutes()))
				require.Equal(t, c.asked, strings.Contains(log.String(), `"the server is back" after=3m`))
			})
		})
	}
}

// A batch at which the server closes the connection, while it takes others, is no outage.
func TestPoisonedBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		outage := &retry.Outage{Most: time.Hour, Log: slog.New(slog.DiscardHandler)}
		waits := retry.Policy{Retries: 3, Outage: outage}.Waits()
		attempts := 1
		for attempts < 100 && waits.Failed(loader.Again(loader.ClassConnection), errRefused) {
			attempts++
			outage.Answered(time.Now()) // to another worker
		}
		require.Equal(t, 1+1+3, attempts, "the first failure may be an outage")
	})
}

// Another worker's batch may be acknowledged just before the server goes away, and be counted just after.
func TestAnswerFromBeforeTheOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		outage := &retry.Outage{Most: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))}
		waits := retry.Policy{Outage: outage}.Waits()
		began := time.Now()
		time.Sleep(time.Second)
		require.True(t, waits.Failed(loader.Again(loader.ClassConnection), errRefused))
		outage.Answered(began)
		require.True(t, waits.Failed(loader.Again(loader.ClassConnection), errRefused))
		require.NotContains(t, log.String(), "the server is back")
	})
}
