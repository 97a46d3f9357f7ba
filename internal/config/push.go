// Package config reads flags, the environment and a file, in this order of precedence, into one struct, and plans a run
// in numbers. It opens no connection.
package config

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// Push is the configuration of a push. Zero values mean the defaults in --help.
type Push struct {
	Target  string  // the URL
	Staging Staging // the object store of a staged method
	Method  string
	Options map[string]string // of the method, by name; only those given
	Dataset string
	Table   string
	Format  string

	// Rows, Bytes (of column data) and Duration exclude each other.
	Rows     int64
	Bytes    Bytes
	Duration time.Duration // after WarmUp
	WarmUp   time.Duration // whose rows are not measured

	PayloadBytes  int
	PayloadKind   string
	DistinctBytes DistinctBytes
	Seed          uint64
	FirstKey      FirstKey
	Append        bool
	PrimaryKey    bool
	SyncSequences bool

	Workers       int
	BatchRows     int64
	BatchBytes    Bytes
	CommitBatches int64 // of a commit group
	Memory        Bytes
	MaxRate       Rate
	Retries       int
	RetryFor      time.Duration
	StartAt       Time // the first batch waits for it
	BatchTimeout  time.Duration

	Delivery   string
	Create     string
	AllowDrop  string
	Verify     string
	VerifyRows int
	// VerifyWorkers is 0 for as many as Workers.
	VerifyWorkers int
	Set           Settings

	Connect Connect
	State   string // the state folder
	Resume  string // the id of a run
	RunID   string // a name for the run; "" is an id of its own
	Shard   Shard  // the part of a named run that this process sends
	Shared  string // where its processes keep their journals, s3://bucket/prefix: --state-dir, with State on this machine

	Progress      string
	JSON          bool
	DryRun        bool
	MetricsAddr   string
	MetricsLinger time.Duration
	ServerMetrics ServerMetrics
	FailBelow     Rate   // of payload
	Report        string // an HTML file
	ReportTo      string // a folder, or s3://bucket/prefix
}

// Validate returns everything that is wrong at once.
func (p *Push) Validate() error {
	var problems []error
	refuse := func(wrong bool, format string, args ...any) {
		if wrong {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}

	problems = append(problems, known("dataset", p.Dataset, dataset.Names()))
	refuse(p.PayloadBytes < 1 || p.PayloadBytes > dataset.MaxPayloadBytes,
		"--payload-bytes %d: a payload has 1 to %d bytes", p.PayloadBytes, dataset.MaxPayloadBytes)
	refuse(p.Rows > 0 && p.Bytes > 0 || p.Duration > 0 && (p.Rows > 0 || p.Bytes > 0),
		"--rows, --bytes and --duration exclude each other")
	refuse(p.FirstKey.Key < 0, "--first-key %d: a key cannot be negative", p.FirstKey.Key)
	refuse(p.Append && !p.FirstKey.Given && p.Duration > 0,
		"--append with --duration needs --first-key, since the number of keys is not known")

	problems = append(problems, p.Staging.err)
	refuse(strings.ContainsAny(p.Table, ",;"), "--table %q: a push fills one table; start one push for each", p.Table)

	if p.Format != "" {
		problems = append(problems, known("format", p.Format, Formats()))
	}
	refuse(p.BatchRows > 0 && p.BatchBytes > 0, "--batch-rows and --batch-bytes exclude each other")
	refuse(p.CommitBatches < 0, "--commit-batches %d: at least 1", p.CommitBatches)

	refuse(p.Workers < 0 || p.Workers > 4096, "--workers %d: 1 to 4096", p.Workers)
	refuse(p.Retries < 0, "--retries %d: 0 or more", p.Retries)

	problems = append(problems, known("verify mode", p.Verify, verify.Modes()))
	refuse(p.VerifyRows < 1, "--verify-rows %d: at least 1", p.VerifyRows)
	refuse(p.VerifyWorkers < 0 || p.VerifyWorkers > 4096, "--verify-workers %d: 1 to 4096", p.VerifyWorkers)

	refuse(p.Shared != "" && p.RunID == "" && !IsRunName(p.Resume),
		"--state-dir %s keeps runs that have a name: give --run-id as well, or a folder", p.Shared)
	refuse(p.RunID == "" && !p.Shard.Whole(), "--shard %s: its processes find each other by --run-id NAME", &p.Shard)
	refuse(p.RunID != "" && !IsRunName(p.RunID),
		"--run-id %q: a name has at most 40 characters of a-z, 0-9 and -, begins with a letter, "+
			"does not contain -of- and is not %s", p.RunID, LastRun)

	problems = append(problems, p.ServerMetrics.err)
	refuse(p.MetricsLinger > 0 && p.MetricsAddr == "", "--metrics-linger needs --metrics-addr")

	refuse(p.Rows < 0 || p.BatchRows < 0, "a number of rows cannot be negative")
	refuse(p.Duration < 0 || p.WarmUp < 0 || p.BatchTimeout < 0 || p.RetryFor < 0 || p.MetricsLinger < 0,
		"a duration cannot be negative")
	refuse(p.Append && (p.Create == string(loader.CreateRecreate) || p.Create == string(loader.CreateTruncate)),
		"--append and --create %s contradict each other", p.Create)
	refuse(p.RunID != "" && p.Duration > 0, "--run-id: a run by --duration has no number of rows; give --rows or --bytes")

	return errors.Join(problems...)
}

// LastRun stands for the newest run of a state folder, wherever a run is named.
const LastRun = "last"

// IsRunName reports whether a user may give a run this name. Connections and folders are named after it; no id that
// terapush makes is one, nor the folder of a shard.
func IsRunName(name string) bool {
	return runName.MatchString(name) && !strings.Contains(name, "-of-") && name != LastRun
}

var runName = regexp.MustCompile(`^[a-z][0-9a-z-]{0,39}$`)
