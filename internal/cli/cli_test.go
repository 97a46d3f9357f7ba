package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
)

// result is what a command left behind.
type result struct {
	code           int
	stdout, stderr string
}

// shell is a user with an environment and a folder for state.
type shell struct {
	*testing.T
	env map[string]string
}

func newShell(t *testing.T) shell {
	return shell{t, map[string]string{"XDG_STATE_HOME": t.TempDir()}}
}

// process is a process with the shell's environment.
func (s shell) process(stdout, stderr io.Writer, signals <-chan os.Signal) cli.Process {
	return cli.Process{
		Stdout: stdout, Stderr: stderr, Signals: signals,
		LookupEnv: func(name string) (string, bool) { text, ok := s.env[name]; return text, ok },
		Environ: func() (all []string) {
			for name, text := range s.env {
				all = append(all, name+"="+text)
			}
			return all
		},
	}
}

// signalled runs a command that gets the signals.
func (s shell) signalled(signals <-chan os.Signal, args ...string) result {
	s.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{}, args...) // for nil, cobra would take the test's own
	code := cli.Run(s.Context(), args, s.process(&stdout, &stderr, signals))
	return result{code, stdout.String(), stderr.String()}
}

func (s shell) run(args ...string) result {
	s.Helper()
	return s.signalled(nil, args...)
}

// stopped runs a command whose first signal is there from the start.
func (s shell) stopped(with os.Signal, args ...string) result {
	s.Helper()
	signals := make(chan os.Signal, 1)
	signals <- with
	return s.signalled(signals, args...)
}

