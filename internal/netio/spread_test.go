package netio_test

import (
	"context"
	"errors"
	"net"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
)

// dialled notes what is dialled; addresses in refuse cannot be reached.
type dialled struct {
	addresses []string
	refuse    map[string]bool
	lookups   int
}

func (d *dialled) spread(addresses ...string) *netio.Spread {
	return &netio.Spread{
		Dial: func(_ context.Context, _, address string) (net.Conn, error) {
			d.addresses = append(d.addresses, address)
			if d.refuse[address] {
				return nil, &net.OpError{Op: "dial", Err: errors.New(address + " refuses")}
			}
			c, _ := net.Pipe()
			return c, nil
		},
		Lookup: func(_ context.Context, host string) ([]string, error) {
			d.lookups++
			if host != "store" {
				return nil, errors.New("no such host")
			}
			return slices.Clone(addresses), nil
		},
	}
}

// dial dials the store some times.
func dial(t *testing.T, s *netio.Spread, times int) {
	t.Helper()
	for range times {
		_, err := s.DialContext(t.Context(), "tcp", "store:80")
		require.NoError(t, err)
	}
}

func TestSpreadTakesAddressesInTurn(t *testing.T) {
	var d dialled
	dial(t, d.spread("10.0.0.1", "10.0.0.2", "fd00::3"), 4)
	assert.Equal(t, []string{"10.0.0.1:80", "10.0.0.2:80", "[fd00::3]:80", "10.0.0.1:80"}, d.addresses)
	assert.Equal(t, 1, d.lookups)
}

// An address that drops packets must not use up the ten seconds that a push tries for; an only one may.
func TestSpreadBoundsADial(t *testing.T) {
	for _, addresses := range [][]string{{"fd00::1", "fd00::2", "10.0.0.3"}, {"fd00::1"}} {
		synctest.Test(t, func(t *testing.T) {
			var d dialled
			s, began := d.spread(addresses...), time.Now()
			answers := s.Dial
			s.Dial = func(ctx context.Context, net_, address string) (net.Conn, error) {
				if address != "10.0.0.3:80" {
					<-ctx.Done()
					return nil, ctx.Err()
				}
				return answers(ctx, net_, address)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := s.DialContext(ctx, "tcp", "store:80")
			if len(addresses) > 1 {
				require.NoError(t, err)
				require.Equal(t, 4*time.Second, time.Since(began))
			} else {
				require.ErrorIs(t, err, context.DeadlineExceeded)
				require.Equal(t, 10*time.Second, time.Since(began))
			}
		})
	}
}

// An address that drops packets takes its time to fail, and names are looked up more often than it is tried again.
func TestSpreadExcludesAddresses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := dialled{refuse: map[string]bool{"10.0.0.1:80": true}}
		s := d.spread("10.0.0.1", "10.0.0.2")
		dial(t, s, 1)
		assert.Equal(t, []string{"10.0.0.1:80", "10.0.0.2:80"}, d.addresses)
		d.addresses = nil
		for range 5 {
			time.Sleep(9 * time.Second)
			dial(t, s, 1)
		}
		assert.Equal(t, 6, d.lookups)
		assert.Equal(t, slices.Repeat([]string{"10.0.0.2:80"}, 5), d.addresses)

		_, err := s.DialContext(t.Context(), "tcp", "store:81")
		require.NoError(t, err)
		assert.Equal(t, "10.0.0.1:81", d.addresses[5], "another port is another service")

		d.refuse = map[string]bool{"10.0.0.2:80": true}
		dial(t, s, 1)
		assert.Equal(t, "10.0.0.1:80", d.addresses[len(d.addresses)-1], "if the others fail")

		time.Sleep(time.Minute)
		d.addresses, d.refuse = nil, nil
		dial(t, s, 2)
		assert.ElementsMatch(t, []string{"10.0.0.1:80", "10.0.0.2:80"}, d.addresses, "both are tried again")
	})
}

func TestSpreadFails(t *testing.T) {
	d := dialled{refuse: map[string]bool{"10.0.0.1:80": true, "10.0.0.2:80": true}}
	s := d.spread("10.0.0.1", "10.0.0.2")
	for range 3 { // all are excluded, and tried
		_, err := s.DialContext(t.Context(), "tcp", "store:80")
		var op *net.OpError
		require.ErrorAs(t, err, &op)
		assert.Equal(t, "dial", op.Op)
	}
	_, err := s.DialContext(t.Context(), "tcp", "elsewhere:80")
	assert.ErrorContains(t, err, "no such host")

	_, err = d.spread().DialContext(t.Context(), "tcp", "store:80")
	assert.ErrorContains(t, err, "lookup store: the name has no address")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d.addresses = nil
	_, err = d.spread("10.0.0.1", "10.0.0.2").DialContext(ctx, "tcp", "store:80")
	require.Error(t, err)
	assert.Len(t, d.addresses, 1, "no further")
}

func TestSpreadDialsAddressesDirectly(t *testing.T) {
	var d dialled
	s := d.spread()
	for _, address := range []string{"127.0.0.1:80", "[::1]:80", "/run/socket"} {
		_, err := s.DialContext(t.Context(), "tcp", address)
		require.NoError(t, err)
	}
	_, err := s.DialContext(t.Context(), "unix", "/run/a:b")
	require.NoError(t, err)
	assert.Equal(t, []string{"127.0.0.1:80", "[::1]:80", "/run/socket", "/run/a:b"}, d.addresses)
	assert.Zero(t, d.lookups)
}
