// Package report is what remains of a run: one JSON object for scripts and at most fifteen lines for people. It is
// made of numbers and plain strings and opens nothing.
//
// No secret can get in: the target's URL comes from loader.Target.String, which leaves out the password and parameters
// that may hold a secret, and no field takes a loader.Target or a configuration.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
)

// Schema names the JSON's form. Fields may be added under the same name.
const Schema = "terapush.report/v1"

// Outcome is how a run ended.
type Outcome string

// The outcomes. Where several apply the run has the one that its exit code belongs to.
const (
	OK                 Outcome = "ok"
	Failed             Outcome = "failed"   // and can be resumed
	Rejected           Outcome = "rejected" // finished, and the database took fewer rows than it was sent
	VerificationFailed Outcome = "verification_failed"
	Unknown            Outcome = "unknown" // of some batches it is not known whether they are in
	Interrupted        Outcome = "interrupted"
	PreflightFailed    Outcome = "preflight_failed" // no row was sent
)

// Report is one run. Bytes are bytes, times are seconds; every field is there in JSON even when it is 0 or empty.
type Report struct {
	Schema  string  `json:"schema"`
	Run     Run     `json:"run"`
	Target  Target  `json:"target"`
	Plan    Plan    `json:"plan"`
	Result  Result  `json:"result"`
	Phases  Phases  `json:"phases"`
	Rates   Rates   `json:"phase_rows_per_second"`
	Latency Latency `json:"latency"`
	Client  Client  `json:"client"`
	Stored  Stored  `json:"stored"`
	Cost    Cost    `json:"cost"`
	Verify  Verify  `json:"verify"`
	// WorkerSeconds is where the workers' time went, by event.State; all states are there.
	WorkerSeconds map[string]float64 `json:"worker_seconds"`
	Timeline      Timeline           `json:"timeline"`
	BoundBy       Bound              `json:"bound_by"`
	Price         Price              `json:"price"`

	Warnings []string `json:"warnings"`
}

// Run names the run.
type Run struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"` // of the first process of the run
	Resumed bool      `json:"resumed"` // this process went on with it
	// ResumedRows is the part of Result.Rows that earlier processes had acknowledged.
	ResumedRows int64 `json:"resumed_rows"`
	// Resumable reports that the run did not complete and can be resumed.
	Resumable bool `json:"resumable,omitempty"`
}

// Target is where the rows went.
type Target struct {
	Backend  string            `json:"backend"`
	URL      string            `json:"url"`      // loader.Target.String
	Via      string            `json:"via"`      // the object store of a staged method, likewise; "" without one
	Server   string            `json:"server"`   // product and version as the server reports it
	Endpoint string            `json:"endpoint"` // host:port, or a socket's path
	Table    string            `json:"table"`    // as the server knows it
	Settings map[string]string `json:"settings"` // those that decide durability and speed, and those of --set
}

// Plan is what was to be done, and how.
type Plan struct {
	Method       string  `json:"method"`
	Format       string  `json:"format"`
	Delivery     string  `json:"delivery"`
	Dataset      string  `json:"dataset"`
	Seed         uint64  `json:"seed"`
	Rows         int64   `json:"rows"` // 0 when the run's end was a time
	FirstKey     int64   `json:"first_key"`
	Workers      int     `json:"workers"`
	Buffers      int     `json:"buffers"`
	BatchRows    int64   `json:"batch_rows"`
	BatchBytes   int64   `json:"batch_bytes"`    // encoded
	GroupBatches int64   `json:"commit_batches"` // batches of a commit group; 0 when every batch is loaded by itself
	DistinctRows int64   `json:"distinct_rows"`  // 0 when every row is another
	Distinct     int64   `json:"distinct_bytes"` // column data of the distinct rows
	ZstdRatio    float64 `json:"payload_zstd_ratio"`
	MaxRate      int64   `json:"max_rate"` // encoded bytes a second; 0 is no limit

	Options map[string]string `json:"options"` // of the method, by loader.Option.Name: those that were given
}