// leavesNothing checks that no run is in the state folder.
func (s shell) leavesNothing() {
	s.Helper()
	left, err := filepath.Glob(filepath.Join(s.env["XDG_STATE_HOME"], "terapush", "*"))
	require.NoError(s, err)
	require.Empty(s, left)
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

func runOf(t *testing.T, text string) string {
	var r report.Report
	require.NoError(t, json.Unmarshal([]byte(text), &r))
	return r.Run.ID
}

// The last run is that of the target. To forget a run no target is needed, since its record has it.
func TestLastRunOfATarget(t *testing.T) {
	s := newShell(t)
	ran := map[string]string{}
	for _, host := range []string{"a", "b"} {
		r := s.run("push", "discard://u1@"+host+"/d", "--rows", "10", "--json")
		require.Zero(t, r.code, r.stderr)
		ran[host] = runOf(t, r.stdout)
	}
	r := s.run("verify", "discard://u2:secret@A/d?x=y", "--run", "last", "--json")
	require.Zero(t, r.code, r.stderr)
	require.Equal(t, ran["a"], runOf(t, r.stdout))
	for command, says := range map[string]string{
		"push discard://c/d --resume last":             "no run of this target in ",
		"verify discard://a/e --run last":              "no run of this target in ",
		"forget postgres://a/d --run last":             "no run of this target in ",
		"forget --older-than 7d":                       "--older-than needs TARGET",
		"forget discard://a/d --older-than 7d --run x": "and neither --run nor --run-id",
		"forget discard://a/d --older-than -1h":        "write it as 7d or 12h",
		"forget discard://a/d --older-than 7d":         "discard keeps no claims to remove",
		"forget discard://a/d discard://b/d --run x":   "forget takes one TARGET",
	} {
		r := s.run(strings.Fields(command)...)
		require.Equal(t, 2, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, says, command)
	}
	require.Zero(t, s.run("forget", "--run", "last").code)
	left := s.run("runs").stdout
	require.Contains(t, left, ran["a"])
	require.NotContains(t, left, ran["b"])
}

// Every mistake is said on a line of its own, before anything is done.
func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	plan, bad := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "bad.yaml")
	require.NoError(t, os.WriteFile(plan, []byte(quick), 0o644))
	require.NoError(t, os.WriteFile(bad, []byte("name: x\nrows: 5\naxis:\n  workers: [1]\n"), 0o644))
	one, parts := recorded("run-4.json"), recorded("two-parts.jsonl")
	s := newShell(t)
	for command, want := range map[string]string{
		"pusj":                                        `command "pusj" does not exist; did you mean "push"?`,
		"push postgres://h/d orders":                  "push takes one TARGET: 2 arguments given: write --like orders\n",
		"push postgres://h/d orders.yaml":             "write --dataset orders.yaml\n",
		"push orders.yaml":                            `terapush push "$DATABASE_URL" --dataset orders.yaml`,
		"push postgres://h/d --dataset orders":        "for a table that exists write --like orders",
		"push postgres://h/d --like orders.yaml":      "--like orders.yaml: the name of a table belongs here; a file is --dataset orders.yaml",
		"push postgres://h/d --table orders.yaml":     "a dataset's file is --dataset orders.yaml",
		"inspect postgres://h/d orders":               "inspect takes one TARGET: 2 arguments given: write --table orders\n",
		"inspect orders":                              `terapush inspect "$DATABASE_URL" --table orders`,
		"doctor postgres://h/d orders":                "write --table orders\n",
		"preview postgres://h/d":                      "terapush inspect \"$DATABASE_URL\" --table orders > orders.yaml",
		"preview orders":                              "a file.yaml of your own is named by its path",
		"push":                                        "push takes one TARGET, the URL of a database: terapush push",
		"push discard:// --resume=":                   "--resume needs a run",
		"push discard:// --row 1":                     "unknown flag: --row; did you mean --rows?",
		"sink --password x":                           "--password was removed: a sink accepts every password",
		"push discard:// --yes-drop t":                "terapush: --yes-drop was removed: it is called --allow-drop\n",
		"push discard:// -x":                          "unknown shorthand flag: 'x'",
		"push oracle://h/s --credential L":            "--credential was removed: it was for method cloud-copy",
		"push postgres://h/d --method copi":           `did you mean "copy"?`,
		"push discard:// --resume 20260101-000000-xx": `no run "20260101-000000-xx"`,
		"push discard:// --resume ../../etc":          `"../../etc" is not the id of a run`,
		"push discard:// --resume last":               "no run in ",
		"verify discard://":                           "--run is needed",
		"forget discard:// --run a/b":                 `"a/b" is not the id of a run`,
		"list method":                                 `did you mean "methods"?`,
		"version now":                                 "version takes no arguments: 1 argument given",
		"push discard:// --rows 1 --bytes 1 --retries -1": "terapush: --rows, --bytes and --duration exclude each other\n" +
			"terapush: --retries -1: 0 or more\n",

		"demo --port 5":                  "unknown flag: --port\n", // not --report, which only push has
		"demo --byte 5":                  "did you mean --bytes?",
		"verify discard:// --row 5":      "unknown flag: --row\n",
		"push discard:// --rows 10m":     `"10m" is not a whole number: write it as 2000000, 2e6 or 2M`,
		"push discard:// --bytes 1Gb":    `"1Gb": bits or bytes? Sizes are in bytes: write 1GB if that is meant`,
		"push discard:// --append=maybe": "write true or false",
		"doctor --gbps fast":             `"fast" is not a rate: write it as 25 or 25Gbps`,

		"doctor a b":                          "doctor takes one TARGET or none: 2 arguments given",
		"doctor --gbps 0":                     "--gbps 0: more than 0",
		"doctor postgres://h/d --method copi": `did you mean "copy"?`,

		"sweep":                                "a plan is needed: --plan FILE, or --preset NAME",
		"sweep a b":                            "at most one TARGET: 2 arguments given",
		"sweep --run-id night":                 "--run-id is for a single push; the same sweep command continues a sweep",
		"runs --state-dir s3://b/p":            "--state-dir: give a folder",
		"sweep --state-dir s3://b/p":           "--state-dir: give a folder",
		"tune discard:// --state-dir s3://b/p": "--state-dir: give a folder",
		"calibrate --state-dir s3://b/p":       "--state-dir: give a folder",
		"push discard:// --run-id n --state-dir s3://k:shh@b/p":       "--state-dir s3://b: leave the keys out of the URL",
		"push discard:// --report-to s3://k:shh@b/p":                  "--report-to s3://b: leave the keys out of the URL",
		"report merge s3://k:shh@b/p":                                 "report merge s3://b: leave the keys out of the URL",
		"sweep --start-at 2026-11-23T18:00:00Z":                       "--start-at is for a single push",
		"sweep --plan x --preset y":                                   "--plan and --preset exclude each other",
		"sweep discard:// --plan " + bad:                              bad + ":3: key \"axis\" does not exist here; did you mean \"axes\"?",
		"sweep --plan " + plan:                                        "no target: give TARGET",
		"sweep discard:// --resume x --plan " + plan:                  "--resume is for a single push",
		"sweep discard:// --metrics-linger 1s --plan " + plan:         "--metrics-linger is for a single push",
		"sweep discard:// --repeats 0 --plan " + plan:                 "--repeats 0: write a number from 1 to 1000, or auto",
		"sweep discard:// --repeats 3 --precision 2% --plan " + plan:  "--precision is for repeats auto, and they are 3",
		"sweep discard:// --budget -1s --plan " + plan:                "--budget: a duration cannot be negative",
		"sweep discard:// --only small --plan " + plan:                "the plan has one part only, without a name",
		"sweep discard:// --only smal --plan testdata/two-parts.yaml": `part "smal" does not exist; did you mean "small"?`,

		"tune":                                              "tune takes one TARGET, the URL of a database: terapush tune",
		"tune discard:// --trial 0s":                        "--trial and --budget: more than 0s",
		"tune discard:// --trial 1s --rows 4":               "--trial and --rows: both say how much a trial pushes",
		"tune discard:// --report x.html":                   "--report is for push and sweep",
		"prepare discard:// --run-id n --dry-run":           "neither --shard nor --dry-run",
		"tune discard:// --resume x":                        "--resume is for a single push",
		"tune discard:// --rows 5 --record " + newRecord(t): "holds a record already: give a new file",

		"report": "report takes one FILE or more: 0 arguments given",
		"report " + one + " " + recorded("../testdata/run-4.json"): "run-4.json and " + one + " are the same file: name each file once",
		"report " + one + " --format csv":                          "terapush: --format csv was removed: --format json has the same figures\n",
		"report " + one + " --out x.csv":                           "--format csv was removed",
		"report " + one + " --format htlm":                         `format "htlm" does not exist; did you mean "html"?`,
		"report " + one + " --only copy":                           `--only "copy": single runs have no parts`,
		"report " + parts + " --only strem":                        `part "strem" does not exist; did you mean "stream"?`,
		"report " + one + " --out x.pdf": "--out x.pdf: no format has the extension .pdf; use one of " +
			".bench, .htm, .html, .json, .md, .svg, .txt, or give --format",
		"compare " + one: "compare takes two files: 1 argument given",
		"compare " + one + " " + one + " --fail-if-slower 5":  `"5" is not a share: write it as 5%`,
		"compare " + one + " " + one + " --fail-if-slower 0%": "more than 0% and less than 100%",
		"compare " + one + " /does/not/exist":                 "/does/not/exist",

		"sink now":                        "sink takes no arguments",
		"sink --no-count --crc":           "--no-count reads no data",
		"sink --row-bytes 10":             "--row-bytes needs --no-count",
		"sink --no-count --row-bytes 0":   "--row-bytes 0: give more than 0",
		"sink --ack-delay=-1s":            "--ack-delay -1s: 0 or more",
		"sink --fail 20":                  "write it as 1/20",
		"sink --fail 1/0":                 "write it as 1/20",
		"sink --fail 2/3":                 "write it as 1/20",
		"sink --read-rate 5":              "write it as 500MiB/s",
		"sink --mysql 65536":              "--mysql 65536: a port is 0 to 65535",
		"sink --tls-cert x":               "belong together",
		"sink --tls-cert /no --tls-key x": "open /no",
	} {
		r := s.run(strings.Fields(command)...)
		require.Equal(t, 2, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, want, command)
		require.True(t, strings.HasPrefix(r.stderr, "terapush: "), r.stderr)
		require.Empty(t, r.stdout, command)
		require.NotContains(t, r.stderr, "shh", command)
	}
}

