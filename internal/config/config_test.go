package config_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/pkg/loader"
)

// driver has a direct and a staged method with options of every kind, and does nothing.
type driver struct{}

func (driver) Name() string      { return "base" }
func (driver) Schemes() []string { return []string{"base", "database"} }

func (driver) Methods() []loader.Method {
	return []loader.Method{
		{Name: "copy", Options: []loader.Option{
			{Name: "unlogged", Kind: loader.BoolOption, Default: "false", Help: "no log"},
			{Name: "rows-per-transaction", Kind: loader.IntOption, Default: "0", Help: "pieces"},
		}},
		{Name: "insert", Caps: loader.Caps{Staged: true}, Options: []loader.Option{
			{Name: "hint", Help: "for the optimizer"}, {Name: "unlogged", Kind: loader.BoolOption},
		}},
	}
}

func (driver) Check(loader.Target) (loader.Caps, error)                     { return loader.Caps{}, nil }
func (driver) Explain(loader.Target, loader.Preparation) []loader.Statement { return nil }
func (driver) Classify(error) loader.Verdict                                { return loader.Verdict{} }
func (driver) Open(context.Context, loader.Target, loader.Deps) (loader.Loader, error) {
	return nil, nil
}

func drivers(t *testing.T) *loader.Registry {
	t.Helper()
	r, err := loader.NewRegistry(driver{})
	require.NoError(t, err)
	return r
}

type env map[string]string

func (e env) lookup(name string) (string, bool) {
	text, ok := e[name]
	return text, ok
}

// parse reads flags, environment and file, in this order.
func parse(t *testing.T, args string, e env, file string) (*config.Push, *pflag.FlagSet, error) {
	t.Helper()
	c := new(config.Push)
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers(t))
	f.String("config", "", "")
	f.Bool("help", false, "")
	require.NoError(t, f.Parse(strings.Fields(args)))
	path := ""
	if file != "" {
		path = filepath.Join(t.TempDir(), "push.yaml")
		require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	}
	return c, f, config.Complete(f, e.lookup, path)
}

func TestPrecedence(t *testing.T) {
	for _, c := range []struct {
		args string
		env  env
		file string
		want uint64
	}{
		{want: 1},
		{file: "seed: 4", want: 4},
		{env: env{"TERAPUSH_SEED": "3"}, file: "seed: 4", want: 3},
		{args: "--seed 2", env: env{"TERAPUSH_SEED": "3"}, file: "seed: 4", want: 2},
		{env: env{"TERAPUSH_SEED": ""}, file: "seed: 18446744073709551615", want: 1<<64 - 1},
	} {
		got, _, err := parse(t, c.args, c.env, c.file)
		require.NoError(t, err)
		require.Equal(t, c.want, got.Seed)
	}
}

// A flag also stands against those that it excludes, and they are no contradiction.
func TestPrecedenceOverWhatIsExcluded(t *testing.T) {
	c, _, err := parse(t, "--rows 5", env{"TERAPUSH_BATCH_ROWS": "6"}, "bytes: 1TiB\nbatch-bytes: 1MiB\nfirst-key: 3")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.EqualValues(t, 5, c.Rows)
	require.Zero(t, c.Bytes)
	require.EqualValues(t, 6, c.BatchRows)
	require.Zero(t, c.BatchBytes)
	require.Equal(t, config.FirstKey{Key: 3, Given: true}, c.FirstKey)

	c, _, err = parse(t, "--append", nil, "first-key: 3")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, config.FirstKey{Key: 3, Given: true}, c.FirstKey, "where to append may be told")

	for _, from := range []struct {
		args string
		env  env
		file string
	}{
		{args: "--append --first-key 0"},
		{args: "--append", env: env{"TERAPUSH_FIRST_KEY": "0"}},
		{args: "--append", file: "first-key: 0"},
	} {
		c, f, err := parse(t, from.args, from.env, from.file)
		require.NoError(t, err)
		require.Equal(t, config.FirstKey{Given: true}, c.FirstKey, "0 is a key: %+v", from)
		require.Equal(t, []string{"0"}, config.Given(f)["first-key"])
	}

	c, _, err = parse(t, "", nil, "bytes: 1TiB\nrows: 7")
	require.NoError(t, err)
	require.ErrorContains(t, c.Validate(), "exclude each other", "in one source they are one")
}