// Result is what was done. Rows, Batches, PayloadBytes and EncodedBytes include what earlier processes of a resumed run
// had acknowledged; everything else is of this process.
type Result struct {
	Outcome      Outcome `json:"outcome"`
	Error        string  `json:"error"` // why it did not end well, without secrets
	Rows         int64   `json:"rows"`
	Batches      int64   `json:"batches"`
	PayloadBytes int64   `json:"payload_bytes"` // column data
	EncodedBytes int64   `json:"encoded_bytes"` // bodies
	WireBytes    int64   `json:"wire_bytes"`    // what the sockets took
	StoredBytes  int64   `json:"stored_bytes"`  // bodies put into the object store by this process

	// Seconds is the time of the phases stage, load, commit and finish: from the first row sent until the last is
	// visible to others. The rates are this process's acknowledged rows and payload over that.
	Seconds        float64 `json:"seconds"`
	RowsPerSecond  float64 `json:"rows_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`

	Attempts int64 `json:"attempts"`
	Retries  int64 `json:"retries"`
	Refills  int64 `json:"refills"`
	// Duplicates counts attempts that the database recognised as already applied, and for which it added nothing.
	Duplicates int64 `json:"duplicates"`
	Unknown    int64 `json:"unknown"`        // batches given up with an unknown outcome
	GivenUp    int64 `json:"failed_batches"` // batches given up that are certainly not in
	Missing    int64 `json:"missing_rows"`   // sent and not acknowledged by an answer that was otherwise good
	// Errors counts failed attempts by loader.Class; classes without any are left out. What ended the run outside of an
	// attempt, while the table was made or read, counts as one of its class where the database gave it one.
	Errors map[string]int64 `json:"errors"`
}

// Phases is how long each phase took in this process.
type Phases struct {
	Prepare float64 `json:"prepare"`
	Fill    float64 `json:"fill"`
	Load    float64 `json:"load"`
	Stage   float64 `json:"stage"`
	Commit  float64 `json:"commit"`
	Finish  float64 `json:"finish"`
	Verify  float64 `json:"verify"`
}

// Rates is rows per second of the phases in which rows move; 0 for phases that did not happen.
type Rates struct {
	Load  float64 `json:"load"`
	Stage float64 `json:"stage"` // into the object store
	// Commit is into the table, over the phases stage and commit: groups are committed while others are uploaded.
	Commit float64 `json:"commit"`
	Verify float64 `json:"verify"`
}

// Latency is how long batches took.
type Latency struct {
	// Loop is what is measured. In a closed loop a worker sends its next batch when it has the answer to the last:
	// service time at saturation, from handing a batch to its session. In an open loop, with --max-rate, it is the time
	// from when the rate wanted the batch to be sent, so that a stall of the server shows in all batches that it held up.
	Loop         Loop      `json:"loop"`
	BatchSeconds Quantiles `json:"batch_seconds"`
	// VisibleSeconds is the time from the last ack of this process until all rows were seen to be readable; 0 where an
	// ack implies that they are, and where the run did not wait for it.
	VisibleSeconds float64 `json:"visible_seconds"`
}

// Loop is how the sending of a batch depends on the answers to others.
type Loop string

// The loops.
const (
	Closed Loop = "closed"
	Open   Loop = "open"
)

// Timeline is a process of a run, moment by moment.
type Timeline struct {
	// Interval is the time between two moments of a phase: a second, and twice as much as often as it takes to stay
	// below 600 moments. At the beginning and the end of a phase it may be between half of that and one and a half,
	// and a phase that took less has one interval.
	Interval float64  `json:"interval_seconds"`
	Moments  []Moment `json:"moments"`
}