func TestList(t *testing.T) {
	r := newShell(t).run("list")
	require.Zero(t, r.code)
	golden.Equal(t, "list.txt", r.stdout)
}

func TestVersion(t *testing.T) {
	r := newShell(t).run("version")
	require.Zero(t, r.code)
	require.Regexp(t, `^terapush development \S* ?go1\.\S+ \S+/\S+\n`, r.stdout)
	r = newShell(t).run("version", "--json")
	var v struct {
		Version string
		Drivers map[string]string
	}
	require.NoError(t, json.Unmarshal([]byte(r.stdout), &v))
	require.Equal(t, "development", v.Version)
	require.NotNil(t, v.Drivers, "an object, even when it is empty")
}

func TestPush(t *testing.T) {
	s := newShell(t)
	r := s.run("push", "discard://", "--rows", "1000", "--verify", "ack", "--json", "--progress", "none")
	require.Zero(t, r.code, r.stderr)
	var is report.Report
	d := json.NewDecoder(strings.NewReader(r.stdout))
	require.NoError(t, d.Decode(&is))
	require.False(t, d.More(), "exactly one object")
	require.Equal(t, report.OK, is.Result.Outcome)
	require.EqualValues(t, 1000, is.Result.Rows)
	require.True(t, is.Verify.OK)

	for _, command := range []string{"push discard:// --resume ", "verify discard:// --run "} {
		r = s.run(strings.Fields(command + is.Run.ID + " --progress json")...)
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "verify ok")
		require.Contains(t, r.stderr, `"schema":"terapush.progress/v1"`)
	}
	r = s.run("push", "discard://", "--resume", is.Run.ID, "--seed", "5")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "--seed cannot change in a resumed run: it was 1, now it is 5")
	for _, mode := range []string{"none", "ack"} { // an earlier run is proven by its rows
		r = s.run("verify", "discard://", "--run", "last", "--verify", mode)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, "verified by count or full")
		s.env["TERAPUSH_VERIFY"] = mode // says how to push
		require.Zero(t, s.run("verify", "discard://", "--run", "last").code)
	}
	for _, command := range []string{"verify", "forget"} { // what promises to change nothing must not be ignored
		r = s.run(command, "discard://", "--run", is.Run.ID, "--dry-run")
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, command+" has no --dry-run")
	}
	require.Contains(t, s.run("runs").stdout, is.Run.ID)
	r = s.run("forget", "discard://", "--run", is.Run.ID)
	require.Zero(t, r.code, r.stderr)
	r = s.run("verify", "discard://", "--run", is.Run.ID)
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "no run")
}

