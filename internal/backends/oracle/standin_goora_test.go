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
