package config

import (
	"fmt"
	"time"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Defaults that other packages show, too.
const (
	DefaultPayload    = Bytes(1 << 30)
	DefaultDistinct   = Bytes(1 << 30)
	DefaultVerifyRows = 10_000
	DefaultRetries    = 8
	DefaultRetryFor   = 10 * time.Minute
)

// SetHelp is the help of --set.
const SetHelp = "set a session variable, name=value, repeatable: synchronous_commit=off, unique_checks=0 … " +
	"(on MariaDB unique_checks=0 together with foreign_key_checks=0 locks an empty table for the first loader and misreports counts)"

// Flags declares every flag of push, including those of the drivers' methods, and sets the defaults.
func (p *Push) Flags(f *pflag.FlagSet, drivers *loader.Registry) {
	p.what(f)
	p.howMuch(f)
	p.howFast(f)
	p.safety(f)
	p.output(f)
	p.Connect.Flags(f)
	p.methodOptions(f, drivers)
}

func (p *Push) what(f *pflag.FlagSet) {
	f.StringVar(&p.Method, "method", "", "way into the database (default: the target's first; see terapush list methods)")
	f.Var(&p.Via, "via", "object store that a staged method puts its objects into, s3://bucket/prefix (keys as AWS's own tools find them)")
	f.StringVar(&p.Dataset, "dataset", "documents", "rows to push (see terapush list datasets)")
	f.StringVar(&p.Table, "table", "", "table to fill, name or schema.name (default: the dataset's name)")
	f.StringVar(&p.Format, "format", "", "format on the wire (default: the best the method takes)")
	f.IntVar(&p.PayloadBytes, "payload-bytes", dataset.DefaultPayloadBytes, "length of a row's payload, 1 to 1048576")
	f.Var(newChoice(&p.PayloadKind, string(dataset.Bytes), string(dataset.Text)), "payload-kind", "what a payload is made of")
	f.Uint64Var(&p.Seed, "seed", 1, "seed of the rows: the same seed gives the same rows")
	p.DistinctBytes.Bytes = DefaultDistinct
	f.Var(&p.DistinctBytes, "distinct-bytes", "column data that is drawn before it repeats under new keys, or all")
}

func (p *Push) howMuch(f *pflag.FlagSet) {
	f.Int64Var(&p.Rows, "rows", 0, "rows to push")
	f.Var(&p.Bytes, "bytes", "column data to push (default 1GiB)")
	f.DurationVar(&p.Duration, "duration", 0, "push for this long")
	f.Var(&p.FirstKey, "first-key", "key of the first row")
	f.BoolVar(&p.Append, "append", false, "add to a table that has rows: after its largest key, or in a free range from --first-key (required for doris and databend)")
}

func (p *Push) howFast(f *pflag.FlagSet) {
	f.IntVar(&p.Workers, "workers", 0, "connections that load at the same time (default: two a core, 4 to 64, "+
		"and at least as many as fill the network link where its speed is known: 40 at 50Gbps, 105 into an object store)")
	f.Int64Var(&p.BatchRows, "batch-rows", 0, "rows of a batch, the unit of work and retry")
	f.Var(&p.BatchBytes, "batch-bytes", "encoded bytes of a batch (default: the method's, but at least four batches a worker)")
	f.Int64Var(&p.CommitBatches, "commit-batches", 0, "stored batches that a staged method commits at once (default: the method's, but at least four groups)")
	f.Var(&p.Memory, "memory", "memory of all buffers (default: a quarter of the machine's or the cgroup's)")
	f.Var(&p.MaxRate, "max-rate", "encoded bytes a second, 500MiB/s or 5Gbps, on average since the first batch, "+
		"so that a stall is made up for; latency counts from when a batch was due (open loop)")
}

func (p *Push) safety(f *pflag.FlagSet) {
	f.Var(newChoice(&p.Delivery, string(loader.DeliveryAuto), string(loader.ExactlyOnce), string(loader.AtLeastOnce)), "delivery",
		"guarantee: the best the method can give, or refuse without exactly-once, or send nothing but the load")
	f.Var(newChoice(&p.Create, string(loader.CreateIfMissing), string(loader.CreateNever), string(loader.CreateRecreate), string(loader.CreateTruncate)), "create",
		"what to do with the table: recreate drops it first, truncate empties it and keeps its indexes")
	f.StringVar(&p.YesDrop, "yes-drop", "", "name of a table that --create recreate or truncate may drop or empty, although terapush did not make it")
	f.BoolVar(&p.PrimaryKey, "primary-key", false, "make the key a primary key")
	f.Var(newChoice(&p.Verify, "count", "none", "ack", "full"), "verify",
		"proof of arrival: ack compares acknowledgements, count scans the table once, full twice, or once if an index finds rows")
	f.IntVar(&p.VerifyRows, "verify-rows", DefaultVerifyRows, "rows that --verify full reads back and compares byte for byte")
	f.IntVar(&p.VerifyWorkers, "verify-workers", 0, "connections over which the proof counts a table that can be split (default: as many as --workers)")
	f.IntVar(&p.Retries, "retries", DefaultRetries, "attempts after the first for each batch, and for each question to the database")
	f.DurationVar(&p.RetryFor, "retry-for", DefaultRetryFor, "time to wait for a server that is away, without one acknowledgement; 0: --retries holds")
	f.DurationVar(&p.BatchTimeout, "batch-timeout", 0, "time for one attempt (default: 20 times the slowest so far, at least 2m)")
	f.StringVar(&p.Resume, "resume", "", "resume this run: flags that are not given are taken from it")
	f.StringVar(&p.RunID, "run-id", "", "name of the run, begun or gone on with: its processes, on any machine, have the same flags")
	f.Var(&p.Shard, "shard", "part of the run that this process sends, 0/8 to 7/8; auto as Kubernetes, AWS Batch, Cloud Run or Slurm number it")
	f.StringVar(&p.State, "state-dir", "", "folder of the runs' journals (default: the user's state folder)")
	f.StringArrayVar(&p.Set, "set", nil, SetHelp)
}

func (p *Push) output(f *pflag.FlagSet) {
	f.Var(newChoice(&p.Progress, "auto", "bar", "plain", "json", "none"), "progress",
		"how to show progress on stderr: a bar on a terminal, else a line every 10s")
	f.BoolVar(&p.JSON, "json", false, "print the report as one JSON object instead of the summary")
	f.BoolVar(&p.DryRun, "dry-run", false, "print statements, batches and memory, and connect to nothing")
	f.StringVar(&p.MetricsAddr, "metrics-addr", "", "serve /metrics and /healthz here while the run goes, for example :9099")
	f.DurationVar(&p.MetricsLinger, "metrics-linger", 0, "keep serving for this long after the end, so that the last scrape is not lost")
	f.Var(&p.ServerMetrics, "server-metrics", "metrics of the server's machine, repeatable: the report shows its CPU beside the client's "+
		"(node_exporter's http://host:9100/metrics, a Doris backend's http://host:8040/metrics, others with process_cpu_seconds_total)")
	f.StringVar(&p.Prices, "prices", "", "YAML file of prices, for the cost of the run in the report and in --dry-run")
}

// Flags declares how to connect.
func (c *Connect) Flags(f *pflag.FlagSet) {
	f.StringVar(&c.PasswordFile, "password-file", "", "file with the password (else "+passwordVariable+", the URL, or the database's own client files)")
	f.Var(newChoice(&c.TLS, "auto", string(loader.TLSOff), string(loader.TLSPrefer), string(loader.TLSRequire), string(loader.TLSVerify)), "tls",
		"auto: as the URL says, else preferred on this machine and verified elsewhere; for oracle:// the URL alone decides")
	f.StringVar(&c.Trust.CAFile, "tls-ca", "", "PEM file of authorities to trust")
	f.StringVar(&c.Trust.CertFile, "tls-cert", "", "PEM file of the client's certificate")
	f.StringVar(&c.Trust.KeyFile, "tls-key", "", "PEM file of the client's key")
	f.StringVar(&c.Trust.ServerName, "tls-server-name", "", "name the server's certificate is for, where the URL has another")
}

// methodOptions declares the options of all methods of all drivers. Several methods may share a name.
func (p *Push) methodOptions(f *pflag.FlagSet, drivers *loader.Registry) {
	p.Options = make(map[string]string)
	for _, d := range drivers.Drivers() {
		for _, m := range d.Methods() {
			for _, o := range m.Options {
				if f.Lookup(o.Name) == nil {
					flag := f.VarPF(&optionValue{into: p.Options, option: o}, o.Name, "", fmt.Sprintf("%s (%s %s)", o.Help, d.Name(), m.Name))
					if o.Kind == loader.BoolOption {
						flag.NoOptDefVal = "true"
					}
				}
			}
		}
	}
}

// formats lists the names of --format.
func formats() []string {
	var names []string
	for _, f := range batch.Formats() {
		names = append(names, string(f))
	}
	return names
}