func TestExitCodes(t *testing.T) {
	s := newShell(t)
	for command, want := range map[string]int{
		"--verify full --progress json":       0,
		"--format values --payload-kind text": 0,
		"--metrics-addr 127.0.0.1:0 --json":   0,
		"--set a=b":                           2,
		"--memory 1KiB --batch-rows 10":       2,
		"--password-file /does/not/exist":     2,
		"--delivery exactly-once":             5,
		"--append":                            5,
		"--state-dir /dev/null/x":             5,
		"--metrics-addr nowhere.invalid:0":    5,
	} {
		r := s.run(append([]string{"push", "discard://", "--rows", "10"}, strings.Fields(command)...)...)
		require.Equal(t, want, r.code, "%s\n%s%s", command, r.stdout, r.stderr)
	}
	for _, target := range []string{"postgres://u@127.0.0.1:1/db", "mysql://u@127.0.0.1:1/db"} {
		require.Equal(t, 5, s.run("push", target, "--rows", "10").code, target)
	}

	// How large a batch may be the server knows; what a method takes does not depend on it.
	const refused = "mysql://u@127.0.0.1:1/db"
	large := []string{refused, "--rows", "100000", "--payload-kind", "text", "--method", "insert", "--batch-bytes", "32MiB"}
	require.Equal(t, 5, s.run(append([]string{"push"}, large...)...).code)
	require.Equal(t, 2, s.run(append([]string{"push", "--dry-run"}, large...)...).code)
	for _, command := range []string{"push", "doctor"} {
		require.Equal(t, 2, s.run(command, refused, "--method", "insert", "--format", "tsv").code, command)
	}
}

