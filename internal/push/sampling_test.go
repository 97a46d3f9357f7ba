package push

import (
	"fmt"
	"net"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

// What a second of the timeline costs at 64 connections: half a percent of one core would be 5 ms. The time that threads
// waited for a core is read of each of them, so that it counts how many there are: one for every core, and a few.
func BenchmarkSample(b *testing.B) {
	for _, threads := range []int{0, 64} {
		b.Run(fmt.Sprintf("%d more threads", threads), func(b *testing.B) { sample(b, threads) })
	}
}

func sample(b *testing.B, threads int) {
	done := make(chan struct{})
	var others sync.WaitGroup
	for range threads {
		others.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			<-done
		})
	}
	defer others.Wait()
	defer close(done)
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
	var m meters
	m.start(stats.Options{Workers: 64, Start: time.Now()}, nil, new(netio.Dialer))
	defer m.timeline.Stop()
	for range 64 {
		c, err := m.wire.DialContext(b.Context(), "tcp", l.Addr().String())
		require.NoError(b, err)
		defer c.Close()
	}
	m.resume(event.Load)
	b.ReportAllocs()
	before := stats.ProcessUsage().CPU()
	for b.Loop() {
		m.account.Sample()
		m.stats.Snapshot()
	}
	b.ReportMetric((stats.ProcessUsage().CPU()-before)/float64(b.N)*1e9, "cpu-ns/op")
}
