package stats_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

type work = map[event.State]float64

// start is where windows begin: long after the counters did.
func start() stats.Reading {
	return stats.Reading{
		At: time.Unix(1000, 0), Workers: work{event.Connecting: 10, event.Idle: 3}, CPU: 50, Cores: 4, Payload: 1000, Wire: 1000,
		Sockets: event.Sockets{
			Dialled: 10, Blocked: 7, Awaited: 6, Turns: 100, RoundTrips: 1, Out: 5, Kernel: true, Busy: 20, RwndLimited: 9, SndbufLimited: 1,
			Local: 2,
		},
	}
}

// after is what they show a second later, when so much has been done.
func after(w work, s event.Sockets, more func(*stats.Reading)) stats.Reading {
	r := start()
	r.At = r.At.Add(time.Second)
	all := work{}
	for _, state := range event.States() {
		all[state] = r.Workers[state] + w[state]
	}
	r.Workers = all
	r.Sockets.Blocked += s.Blocked
	r.Sockets.Awaited += s.Awaited
	r.Sockets.Turns += s.Turns
	r.Sockets.RoundTrips += s.RoundTrips
	r.Sockets.Out += s.Out
	r.Sockets.Busy += s.Busy
	r.Sockets.RwndLimited += s.RwndLimited
	r.Sockets.SndbufLimited += s.SndbufLimited
	r.Sockets.Local += s.Local
	r.CPU += 0.4
	r.Payload, r.Wire = 2_000_000, 2_000_000
	if more != nil {
		more(&r)
	}
	return r
}

func busyClient(r *stats.Reading) { r.CPU = start().CPU + 3.7 }

// lost is what the workers' time between two readings was lost to.
func lost(a, b stats.Reading) stats.Seconds {
	m := stats.NewBottleneck(script(a, b))
	m.Sample()
	m.Sample()
	return m.Account().Seconds
}

