package retry_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/pkg/loader"
)

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		waits := retry.Policy{}.Waits()
		middle := 250 * time.Millisecond
		for range 10 {
			start := time.Now()
			require.True(t, waits.Wait(t.Context(), 0))
			require.InDelta(t, middle, time.Since(start), float64(middle/2), "half as much more or less")
			middle = min(2*middle, 30*time.Second)
		}
		start := time.Now()
		require.True(t, waits.Wait(t.Context(), time.Hour))
		require.Equal(t, time.Hour, time.Since(start), "as the server asks")

		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Minute, cancel)
		start = time.Now()
		require.False(t, waits.Wait(ctx, time.Hour))
		require.False(t, waits.Wait(ctx, 0))
		require.Equal(t, time.Minute, time.Since(start))
	})
}

func TestAsk(t *testing.T) {
	lost := loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassConnection}
	for name, c := range map[string]struct {
		verdict loader.Verdict
		fails   int
		asked   int
		wrong   bool
	}{
		"answered":                  {verdict: lost, asked: 1},
		"lost twice":                {verdict: lost, fails: 2, asked: 3},
		"lost too often":            {verdict: lost, fails: 9, asked: 4, wrong: true},
		"refused":                   {verdict: loader.Verdict{Class: loader.ClassPermission}, fails: 1, asked: 1, wrong: true},
		"a statement's time":        {verdict: loader.Verdict{Retry: true, Class: loader.ClassTimeout}, fails: 1, asked: 1, wrong: true},
		"a connection's time":       {verdict: loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassTimeout}, fails: 1, asked: 2},
		"a server that is starting": {verdict: loader.Verdict{Retry: true, Class: loader.ClassShutdown, After: time.Hour}, fails: 1, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asked, told := 0, 0
				err := retry.Policy{Retries: 3}.Ask(t.Context(), func(error) loader.Verdict { return c.verdict }, func(error) { told++ },
					func(context.Context) error {
						if asked++; asked <= c.fails {
							return errors.New("no answer")
						}
						return nil
					})
				require.Equal(t, c.wrong, err != nil)
				if c.wrong {
					require.Equal(t, c.verdict, loader.VerdictOf(err))
				}
				require.Equal(t, c.asked, asked)
				require.Equal(t, asked-1, told)
			})
		})
	}
}
