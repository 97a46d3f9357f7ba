package config

import (
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Defaults that other packages show, too.
const (
	DefaultPayload  = Bytes(1 << 30)
	DefaultDistinct = Bytes(1 << 30)
	DefaultRetries  = 8
	DefaultRetryFor = 10 * time.Minute
)

// The groups of --help, in its order.
const (
	GroupWhat       = "What"
	GroupHowMuch    = "How much"
	GroupHowFast    = "How fast"
	GroupSafety     = "Safety"
	GroupRuns       = "Runs"
	GroupConnection = "Connection"
	GroupOutput     = "Output"
	GroupGlobal     = "Global"
	GroupMethods    = "Methods" // options of methods, which terapush help methods lists
)

// Groups lists the groups that --help shows.
func Groups() []string {
	return []string{GroupWhat, GroupHowMuch, GroupHowFast, GroupSafety, GroupRuns, GroupConnection, GroupOutput, GroupGlobal}
}

// groupKey is the annotation that holds a flag's group.
const groupKey = "group"

// GroupOf returns the group of a flag, "" if it has none.
func GroupOf(flag *pflag.Flag) string { return strings.Join(flag.Annotations[groupKey], "") }

// Group adds the flags that declare declares, all in one group.
func Group(f *pflag.FlagSet, group string, declare func(*pflag.FlagSet)) {
	part := pflag.NewFlagSet(group, pflag.ContinueOnError)
	part.SortFlags = false
	declare(part)
	part.VisitAll(func(flag *pflag.Flag) { annotate(flag, groupKey, group) })
	f.AddFlagSet(part)
}

func annotate(flag *pflag.Flag, key, value string) {
	if flag.Annotations == nil {
		flag.Annotations = map[string][]string{}
	}
	flag.Annotations[key] = []string{value}
}

// Flags declares every flag of push, including those of the drivers' methods, and sets the defaults.
func (p *Push) Flags(f *pflag.FlagSet, drivers *loader.Registry) {
	Group(f, GroupWhat, p.what)
	Group(f, GroupHowMuch, p.howMuch)
	Group(f, GroupHowFast, p.howFast)
	Group(f, GroupSafety, p.safety)
	Group(f, GroupRuns, p.runs)
	Group(f, GroupConnection, p.connection)
	Group(f, GroupOutput, p.output)
	Group(f, GroupMethods, func(f *pflag.FlagSet) { p.methodOptions(f, drivers) })
	f.SortFlags = false
}

func (p *Push) what(f *pflag.FlagSet) {
	f.StringVarP(&p.Method, "method", "m", "", "way into the database (default: the target's first; see terapush list methods)")
	f.StringVarP(&p.Table, "table", "t", "", "table to fill, as name or schema.name (default: the dataset's name)")
	f.StringVar(&p.Dataset, "dataset", "documents", "rows to push (see terapush list datasets)")
	f.StringVar(&p.Format, "format", "", "format on the wire (default: the method's best)")
	f.Var(&p.Staging, "staging", "object store for methods that stage objects first, s3://bucket/prefix")
	f.Var(Payload(&p.PayloadBytes, dataset.DefaultPayloadBytes), "payload-bytes", "payload of a row in bytes, 1 to 1048576")
	f.Var(newChoice(&p.PayloadKind, string(dataset.Bytes), string(dataset.Text)), "payload-kind", "what a payload consists of")
	f.Var(Count(&p.Seed, 1), "seed", "seed of the rows; the same seed gives the same rows")
	p.DistinctBytes.Bytes = DefaultDistinct
	f.Var(&p.DistinctBytes, "distinct-bytes", "column data to generate before it repeats under new keys, or all")
	f.BoolVar(&p.PrimaryKey, "primary-key", false, "make the key column a primary key")
	f.BoolVar(&p.SyncSequences, "sync-sequences", false,
		"after the load move the sequence or identity of the key column behind the run's keys, which are not its own")
}

func (p *Push) howMuch(f *pflag.FlagSet) {
	f.VarP(Count(&p.Rows, 0), "rows", "n", "rows to push")
	f.VarP(&p.Bytes, "bytes", "b", "column data to push (default 1GiB)")
	f.Var(Duration(&p.Duration, 0), "duration", "push for this long")
	f.Var(Duration(&p.WarmUp, 0), "warm-up", "push for this long before rates, latencies and CPU count; --duration begins after it")
	f.Var(&p.FirstKey, "first-key", "key of the first row")
	f.BoolVar(&p.Append, "append", false, "add to a table that has rows, from --first-key or else after its largest key")
}

func (p *Push) howFast(f *pflag.FlagSet) {
	f.VarP(Count(&p.Workers, 0), "workers", "w", "connections in parallel (default: two a core, or more if the network is faster)")
	f.Var(Count(&p.BatchRows, 0), "batch-rows", "rows of a batch, the unit of work and retry")
	f.Var(&p.BatchBytes, "batch-bytes", "encoded bytes of a batch (default: the method's, but at least four batches a worker)")
	f.Var(Count(&p.CommitBatches, 0), "commit-batches", "staged batches to commit at once (default: the method's, but at least four groups)")
	f.Var(&p.Memory, "memory", "memory for all buffers (default: a quarter of the machine's or the cgroup's)")
	f.Var(&p.MaxRate, "max-rate", "limit of encoded bytes per second, such as 500MiB/s or 5Gbps (open loop)")
}

func (p *Push) safety(f *pflag.FlagSet) {
	f.Var(newChoice(&p.Delivery, string(loader.DeliveryAuto), string(loader.ExactlyOnce), string(loader.AtLeastOnce)), "delivery",
		"auto: the method's best; exactly-once: fail rather than give a weaker guarantee; at-least-once: send the load alone")
	f.Var(newChoice(&p.Create, string(loader.CreateIfMissing), string(loader.CreateNever), string(loader.CreateRecreate), string(loader.CreateTruncate)), "create",
		"when to create the table; recreate drops it first, truncate empties it and keeps its indexes")
	f.StringVar(&p.AllowDrop, "allow-drop", "", "name of a table that --create may drop or empty although terapush did not create it")
	f.Var(newChoice(&p.Verify, string(verify.Count), string(verify.None), string(verify.Ack), string(verify.Full)), "verify",
		"ack compares acknowledgements, count scans the table, full also compares rows byte for byte")
	f.Var(Count(&p.VerifyRows, verify.DefaultVerifyRows), "verify-rows", "rows that --verify full reads back and compares")
	f.Var(Count(&p.VerifyWorkers, 0), "verify-workers", "connections for the verification (default: as many as --workers)")
	f.Var(Count(&p.Retries, DefaultRetries), "retries", "retries of a batch, and of each question to the database")
	f.Var(Duration(&p.RetryFor, DefaultRetryFor), "retry-for", "time to wait for a server that is away; 0: only --retries counts")
	f.Var(Duration(&p.BatchTimeout, 0), "batch-timeout", "timeout of one attempt (default: 20 times the slowest so far, at least 2m)")
}

func (p *Push) runs(f *pflag.FlagSet) {
	f.StringVar(&p.Resume, "resume", "", "resume a run: its id, the beginning of its id, or last; takes over the run's flags")
	f.StringVar(&p.RunID, "run-id", "", "name for a run of several processes, all with the same flags")
	f.Var(&p.Shard, "shard", "part of a named run, 0/8 to 7/8; auto on Kubernetes, AWS Batch, Cloud Run and Slurm")
	f.Var(&p.StartAt, "start-at", "fill the buffers, then send nothing before this time, such as 2026-11-23T18:00:00Z")
	f.StringVar(&p.State, "state-dir", "", "folder of the journals, or s3://bucket/prefix for named runs (default: the user's state folder)")
}

func (p *Push) connection(f *pflag.FlagSet) {
	p.Connect.flags(f)
	f.Var(&p.Set, "set", "session variable as `name=value`, such as synchronous_commit=off; repeatable")
}

func (p *Push) output(f *pflag.FlagSet) {
	f.Var(newChoice(&p.Progress, "auto", "bar", "plain", "json", "none"), "progress",
		"progress on stderr; auto is a bar on a terminal, else a line every 10s")
	f.BoolVar(&p.JSON, "json", false, "print the report as one JSON object")
	f.BoolVar(&p.DryRun, "dry-run", false, "print statements, batches and memory, and connect to nothing")
	f.StringVar(&p.MetricsAddr, "metrics-addr", "", "serve /metrics and /healthz on this address during the run, such as :9099")
	f.Var(Duration(&p.MetricsLinger, 0), "metrics-linger", "keep serving for this long after the run, so that the last scrape is not lost")
	f.Var(&p.ServerMetrics, "server-metrics", "metrics of the server's machine, to report its CPU; repeatable")
	f.Var(&p.FailBelow, "fail-below", "exit with 6 if the payload per second is below this, such as 500MiB/s")
	f.StringVar(&p.Report, "report", "", "also write the results with charts, without names, to this HTML file")
	f.StringVar(&p.ReportTo, "report-to", "", "also keep the JSON report in this folder or s3://bucket/prefix, for report merge")
}

// flags declares how to connect.
func (c *Connect) flags(f *pflag.FlagSet) {
	f.StringVar(&c.PasswordFile, "password-file", "", "file with the password (default: "+passwordVariable+", the URL, the client's own files)")
	f.Var(newChoice(&c.TLS, "auto", string(loader.TLSOff), string(loader.TLSPrefer), string(loader.TLSRequire), string(loader.TLSVerifyCA), string(loader.TLSVerify)), "tls",
		"auto: as the URL says, else prefer on this machine and verify elsewhere; verify-ca: not the host name")
	f.StringVar(&c.Trust.CAFile, "tls-ca", "", "PEM file with certificate authorities to trust; the server is verified, whatever --tls")
	f.StringVar(&c.Trust.CertFile, "tls-cert", "", "PEM file with the client's certificate")
	f.StringVar(&c.Trust.KeyFile, "tls-key", "", "PEM file with the client's key")
	f.StringVar(&c.Trust.ServerName, "tls-server-name", "", "name in the server's certificate, if the URL has another")
}

// methodOptions declares the options of all methods of all drivers. Several methods may share a name.
func (p *Push) methodOptions(f *pflag.FlagSet, drivers *loader.Registry) {
	p.Options = make(map[string]string)
	for _, d := range drivers.Drivers() {
		for _, m := range d.Methods() {
			for _, o := range m.Options {
				if f.Lookup(o.Name) == nil {
					flag := f.VarPF(&optionValue{into: p.Options, option: o}, o.Name, "", o.Help)
					if o.Kind == loader.BoolOption {
						flag.NoOptDefVal = "true"
					}
				}
			}
		}
	}
}

// Formats lists the values of --format.
func Formats() []string {
	var names []string
	for _, f := range batch.Formats() {
		names = append(names, string(f))
	}
	return names
}
