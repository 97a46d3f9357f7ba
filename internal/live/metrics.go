package live

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Info is the labels of the two info metrics. It never holds a table, a host or a user.
type Info struct {
	Version, Commit string // of terapush

	Run, Backend, Method, Format, Delivery string
}

// Metrics is a Prometheus collector of a run. It reads one snapshot a scrape and makes all series from that: nothing is
// counted twice, no two series of a scrape disagree, and every series is there from the first scrape on.
type Metrics struct {
	snapshot func() event.Snapshot
	constant []prometheus.Metric
	families []family
	duration *prometheus.Desc
}

// family is one metric with its values in a snapshot.
type family struct {
	desc   *prometheus.Desc
	kind   prometheus.ValueType
	values func(s event.Snapshot, emit func(value float64, labels ...string))
}

// NewMetrics returns the metrics of a run. Register them in a registry of their own.
func NewMetrics(info Info, snapshot func() event.Snapshot) *Metrics {
	return &Metrics{
		snapshot: snapshot,
		constant: []prometheus.Metric{
			constant("terapush_build_info", "The terapush that runs here; always 1.", prometheus.Labels{
				"version": info.Version, "commit": info.Commit,
			}),
			constant("terapush_run_info", "The run; always 1.", prometheus.Labels{
				"run": info.Run, "backend": info.Backend, "method": info.Method,
				"format": info.Format, "delivery": info.Delivery,
			}),
		},
		families: slices.Concat(plainFamilies(), labelledFamilies(), limitFamilies()),
		duration: prometheus.NewDesc("terapush_batch_duration_seconds",
			"Time from handing a batch to its session until the answer, or with --max-rate from when the rate wanted it to be sent, "+
				"for acknowledged attempts of this process.", nil, nil),
	}
}

func constant(name, help string, labels prometheus.Labels) prometheus.Metric {
	return prometheus.MustNewConstMetric(prometheus.NewDesc(name, help, nil, labels), prometheus.GaugeValue, 1)
}

// Describe sends the description of every metric.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.constant {
		out <- c.Desc()
	}
	for _, f := range m.families {
		out <- f.desc
	}
	out <- m.duration
}

// Collect sends the run as it is now.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	s := m.snapshot()
	for _, c := range m.constant {
		out <- c
	}
	for _, f := range m.families {
		f.values(s, func(value float64, labels ...string) {
			out <- prometheus.MustNewConstMetric(f.desc, f.kind, value, labels...)
		})
	}
	upTo := make(map[float64]uint64, len(s.BatchSeconds.Bounds))
	var n uint64
	for i, bound := range s.BatchSeconds.Bounds {
		n += uint64(s.BatchSeconds.Counts[i])
		upTo[bound] = n
	}
	out <- prometheus.MustNewConstHistogram(m.duration, uint64(s.BatchSeconds.Count()), s.BatchSeconds.Sum, upTo)
}

