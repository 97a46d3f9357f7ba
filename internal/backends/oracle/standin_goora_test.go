//go:build !godror

package oracle

import (
	"context"
	"database/sql"
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
	"github.com/terapush/terapush/pkg/rows"
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
		math.MaxInt64, math.MinInt64 + 1, math.MinInt64,
	} {
		made, err := goora.NewNumberFromInt64(n)
		require.NoError(t, err)
		text, err := made.String()
		require.NoError(t, err)
		assert.Equal(t, strconv.FormatInt(n, 10), text)
	}
}

// The real go-ora binds what stands for a NULL without a byte, and values beside it as it would without one. A NULL
// keeps a number's type: the same prepared statement takes the next row.
func TestGoOraNulls(t *testing.T) {
	at := &rows.Vector{Type: rows.Timestamp, Ints: []int64{1, 0}, Nulls: []uint64{2}}
	stmt := goora.NewStmt("INSERT", &goora.Connection{State: goora.Opened})
	for _, c := range []struct {
		value any
		kind  goora.TNSType
		bytes int
	}{
		{sql.NullInt64{}, goora.NUMBER, 0},
		{sql.NullInt64{Int64: 12, Valid: true}, goora.NUMBER, 2},
		{int64(12), goora.NUMBER, 2},
		{builtIn().maybeTimes.one(at, 0, 1), goora.TIMESTAMP, 11},
		{builtIn().times.one(at, 0, 1), goora.TIMESTAMP, 11},
		{builtIn().maybeTimes.one(at, 1, 1), goora.NCHAR, 0},
	} {
		p, err := stmt.NewParam("", c.value, 0, goora.Input)
		require.NoError(t, err)
		assert.Equal(t, c.kind, p.DataType, "%#v", c.value)
		assert.Len(t, p.BValue, c.bytes, "%#v", c.value)
	}
}