// No server is asked for a name that it would cut. Package sqlload has the other rules of names.
func TestNamesOfTables(t *testing.T) {
	s := newShell(t)
	for target, longest := range map[string]int{"postgres://u@h/d": 63, "mysql://u@h/d": 64, "oracle://u@h/d": 128} {
		name := strings.Repeat("t", longest)
		require.Zero(t, s.run("push", target, "--dry-run", "--table", name).code, target)
		r := s.run("push", target, "--dry-run", "--table", name+"t")
		require.Equal(t, 2, r.code, target)
		require.Contains(t, r.stderr, fmt.Sprintf("the server takes %d", longest))
	}
}

// However a secret comes in, it does not come out.
func TestSecretsStayInside(t *testing.T) {
	const secret = "hunter2-%p:a/s?s#w@rd"
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	shows := func(env, text string, args ...string) {
		s := newShell(t)
		s.env[env] = text
		r := s.run(append([]string{"push"}, args...)...)
		require.NotContains(t, r.stdout+r.stderr, "hunter2", args)
		require.NotContains(t, r.stdout+r.stderr, "w%40rd", args)
		err := filepath.WalkDir(s.env["XDG_STATE_HOME"], func(path string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				require.NotContains(t, read(t, path), "hunter2", path)
			}
			return err
		})
		require.NoError(t, err)
	}
	for _, target := range []string{"postgres://u:" + secret + "@127.0.0.1:1/db", "mysql://u:" + secret + "@127.0.0.1:1/db", "discard://u:" + secret + "@h/db"} {
		for _, more := range []string{"", "--dry-run", "--json", "--seed x", "--method nosuch", "--table a,b", "--resume x", "--delivery exactly-once"} {
			shows("", "", append([]string{target, "--rows", "10"}, strings.Fields(more)...)...)
		}
		shows("TERAPUSH_PASSWORD", secret, target, "--rows", "10")
		shows("TERAPUSH_PASSWORD_FILE", file, target, "--rows", "10")
	}
}

func TestWarningOfAPasswordInArguments(t *testing.T) {
	const warning = "can be read by every user of this machine"
	for _, args := range []string{"push discard://u:hunter2@h --rows 10", "doctor discard://u:hunter2@h",
		"prepare discard://u:hunter2@h --run-id n", "verify discard://u:hunter2@h --run 9", "forget discard://u:hunter2@h --run 9",
		"tune discard://u:hunter2@h --dry-run"} {
		r := newShell(t).run(strings.Fields(args)...)
		require.Contains(t, r.stderr, warning, args)
		require.NotContains(t, r.stdout+r.stderr, "hunter2", args)
	}
	require.NotContains(t, newShell(t).run("push", "discard://u@h", "--rows", "10").stderr, warning)
}

// A method that the target's database does not have belongs to another one, and so may the run.
func TestAnotherScheme(t *testing.T) {
	s := newShell(t)
	r := s.run("push", "mysql://u@h/d", "--method", "copy")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "method copy does not fit the target: mysql:// has load-data, insert, pipeline; copy is a method of postgres://")

	require.Zero(t, s.run("push", "discard://", "--rows", "10").code)
	runs, err := os.ReadDir(filepath.Join(s.env["XDG_STATE_HOME"], "terapush"))
	require.NoError(t, err)
	id := runs[0].Name()
	for _, command := range [][]string{{"push", "mysql://u@h/d", "--resume", id}, {"verify", "mysql://u@h/d", "--run", id}} {
		r = s.run(command...)
		require.Equal(t, 2, r.code)
		require.Contains(t, r.stderr, "mysql:// does not fit run "+id+", which was started with discard:/// and method discard")
	}
}