func TestFile(t *testing.T) {
	c, _, err := parse(t, "", nil, "set: [a=1, b = 2]\nunlogged: true\nrows: 1000\nduration: 0s1ms\nmax-rate: 5Gbps\njson: true")
	require.NoError(t, err)
	require.Equal(t, config.Settings{{Name: "a", Value: "1"}, {Name: "b", Value: "2"}}, c.Set)
	require.Equal(t, "true", c.Options["unlogged"])
	require.True(t, c.JSON)

	c, _, err = parse(t, "", nil, "set: a=1\ntls: off\ntable: 7")
	require.NoError(t, err)
	require.Equal(t, []string{"a=1"}, c.Set.GetSlice(), "a list of one")
	require.Equal(t, "off", c.Connect.TLS, "a word and no boolean")
	require.Equal(t, "7", c.Table)

	path := filepath.Join(t.TempDir(), "x.yaml")
	require.NoError(t, os.WriteFile(path, []byte("seed: 9"), 0o600))
	c, _, err = parse(t, "", env{"TERAPUSH_CONFIG": path}, "")
	require.NoError(t, err)
	require.EqualValues(t, 9, c.Seed)

	for file, want := range map[string]string{
		"yes-drop: t":                    "--yes-drop was removed: it is called --allow-drop",
		"credential: LOADER":             "push.yaml: --credential was removed: it was for method cloud-copy",
		"sed: 1":                         `key "sed" does not exist; did you mean "seed"?`,
		"batch_rows: 1":                  `did you mean "batch-rows"?`,
		"table:":                         "table: write one value, or a list if the flag is repeatable",
		"set: {a: 1}":                    "set: write one value, or a list if the flag is repeatable",
		"seed: [1, 2]":                   "seed: write one value, or a list",
		"set: [[a=1]]":                   "set: write one value, or a list if the flag is repeatable",
		"config: other.yaml":             `key "config" does not exist`,
		"help: true":                     `key "help" does not exist`,
		"[seed]":                         "push.yaml",
		"seed: x":                        `seed: invalid argument "x" for "--seed" flag`,
		"seed: 1\nseed: 2":               `already defined`,
		"seed: 1\n---\nseed: 2":          `push.yaml: it holds more than one document (---)`,
		strings.Repeat("# x\n", 1<<18+1): `push.yaml has more than 1.0 MiB`,
		"seed: [1\nsecret: hunter2:":     "push.yaml",
	} {
		_, _, err := parse(t, "", nil, file)
		require.ErrorContains(t, err, want, file)
		require.NotContains(t, err.Error(), "hunter2")
	}
	_, _, err = parse(t, "", env{"TERAPUSH_CONFIG": "/does/not/exist"}, "")
	require.ErrorContains(t, err, "--config: open /does/not/exist")
}

func TestEnvironmentErrorsNameTheVariable(t *testing.T) {
	_, _, err := parse(t, "", env{"TERAPUSH_SEED": "x", "TERAPUSH_VERIFY": "ful"}, "")
	require.ErrorContains(t, err, "TERAPUSH_SEED: invalid argument")
	require.ErrorContains(t, err, `TERAPUSH_VERIFY: invalid argument "ful" for "--verify" flag: value "ful" does not exist; did you mean "full"?`)
}

func TestZeroIsNotTheDefault(t *testing.T) {
	for _, args := range []string{
		"--rows 0", "--bytes 0", "--duration 0s", "--batch-rows 0", "--batch-bytes 0B", "--memory 0", "--workers 0", "--batch-timeout 0s",
		"--commit-batches 0",
	} {
		_, _, err := parse(t, args, nil, "")
		require.ErrorContains(t, err, strings.Fields(args)[0]+" 0: give more than 0", args)
	}
}

