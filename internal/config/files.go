package config

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/terapush/terapush/internal/verify"
	"github.com/terapush/terapush/pkg/loader"
)

// Files are the user's files that a load sends, and how they are written.
type Files struct {
	Paths []string // paths, globs and folders, or -

	Format    string // csv, tsv, text, ndjson or parquet; "": by the files' names
	Delimiter OptionalText
	Quote     OptionalText
	Escape    OptionalText
	Null      OptionalText
	Header    bool
	Columns   string // names, separated by commas; "" between two leaves the field out

	Key string // the column by which records are read back

	Rejects    string // a file
	MaxRejects int64
}

// VerifyAuto is a load's proof unless another one is asked for: the claims, and the number of rows where the table was
// empty.
const VerifyAuto = "auto"

func (c *Files) flags(f *pflag.FlagSet) {
	f.Var(newChoice(&c.Format, "", "csv", "tsv", "text", "ndjson", "parquet"), "format",
		"`format` of the files: csv, tsv, text, ndjson or parquet (default: by their names)")
	f.Var(&c.Delimiter, "delimiter", `what is between two fields, one character (default: , in csv, a tab in tsv and text)`)
	f.Var(&c.Quote, "quote", `quotation mark of csv (default: ")`)
	f.Var(&c.Escape, "escape", `what precedes a quotation mark within quotes, in csv (default: another one)`)
	f.Var(&c.Null, "null", `unquoted field that means NULL (default: an empty one in csv, \N in tsv and text)`)
	f.BoolVar(&c.Header, "header", false, "the first line of every file names its columns")
	f.StringVar(&c.Columns, "columns", "",
		"columns of the fields, as `a,b,,d`; an empty name leaves the field out (default: by the header, or the table's in order)")
	f.StringVar(&c.Key, "key", "", "unique `column` by which --verify full finds the rows of records")
	f.StringVar(&c.Rejects, "rejects", "", "file for the records that the server refuses, with its messages")
	f.Var(Count(&c.MaxRejects, 0), "max-rejects", "stop when the server has refused more records than this; 0: at the first")
}

func (c *Files) validate(all *problems, p *Push) {
	all.refuse(len(c.Paths) == 0 && p.Resume == "", "load takes a TARGET and one FILE or more")
	all.refuse(len(c.Paths) > 0 && p.Resume != "", "--resume takes the files of the run: leave them out")
	all.refuse(p.DryRun && p.Resume != "",
		"--dry-run shows a load that begins, and --resume goes on with one: leave out one of them; terapush runs shows what is in")
	for _, path := range c.Paths {
		if strings.HasPrefix(path, "s3://") {
			_, err := ParseStore("a FILE", path)
			all.add(err)
		}
	}
	all.refuse(p.Table == "", "--table is needed: the table that the files go into")
	all.refuse(p.RunID != "", "load has no --run-id: each process is a load of its own, with its part of the files by --shard I/N, "+
		"and goes on by --resume")
	all.refuse(!p.Shard.Whole() && slices.Contains(c.Paths, "-"),
		"--shard %s: standard input is read once, by one process: leave --shard out", &p.Shard)
	all.refuse(!p.Shard.Whole() && p.Verify == string(verify.Count),
		"--shard %s and --verify count: the other shards add rows as well: count them once all are in", &p.Shard)
	all.refuse(p.Shared != "", "--state-dir %s: a load keeps its journal in a folder of this machine", p.Shared)
	all.refuse(p.Verify == string(verify.Full) && c.Key == "",
		"--verify full reads records back by a key: name its column with --key")
	all.refuse(p.Verify != string(verify.Full) && c.Key != "", "--key is for --verify full, which reads records back")
	all.refuse((c.MaxRejects > 0) != (c.Rejects != ""), "--max-rejects N and --rejects FILE belong together: how many records may be left out, and where they go")
	if p.Verify != VerifyAuto {
		all.add(known("verify mode", p.Verify, verify.Modes()))
	}
}

