package live

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Info is the labels of the two info metrics. It never holds a table, a host or a user.
type Info struct {
	Version, Commit string // of terapush

	Run, Backend, Method, Format, Delivery string

	Shard string // as 2/8; "" of a run by one process
}

// Metrics is a Prometheus collector of a run. All series of a scrape come from one snapshot, so they agree with each
// other, and every series exists from the first scrape on.
type Metrics struct {
	info     Info
	snapshot func() event.Snapshot
}

// NewMetrics returns the metrics of a run. Register them in a registry of their own.
func NewMetrics(info Info, snapshot func() event.Snapshot) *Metrics { return &Metrics{info, snapshot} }

// Describe sends the description of every metric.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(m, out) }

// Collect sends the metrics of one snapshot.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	constant := func(name, help string, labels prometheus.Labels) {
		desc := prometheus.NewDesc("terapush_"+name, help, nil, labels)
		out <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, 1)
	}
	constant("build_info", "The terapush that runs here; always 1.",
		prometheus.Labels{"version": m.info.Version, "commit": m.info.Commit})
	constant("run_info", "The run; always 1.", prometheus.Labels{
		"run": m.info.Run, "shard": m.info.Shard, "backend": m.info.Backend, "method": m.info.Method,
		"format": m.info.Format, "delivery": m.info.Delivery,
	})
	s := m.snapshot()
	emit(out).run(s)
	emit(out).labelled(s)
	emit(out).sockets(s.Sockets)

	upTo := make(map[float64]uint64, len(s.BatchSeconds.Bounds))
	var n uint64
	for i, bound := range s.BatchSeconds.Bounds {
		n += uint64(s.BatchSeconds.Counts[i])
		upTo[bound] = n
	}
	duration := prometheus.NewDesc("terapush_batch_duration_seconds",
		"Time from handing a batch to its session until the answer, or with --max-rate from when the rate wanted it "+
			"to be sent, for acknowledged attempts of this process.", nil, nil)
	out <- prometheus.MustNewConstHistogram(duration, uint64(s.BatchSeconds.Count()), s.BatchSeconds.Sum, upTo)
}

// emit sends series.
type emit chan<- prometheus.Metric

// number sends a series, with the name and the value of its label if it has one. A metric whose name ends with _total
// is a counter, any other a gauge.
func (e emit) number(name, help string, value float64, label ...string) {
	var labels, values []string
	if len(label) == 2 {
		labels, values = label[:1], label[1:]
	}
	kind := prometheus.GaugeValue
	if strings.HasSuffix(name, "_total") {
		kind = prometheus.CounterValue
	}
	e <- prometheus.MustNewConstMetric(prometheus.NewDesc("terapush_"+name, help, labels, nil), kind, value, values...)
}

func (e emit) count(name, help string, value int64) { e.number(name, help, float64(value)) }

// run sends the metrics of one series.
func (e emit) run(s event.Snapshot) {
	e.count("rows_total", "Rows acknowledged, those of earlier processes of a resumed run included.", s.Rows)
	e.count("payload_bytes_total", "Column data of acknowledged batches, earlier processes included.", s.PayloadBytes)
	e.count("encoded_bytes_total",
		"Bodies of acknowledged batches, earlier processes included where known.", s.EncodedBytes)
	e.count("stored_rows_total", "Rows put into the object store on their way to the table, by this process; "+
		"0 for methods without one.", s.StoredRows)
	e.count("stored_bytes_total", "Bodies put into the object store on their way to the table, by this process; "+
		"0 for methods without one.", s.StoredBytes)
	e.count("wire_bytes_total", "Bytes the sockets took in this process.", s.WireBytes)
	e.count("retries_total", "Attempts after the first of a batch.", s.Retries)
	e.count("refills_total", "Buffers encoded afresh during the load.", s.Refills)
	e.count("missing_rows_total", "Rows sent and not acknowledged by an answer that was otherwise good.", s.MissingRows)
	e.count("planned_rows", "Rows of the whole run; 0 when its end is a time.", s.PlannedRows)
	e.count("planned_bytes", "Column data of the whole run; 0 when its end is a time.", s.PlannedBytes)
	e.count("workers", "Workers.", int64(s.Workers))
	e.count("buffers", "Buffers of the ring.", int64(s.Buffers))
	e.count("buffers_free", "Free buffers of the ring.", int64(s.BuffersFree))
	e.count("bytes_in_flight", "Bodies of the batches that workers hold.", s.BytesInFlight)
	e.number("last_progress_timestamp_seconds",
		"Time of the newest acknowledgement; of the load's start before the first, 0 before that.", timestamp(s.LastProgress))
	e.number("verify_ok", "1 once the proof of arrival found exactly the rows of the run; "+
		"0 before that, without one, and when it failed.", oneIf(s.Verification.OK))
}

