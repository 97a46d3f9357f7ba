// Package report is the result of a run: one JSON object for scripts, and at most fifteen lines for people.
//
// It holds no secret: the target's URL comes from loader.Target.String, which leaves out the password and secret
// parameters, and no field takes a loader.Target or a configuration.
package report

import (
	"math"
	"time"
)

// Schema names the JSON's form. Fields may be added under the same name.
const Schema = "terapush.report/v1"

// Outcome is how a run ended.
type Outcome string

// The outcomes. If several apply, push.OutcomeOf chooses.
const (
	OK                 Outcome = "ok"
	Failed             Outcome = "failed"   // and can be resumed
	Rejected           Outcome = "rejected" // complete, but the database took fewer rows than it was sent
	VerificationFailed Outcome = "verification_failed"
	Unknown            Outcome = "unknown" // some batches may be in or not
	Interrupted        Outcome = "interrupted"
	TakenOver          Outcome = "taken_over"       // another process has the run
	PreflightFailed    Outcome = "preflight_failed" // no row was sent
)

// Report is one run. Times are seconds. JSON has every field, even if it is 0 or empty.
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
	// WorkerSeconds is the workers' time by event.State, with all states.
	WorkerSeconds map[string]float64 `json:"worker_seconds"`
	Timeline      Timeline           `json:"timeline"`
	BoundBy       Bound              `json:"bound_by"`
	Measured      *Measured          `json:"measured,omitempty"` // of a push with a warm-up
	Merged        *Merged            `json:"merged,omitempty"`   // of a report that Merge has made

	Warnings []string `json:"warnings"`
}

// Measured is what a push did after its warm-up. The rates, Latency.BatchSeconds and Histogram, WorkerSeconds, BoundBy
// and Client.LoadSeconds are of it; all other numbers are of the whole push.
type Measured struct {
	From         float64 `json:"from"` // as Moment.At
	Seconds      float64 `json:"seconds"`
	Rows         int64   `json:"rows"` // acknowledged in it; 0 if the push ended within its warm-up
	PayloadBytes int64   `json:"payload_bytes"`
}

// Unmeasured reports whether the push ended within its warm-up.
func (r *Report) Unmeasured() bool { return r != nil && r.Measured != nil && r.Measured.Rows == 0 }

// Run names the run.
type Run struct {
	ID      string    `json:"id"`
	Started time.Time `json:"started"` // of the first process of the run
	// ProcessStarted is of this process, which Timeline counts from.
	ProcessStarted time.Time `json:"process_started"`
	Resumed        bool      `json:"resumed"` // by this process
	// ResumedRows is the part of Result.Rows that earlier processes acknowledged.
	ResumedRows int64 `json:"resumed_rows"`
	// Flags are what the user chose for the run, by flag, as the record of the run has them.
	Flags map[string][]string `json:"flags,omitempty"`
	// Resumable reports whether the run is incomplete and can be resumed.
	Resumable bool `json:"resumable,omitempty"`
	// Shard is the part of the run that this process sent, if others sent the rest. Result is of the part, Plan of the
	// run.
	Shard *Shard `json:"shard,omitempty"`
}

// OnOneMachine reports whether the connections did not leave the client's machine, so that the server ran on its cores,
// too.
func (r Report) OnOneMachine() bool {
	const loopback, darwins = "lo", "lo0"
	nic := r.BoundBy.Evidence.NIC
	return r.Result.WireBytes > 0 && (nic == loopback || nic == darwins)
}

// Shard is a part of a run.
type Shard struct {
	Index    int64 `json:"index"` // from 0
	Count    int64 `json:"count"`
	FirstKey int64 `json:"first_key"`
	Rows     int64 `json:"rows"`
}