// FormatOf returns the format of a file by its name, under .gz or .zst; "" if that does not say.
func FormatOf(name string) string {
	name = strings.ToLower(name)
	for _, end := range [...]string{".gz", ".zst", ".gzip", ".zstd"} {
		name = strings.TrimSuffix(name, end)
	}
	return map[string]string{
		".csv": "csv", ".tsv": "tsv", ".tab": "tsv", ".txt": "text", ".ndjson": "ndjson", ".jsonl": "ndjson",
		".parquet": "parquet",
	}[path.Ext(name)]
}

// loadPage is every flag of load but the options of methods, in the order of --help.
var loadPage = []struct{ group, flags string }{
	{GroupWhat, "method table format delimiter quote escape null header columns"},
	{GroupHowFast, "workers batch-bytes memory max-rate"},
	{GroupSafety, "rejects max-rejects verify key verify-rows retries retry-for batch-timeout"},
	{GroupRuns, "resume run-id shard state-dir"},
	{GroupConnection, "password-file tls tls-ca tls-cert tls-key tls-server-name set"},
	{GroupOutput, "progress json dry-run metrics-addr metrics-linger server-metrics fail-below report report-to"},
}

// LoadFlags declares every flag of load, and sets what is not its user's to choose: nothing is made, dropped or
// emptied, other runs may fill the table as well, and batches go in exactly once.
func (p *Push) LoadFlags(f *pflag.FlagSet, drivers *loader.Registry) {
	p.Files = new(Files)
	shared, own := pflag.NewFlagSet("push", pflag.ContinueOnError), pflag.NewFlagSet("load", pflag.ContinueOnError)
	for _, declare := range []func(*pflag.FlagSet){
		p.Database.flags, p.Destination.flags, p.Batches.flags, p.Pace.flags, p.Patience.flags, p.Proof.flags, p.Run.flags, p.Output.flags,
	} {
		declare(shared)
	}
	p.Files.flags(own)
	modes := []string{VerifyAuto, string(verify.None), string(verify.Ack), string(verify.Count), string(verify.Full)}
	own.Var(newChoice(&p.Verify, modes...), "verify",
		"ack compares records with acknowledgements and claims; count also the table's rows before and after; auto: where it was empty; "+
			"full: and a sample of records field by field")
	shared.Lookup("batch-bytes").Usage = "bytes of the files in a batch (default: the method's, but at least four batches a worker)"
	shared.Lookup("state-dir").Usage = "folder of the run's journal (default: the user's state folder)"
	shared.Lookup("shard").Usage = "part of the files, 0/8 to 7/8, that this process loads; auto on Kubernetes, AWS Batch, Cloud Run and Slurm"
	shared.Lookup("dry-run").Usage = "print files, columns, batches and statements; files and columns are read, and nothing is sent or written"
	shared.Lookup("table").Usage = "table that the files go into, as name or schema.name"

	for _, part := range loadPage {
		Group(f, part.group, func(f *pflag.FlagSet) {
			for name := range strings.FieldsSeq(part.flags) {
				f.AddFlag(cmp.Or(own.Lookup(name), shared.Lookup(name)))
			}
		})
	}
	f.Lookup("run-id").Hidden = true // which Validate refuses in words
	Group(f, GroupMethods, func(f *pflag.FlagSet) { p.optionFlags(f, drivers) })
	f.SortFlags = false
	p.Create, p.Append, p.Delivery = string(loader.CreateNever), true, string(loader.ExactlyOnce)
}

// OnlyLoads lists the flags of a load that push does not have, or that mean something else there.
func OnlyLoads() []string {
	return strings.Fields("format delimiter quote escape null header columns key rejects max-rejects verify")
}

// OptionalText is a text that may be given as an empty one, too. \t is a tab.
type OptionalText struct {
	Text  string
	Given bool
}

// Set implements pflag.Value.
func (t *OptionalText) Set(text string) error {
	if text == `\t` {
		text = "\t"
	}
	*t = OptionalText{Text: text, Given: true}
	return nil
}

// String implements pflag.Value.
func (t *OptionalText) String() string { return t.Text }

// Type implements pflag.Value.
func (*OptionalText) Type() string { return "text" }

// Or returns the text, or the default if none was given.
func (t *OptionalText) Or(byDefault string) string {
	if t.Given {
		return t.Text
	}
	return byDefault
}
