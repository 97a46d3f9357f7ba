package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/cli"
	"github.com/terapush/terapush/internal/golden"
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

func (s shell) run(args ...string) result {
	s.Helper()
	var stdout, stderr bytes.Buffer
	args = append([]string{}, args...) // for nil, cobra would take the test's own
	code := cli.Run(s.Context(), args, cli.Process{
		Stdout: &stdout, Stderr: &stderr, Signals: make(chan os.Signal),
		LookupEnv: func(name string) (string, bool) { text, ok := s.env[name]; return text, ok },
	})
	return result{code, stdout.String(), stderr.String()}
}

func TestMistakes(t *testing.T) {
	for command, want := range map[string]string{
		"pusj":                                        `command "pusj" does not exist; did you mean "push"?`,
		"push":                                        "push takes one TARGET: 0 arguments given",
		"push discard:// postgres://h/d":              "push takes one TARGET: 2 arguments given",
		"push discard:// --resume=":                   "--resume needs the id of a run",
		"push discard:// --row 1":                     "unknown flag: --row; did you mean --rows?",
		"push discard:// -x":                          "unknown shorthand flag: 'x'",
		"push discard:// --rows many":                 `invalid argument "many" for "--rows" flag`,
		"push discard:// --verify ful":                `did you mean "full"?`,
		"push postgre://h/d":                          `target scheme "postgre" does not exist; did you mean "postgres"?`,
		"push postgres://h/d --method copi":           `did you mean "copy"?`,
		"push discard:// --resume 20260101-000000-xx": `no run "20260101-000000-xx"`,
		"push discard:// --resume ../../etc":          `"../../etc" is not the id of a run`,
		"verify discard://":                           "--run is needed",
		"forget discard:// --run a/b":                 `"a/b" is not the id of a run`,
		"list method":                                 `did you mean "methods"?`,
		"version now":                                 "version takes no arguments: 1 argument given",
	} {
		r := newShell(t).run(strings.Fields(command)...)
		require.Equal(t, 2, r.code, "%s: %s", command, r.stderr)
		require.Contains(t, r.stderr, want, command)
		require.True(t, strings.HasPrefix(r.stderr, "terapush: "), r.stderr)
		require.Empty(t, r.stdout, command)
	}
}

func TestEveryMistakeOnALineOfItsOwn(t *testing.T) {
	r := newShell(t).run("push", "discard://", "--rows", "1", "--bytes", "1", "--retries", "-1")
	require.Equal(t, "terapush: --rows, --bytes and --duration exclude each other\nterapush: --retries -1: 0 or more\n", r.stderr)
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
	var report struct {
		Schema string
		Run    struct{ ID string }
		Result struct {
			Outcome string
			Rows    int64
		}
		Verify struct{ OK bool }
	}
	d := json.NewDecoder(strings.NewReader(r.stdout))
	require.NoError(t, d.Decode(&report))
	require.False(t, d.More(), "exactly one object")
	require.Equal(t, "terapush.report/v1", report.Schema)
	require.Equal(t, "ok", report.Result.Outcome)
	require.EqualValues(t, 1000, report.Result.Rows)
	require.True(t, report.Verify.OK)

	for _, command := range []string{"push discard:// --resume ", "verify discard:// --run "} {
		r = s.run(strings.Fields(command + report.Run.ID)...)
		require.Zero(t, r.code, r.stderr)
		require.Contains(t, r.stdout, "verify ok")
	}
	r = s.run("push", "discard://", "--resume", report.Run.ID, "--seed", "5")
	require.Equal(t, 2, r.code)
	require.Contains(t, r.stderr, "--seed cannot change in a resumed run: it was 1, now it is 5")
	r = s.run("forget", "discard://", "--run", report.Run.ID)
	require.Zero(t, r.code, r.stderr)
	r = s.run("verify", "discard://", "--run", report.Run.ID)
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

func TestEnvironment(t *testing.T) {
	s := newShell(t)
	s.env["TERAPUSH_ROWS"] = "123"
	s.env["TERAPUSH_STATE_DIR"] = t.TempDir()
	r := s.run("push", "discard://", "--json", "--progress", "none")
	require.Zero(t, r.code, r.stderr)
	require.Contains(t, r.stdout, `"rows": 123`)
	entries, err := os.ReadDir(s.env["TERAPUSH_STATE_DIR"])
	require.NoError(t, err)
	require.Len(t, entries, 1)
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
				text, err := os.ReadFile(path)
				require.NoError(t, err)
				require.NotContains(t, string(text), "hunter2", path)
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
	for _, args := range []string{"push discard://u:hunter2@h --rows 10", "doctor discard://u:hunter2@h", "sink --raw 0 --host nowhere.invalid --password hunter2"} {
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