// Moment is how far a run was at the end of an interval, all of which is of one phase. The last one is the end of the
// run, whose phase is done: it comes at the time of the one before, and is no interval. Counts are of the whole
// process so far, without what earlier processes of a resumed run had acknowledged.
type Moment struct {
	At           float64 `json:"at"` // seconds since the process began
	Phase        string  `json:"phase"`
	Rows         int64   `json:"rows"`
	PayloadBytes int64   `json:"payload_bytes"`
	StoredBytes  int64   `json:"stored_bytes"` // put into the object store
	Retries      int64   `json:"retries"`
	BoundBy      string  `json:"bound_by"` // the event.Limit of the interval, as Bound.Verdict
}

// Quantiles of acknowledged attempts of this process, as stats.Quantiles.
type Quantiles struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// Client is what this process took of its machine while it pushed. The peak is that of the push where the system can
// reset it, as Linux can, and of the whole process elsewhere.
type Client struct {
	Cores         int     `json:"cores"`
	UserSeconds   float64 `json:"cpu_user_seconds"`
	SystemSeconds float64 `json:"cpu_system_seconds"`
	PeakRSSBytes  int64   `json:"peak_rss_bytes"`
	// LoadSeconds is the part of the CPU time, user and system, that was spent while rows moved: without the filling of
	// the buffers, and without verification.
	LoadSeconds float64 `json:"cpu_load_seconds"`
}

// Stored is the space of the table with its indexes, as the server counts it; 0 where the server does not report it.
type Stored struct {
	Bytes       int64   `json:"bytes"`
	BytesPerRow float64 `json:"bytes_per_row"`
}

// NewStored returns the space of a table with so many rows.
func NewStored(bytes, rows int64) Stored {
	return Stored{Bytes: bytes, BytesPerRow: ratio(float64(bytes), float64(rows))}
}

// Cost is what the sessions of this process have cost the server, as the server counts it; empty where it does not. A
// name ends with its unit, _bytes or _seconds, and has none when it counts. Known are
//
//	redo_bytes      written to the redo log
//	received_bytes  that came over the network
//	cpu_seconds     of the server's processes for these sessions
//	round_trips     questions that waited for an answer
//	commits         transactions that the sessions asked to commit
//
// A back-end may add others, so scripts look for the names that they know.
type Cost map[string]float64

// Verify is what the proof of arrival found.
type Verify struct {
	Mode         string `json:"mode"` // none, ack, count, full
	Ran          bool   `json:"ran"`  // to its end; else the numbers are 0
	OK           bool   `json:"ok"`   // it ran and found nothing wrong
	ExpectedRows int64  `json:"expected_rows"`
	FoundRows    int64  `json:"found_rows"`
	SampledRows  int64  `json:"sampled_rows"` // compared byte for byte
	// BadBatches lists the first of the bad batches, BadCount counts all.
	BadBatches []BadBatch `json:"bad_batches"`
	BadCount   int64      `json:"bad_count"`
	Problems   []string   `json:"problems"` // what belongs to no single batch, one sentence each
}

// BadBatch is a batch that the table does not hold as it was pushed.
type BadBatch struct {
	Number   int64  `json:"number"`
	FirstKey int64  `json:"first_key"`
	LastKey  int64  `json:"last_key"`
	Rows     int64  `json:"rows"` // sent
	Found    int64  `json:"found"`
	Reason   string `json:"reason"` // one word: "short", "doubled" …
	Detail   string `json:"detail"`
}