// plainFamilies are the metrics of one series each.
func plainFamilies() []family {
	var all []family
	add := func(kind prometheus.ValueType, name, help string, value func(event.Snapshot) float64) {
		all = append(all, family{
			desc: prometheus.NewDesc("terapush_"+name, help, nil, nil), kind: kind,
			values: func(s event.Snapshot, emit func(float64, ...string)) { emit(value(s)) },
		})
	}
	number := func(kind prometheus.ValueType, name, help string, value func(event.Snapshot) int64) {
		add(kind, name, help, func(s event.Snapshot) float64 { return float64(value(s)) })
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue

	number(counter, "rows_total", "Rows acknowledged, those of earlier processes of a resumed run included.",
		func(s event.Snapshot) int64 { return s.Rows })
	number(counter, "payload_bytes_total", "Column data of acknowledged batches, earlier processes included.",
		func(s event.Snapshot) int64 { return s.PayloadBytes })
	number(counter, "encoded_bytes_total", "Bodies of acknowledged batches, earlier processes included where known.",
		func(s event.Snapshot) int64 { return s.EncodedBytes })
	number(counter, "stored_rows_total", "Rows put into the object store on their way to the table, by this process; 0 for methods without one.",
		func(s event.Snapshot) int64 { return s.StoredRows })
	number(counter, "stored_bytes_total", "Bodies put into the object store on their way to the table, by this process; 0 for methods without one.",
		func(s event.Snapshot) int64 { return s.StoredBytes })
	number(counter, "wire_bytes_total", "Bytes the sockets took in this process.",
		func(s event.Snapshot) int64 { return s.WireBytes })
	number(counter, "retries_total", "Attempts after the first of a batch.",
		func(s event.Snapshot) int64 { return s.Retries })
	number(counter, "refills_total", "Buffers encoded afresh during the load.",
		func(s event.Snapshot) int64 { return s.Refills })
	number(counter, "missing_rows_total", "Rows sent and not acknowledged by an answer that was otherwise good.",
		func(s event.Snapshot) int64 { return s.MissingRows })

	number(gauge, "planned_rows", "Rows of the whole run; 0 when its end is a time.",
		func(s event.Snapshot) int64 { return s.PlannedRows })
	number(gauge, "planned_bytes", "Column data of the whole run; 0 when its end is a time.",
		func(s event.Snapshot) int64 { return s.PlannedBytes })
	number(gauge, "workers", "Workers.",
		func(s event.Snapshot) int64 { return int64(s.Workers) })
	number(gauge, "buffers", "Buffers of the ring.",
		func(s event.Snapshot) int64 { return int64(s.Buffers) })
	number(gauge, "buffers_free", "Buffers of the ring that nobody holds.",
		func(s event.Snapshot) int64 { return int64(s.BuffersFree) })
	number(gauge, "bytes_in_flight", "Bodies of the batches that workers hold.",
		func(s event.Snapshot) int64 { return s.BytesInFlight })
	add(gauge, "last_progress_timestamp_seconds",
		"Time of the newest acknowledgement; of the load's start before the first, 0 before that.",
		func(s event.Snapshot) float64 { return timestamp(s.LastProgress) })
	add(gauge, "verify_ok", "1 once the proof of arrival found exactly the rows of the run; 0 before that, without one, and when it failed.",
		func(s event.Snapshot) float64 { return oneIf(s.Verification.OK) })
	return all
}

// labelledFamilies are the metrics of one series per value of a bounded label.
func labelledFamilies() []family {
	var all []family
	add := func(kind prometheus.ValueType, name, label, help string, values func(event.Snapshot, func(float64, ...string))) {
		all = append(all, family{
			desc: prometheus.NewDesc("terapush_"+name, help, []string{label}, nil), kind: kind, values: values,
		})
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue

	add(counter, "batches_total", "result",
		"Batches by what became of them: acknowledged (applied, already in, resumed from an earlier process) or given up (failed, unknown).",
		func(s event.Snapshot, emit func(float64, ...string)) {
			emit(float64(s.AppliedBatches), "applied")
			emit(float64(s.AlreadyBatches), "already")
			emit(float64(s.ResumedBatches), "resumed")
			emit(float64(s.FailedBatches), "failed")
			emit(float64(s.UnknownBatches), "unknown")
		})
	add(counter, "attempts_total", "outcome", "Attempts by outcome.",
		func(s event.Snapshot, emit func(float64, ...string)) {
			for _, o := range event.Outcomes() {
				emit(float64(s.Outcomes[o]), string(o))
			}
		})
	add(counter, "errors_total", "class", "Failed attempts by class of the error.",
		func(s event.Snapshot, emit func(float64, ...string)) {
			for _, c := range loader.Classes() {
				emit(float64(s.Errors[c]), string(c))
			}
		})
	add(counter, "worker_seconds_total", "state", "Time of all workers by what they were doing, while rows moved.",
		func(s event.Snapshot, emit func(float64, ...string)) {
			for _, state := range event.States() {
				emit(s.WorkerSeconds[state], state.String())
			}
		})
	add(gauge, "phase", "phase", "1 for the phase the run is in.",
		func(s event.Snapshot, emit func(float64, ...string)) {
			for _, p := range append(event.Phases(), event.Done) {
				emit(oneIf(p == s.Phase), string(p))
			}
		})
	add(gauge, "verify_rows", "kind", "Rows that the proof of arrival expected and found; 0 before it ended.",
		func(s event.Snapshot, emit func(float64, ...string)) {
			emit(float64(s.Verification.ExpectedRows), "expected")
			emit(float64(s.Verification.FoundRows), "found")
		})
	return all
}

// limitFamilies are what kept the run from going faster, and what the sockets measured of that.
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

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func timestamp(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return float64(t.UnixMilli()) / 1000
}