func TestEverythingWrongIsSaidAtOnce(t *testing.T) {
	c, _, err := parse(t, "--rows 1 --bytes 1 --duration 1s --batch-rows 1 --batch-bytes 1 --append --payload-bytes 2000000"+
		" --workers 5000 --retries -1 --verify-rows 0 --metrics-linger 1s --table a,b --format tsx --dataset documens --create recreate --commit-batches -1", nil, "")
	require.NoError(t, err)
	c.Verify = "cuont" // by a program: the flag refuses it
	err = c.Validate()
	for _, want := range []string{
		"--rows, --bytes and --duration exclude each other",
		"--batch-rows and --batch-bytes exclude each other",
		"--append with --duration needs --first-key",
		"--append and --create recreate contradict each other",
		"--payload-bytes 2000000: a payload has 1 to 1048576 bytes",
		"--workers 5000: 1 to 4096",
		"--retries -1: 0 or more",
		"--verify-rows 0: at least 1",
		"--metrics-linger needs --metrics-addr",
		`--table "a,b": name one table`,
		`verify mode "cuont" does not exist; did you mean "count"? Available: none, ack, count, full`,
		`format "tsx" does not exist; did you mean "tsv"?`,
		`dataset "documens" does not exist; did you mean "documents"?`,
		"--commit-batches -1: at least 1",
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, 14, strings.Count(err.Error(), "\n")+1)

	c, _, err = parse(t, "--append --create truncate", nil, "")
	require.NoError(t, err)
	require.EqualError(t, c.Validate(), "--append and --create truncate contradict each other")
	c, _, err = parse(t, "--create truncate --allow-drop t", nil, "")
	require.NoError(t, err)
	require.NoError(t, c.Validate())
	require.Equal(t, string(loader.CreateTruncate), c.Create)
}

// What was given to a run comes back in another process, unless that one was told otherwise.
func TestGivenAndRestore(t *testing.T) {
	_, f, err := parse(t, "--seed 7 --set a=1,2 --set b=x=y --bytes 1500KiB --max-rate 5Gbps --unlogged --duration 90s --append=false --json",
		env{"TERAPUSH_RETRIES": "3"}, "workers: 5")
	require.NoError(t, err)
	given := config.Given(f)
	require.Equal(t, map[string][]string{
		"seed": {"7"}, "set": {"a=1,2", "b=x=y"}, "bytes": {"1536000"}, "max-rate": {"625000000/s"},
		"unlogged": {"true"}, "duration": {"1m30s"}, "append": {"false"}, "retries": {"3"}, "workers": {"5"},
	}, given)

	c, f, err := parse(t, "--seed 8 --set c=3", nil, "")
	require.NoError(t, err)
	require.NoError(t, config.Restore(f, given))
	require.EqualValues(t, 8, c.Seed)
	require.Equal(t, []string{"a=1,2", "b=x=y", "c=3"}, c.Set.GetSlice(), "each is a variable of its own")
	require.Equal(t, 5, c.Workers)

	c, f, err = parse(t, "--rows 9", nil, "")
	require.NoError(t, err)
	require.NoError(t, config.Restore(f, map[string][]string{"bytes": {"1GiB"}}))
	require.Zero(t, c.Bytes, "what is given stands for what it excludes")

	require.ErrorContains(t, config.Restore(f, map[string][]string{"gone": {"1"}}),
		"the run was started with --gone, which this terapush does not have")
}