// Measure fills in all that was counted: Result except for Outcome and Error, Phases, Rates, Latency.BatchSeconds,
// WorkerSeconds, Client but for LoadSeconds, and Run.ResumedRows.
func (r *Report) Measure(s event.Snapshot, q stats.Quantiles, u stats.Usage) {
	r.Run.ResumedRows = s.ResumedRows
	seconds := func(p event.Phase) float64 { return s.PhaseSeconds[p] }
	r.Phases = Phases{
		Prepare: seconds(event.Prepare), Fill: seconds(event.Fill), Load: seconds(event.Load),
		Stage: seconds(event.Stage), Commit: seconds(event.Commit), Finish: seconds(event.Finish),
		Verify: seconds(event.Verify),
	}
	moving := r.Phases.Stage + r.Phases.Load + r.Phases.Commit + r.Phases.Finish
	now := float64(max(s.Rows-s.ResumedRows, 0)) // rows of earlier processes may have been taken back
	r.Rates = Rates{
		Load: ratio(now, r.Phases.Load), Stage: ratio(float64(s.StoredRows), r.Phases.Stage),
		Verify: ratio(float64(s.Verification.FoundRows), r.Phases.Verify),
	}
	if r.Phases.Stage > 0 {
		r.Rates.Commit = ratio(now, r.Phases.Stage+r.Phases.Commit)
	}
	outcome, why := r.Result.Outcome, r.Result.Error
	r.Result = Result{
		Outcome: outcome, Error: why,
		Rows: s.Rows, Batches: s.Batches, PayloadBytes: s.PayloadBytes, EncodedBytes: s.EncodedBytes, WireBytes: s.WireBytes,
		StoredBytes: s.StoredBytes,
		Seconds:     moving, RowsPerSecond: ratio(now, moving),
		BytesPerSecond: ratio(float64(max(s.PayloadBytes-s.ResumedBytes, 0)), moving),
		Attempts:       s.Attempts, Retries: s.Retries, Refills: s.Refills,
		Duplicates: s.Outcomes[event.Already], Unknown: s.UnknownBatches, GivenUp: s.FailedBatches, Missing: s.MissingRows,
		Errors: errorsByClass(s.Errors),
	}
	r.Latency.BatchSeconds = Quantiles(q)
	r.WorkerSeconds = secondsByState(s.WorkerSeconds)
	r.Client.Cores, r.Client.UserSeconds, r.Client.SystemSeconds, r.Client.PeakRSSBytes = u.Cores, u.UserSeconds, u.SystemSeconds, u.PeakRSSBytes
}

func errorsByClass(all map[loader.Class]int64) map[string]int64 {
	some := map[string]int64{}
	for class, n := range all {
		if n > 0 {
			some[string(class)] = n
		}
	}
	return some
}

func secondsByState(all map[event.State]float64) map[string]float64 {
	named := make(map[string]float64)
	for _, state := range event.States() {
		named[state.String()] = all[state]
	}
	return named
}

// NewTimeline converts what a stats.Timeline has collected.
func NewTimeline(interval float64, moments []stats.Moment) Timeline {
	t := Timeline{Interval: interval, Moments: make([]Moment, len(moments))}
	for i, m := range moments {
		t.Moments[i] = Moment(m)
	}
	return t
}

func ratio(n, by float64) float64 {
	if by <= 0 {
		return 0
	}
	return n / by
}

// Complete sets the schema, and makes lists and maps without entries [] and {} instead of null. It is called last before
// a report is stored.
func (r *Report) Complete() {
	r.Schema = Schema
	if r.Target.Settings == nil {
		r.Target.Settings = map[string]string{}
	}
	if r.Plan.Options == nil {
		r.Plan.Options = map[string]string{}
	}
	if r.Cost == nil {
		r.Cost = Cost{}
	}
	if r.Result.Errors == nil {
		r.Result.Errors = map[string]int64{}
	}
	if r.WorkerSeconds == nil {
		r.WorkerSeconds = secondsByState(nil)
	}
	r.BoundBy.complete()
	r.Price.Items = orEmpty(r.Price.Items)
	r.Timeline.Moments = orEmpty(r.Timeline.Moments)
	r.Verify.BadBatches = orEmpty(r.Verify.BadBatches)
	r.Verify.Problems = orEmpty(r.Verify.Problems)
	r.Warnings = orEmpty(r.Warnings)
}

// WriteJSON writes the report as one JSON object, complete.
func (r Report) WriteJSON(w io.Writer) error {
	r.Complete()
	if err := WriteJSON(w, r); err != nil {
		return fmt.Errorf("report: write JSON: %w", err)
	}
	return nil
}

// WriteJSON writes an object for people and scripts: indented, and without escapes for HTML, so that commands can be copied.
func WriteJSON(w io.Writer, object any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	out.SetEscapeHTML(false)
	return out.Encode(object)
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