// Target is where the rows went.
type Target struct {
	Backend  string            `json:"backend"`
	URL      string            `json:"url"`      // loader.Target.String
	Via      string            `json:"via"`      // the object store of a staged method; "" without one
	Server   string            `json:"server"`   // product and version as the server reports it
	Endpoint string            `json:"endpoint"` // host:port, or a socket's path
	Table    string            `json:"table"`    // as the server knows it
	Settings map[string]string `json:"settings"` // that decide durability and speed, and those of --set
}

// Plan is what the run was to do.
type Plan struct {
	Method       string  `json:"method"`
	Format       string  `json:"format"`
	Delivery     string  `json:"delivery"`
	Dataset      string  `json:"dataset"`
	Seed         uint64  `json:"seed"`
	Rows         int64   `json:"rows"` // 0 for a run by duration
	FirstKey     int64   `json:"first_key"`
	Workers      int     `json:"workers"`
	Buffers      int     `json:"buffers"`
	BatchRows    int64   `json:"batch_rows"`
	BatchBytes   int64   `json:"batch_bytes"`    // encoded
	GroupBatches int64   `json:"commit_batches"` // batches of a commit group; 0: not staged
	DistinctRows int64   `json:"distinct_rows"`  // 0: all
	Distinct     int64   `json:"distinct_bytes"` // column data of the distinct rows
	ZstdRatio    float64 `json:"payload_zstd_ratio"`
	MaxRate      int64   `json:"max_rate"` // encoded bytes a second; 0: no limit
	// Files is of a load; then Dataset is "files", and Rows are 0 until the files have ended.
	Files *Files `json:"files,omitempty"`

	Options map[string]string `json:"options"` // of the method that were given, by loader.Option.Name
}

// Files are the user's files.
type Files struct {
	Paths  []string `json:"paths"`
	Bytes  int64    `json:"bytes"` // as stored, of all; 0 is not known
	Format string   `json:"format"`
	// Labels reports whether batches are recognized by labels: then none goes in without a bad record of it.
	Labels bool `json:"labels"`
	// Digest is the same for the same files, cut into the same batches, wherever they are.
	Digest string `json:"digest"`
}

// DistinctOf returns how many of the run's rows are distinct, and their column data. DistinctRows are whole batches and
// may be more: the last batch is short, or a run by duration ended before the first row repeats. rows is 0 if not
// known.
func (p Plan) DistinctOf(rows int64) (distinct, bytes int64) {
	if rows == 0 || rows >= p.DistinctRows {
		return p.DistinctRows, p.Distinct
	}
	return rows, int64(float64(p.Distinct) / float64(p.DistinctRows) * float64(rows))
}

// Result is what the run did. Rows, Batches, PayloadBytes and EncodedBytes include those of earlier processes of a
// resumed run; everything else is this process's.
type Result struct {
	Outcome      Outcome `json:"outcome"`
	Error        string  `json:"error"` // without secrets
	Rows         int64   `json:"rows"`
	Batches      int64   `json:"batches"`
	PayloadBytes int64   `json:"payload_bytes"` // column data
	EncodedBytes int64   `json:"encoded_bytes"` // bodies
	WireBytes    int64   `json:"wire_bytes"`    // what the sockets took
	StoredBytes  int64   `json:"stored_bytes"`  // bodies put into the object store

	// Seconds is the time of the phases stage, load, commit and finish: from the first row sent until the last is visible
	// to others. The rates are acknowledged rows and payload over that, or over Measured.
	Seconds        float64 `json:"seconds"`
	RowsPerSecond  float64 `json:"rows_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"`

	Tries
}

// Tries is how often this process tried batches, and what went wrong.
type Tries struct {
	Attempts int64 `json:"attempts"`
	Retries  int64 `json:"retries"`
	Refills  int64 `json:"refills"`
	// Duplicates counts attempts that the database recognised as applied before.
	Duplicates int64 `json:"duplicates"`
	Unknown    int64 `json:"unknown"`        // batches given up with an unknown outcome
	GivenUp    int64 `json:"failed_batches"` // batches given up that are not in
	Missing    int64 `json:"missing_rows"`   // sent, but not counted by a successful answer
	// Errors counts failed attempts by loader.Class, without zeros. An error of the database that ended the run outside of
	// an attempt counts as one.
	Errors map[string]int64 `json:"errors"`
	// Failures lists the first hundred failed attempts, of each shard in a merged report.
	Failures []Failure `json:"failures"`
}