// What the server says is printed once, wherever stdout and stderr lead; JSON has it for programs.
func TestErrorIsPrintedOnce(t *testing.T) {
	s := newShell(t)
	for _, command := range []string{
		"push postgres://u@127.0.0.1:1/d --rows 10",
		"push mysql://u@127.0.0.1:1/d --rows 10 --progress none",
		"verify postgres://u@127.0.0.1:1/d --run-id nightly --retry-for 0s",
		"prepare postgres://u@127.0.0.1:1/d --run-id nightly --rows 10 --retry-for 0s",
		"tune postgres://u@127.0.0.1:1/d --rows 10",
	} {
		r := s.run(strings.Fields(command)...)
		require.NotZero(t, r.code, command)
		require.Equal(t, 1, strings.Count(r.stderr, "connection refused"), "%s\n%s", command, r.stderr)
		require.NotContains(t, r.stdout, "connection refused", command)
	}
	r := s.run("push", "postgres://u@127.0.0.1:1/d", "--json")
	require.Contains(t, r.stdout, "connection refused")
}

// The command that a push prints when it fails resumes it.
func TestResumeCommand(t *testing.T) {
	s := newShell(t)
	r := s.run(strings.Fields("push discard:// --rows 10 --batch-timeout 1ns --retries 0")...)
	_, command, found := strings.Cut(r.stderr, "to resume: terapush ")
	require.True(t, found, r.stderr)
	require.Contains(t, s.run("runs").stdout, " incomplete ")
	command, _, _ = strings.Cut(command, "\n")
	r = s.run(strings.Fields(command + " --batch-timeout 1m")...)
	require.Zero(t, r.code, r.stderr)
}

// What a shell offers for a value.
func TestCompletion(t *testing.T) {
	s := newShell(t)
	require.Zero(t, s.run("push", "discard://", "--rows", "10").code)
	for command, want := range map[string]string{
		"push dis":                      "discard://",
		"push mysql://h/d --method pip": "pipeline\t",
		"push --dataset peo":            "people",
		"push --delivery at":            "at-least-once",
		"sweep --preset oracle":         "oracle-fast-ingest",
		"verify discard:// --run 2":     "loaded, table nowhere",
	} {
		r := s.run(append([]string{"__complete"}, strings.Fields(command)...)...)
		require.Contains(t, r.stdout, want, command)
	}
	r := s.run("__complete", "push", "mysql://h/d", "--method", "")
	require.NotContains(t, r.stdout, "copy")
}

// A run with a name goes by that name, also where its newest folder is that of a shard.
func TestNamedRun(t *testing.T) {
	s := newShell(t)
	r := runlog.Record{Run: "nightly", Started: time.Now(), Stage: runlog.Loading, Target: "discard://", Table: "t"}
	r.Plan.BatchRows, r.Plan.Rows, r.Plan.Shard = 1, 3, config.Shard{Index: 0, Count: 3}
	l, err := runlog.Create(filepath.Join(s.env["XDG_STATE_HOME"], "terapush"), r)
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.Contains(t, s.run("__complete", "verify", "discard://", "--run", "n").stdout, "nightly\tincomplete, table t\n")
	require.Contains(t, s.run("__complete", "forget", "discard://", "--run", "").stdout, "last\tthe newest run of the target\n")
	for command, want := range map[string]string{
		"push discard:// --resume last":      "run nightly has a name: resume it by --run-id nightly",
		"push discard:// --resume nightly":   "run nightly has a name: resume it by --run-id nightly",
		"push discard:// --resume nosuch":    `no run "nosuch" in ` + filepath.Join(s.env["XDG_STATE_HOME"], "terapush"),
		"verify discard:// --run last":       "discard does not claim its batches", // and so the run was looked for
		"verify discard:// --run nightly":    "discard does not claim its batches",
		"verify discard:// --run-id nightly": "discard does not claim its batches",
		"forget discard:// --run last":       "the journals of its runs are in an object store",
		"forget --run nightly":               "the journals of its runs are in an object store", // of a target that was found
		"forget --run other":                 `no run "other" in `,
		"forget discard:// --run-id nightly": "the journals of its runs are in an object store",
		"push discard:// --run-id last":      "is not last",
	} {
		r := s.run(strings.Fields(command)...)
		require.Equal(t, 2, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, want, command)
	}
}