func TestLost(t *testing.T) {
	const (
		source, client, network, protocol = event.LimitSource, event.LimitClient, event.LimitNetwork, event.LimitProtocol
		target, limit, tail               = event.LimitTarget, event.LimitRate, event.LimitTail
	)
	sending := work{event.Connecting: 1, event.Sending: 6, event.WaitAck: 3}
	for name, c := range map[string]struct {
		work    work
		sockets event.Sockets
		more    func(*stats.Reading)
		want    stats.Seconds
		by      event.Limit
	}{
		"nothing": {work{}, event.Sockets{}, nil, stats.Seconds{}, ""},
		"states of their own": {
			work{event.WaitBuffer: 4, event.WaitRate: 3, event.Idle: 2, event.BackingOff: .25, event.Resolving: .5, event.WaitCommit: .25},
			event.Sockets{}, nil, stats.Seconds{source: 4, limit: 3, tail: 2, target: 1}, source,
		},
		"no wait at all": {sending, event.Sockets{Busy: 5}, nil, stats.Seconds{client: 10}, client},
		"a full window":  {sending, event.Sockets{Blocked: 8, Awaited: 1, Busy: 9, RwndLimited: 8.5}, nil, stats.Seconds{client: 1, network: .5, target: 8.5}, target},
		"a slow answer":  {sending, event.Sockets{Awaited: 9, Out: 9, Busy: 0.1}, nil, stats.Seconds{client: 1, target: 9}, target},
		"a slow way":     {sending, event.Sockets{Blocked: 6, Awaited: 3, Out: 1, Busy: 8.5, RoundTrips: .5}, nil, stats.Seconds{client: 1, protocol: .5, network: 8, target: .5}, network},
		"many turns":     {sending, event.Sockets{Awaited: 9, Out: 9, Turns: 90, RoundTrips: 8}, nil, stats.Seconds{client: 1, protocol: 8, target: 1}, protocol},
		// The other side holds back acknowledgements, and the kernel calls itself busy until they come.
		"late acknowledgements": {sending, event.Sockets{Awaited: 9, Out: 8.5, Busy: 9}, nil, stats.Seconds{client: 1, network: .5, target: 8.5}, target},
		"no way in between":     {sending, event.Sockets{Blocked: 9, Busy: 9, RwndLimited: 1, Local: 8}, nil, stats.Seconds{client: 1, target: 9}, target},
		"others wait, too":      {sending, event.Sockets{Blocked: 9, Awaited: 9, Busy: 40}, nil, stats.Seconds{network: 10}, network},
		"more turns than time":  {sending, event.Sockets{Awaited: 20, RoundTrips: 20, Out: 20}, nil, stats.Seconds{protocol: 10}, protocol},
		"bytes that are no payload": {
			sending, event.Sockets{Blocked: 10, Busy: 10}, func(r *stats.Reading) { r.Wire = 4 * r.Payload },
			stats.Seconds{network: 2.5, protocol: 7.5}, protocol,
		},
		"few of them": {
			sending, event.Sockets{Blocked: 10, Busy: 10}, func(r *stats.Reading) { r.Wire = r.Payload * 109 / 100 },
			stats.Seconds{network: 10}, network,
		},
		"no payload yet": {
			sending, event.Sockets{Blocked: 10, Busy: 10}, func(r *stats.Reading) { r.Payload = 0 }, stats.Seconds{network: 10}, network,
		},
		"all cores in use": {
			work{event.Sending: 4, event.WaitAck: 1, event.WaitBuffer: 2, event.WaitRate: 1, event.BackingOff: 1, event.Idle: 1},
			event.Sockets{Blocked: 3, Awaited: 1, Out: 1, Busy: 4, RoundTrips: 1}, busyClient,
			stats.Seconds{client: 7, limit: 1, target: 1, tail: 1}, client,
		},
		"all cores in use, and yet the server does not read": {
			sending, event.Sockets{Blocked: 8, Busy: 9, RwndLimited: 7}, busyClient, stats.Seconds{client: 3, target: 7}, target,
		},
		"a window is full for no longer than anybody waits": {
			sending, event.Sockets{Blocked: 2, Busy: 9, RwndLimited: 7}, busyClient, stats.Seconds{client: 8, target: 2}, client,
		},
		"just below": {
			sending, event.Sockets{Awaited: 9, Out: 9}, func(r *stats.Reading) { r.CPU = start().CPU + 3.59 },
			stats.Seconds{client: 1, target: 9}, target,
		},
		"cores that nobody knows": {
			sending, event.Sockets{Awaited: 9, Out: 9}, func(r *stats.Reading) { r.Cores = 0 }, stats.Seconds{client: 1, target: 9}, target,
		},
		// A database's own client library.
		"no sockets of ours": {
			sending, event.Sockets{}, func(r *stats.Reading) { r.Sockets = event.Sockets{} }, stats.Seconds{client: .4, target: 9.6}, target,
		},
		// discard:// on one of four cores.
		"no sockets at all": {
			work{event.Sending: 1}, event.Sockets{}, func(r *stats.Reading) { r.Sockets, r.CPU = event.Sockets{}, start().CPU+1.1 },
			stats.Seconds{client: 1}, client,
		},
		"no sockets at all, and others have the cores": {
			work{event.Sending: 1}, event.Sockets{}, func(r *stats.Reading) { r.Sockets, r.Queued = event.Sockets{}, .5 },
			stats.Seconds{client: .9, target: .1}, client,
		},
		"no sockets at all, and rows are made": {
			work{event.Sending: 1, event.WaitBuffer: .4}, event.Sockets{}, func(r *stats.Reading) { r.Sockets = event.Sockets{} },
			stats.Seconds{source: .4, target: 1}, target,
		},
		"no sockets of ours, and all cores in use": {
			sending, event.Sockets{}, func(r *stats.Reading) { r.Sockets = event.Sockets{}; busyClient(r) }, stats.Seconds{client: 10}, client,
		},
		// A Unix socket, or a system without TCP_INFO: nobody says why a write waited.
		"the system does not tell": {sending, event.Sockets{Blocked: 5, Awaited: 3}, func(r *stats.Reading) {
			r.Sockets.Kernel, r.Sockets.Busy, r.Sockets.RwndLimited, r.Sockets.Local = false, 0, 0, 0
		}, stats.Seconds{client: 2, target: 8}, target},
		"counters that fall behind": {sending, event.Sockets{Blocked: 10, Busy: 10}, func(r *stats.Reading) {
			r.Sockets.Awaited, r.Sockets.RwndLimited, r.Sockets.RoundTrips, r.CPU = 0, 0, 0, 0
		}, stats.Seconds{network: 10}, network},
	} {
		t.Run(name, func(t *testing.T) {
			got := lost(start(), after(c.work, c.sockets, c.more))
			require.Len(t, got, len(event.Limits()), "all limits are there")
			var given, found float64
			for _, seconds := range c.work {
				given += seconds
			}
			for _, l := range event.Limits() {
				require.InDelta(t, c.want[l], got[l], 1e-9, l)
				require.GreaterOrEqual(t, got[l], 0.0)
				found += got[l]
			}
			require.InDelta(t, given, found, 1e-9, "the workers' time, and no other")
			require.Equal(t, c.by, event.BoundBy(got))
		})
	}
}