// labelled sends the metrics of one series per value of a bounded label.
func (e emit) labelled(s event.Snapshot) {
	for _, b := range []struct {
		result string
		n      int64
	}{
		{"applied", s.AppliedBatches}, {"already", s.AlreadyBatches}, {"resumed", s.ResumedBatches},
		{"failed", s.FailedBatches}, {"unknown", s.UnknownBatches},
	} {
		const help = "Batches by what became of them: acknowledged (applied, already in, resumed from an earlier process) " +
			"or given up (failed, unknown)."
		e.number("batches_total", help, float64(b.n), "result", b.result)
	}
	for _, o := range event.Outcomes() {
		e.number("attempts_total", "Attempts by outcome.", float64(s.Outcomes[o]), "outcome", string(o))
	}
	for _, c := range loader.Classes() {
		e.number("errors_total", "Failed attempts by class of the error.", float64(s.Errors[c]), "class", string(c))
	}
	for _, state := range event.States() {
		e.number("worker_seconds_total", "Time of all workers by what they were doing, while rows moved.",
			s.WorkerSeconds[state], "state", state.String())
	}
	for _, p := range append(event.Phases(), event.Done) {
		e.number("phase", "1 for the phase the run is in.", oneIf(p == s.Phase), "phase", string(p))
	}
	const proof = "Rows that the proof of arrival expected and found; 0 before it ended."
	e.number("verify_rows", proof, float64(s.Verification.ExpectedRows), "kind", "expected")
	e.number("verify_rows", proof, float64(s.Verification.FoundRows), "kind", "found")
	for _, l := range event.Limits() {
		e.number("limit_seconds_total", "Worker-seconds by bottleneck, while rows moved.",
			s.LimitSeconds[l], "limit", string(l))
		e.number("bound_by", "1 for the bottleneck of the newest second in which rows moved, 0 for the others.",
			oneIf(l == s.BoundBy), "limit", string(l))
	}
}

// sockets sends what the sockets measured.
func (e emit) sockets(s event.Sockets) {
	e.count("tcp_connections_open", "Connections that are open.", s.Open)
	e.count("tcp_connections_dialled_total", "Connections opened in this process.", s.Dialled)
	e.number("tcp_blocked_seconds_total",
		"Time in which writes waited for room in the send buffer, of all connections.", s.Blocked)
	e.number("tcp_awaited_seconds_total",
		"Time from the last byte of a question to the first of its answer, and of dialling, of all connections.", s.Awaited)
	e.number("tcp_round_trip_seconds_total", "Part of the awaited time that the way took: "+
		"for every question the shortest round trip of its address.", s.RoundTrips)
	e.count("tcp_turns_total", "Questions that waited for an answer.", s.Turns)
	e.number("tcp_busy_seconds_total", "Time with data sent and not acknowledged, or to be sent, of all connections; "+
		"0 where the system does not tell.", s.Busy)
	e.number("tcp_rwnd_limited_seconds_total",
		"Part of the busy time in which the receiver's window was full.", s.RwndLimited)
	e.number("tcp_sndbuf_limited_seconds_total",
		"Part of the busy time in which the send buffer was too small.", s.SndbufLimited)
	e.count("tcp_retransmits_total", "Segments that were sent again.", s.Retransmits)
	e.count("tcp_segments_total", "Segments with data that were sent.", s.Segments)
	e.number("tcp_rtt_seconds", "Mean smoothed round trip of the open connections.", s.RTT)
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