// Every command has a man page, and a release the same ones always.
func TestMan(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "0")
	dir := t.TempDir()
	require.Zero(t, newShell(t).run("man", dir).code)
	page := read(t, filepath.Join(dir, "terapush-push.1"))
	require.Contains(t, page, `"Jan 1970"`)
	require.Contains(t, page, "batch-rows")
}

// What stderr has: nothing with --quiet, and objects for a log collector.
func TestLog(t *testing.T) {
	s := newShell(t)
	r := s.run("push", "discard://u:pw@h", "--rows", "10", "--quiet")
	require.Zero(t, r.code)
	require.Empty(t, r.stderr)
	r = s.run("push", "discard://u:pw@h", "--rows", "10", "--log-format", "json", "--progress", "none")
	var line struct{ Level, Msg string }
	first, _, _ := strings.Cut(r.stderr, "\n")
	require.NoError(t, json.Unmarshal([]byte(first), &line), r.stderr)
	require.Equal(t, "WARN", line.Level)
	r = s.run("push", "discard://", "--resume", "9", "--log-format", "json")
	require.Equal(t, 2, r.code)
	require.NoError(t, json.Unmarshal([]byte(r.stderr), &line))
	require.Equal(t, "ERROR", line.Level)
	require.Contains(t, line.Msg, `no run "9"`)
}

// A file with any flag of push serves every command that reads it.
func TestOneFileForAllCommands(t *testing.T) {
	s, dir := newShell(t), t.TempDir()
	s.env["TERAPUSH_CONFIG"] = filepath.Join(dir, "config.yaml")
	plan, page := filepath.Join(dir, "plan.yaml"), filepath.Join(dir, "page.html")
	require.NoError(t, os.WriteFile(plan, []byte(quick), 0o600))
	require.NoError(t, os.WriteFile(s.env["TERAPUSH_CONFIG"],
		[]byte("report: "+page+"\nreport-to: "+dir+"\nfail-below: 1000TiB/s\n"), 0o600))
	for command, code := range map[string]int{
		"runs": 0, "verify discard:// --run 9": 2, "forget discard:// --run n": 2, "prepare discard:// --run-id n --create recreate": 2,
		"doctor --gbps 0.001": 0, "sweep discard:// --repeats 1 --plan " + plan: 0, "tune discard:// --dry-run": 0,
		"push discard:// -n 1000": 6,
	} {
		r := s.run(strings.Fields(command)...)
		require.Equal(t, code, r.code, "%s: %s", command, r.stderr)
		require.NotContains(t, r.stderr, "--config", command)
	}
	require.FileExists(t, page)
}

// A push that is too slow has its own exit code, and only if nothing else is wrong.
func TestFailBelow(t *testing.T) {
	for args, code := range map[string]int{
		"--fail-below 1KiB/s":     0,
		"--fail-below 1000TiB/s":  6,
		"--fail-below 1000TiB":    2,
		"--fail-below 1Tbps -n 0": 2,
	} {
		r := newShell(t).run(strings.Fields("push discard:// -n 1000 " + args)...)
		require.Equal(t, code, r.code, args)
		require.Equal(t, code == 6, strings.Contains(r.stderr, "of payload is below --fail-below 1000TiB/s"), r.stderr)
	}
	s := newShell(t)
	r := s.run("push", "discard://", "-n", "1000", "--warm-up", "1h", "--fail-below", "1KiB/s")
	require.Equal(t, 6, r.code)
	require.Contains(t, r.stderr, "the push ended within --warm-up 1h0m0s")
	require.Zero(t, s.run("push", "discard://", "-n", "1000").code)
	r = s.run("push", "discard://", "--resume", "last", "--fail-below", "1000TiB/s") // has nothing left to send
	require.Zero(t, r.code, r.stderr)
}

func TestMisspelledVariable(t *testing.T) {
	s := newShell(t)
	s.env["TERAPUSH_BATCHROWS"], s.env["TERAPUSH_BUDGET"] = "10", "1h" // the latter is sweep's and tune's
	r := s.run("push", "discard://", "--rows", "1e2", "--progress", "none")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stderr, "TERAPUSH_BATCHROWS is not read: did you mean TERAPUSH_BATCH_ROWS?")
	require.NotContains(t, r.stderr, "BUDGET")
}