// Every flag comes back as it was, so a new one is either of one process or restored.
func TestEveryFlagComesBack(t *testing.T) {
	ofOneProcess := "--resume r --run-id n --shard 1/2 --start-at 2026-11-23T18:00:00Z --state-dir /s --config c --password-file /p --progress none --json --dry-run --metrics-addr :1 --metrics-linger 1s" +
		" --server-metrics http://u:p@h/metrics --fail-below 1MB/s --report r.html --report-to d --help"
	c, f, err := parse(t, "--method insert --dataset d --like o --stats --keep-values --param e=f --table s.t --format csv --payload-bytes 9 --payload-kind text --seed 18446744073709551615"+
		" --distinct-bytes 3MB --times 0.5 --rows 5 --bytes 1TiB --duration 1h1ms --first-key 3 --append --workers 2 --batch-rows 6 --batch-bytes 1MB"+
		" --staging s3://b/p?endpoint=http%3A%2F%2Fh --commit-batches 7 --memory 5GB --max-rate 1.5Gbps --delivery at-least-once --create never --allow-drop t --primary-key --sync-sequences --verify full --verify-rows 8 --verify-workers 3"+
		" --retries 0 --retry-for 1s --batch-timeout 90s --set a=b,c --set d= --tls verify --tls-ca a --tls-cert b --tls-key c --tls-server-name s"+
		" --unlogged --rows-per-transaction 4 --hint a=b --warm-up 1s "+ofOneProcess, nil, "")
	require.NoError(t, err)
	f.VisitAll(func(flag *pflag.Flag) { require.True(t, flag.Changed, "this test leaves out --%s", flag.Name) })

	again, f2, err := parse(t, ofOneProcess, nil, "")
	require.NoError(t, err)
	require.NoError(t, config.Restore(f2, config.Given(f)))
	c.Connect.LookupEnv, again.Connect.LookupEnv = nil, nil
	require.Equal(t, c, again)
}

// A case is the push that the command line would make of the same flags.
func TestFromValuesIsTheCommandLine(t *testing.T) {
	e := env{"TERAPUSH_SEED": "9", "TERAPUSH_BYTES": "1GiB", "TERAPUSH_PASSWORD": "hunter2"}
	file := filepath.Join(t.TempDir(), "push.yaml")
	require.NoError(t, os.WriteFile(file, []byte("retries: 3\nworkers: 8\nbatch-bytes: 1MiB"), 0o600))
	want, f, err := parse(t, "--method copy --workers 4 --rows 7 --batch-rows 5 --unlogged --set c=3 --set a=1=x", e, "retries: 3\nworkers: 8\nbatch-bytes: 1MiB")
	require.NoError(t, err)

	got, given, err := config.FromValues(map[string][]string{
		"target": {"base://u:hunter2@h/db"}, "method": {"copy"}, "workers": {"4"}, "rows": {"7"}, "batch-rows": {"5"}, "unlogged": {"true"},
		"set.a": {"1=x"}, "set": {"a=0", "c=3"},
	}, drivers(t), e.lookup, file)
	require.NoError(t, err)
	require.NoError(t, got.Validate())
	require.Equal(t, config.Given(f), given)
	require.Equal(t, "base://u:hunter2@h/db", got.Target)
	password, _ := got.Connect.LookupEnv("TERAPUSH_PASSWORD")
	require.Equal(t, "hunter2", password)
	want.Target, want.Connect.LookupEnv, got.Connect.LookupEnv = got.Target, nil, nil
	require.Equal(t, want, &got)
}

// What belongs to one push is no case's, wherever it comes from.
func TestFromValuesLeavesOutWhatIsOfOnePush(t *testing.T) {
	c, given, err := config.FromValues(map[string][]string{"workers": {"2"}}, drivers(t), env{
		"TERAPUSH_RESUME": "r", "TERAPUSH_DRY_RUN": "true", "TERAPUSH_JSON": "true", "TERAPUSH_STATE_DIR": "/s",
	}.lookup, "")
	require.NoError(t, err)
	require.Empty(t, c.Resume)
	require.False(t, c.DryRun)
	require.False(t, c.JSON)
	require.Equal(t, "/s", c.State)
	require.Equal(t, map[string][]string{"workers": {"2"}}, given)
}

func TestFromValuesSaysAllThatIsWrong(t *testing.T) {
	_, _, err := config.FromValues(map[string][]string{
		"workers": {"many"}, "wokers": {"1"}, "rows": {"0"},
	}, drivers(t), env{"TERAPUSH_SEED": "x"}.lookup, "")
	for _, want := range []string{
		`invalid argument "many" for "-w, --workers" flag`, "no such flag -wokers", "--rows 0: give more than 0", "TERAPUSH_SEED",
	} {
		require.ErrorContains(t, err, want)
	}
	require.Equal(t, 4, strings.Count(err.Error(), "\n")+1)
}
