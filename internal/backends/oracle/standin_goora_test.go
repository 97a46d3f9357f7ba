//go:build !godror

package oracle

import (
	"context"
	"database/sql/driver"
	"math"
	"net"
	"strconv"
	"testing"

	goora "github.com/sijms/go-ora/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// likeGoOra puts the stand-in's driver behind the guard, in go-ora's place.
func likeGoOra(c *client, s *fake.Server) {
	c.connector = func(_ loader.Target, d loader.Deps, _ int) (driver.Connector, error) {
		return guard{dial: d.Dial, connector: func(dial dialer) driver.Connector {
			return s.Connector(false, func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", s.Address()) })
		}}, nil
	}
}

// A panic of the driver costs the session and nothing else. What the server was sent may have been done.
func TestPanics(t *testing.T) {
	for _, w := range ways(10) {
		if w.native || w.contract.Dedup == loader.DedupNone {
			continue
		}
		for _, at := range []string{"INSERT", fake.Commit} {
			o := oneBatch(t, w, 10)
			o.SetScript(fake.At(at, 1, fake.Fault{Panic: "runtime error: index out of range"}))
			_, err := o.attempt(t.Context(), t)
			require.ErrorContains(t, err, "the database driver panicked: runtime error")
			v := o.backend.Classify(err)
			assert.True(t, v.SessionDead && v.Retry, "%s: %+v", w.label, v)
			if at == fake.Commit {
				assert.Equal(t, loader.Unknown, v.Applied, w.label)
			}
			o.goesOn(t)
		}
	}
}

// The real go-ora makes NUMBERs of the whole numbers that stand for decimals without a float.
func TestGoOraNumbersAreExact(t *testing.T) {
	for _, n := range []int64{
		999_999_999_999_999_999, -999_999_999_999_999_999, 123_456_789_012_345_678, 10_000_000, 0, 1, -1, 100, -100, -10,
		math.MaxInt64, math.MinInt64 + 1,
	} {
		made, err := goora.NewNumberFromInt64(n)
		require.NoError(t, err)
		text, err := made.String()
		require.NoError(t, err)
		assert.Equal(t, strconv.FormatInt(n, 10), text)
	}
}