// Failure is an attempt that failed.
type Failure struct {
	At      time.Time `json:"at"` // when the attempt began
	Batch   int64     `json:"batch"`
	Members int64     `json:"members,omitempty"` // batches of the commit group that begins with Batch
	Attempt int       `json:"attempt"`
	Class   string    `json:"class"`
	Error   string    `json:"error"`
}

// Phases are the times of the phases in this process.
type Phases struct {
	Prepare float64 `json:"prepare"`
	Fill    float64 `json:"fill"`
	Load    float64 `json:"load"`
	Stage   float64 `json:"stage"`
	Commit  float64 `json:"commit"`
	Finish  float64 `json:"finish"`
	Verify  float64 `json:"verify"`
}

// Rates are rows per second by phase; 0 for phases that did not happen.
type Rates struct {
	Load  float64 `json:"load"`
	Stage float64 `json:"stage"` // into the object store
	// Commit is over the phases stage and commit, since groups are committed while others are uploaded.
	Commit float64 `json:"commit"`
	Verify float64 `json:"verify"`
}

// Latency is how long batches took.
type Latency struct {
	// In a closed loop a worker sends a batch when it has the answer to the last, and BatchSeconds is the time from the
	// start of the attempt. In an open loop, with --max-rate, it is the time since the batch was due, so that a stall of
	// the server shows in all batches that it delayed.
	Loop         Loop      `json:"loop"`
	BatchSeconds Quantiles `json:"batch_seconds"`
	// Histogram has all of them in microseconds, as HdrHistogram's libraries write it: version 2, compressed, in
	// base64. "" if no row moved.
	Histogram string `json:"histogram,omitempty"`
	// VisibleSeconds is the time from the last ack until all rows were visible; 0 if acks imply that they are, or the run
	// did not wait.
	VisibleSeconds float64 `json:"visible_seconds"`
}

// Loop is how the sending of a batch depends on the answers to others.
type Loop string

// The loops.
const (
	Closed Loop = "closed"
	Open   Loop = "open"
)

// Timeline is the progress of a process over time.
type Timeline struct {
	// Interval is the time between two moments of a phase: a second, doubled until there are fewer than 600 moments. The
	// first and last of a phase are between half and one and a half of that long; a shorter phase has one interval.
	Interval float64  `json:"interval_seconds"`
	Moments  []Moment `json:"moments"`
}

// Moment is the progress of this process at the end of an interval, which lies within one phase. The last moment is the
// end of the run, in phase done, at the time of the one before.
type Moment struct {
	At           float64 `json:"at"` // seconds since the process began
	Phase        string  `json:"phase"`
	Rows         int64   `json:"rows"`
	PayloadBytes int64   `json:"payload_bytes"`
	StoredBytes  int64   `json:"stored_bytes"` // put into the object store
	Retries      int64   `json:"retries"`
	BoundBy      string  `json:"bound_by"` // the interval's event.Limit, as Bound.Verdict
}

// Quantiles are those of the acknowledged attempts of this process. Of too few a quantile is the largest of them, and
// Has reports which are more than that.
type Quantiles struct {
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p999"`
	Max  float64 `json:"max"`

	Count int64 `json:"count"` // of the attempts
}

// Has reports whether a quantile, such as 0.99, of count values says more than that it is the largest of them.
func Has(quantile float64, count int64) bool {
	return math.Ceil(quantile*float64(count)) < float64(count)
}

