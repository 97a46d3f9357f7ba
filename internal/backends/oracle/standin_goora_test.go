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

	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// likeGoOra puts the stand-in's driver where go-ora stands.
func likeGoOra(c *client, s *fake.Server) {
	c.connector = func(_ loader.Target, d loader.Deps, _ int) (driver.Connector, error) {
		return guard{dial: d.Dial, connector: func(dial dialer) driver.Connector {
			return s.Connector(func(ctx context.Context) (net.Conn, error) { return dial(ctx, "tcp", s.Address()) })
		}}, nil
	}
}

// A panic of the driver costs the session and nothing else. What it came of may have been done.
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
			v := o.standIn.backend.Classify(err)
			assert.True(t, v.SessionDead && v.Retry, "%s: %+v", w.label, v)
			if at == fake.Commit {
				assert.Equal(t, loader.Unknown, v.Applied, w.label)
			}
			found, err := o.loader.(loader.Resolver).Resolve(t.Context(), loader.RefOf(o.batch))
			require.NoError(t, err)
			o.batch.Skip = found.Rows
			rows, err := o.send(t.Context(), o.batch)
			require.NoError(t, err)
			assert.EqualValues(t, 10, rows)
			o.hangUp()
			o.exact(t, o.target, 10)
		}
	}
}

// The real go-ora makes NUMBERs of the whole numbers that stand for decimals without a float: they read back as they were.
func TestGoOraNumbersAreExact(t *testing.T) {
	_, values := prices()
	for _, v := range append(values, [2]int64{math.MaxInt64, math.MinInt64 + 1}, [2]int64{100, -100}, [2]int64{1_000_000, -10}) {
		for _, n := range v {
			made, err := goora.NewNumberFromInt64(n)
			require.NoError(t, err)
			text, err := made.String()
			require.NoError(t, err)
			assert.Equal(t, strconv.FormatInt(n, 10), text)
		}
	}
}
