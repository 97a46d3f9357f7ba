package e2e_test

import (
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/standin/doris"
)

var serversLine = regexp.MustCompile(`(?m)^servers (.+)$`)

// Each script of testdata/scripts shows what one feature does: commands, how they end, what they print, and what is on the
// server then. What needs a moment, a loop or arithmetic is a test in Go.
func TestScripts(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/scripts/*.txtar")
	require.NoError(t, err)
	require.NotEmpty(t, paths, "or nothing is tested")
	scripts := make(map[kind][]string)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		on := []string{"none"}
		if line := serversLine.FindSubmatch(text); line != nil {
			on = strings.Fields(string(line[1]))
		}
		for _, k := range on {
			scripts[kind(k)] = append(scripts[kind(k)], path)
		}
	}
	programs := t.TempDir()
	require.NoError(t, os.Symlink(binary, filepath.Join(programs, "terapush")))

	for k, files := range scripts {
		t.Run(string(k), func(t *testing.T) {
			t.Parallel() // or the scripts of one server would wait for the slowest of another
			testscript.Run(t, testscript.Params{
				Files: files,
				Cmds:  scriptCommands,
				Setup: func(env *testscript.Env) error {
					env.Values["script"] = &script{TB: env.T().(testing.TB), kind: k}
					env.Vars = append(env.Vars, scriptVariables(programs, env.WorkDir)...)
					return nil
				},
				Condition: func(is string) (bool, error) {
					if scripts[kind(is)] == nil {
						return false, fmt.Errorf("no script runs on %q", is)
					}
					return is == string(k), nil
				},
			})
		})
	}
}

// scriptVariables is a script's environment: terapush is found by its name, and keeps its runs in the script's folder.
func scriptVariables(programs, dir string) []string {
	password := os.Getenv("TERAPUSH_TEST_PASSWORD")
	env := []string{
		"PATH=" + programs + ":" + os.Getenv("PATH"), "HOME=" + dir,
		"TERAPUSH_STATE_DIR=" + filepath.Join(dir, "state"), "TERAPUSH_PROGRESS=none",
		"PASSWORD=" + password, "PASSWORD_IN_URL=" + strings.TrimPrefix(url.UserPassword("", password).String(), ":"),
	}
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_EC2_METADATA_DISABLED"} {
		env = append(env, name+"="+os.Getenv(name))
	}
	return env
}

// script is one that runs on a server.
type script struct {
	testing.TB
	ts *testscript.TestScript

	kind      kind
	*database // from command servers on
	cluster   *cluster
	store     *folder
	format    string // of the objects that exact looks for
}

// scriptCommands are those that testscript does not have.
var scriptCommands = map[string]func(ts *testscript.TestScript, neg bool, args []string){
	// servers KIND... is how a script says on which servers it runs, once on each. It makes a database there: $TARGET. A
	// missing server skips the script, and fails it in CI. The conditions [KIND] and [!KIND] tell servers apart.
	"servers": scriptCommand(func(s *script, _ ...string) {
		switch s.kind {
		case s3Kind:
			s.makeStore()
			s.database = s.store.database
		case dorisKind: // the stand-in
			s.cluster = newCluster(s, doris.Options{Backends: 3, GroupInterval: time.Second})
			s.database = s.cluster.database
			s.ts.Setenv("TERAPUSH_PASSWORD", dorisPassword)
		default:
			s.database = newDatabase(s, s.kind)
		}
		s.state = s.ts.Getenv("TERAPUSH_STATE_DIR")
		s.ts.Setenv("TARGET", s.target())
		s.ts.Setenv("SCHEME", s.url.Scheme)
		s.ts.Setenv("USER", s.url.User.Username())
		s.ts.Setenv("HOST", s.url.Host)
		s.ts.Setenv("DATABASE", s.name())
	}),

	// store makes a folder in the object store: $STORE, which is $STORE_PATH?$STORE_QUERY.
	"store": scriptCommand(func(s *script, _ ...string) { s.makeStore() }),

	// stage makes a stage of Databend's in that folder: $STAGE.
	"stage": scriptCommand(func(s *script, _ ...string) { s.ts.Setenv("STAGE", s.stage(s, s.store)) }),

	// put KEY TEXT writes an object into that folder.
	"put": scriptCommand(func(s *script, args ...string) { s.store.put(s, s.store.prefix+"/"+args[0], args[1]) }),

	// objects lists that folder on stdout, as KEY BYTES.
	"objects": scriptCommand(func(s *script, _ ...string) {
		out := s.ts.Stdout()
		for _, o := range s.store.list(s) {
			fmt.Fprintln(out, strings.TrimPrefix(o.key, s.store.prefix+"/"), o.bytes)
		}
	}),

	// exits CODE PROGRAM ARGUMENT... is exec of a program that ends with this code.
	"exits": scriptCommand(func(s *script, args ...string) {
		var exit *exec.ExitError
		err := s.ts.Exec(args[1], args[2:]...)
		require.ErrorAs(s, err, &exit)
		require.Equal(s, args[0], fmt.Sprint(exit.ExitCode()), "exit code")
	}),

	// run sets $RUN to the id of the only run in the state folder.
	"run": scriptCommand(func(s *script, _ ...string) { s.ts.Setenv("RUN", s.run(s)) }),

	// sql STATEMENT... asks the server by its own client library; stdout has the one column of the last answer.
	"sql": scriptCommand(func(s *script, statements ...string) {
		last := len(statements) - 1
		s.must(s, statements[:last]...)
		out := s.ts.Stdout()
		require.NoError(s, s.query(statements[last], func(scan func(...any) error) error {
			var value any
			err := scan(&value)
			if text, is := value.([]byte); is {
				value = string(text)
			}
			fmt.Fprintln(out, value)
			return err
		}), statements[last])
	}),

	// exact FLAG... [and FLAG...] asserts that the server holds the rows of pushes with such flags, by their keys one push
	// behind the other: each row once, every byte of it, and nothing else. It does not ask terapush.
	"exact": scriptCommand(func(s *script, args ...string) {
		var loads []load
		for flags := range strings.SplitSeq(strings.Join(args, "\x00"), "\x00and\x00") {
			loads = append(loads, s.load(strings.Split(flags, "\x00")))
		}
		switch s.kind {
		case s3Kind:
			s.store.holds(s, s.run(s), s.format, loads[0])
		case dorisKind:
			s.cluster.isExact(s, loads[0])
		default:
			s.isExact(s, loads...)
		}
	}),

	// hides SECRET... asserts that no form of it is in what was printed last, nor in the state folder.
	"hides": scriptCommand(func(s *script, secrets ...string) {
		for _, secret := range secrets {
			hides(s, secret, s.ts.ReadFile("stdout"), s.ts.ReadFile("stderr"), everythingIn(s, s.state))
		}
	}),
}

func scriptCommand(do func(s *script, args ...string)) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, neg bool, args []string) {
		if neg {
			ts.Fatalf("there is no ! of this command")
		}
		s := ts.Value("script").(*script)
		s.ts = ts
		do(s, args...)
	}
}

func (s *script) makeStore() {
	s.store = newFolder(s)
	s.ts.Setenv("STORE", s.store.target())
	path, query, _ := strings.Cut(s.store.target(), "?")
	s.ts.Setenv("STORE_PATH", path)
	s.ts.Setenv("STORE_QUERY", query)
}

// load is what a push with these flags loads.
func (s *script) load(flags []string) (l load) {
	f := flag.NewFlagSet("exact", flag.ContinueOnError)
	f.StringVar(&l.dataset, "dataset", "documents", "")
	f.StringVar(&l.table, "table", "", "")
	f.Int64Var(&l.rows, "rows", 0, "")
	f.Int64Var(&l.batchRows, "batch-rows", 0, "")
	f.Int64Var(&l.first, "first-key", 0, "")
	f.Uint64Var(&l.seed, "seed", 1, "")
	f.StringVar((*string)(&l.kind), "payload-kind", string(dataset.Bytes), "")
	f.StringVar(&s.format, "format", "", "")
	require.NoError(s, f.Parse(flags))
	if l.table == "" {
		l.table = l.dataset
	}
	if l.dataset == "documents" {
		l.payload = 512
	}
	return l
}