// Client is the machine's resources that the push used. The peak is the push's on Linux, the process's elsewhere.
type Client struct {
	Cores         int     `json:"cores"`
	UserSeconds   float64 `json:"cpu_user_seconds"`
	SystemSeconds float64 `json:"cpu_system_seconds"`
	PeakRSSBytes  int64   `json:"peak_rss_bytes"`
	// LoadSeconds is the CPU time, user and system, of the load: without filling buffers and verification.
	LoadSeconds float64 `json:"cpu_load_seconds"`
	// Host, Machine and MachineCores say which processes of a run shared cores. A container has a host name of its own,
	// and Machine, if known, is the same in all containers of a machine, until it is booted again. MachineCores are all
	// of the machine's, of which Cores may be used; 0 is not known.
	Host         string `json:"host"`
	Machine      string `json:"machine"`
	MachineCores int    `json:"machine_cores"`
}

// Stored is the size of the table with its indexes, as the server counts it; 0 if it does not.
type Stored struct {
	Bytes       int64   `json:"bytes"`
	BytesPerRow float64 `json:"bytes_per_row"`
}

// NewStored returns the size of a table with a number of rows.
func NewStored(bytes, rows int64) Stored {
	return Stored{Bytes: bytes, BytesPerRow: ratio(float64(bytes), float64(rows))}
}

// Cost is what this process's sessions cost the server, as the server counts it; empty if it does not. Names end with
// their unit, _bytes or _seconds, or have none if they count. Known are
//
//	redo_bytes      written to the redo log
//	received_bytes  over the network
//	cpu_seconds     of the server's processes for these sessions
//	round_trips     of the sessions
//	commits         that the sessions asked for
//	wal_files       of the write-ahead logs of Doris' backends, when the run is over
//
// A back-end may add others.
type Cost map[string]float64

// Verify is the result of verification.
type Verify struct {
	Mode         string `json:"mode"` // none, ack, count, full
	Ran          bool   `json:"ran"`  // else the numbers are 0
	OK           bool   `json:"ok"`   // it ran and found nothing wrong
	ExpectedRows int64  `json:"expected_rows"`
	FoundRows    int64  `json:"found_rows"`
	SampledRows  int64  `json:"sampled_rows"` // compared byte for byte
	// NotCompared lists the columns of which only NULLs were compared, with their types: what only the server can compare.
	NotCompared []string `json:"not_compared,omitempty"`
	// BadBatches lists the first of the bad batches, BadCount counts all.
	BadBatches []BadBatch `json:"bad_batches"`
	BadCount   int64      `json:"bad_count"`
	Problems   []string   `json:"problems"` // that belong to no single batch, one sentence each
	// Files is of a load, whose records have no keys: they are counted.
	Files *VerifiedFiles `json:"files,omitempty"`
}

// VerifiedFiles are the numbers that a load's proof compares. All of them are of the whole run.
type VerifiedFiles struct {
	Records      int64 `json:"records"`  // in the files
	Rejected     int64 `json:"rejected"` // by the server, and left out
	Acknowledged int64 `json:"acknowledged"`
	Claimed      int64 `json:"claimed"` // by rows of the claim table, which were committed with the records
	Labels       bool  `json:"labels"`  // there are no claims: the server remembers a label of every batch
	// RowsBefore and RowsAfter are those of the table, of mode count.
	RowsBefore int64 `json:"rows_before"`
	RowsAfter  int64 `json:"rows_after"`
}

// BadBatch is a batch that the table does not hold as it was pushed.
type BadBatch struct {
	Number   int64  `json:"number"`
	FirstKey int64  `json:"first_key"` // numbers of rows
	LastKey  int64  `json:"last_key"`
	Keys     string `json:"keys,omitempty"` // of the table, as id 1 to 500
	Rows     int64  `json:"rows"`           // sent
	Found    int64  `json:"found"`
	Reason   string `json:"reason"` // a verify.Reason
	Detail   string `json:"detail"`
}
