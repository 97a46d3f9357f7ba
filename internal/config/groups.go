package config

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/experiments"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/file"
	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// problems are what is wrong with a configuration.
type problems []error

func (p *problems) refuse(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

// add adds an error, or nothing if it is nil.
func (p *problems) add(err error) { *p = append(*p, err) }

func (p *problems) join() error { return errors.Join(*p...) }

// Data is which rows, and how many: every byte of them, unless --append takes the first key from the table.
type Data struct {
	Dataset    string        // a built-in one, or the file of a spec
	Parameters Settings      // of the spec
	Own        *dataset.Spec // the user's dataset, once ReadSpec, its table or a run's record has it; nil for a built-in one
	// Tables are those of a file of several, in place of Own. Who takes such files makes of each a Data with its Own.
	Tables        *dataset.Tables
	Like          string // the table that Own is made for, in place of Dataset
	LikeTable     loader.TableName
	Stats         bool // rows of Like imitate its statistics
	KeepValues    bool // texts of common values among them
	Seed          uint64
	PayloadBytes  int           // of a row
	PayloadKind   string        // a dataset.Kind
	DistinctBytes DistinctBytes // of column data, before it repeats under new keys

	// Rows, Bytes and Duration exclude each other. All are 0 for DefaultPayload.
	Rows     int64
	Bytes    Bytes         // of column data
	Duration time.Duration // after WarmUp
	Times    Times         // of the rows that a file of several tables says

	FirstKey FirstKey
	Append   bool // to a table that has rows, behind its largest key unless FirstKey is given
}

// RowFlags defines the flags that, with the dataset, decide every byte of a row.
func (d *Data) RowFlags(f *pflag.FlagSet) {
	f.Var(&d.Parameters, "param", "parameter of the file of --dataset as `name=value`; repeatable")
	f.Var(Count(&d.Seed, 1), "seed", "seed of the rows; the same seed gives the same rows")
	f.Var(Payload(&d.PayloadBytes, dataset.DefaultPayloadBytes), "payload-bytes",
		"payload of a row in bytes, 1 to 1048576")
	f.Var(newChoice(&d.PayloadKind, string(dataset.Bytes), string(dataset.Text)), "payload-kind",
		"what a payload consists of")
}

func (d *Data) flags(f *pflag.FlagSet) {
	f.StringVar(&d.Dataset, "dataset", "documents", "rows to push: a built-in dataset (see terapush list datasets), or a file.yaml of your own")
	f.StringVar(&d.Like, "like", "",
		"make rows for this table, as inspect describes it, and fill it, or the copy of it that --table names; "+
			"with the file of --dataset, only make a missing table like this one; with --stats like its values")
	f.BoolVar(&d.Stats, "stats", false,
		"imitate the server's statistics of the --like table: NULLs, common values, bounds, lengths; of texts, only lengths")
	f.BoolVar(&d.KeepValues, "keep-values", false, "with --stats, copy the texts of common values")
	d.RowFlags(f)
	d.DistinctBytes.Bytes = DefaultDistinct
	f.Var(&d.DistinctBytes, "distinct-bytes", "column data to generate before it repeats under new keys, or all")

	f.VarP(Count(&d.Rows, 0), "rows", "n", "rows to push")
	f.VarP(&d.Bytes, "bytes", "b", "column data to push (default 1GiB)")
	f.Var(Duration(&d.Duration, 0), "duration", "push for this long")
	f.Var(&d.Times, "times", "multiply the rows of a file with several tables, such as by 0.1")
	f.Var(&d.FirstKey, "first-key", "number of the first row, which determines its key")
	f.BoolVar(&d.Append, "append", false,
		"add to a table that has rows, from --first-key or else after its largest key")
}

// ReadSpec reads the file of the user's dataset into Own; of a built-in one it only checks that it has no parameters.
// Who reads flags calls it once they are complete, so that a file is read once. What --like reads is not its business:
// that takes a connection.
func (d *Data) ReadSpec() error {
	if d.Stats && !d.RowsOfLike() || d.KeepValues && !d.Stats {
		return errors.New("--stats is for --like TABLE without a file of --dataset, and --keep-values for --stats")
	}
	payload := d.PayloadBytes != dataset.DefaultPayloadBytes || d.PayloadKind != string(dataset.Bytes)
	if d.RowsOfLike() {
		if isYAML(d.Like) {
			return fmt.Errorf("--like %s: the name of a table belongs here; a file is --dataset %[1]s", d.Like)
		}
		if payload || len(d.Parameters) > 0 {
			return errors.New("--payload-bytes, --payload-kind and --param are not for --like: the table says what its columns are; " +
				"terapush inspect writes them into a file, which may have parameters")
		}
		return nil
	}
	if !IsFile(d.Dataset) {
		if len(d.Parameters) > 0 {
			return fmt.Errorf("--param %s: dataset %s is built in and has no parameters", d.Parameters[0].Name, d.Dataset)
		}
		return nil
	}
	if payload {
		return errors.New("--payload-bytes and --payload-kind are for dataset documents: the file of --dataset says how long its columns are")
	}

	path, table := cutTable(d.Dataset)
	text, err := readDataset(path)
	if err != nil {
		return fmt.Errorf("--dataset: %w", err)
	}
	parameters := make(map[string]string)
	for _, p := range d.Parameters {
		parameters[p.Name] = p.Value
	}
	switch {
	case dataset.HasTables(text):
		return d.readTables(path, table, text, parameters)
	case table != "":
		return fmt.Errorf("--dataset %s: the file is of one table: leave out #%s", d.Dataset, table)
	}
	d.Own, err = dataset.ParseSpec(path, text, parameters)
	return err
}

// RowsOfLike reports whether rows are made for the table of --like. With a file only the table is made like it.
func (d *Data) RowsOfLike() bool { return d.Like != "" && !IsFile(d.Dataset) }

// readTables reads a file of several tables, of which a name may choose one, with the rows that the file says.
func (d *Data) readTables(path, table string, text []byte, parameters map[string]string) error {
	scale := dataset.Scale{Rows: d.Rows, Times: float64(d.Times)}
	if table != "" {
		scale = dataset.Scale{}
	}
	all, err := dataset.ParseTables(path, text, parameters, scale)
	if err != nil || table == "" {
		d.Tables = all
		return err
	}

	one, err := all.Find(table)
	d.Own = one.Spec
	return err
}

// cutTable divides file.yaml#table.
func cutTable(name string) (path, table string) {
	at := strings.LastIndexByte(name, '#')
	if at < 0 || !IsFile(name[:at]) {
		return name, ""
	}
	return name[:at], name[at+1:]
}

// presetDataset begins the name of a dataset of the presets.
const presetDataset = "preset:"

// readDataset reads a file, or one that comes with the presets.
func readDataset(name string) ([]byte, error) {
	if own, is := strings.CutPrefix(name, presetDataset); is {
		return fs.ReadFile(experiments.Files(), "datasets/"+own)
	}
	return file.Read(name, file.MaxSettings)
}

// DatasetIn returns the dataset of a plan in a folder, whose files are relative to it.
func DatasetIn(folder, name string) string {
	if !IsFile(name) || strings.HasPrefix(name, presetDataset) || filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(folder, name)
}

// IsFile reports whether a dataset is named by the path of a file.
func IsFile(name string) bool {
	name, _, _ = strings.Cut(name, "#")
	return strings.ContainsAny(name, `/\`) || isYAML(name)
}

func isYAML(name string) bool {
	return strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml")
}

func (d *Data) validate(p *problems) {
	switch {
	case d.Tables != nil:
		p.add(fmt.Errorf("--dataset %s has %d tables, and this takes one: name it, as --dataset %s#%s; push, verify and preview take all",
			d.Dataset, len(d.Tables.Tables), d.Dataset, d.Tables.Tables[0].Name))
	case d.Own != nil:
	case d.Like != "":
		p.add(fmt.Errorf("--like %s is for push and doctor: write the table with terapush inspect, and give the file as --dataset", d.Like))
	default:
		if err := known("dataset", d.Dataset, dataset.Names()); err != nil {
			p.add(fmt.Errorf("%w; for a table that exists write --like %s, for a file of your own its path", err, d.Dataset))
		}
	}
	p.refuse(d.PayloadBytes < 1 || d.PayloadBytes > dataset.MaxPayloadBytes,
		"--payload-bytes %d: a payload has 1 to %d bytes", d.PayloadBytes, dataset.MaxPayloadBytes)
	p.refuse(d.Times > 0 && d.Tables == nil, "--times is for a file of several tables, whose rows it says: give --rows")
	p.refuse(d.Rows > 0 && d.Bytes > 0 || d.Duration > 0 && (d.Rows > 0 || d.Bytes > 0),
		"--rows, --bytes and --duration exclude each other")
	p.refuse(d.FirstKey.Key < 0, "--first-key %d: a key cannot be negative", d.FirstKey.Key)
	p.refuse(d.Append && !d.FirstKey.Given && d.Own != nil && d.Own.UUIDKey(),
		"--append with a uuid as the key needs --first-key: other programs' UUIDs end in any number, so the largest tells nothing")
	p.refuse(d.Append && !d.FirstKey.Given && d.Duration > 0,
		"--append with --duration needs --first-key, since the number of keys is not known")
}

// Database is which database, and the way into it.
type Database struct {
	Target  string            // the URL
	Method  string            // "": the target's first
	Options map[string]string // of the method, by name; only those given
	Staging Staging           // the object store of a staged method
	Set     Settings          // session variables
	Connect Connect
}

func (d *Database) flags(f *pflag.FlagSet) {
	f.StringVarP(&d.Method, "method", "m", "",
		"way into the database (default: the target's first; see terapush list methods)")
	f.Var(&d.Staging, "staging", "object store for methods that stage objects first, s3://bucket/prefix")
	f.Var(&d.Set, "set", "session variable as `name=value`, such as synchronous_commit=off; repeatable")
	d.Connect.flags(f)
}

// optionFlags declares the options of all methods of all drivers. Several methods may share a name.
func (d *Database) optionFlags(f *pflag.FlagSet, drivers *loader.Registry) {
	d.Options = make(map[string]string)
	for _, driver := range drivers.Drivers() {
		for _, m := range driver.Methods() {
			for _, o := range m.Options {
				if f.Lookup(o.Name) != nil {
					continue
				}

				flag := f.VarPF(&optionValue{into: d.Options, option: o}, o.Name, "", o.Help)
				if o.Kind == loader.BoolOption {
					flag.NoOptDefVal = "true"
				}
			}
		}
	}
}

func (d *Database) validate(p *problems) { p.add(d.Staging.err) }

// Destination is the table, and what may be done to it.
type Destination struct {
	Table         string // name or schema.name; "": the dataset's name
	Create        string // a loader.CreateMode
	AllowDrop     string // a table that Create may drop or empty although terapush did not make it
	PrimaryKey    OnOff  // whether a table that is made has keys; not given: as the dataset says
	SyncSequences bool   // after the load
}

func (d *Destination) flags(f *pflag.FlagSet) {
	f.StringVarP(&d.Table, "table", "t", "", "table to fill, as name or schema.name (default: the dataset's name)")
	modes := []string{
		string(loader.CreateIfMissing), string(loader.CreateNever), string(loader.CreateRecreate),
		string(loader.CreateTruncate),
	}
	f.Var(newChoice(&d.Create, modes...), "create",
		"when to create the table; recreate drops it first, truncate empties it and keeps its indexes")
	f.StringVar(&d.AllowDrop, "allow-drop", "",
		"name of a table that --create may drop or empty although terapush did not create it")
	f.VarPF(&d.PrimaryKey, "primary-key", "",
		"make the key column of a built-in dataset a primary key; a file has keys of its own, which =false leaves out").NoOptDefVal = "true"
	f.BoolVar(&d.SyncSequences, "sync-sequences", false,
		"after the load, advance the sequence or identity of the key column past the run's keys")
}

func (d *Destination) validate(p *problems) {
	p.refuse(isYAML(d.Table), "--table %s: the name of a table belongs here; a dataset's file is --dataset %[1]s", d.Table)
	p.refuse(strings.ContainsAny(d.Table, ",;"), "--table %q: name one table; several are described by one file, for --dataset", d.Table)
}

// Batches is what batches are like, and what is guaranteed of them. What is zero is left to the method.
type Batches struct {
	Format string // one of Formats
	// BatchRows and BatchBytes exclude each other.
	BatchRows     int64
	BatchBytes    Bytes  // encoded
	CommitBatches int64  // of a commit group
	Delivery      string // a loader.Delivery
}

func (b *Batches) flags(f *pflag.FlagSet) {
	f.StringVar(&b.Format, "format", "", "format on the wire (default: the method's best)")
	f.Var(Count(&b.BatchRows, 0), "batch-rows", "rows of a batch, the unit of work and retry")
	f.Var(&b.BatchBytes, "batch-bytes",
		"encoded bytes of a batch (default: the method's, but at least four batches per worker)")
	f.Var(Count(&b.CommitBatches, 0), "commit-batches",
		"staged batches to commit at once (default: the method's, but at least four groups)")
	deliveries := []string{string(loader.DeliveryAuto), string(loader.ExactlyOnce), string(loader.AtLeastOnce)}
	f.Var(newChoice(&b.Delivery, deliveries...), "delivery",
		"auto: the method's best; exactly-once: fail rather than give a weaker guarantee; at-least-once: send only the load")
}

func (b *Batches) validate(p *problems) {
	if b.Format != "" {
		p.add(known("format", b.Format, Formats()))
	}
	p.refuse(b.BatchRows > 0 && b.BatchBytes > 0, "--batch-rows and --batch-bytes exclude each other")
	p.refuse(b.CommitBatches < 0, "--commit-batches %d: at least 1", b.CommitBatches)
}

// Pace is what this process may use, and how fast it may be. No row and no batch of a named run depends on it.
type Pace struct {
	Workers int   // connections, up to maxWorkers; 0: as the machine's cores and network can use
	Memory  Bytes // of all buffers; 0: a quarter of the machine's
	MaxRate Rate  // of encoded bytes; 0: none
	WarmUp  time.Duration
}

// maxWorkers bounds the connections of one process.
const maxWorkers = 4096

func (c *Pace) flags(f *pflag.FlagSet) {
	f.VarP(Count(&c.Workers, 0), "workers", "w",
		"connections in parallel (default: two per core, or more for a fast network)")
	f.Var(&c.Memory, "memory", "memory for all buffers (default: a quarter of the machine's or the cgroup's)")
	f.Var(&c.MaxRate, "max-rate", "limit of encoded bytes per second, such as 500MiB/s or 5Gbps (open loop)")
	f.Var(Duration(&c.WarmUp, 0), "warm-up",
		"push for this long before measuring rates, latencies and CPU; --duration begins after it")
}

func (c *Pace) validate(p *problems) {
	p.refuse(c.Workers < 0 || c.Workers > maxWorkers, "--workers %d: 1 to %d", c.Workers, maxWorkers)
}

// Patience is how long a failing server is waited for, and asked again.
type Patience struct {
	Retries      int           // of a batch, and of each question
	RetryFor     time.Duration // for a server that is away; 0: only Retries counts
	BatchTimeout time.Duration // of one attempt; 0: a multiple of the slowest so far
}

func (c *Patience) flags(f *pflag.FlagSet) {
	f.Var(Count(&c.Retries, DefaultRetries), "retries", "retries of a batch, and of each query")
	f.Var(Duration(&c.RetryFor, DefaultRetryFor), "retry-for",
		"time to wait for a server that is away; 0: only --retries counts")
	f.Var(Duration(&c.BatchTimeout, 0), "batch-timeout",
		"timeout of one attempt (default: 20 times the slowest so far, at least 2m)")
}

func (c *Patience) validate(p *problems) {
	p.refuse(c.Retries < 0, "--retries %d: 0 or more", c.Retries)
}

// Proof is how the rows are proven to have arrived.
type Proof struct {
	Verify        string // a verify.Mode
	VerifyRows    int    // that are read back and compared
	VerifyWorkers int    // connections, up to maxWorkers; 0: as many as loaded
}

func (c *Proof) flags(f *pflag.FlagSet) {
	modes := []string{string(verify.Count), string(verify.None), string(verify.Ack), string(verify.Full)}
	f.Var(newChoice(&c.Verify, modes...), "verify",
		"ack compares acknowledgements, count scans the table, full also compares rows byte for byte")
	f.Var(Count(&c.VerifyRows, verify.DefaultVerifyRows), "verify-rows", "rows that --verify full reads back and compares")
	f.Var(Count(&c.VerifyWorkers, 0), "verify-workers",
		"connections for the verification (default: as many as --workers)")
}

func (c *Proof) validate(p *problems) {
	p.add(known("verify mode", c.Verify, verify.Modes()))
	p.refuse(c.VerifyRows < 1, "--verify-rows %d: at least 1", c.VerifyRows)
	p.refuse(c.VerifyWorkers < 0 || c.VerifyWorkers > maxWorkers,
		"--verify-workers %d: 1 to %d", c.VerifyWorkers, maxWorkers)
}

// Run is which run this process works on, which part of it, and where the run is kept.
type Run struct {
	Resume  string // the id of a run
	RunID   string // a name for the run; "" is an id of its own
	Shard   Shard  // the part of a named run that this process sends
	StartAt Time   // the first batch waits for it

	State string // the state folder
	// Shared is where the processes of a named run keep their journals, s3://bucket/prefix: --state-dir, with State on
	// this machine.
	Shared string
}

func (r *Run) flags(f *pflag.FlagSet) {
	f.StringVar(&r.Resume, "resume", "",
		"resume a run: its id, the beginning of its id, or last; takes over the run's flags")
	f.StringVar(&r.RunID, "run-id", "", "name for a run of several processes, all with the same flags")
	f.Var(&r.Shard, "shard", "part of a named run, 0/8 to 7/8; auto on Kubernetes, AWS Batch, Cloud Run and Slurm")
	f.Var(&r.StartAt, "start-at", "fill the buffers, then send nothing before this time, such as 2026-11-23T18:00:00Z")
	f.StringVar(&r.State, "state-dir", "",
		"folder of the journals, or s3://bucket/prefix for named runs (default: the user's state folder)")
}

func (r *Run) validate(p *problems) {
	p.refuse(r.Shared != "" && r.RunID == "" && !IsRunName(r.Resume),
		"--state-dir %s keeps runs that have a name: give --run-id as well, or a folder", r.Shared)
	p.refuse(r.RunID != "" && !IsRunName(r.RunID),
		"--run-id %q: a name has at most 40 characters of a-z, 0-9 and -, begins with a letter, "+
			"does not contain -of- and is not %s", r.RunID, LastRun)
}

// Output is what this process shows of the run, and where.
type Output struct {
	Progress      string // a live.Mode
	JSON          bool
	DryRun        bool
	MetricsAddr   string        // host:port to listen on; "": no metrics
	MetricsLinger time.Duration // after the run
	ServerMetrics ServerMetrics
	FailBelow     Rate   // of payload; 0: none
	Report        string // an HTML file
	ReportTo      string // a folder, or s3://bucket/prefix
}

func (o *Output) flags(f *pflag.FlagSet) {
	f.Var(newChoice(&o.Progress, "auto", "bar", "plain", "json", "none"), "progress",
		"progress on stderr; auto is a bar on a terminal, else a line every 10s")
	f.BoolVar(&o.JSON, "json", false, "print the report as one JSON object")
	f.BoolVar(&o.DryRun, "dry-run", false, "print statements, batches and memory, and connect to nothing")
	f.StringVar(&o.MetricsAddr, "metrics-addr", "",
		"serve /metrics and /healthz on this address during the run, such as :9099")
	f.Var(Duration(&o.MetricsLinger, 0), "metrics-linger",
		"keep serving for this long after the run, so that the last scrape is not lost")
	f.Var(&o.ServerMetrics, "server-metrics", "metrics of the server's machine, to report its CPU; repeatable")
	f.Var(&o.FailBelow, "fail-below", "exit with 6 if the payload per second is below this, such as 500MiB/s")
	f.StringVar(&o.Report, "report", "", "also write the results with charts, without names, to this HTML file")
	f.StringVar(&o.ReportTo, "report-to", "",
		"also keep the JSON report in this folder or s3://bucket/prefix, for report merge")
}

func (o *Output) validate(p *problems) {
	p.add(o.ServerMetrics.err)
	p.refuse(o.MetricsLinger > 0 && o.MetricsAddr == "", "--metrics-linger needs --metrics-addr")
}
