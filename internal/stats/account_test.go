package stats_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
)

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

func TestMeter(t *testing.T) {
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
func TestMeterConcurrently(t *testing.T) {
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
