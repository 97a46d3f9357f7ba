package live

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/terapush/terapush/pkg/event"
)

// limitFamilies are what kept the run from going faster, and what the sockets tell of that.
func limitFamilies() []family {
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	labelled := func(kind prometheus.ValueType, name, help string, value func(event.Snapshot, event.Limit) float64) family {
		return family{
			desc: prometheus.NewDesc("terapush_"+name, help, []string{"limit"}, nil), kind: kind,
			values: func(s event.Snapshot, emit func(float64, ...string)) {
				for _, l := range event.Limits() {
					emit(value(s, l), string(l))
				}
			},
		}
	}
	return append([]family{
		labelled(counter, "limit_seconds_total", "Time of all workers by what it was lost to, while rows moved.",
			func(s event.Snapshot, l event.Limit) float64 { return s.LimitSeconds[l] }),
		labelled(gauge, "bound_by", "1 for what most of the workers' time was lost to in the newest second in which rows moved.",
			func(s event.Snapshot, l event.Limit) float64 { return oneIf(l == s.BoundBy) }),
	}, socketFamilies(counter, gauge)...)
}

// socketFamilies are one series each.
func socketFamilies(counter, gauge prometheus.ValueType) []family {
	number := func(kind prometheus.ValueType, name, help string, value func(event.Sockets) float64) family {
		return family{
			desc: prometheus.NewDesc("terapush_tcp_"+name, help, nil, nil), kind: kind,
			values: func(s event.Snapshot, emit func(float64, ...string)) { emit(value(s.Sockets)) },
		}
	}
	return []family{
		number(gauge, "connections_open", "Connections that are open.",
			func(s event.Sockets) float64 { return float64(s.Open) }),
		number(counter, "connections_dialled_total", "Connections opened in this process.",
			func(s event.Sockets) float64 { return float64(s.Dialled) }),
		number(counter, "blocked_seconds_total", "Time in which writes waited for room in the send buffer, of all connections.",
			func(s event.Sockets) float64 { return s.Blocked }),
		number(counter, "awaited_seconds_total", "Time from the last byte of a question to the first of its answer, and of dialling, of all connections.",
			func(s event.Sockets) float64 { return s.Awaited }),
		number(counter, "round_trip_seconds_total", "Part of the awaited time that the way took: for every question the shortest round trip of its address.",
			func(s event.Sockets) float64 { return s.RoundTrips }),
		number(counter, "turns_total", "Questions that waited for an answer.",
			func(s event.Sockets) float64 { return float64(s.Turns) }),
		number(counter, "busy_seconds_total", "Time with data sent and not acknowledged, or to be sent, of all connections; 0 where the system does not tell.",
			func(s event.Sockets) float64 { return s.Busy }),
		number(counter, "rwnd_limited_seconds_total", "Part of the busy time in which the receiver's window was full.",
			func(s event.Sockets) float64 { return s.RwndLimited }),
		number(counter, "sndbuf_limited_seconds_total", "Part of the busy time in which the send buffer was too small.",
			func(s event.Sockets) float64 { return s.SndbufLimited }),
		number(counter, "retransmits_total", "Segments that were sent again.",
			func(s event.Sockets) float64 { return float64(s.Retransmits) }),
		number(counter, "segments_total", "Segments with data that were sent.",
			func(s event.Sockets) float64 { return float64(s.Segments) }),
		number(gauge, "rtt_seconds", "Mean smoothed round trip of the open connections.",
			func(s event.Sockets) float64 { return s.RTT }),
	}
}
