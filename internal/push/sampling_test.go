package push

import (
	"net"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/bound"
	"github.com/terapush/terapush/internal/network"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// What the account costs once a second at 64 connections: half a percent of one core would be 5 ms.
func BenchmarkSample(b *testing.B) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(b, err)
	var open sync.WaitGroup
	defer open.Wait()
	defer l.Close()
	open.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			defer c.Close()
		}
	})
	p := &push{wire: new(network.Dialer), stats: stats.New(stats.Options{Workers: 64})}
	for range 64 {
		c, err := p.wire.DialContext(b.Context(), "tcp", l.Addr().String())
		require.NoError(b, err)
		defer c.Close()
	}
	p.account = bound.NewMeter(p.reading)
	p.stats.Phase(event.Load)
	p.account.Sample()
	b.ReportAllocs()
	for b.Loop() {
		p.account.Sample()
	}
}