// script gives one reading after the other, and the last for ever.
func script(all ...stats.Reading) func() stats.Reading {
	return func() stats.Reading {
		r := all[0]
		if len(all) > 1 {
			all = all[1:]
		}
		return r
	}
}

func at(second int, w work, s event.Sockets, cpu float64) stats.Reading {
	s.Dialled, s.Kernel = 4, true
	return stats.Reading{At: time.Unix(int64(1000+second), 0), Workers: w, Sockets: s, CPU: cpu, Cores: 2, Payload: int64(second) * 100, Wire: int64(second) * 105}
}

func TestBottleneck(t *testing.T) {
	m := stats.NewBottleneck(script(
		at(0, work{}, event.Sockets{Awaited: 5, Out: 5, Turns: 9, MinRTT: .01}, 1), // of the preflight
		at(2, work{}, event.Sockets{Awaited: 5, Out: 5, Turns: 9}, 5),              // buffers are filled with all cores
		at(3, work{event.Sending: 4}, event.Sockets{Awaited: 8, Out: 8, Turns: 12, DeliveryRate: 100, Segments: 50, Retransmits: 2}, 5.5),
		at(4, work{event.Sending: 5, event.WaitRate: 3}, event.Sockets{Awaited: 8, Out: 8, Turns: 12, DeliveryRate: 300, RTT: .02}, 5.6),
		at(9, work{event.Sending: 5, event.WaitRate: 3}, event.Sockets{Awaited: 20, Out: 20, Turns: 99, Open: 1}, 14), // verifying
	))
	before := m.Account()
	require.Len(t, before.Seconds, len(event.Limits()), "all limits from the start")
	require.Empty(t, before.BoundBy)

	m.Sample()
	m.Sample()
	require.Zero(t, m.Account().Total.Seconds, "workers had no time")
	require.Empty(t, m.Account().BoundBy)

	m.Sample()
	a := m.Account()
	require.Equal(t, event.LimitTarget, a.BoundBy)
	require.InDelta(t, 3, a.Seconds[event.LimitTarget], 1e-9)
	require.InDelta(t, 1, a.Seconds[event.LimitClient], 1e-9)

	m.Sample()
	m.Sample()
	b := m.Account()
	require.Equal(t, event.LimitRate, b.BoundBy, "the newest window in which workers had time")
	require.InDelta(t, 3, b.Seconds[event.LimitRate], 1e-9)
	require.InDelta(t, 2, b.Seconds[event.LimitClient], 1e-9)
	require.InDelta(t, 3, a.Seconds[event.LimitTarget], 1e-9, "what was given away stays as it is")
	require.InDelta(t, 8, b.Total.WorkerSeconds(), 1e-9)
	require.InDelta(t, 2, b.Total.Seconds, 1e-9)
	require.InDelta(t, 0.6, b.Total.CPU, 1e-9, "without the filling and the verification")
	require.Equal(t, 2, b.Total.Cores)
	require.Equal(t, [2]int64{200, 210}, [2]int64{b.Total.Payload, b.Total.Wire})
	require.EqualValues(t, 3, b.Total.Sockets.Turns)
	require.InDelta(t, 3, b.Total.Sockets.Awaited, 1e-9)
	require.Equal(t, [2]int64{2, 50}, [2]int64{b.Total.Sockets.Retransmits, b.Total.Sockets.Segments}, "a counter that falls is no counter")
	require.Equal(t, .02, b.Total.Sockets.RTT, "of the end")
	require.Equal(t, 200.0, b.Fastest, "the mean of two looks")
	require.EqualValues(t, 1, b.Sockets.Open, "the newest reading")
}

// With -race this also shows that all may be called at once.
func TestBottleneckConcurrently(t *testing.T) {
	var seconds float64
	m := stats.NewBottleneck(func() stats.Reading { // never by two at once
		seconds++
		return at(int(seconds), work{event.WaitBuffer: seconds}, event.Sockets{}, 0)
	})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				m.Sample()
				m.Account().Seconds[event.LimitTail]++
			}
		})
	}
	all.Wait()
	a := m.Account()
	require.Equal(t, 799.0, a.Seconds[event.LimitSource])
	require.Zero(t, a.Seconds[event.LimitTail])
	require.Equal(t, 799.0, a.Total.WorkerSeconds())
}
