package e2e_test

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
)

// A code block of the documentation is one of these:
//
//   - console: "$ command" and what it prints, on stdout and stderr. A page's blocks run in one shell, in order. Figures
//     may differ; "…" stands for any text in a line and, alone in a line, for any lines. After "<!-- not run: reason -->"
//     only the flags of its terapush commands are checked.
//   - sh: commands without output, of which only terapush's flags are checked.
//   - yaml that begins with "# NAME.yaml": that file, which the page's commands find in their folder.
//   - yaml that begins with "# .github/workflows/nightly.yml": TestDocumentedWorkflow.
//   - anything else is not checked.
type block struct {
	kind, text string
	notRun     bool
}

var (
	blocks  = regexp.MustCompile("(?ms)^(<!-- not run: [^\n]+ -->\n)?```([a-z]+)\n(.*?)^```$")
	command = regexp.MustCompile(`(?m)^\$ (?:.*\\\n)*.*\n?`)
	server  = regexp.MustCompile(`\$(DATABASE_URL|TERAPUSH_TEST_[A-Z0-9]+)`)
	ended   = regexp.MustCompile(`(?m)^@ (\d+)\n`) // a command, with its exit code

	fileName = regexp.MustCompile(`^# (\S+\.yaml)\n`)
)

// page is a Markdown file.
type page struct {
	path, text string
	blocks     []block
}

func eachPage(t *testing.T, test func(t *testing.T, p page)) {
	t.Parallel()
	var paths []string
	for _, pattern := range []string{"../*.md", "../docs/*.md"} {
		found, err := filepath.Glob(pattern)
		require.NoError(t, err)
		paths = append(paths, found...)
	}
	require.NotEmpty(t, paths)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		p := page{path: path, text: string(text)}
		for _, m := range blocks.FindAllStringSubmatch(p.text, -1) {
			p.blocks = append(p.blocks, block{kind: m[2], text: m[3], notRun: m[1] != ""})
		}
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			test(t, p)
		})
	}
}

// samples splits a console block into commands, each with what it prints.
func (b block) samples() (samples []string) {
	at := command.FindAllStringIndex(b.text, -1)
	for i := range at {
		end := len(b.text)
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		samples = append(samples, b.text[at[i][0]:end])
	}
	return samples
}

// commandOf is a sample's command.
func commandOf(sample string) string { return strings.TrimPrefix(command.FindString(sample), "$ ") }

// onPath is a folder for a PATH with a shell script as terapush.
func onPath(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	writeProgram(t, dir, []byte("#!/bin/sh\n"+script))
	return dir
}

// bash is a shell that a command without an end does not keep.
func bash(t *testing.T, script string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // a page has several sweeps
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, "/bin/bash", "-c", script)
	c.WaitDelay = time.Second
	return c
}

// Every terapush command of the documentation exists, with its flags and their values. The shell finds no other
// program.
func TestDocumentedFlags(t *testing.T) {
	eachPage(t, func(t *testing.T, p page) {
		script := "command_not_found_handle() { :; }\n"
		for _, b := range p.blocks {
			switch {
			case b.kind == "sh":
				script += b.text
			case b.kind == "console" && b.notRun:
				for _, sample := range b.samples() {
					script += commandOf(sample)
				}
			}
		}
		c := bash(t, script+"wait\n")
		c.Dir = t.TempDir()
		wrong := filepath.Join(c.Dir, "wrong")
		c.Env = append(cleanEnvironment(c.Dir), "PATH="+onPath(t, fmt.Sprintf(`
			# Help of the root command does not name the subcommand that is missing.
			out=$(%s "$@" --help 2>&1) && case $out in *" $1 "*) exit;; esac
			echo "terapush $*: $out" >>%s`, binary, wrong)))
		require.NoError(t, c.Run())
		out, _ := os.ReadFile(wrong) // not there if all is well
		require.Empty(t, string(out))
	})
}

// Every sample of the documentation is what its command prints.
func TestDocumentedOutput(t *testing.T) {
	eachPage(t, func(t *testing.T, p page) {
		dir, script := t.TempDir(), ""
		var samples []string
		for _, b := range p.blocks {
			if name := fileName.FindStringSubmatch(b.text); name != nil && b.kind == "yaml" {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name[1]), []byte(b.text), 0o600))
			}
			if b.kind == "console" && !b.notRun {
				samples = append(samples, b.samples()...)
			}
		}
		for _, sample := range samples {
			script += commandOf(sample) + "echo \"@ $?\"\n"
		}
		c := bash(t, script)
		c.Dir = dir
		c.Env = append(cleanEnvironment(dir), "PATH="+onPath(t, `exec `+binary+` "$@"`)+":"+os.Getenv("PATH"))
		c.Env = append(c.Env, serversIn(t, script)...)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		got, status := ended.Split(string(out), -1), ended.FindAllStringSubmatch(string(out), -1)
		require.Len(t, status, len(samples), "%s", out)
		for i, sample := range samples {
			assert.Equal(t, "0", status[i][1], "%sprints\n%s", commandOf(sample), got[i])
			want := strings.TrimPrefix(sample, "$ "+commandOf(sample))
			if !pattern(want).MatchString(masked(got[i])) {
				t.Errorf("%sprints\n%s\nwhere the page says\n%s", commandOf(sample), got[i], want)
			}
		}
	})
}

// Nights of the documented job whose pushes differ so much that no other load hides it. What GitHub has is made here: the
// repository of terapush, which holds the binary, and the artefact, of which gh is a function.
func TestDocumentedWorkflow(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/REPORTS.md")
	require.NoError(t, err)
	_, text, _ := strings.Cut(string(page), "```yaml\n# .github/workflows/nightly.yml\n")
	text, _, _ = strings.Cut(text, "```\n")
	var workflow struct {
		Jobs map[string]struct{ Steps []struct{ Run string } }
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
	// The last step uses an action that keeps this file, and comes only after steps that pass.
	require.Contains(t, text, "path: baseline.sweep.jsonl\n")

	dir := t.TempDir()
	kept := filepath.Join(dir, "kept")
	script := `set -e
gh() {
  case "$*" in
    "api repos/me/mine/actions/artifacts?name=baseline --jq "*) test ! -e ` + kept + ` || echo 7 ;;
    "run download 7 --name baseline") cp ` + kept + ` baseline.sweep.jsonl ;;
    *) echo "gh $*: not known"; return 1 ;;
  esac
}
`
	for _, step := range workflow.Jobs["speed"].Steps {
		script += "(\n:\n" + step.Run + ")\nPATH=$(cat \"$GITHUB_PATH\"):$PATH\n"
	}
	script += "cp baseline.sweep.jsonl " + kept

	origin := bash(t, `git init -q . && printf 'build:\n\tmkdir bin && cp "`+binary+`" bin/terapush\n' >Makefile && git add . &&
		git -c user.name=t -c user.email=t@localhost commit -qm t`)
	origin.Dir = t.TempDir()
	require.NoError(t, origin.Run())
	env := append(cleanEnvironment(dir), "DATABASE_URL="+newDatabase(t, postgres).url.String(), "GITHUB_REPOSITORY=me/mine",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=url."+origin.Dir+".insteadOf",
		"GIT_CONFIG_VALUE_0=https://github.com/terapush/terapush")

	const slow, fast = "batch_rows: 2, max_rate: 100KiB/s", "batch_rows: 20000"
	for _, night := range []struct {
		push    string
		repeats int
		passes  bool
		says    string // in the summary or, of a warning, in the log
		moves   bool   // the baseline
	}{
		{slow, 5, true, "There was no baseline", true},
		{fast, 5, true, "| faster |", true},
		{slow, 5, false, "| slower |", false},
		{fast, 2, true, "::warning::Inconclusive", false},
	} {
		c := bash(t, script)
		c.Dir = t.TempDir()
		plan := fmt.Sprintf("{name: nightly, push: {table: example, distinct_bytes: 1MiB, %s}, axes: {workers: 1}, "+
			"duration: 100ms, repeats: %d}", night.push, night.repeats)
		require.NoError(t, os.WriteFile(filepath.Join(c.Dir, "nightly.yaml"), []byte(plan), 0o600))
		summary, path := filepath.Join(c.Dir, "summary"), filepath.Join(c.Dir, "path")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		c.Env = append(slices.Clone(env), "RUNNER_TEMP="+c.Dir, "GITHUB_PATH="+path, "GITHUB_STEP_SUMMARY="+summary)

		before, _ := os.ReadFile(kept) // not there in the first night
		out, err := c.CombinedOutput()
		require.Equal(t, night.passes, err == nil, "%s", out)
		said, err := os.ReadFile(summary)
		require.NoError(t, err)
		require.Contains(t, string(said)+string(out), night.says)
		after, err := os.ReadFile(kept)
		require.NoError(t, err)
		require.Equal(t, night.moves, string(before) != string(after), "%s", out)
	}
}

// serversIn is the URLs of the servers that a script names, each with a database for this test. $DATABASE_URL is
// PostgreSQL.
func serversIn(t *testing.T, script string) (env []string) {
	for _, m := range slices.Compact(slices.Sorted(slices.Values(server.FindAllString(script, -1)))) {
		name := strings.TrimPrefix(m, "$")
		k := kind(strings.ToLower(strings.TrimPrefix(name, "TERAPUSH_TEST_")))
		switch k {
		case "s3":
			env = append(env, name+"="+backendtest.Server(t, name))
			continue
		case "database_url":
			k = postgres
		}
		env = append(env, name+"="+newDatabase(t, k).url.String())
	}
	return env
}

// ofOneMachine is what differs from one run of a sample to the next, and its mask.
var ofOneMachine = []struct {
	is    *regexp.Regexp
	masks string
}{
	{regexp.MustCompile(`\d{8}-\d{6}-[a-z2-7]{6}`), "RUN"},
	// A machine whose speed changes meanwhile, by other tests, is told so.
	{regexp.MustCompile(`(?m)^(not alike: the speed of|warning +The machine that runs terapush drifted).*\n`), ""},
	{regexp.MustCompile(`(?m)^bound by .*`), "bound by"},
	{regexp.MustCompile(`([0-9][0-9.,]*|\?)(e[-+]?[0-9]+)?( ?(ns|µs|ms|[smh]|[KMGT]?i?B|[MG]?bps)\b)?`), "#"},
	{regexp.MustCompile(`#+`), "#"}, // 1m30s
	{regexp.MustCompile(`[-+±]#`), "#"},
	{regexp.MustCompile(`(?m)[ \t]+`), " "},
	{regexp.MustCompile(`(?m)[ \t]+$`), ""},
}

func masked(text string) string {
	for _, m := range ofOneMachine {
		text = m.is.ReplaceAllString(text, m.masks)
	}
	return text
}

var elided = strings.NewReplacer(" …", ".*", "…", ".*")

// pattern is what an output has to be, masked.
func pattern(sample string) *regexp.Regexp {
	var want strings.Builder
	for line := range strings.Lines(masked(sample)) {
		if strings.TrimSpace(line) == "…" {
			want.WriteString(`(?:.*\n)*?`)
		} else {
			want.WriteString(elided.Replace(regexp.QuoteMeta(line)))
		}
	}
	return regexp.MustCompile(`\A` + want.String() + `\z`)
}

// Links lead to a file of the repository and, behind a #, to a heading of it.
func TestDocumentedLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	not := regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	eachPage(t, func(t *testing.T, p page) {
		for _, m := range link.FindAllStringSubmatch(blocks.ReplaceAllString(p.text, ""), -1) {
			to, err := url.Parse(m[1])
			if !assert.NoError(t, err) || to.Host != "" || to.Scheme != "" {
				continue
			}
			path := p.path
			if to.Path != "" {
				path = filepath.Join(filepath.Dir(p.path), to.Path)
			}
			if _, err = os.Stat(path); !assert.NoError(t, err) || to.Fragment == "" {
				continue
			}
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			var anchors []string
			for _, h := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(string(text), ""), -1) {
				anchors = append(anchors, strings.ReplaceAll(not.ReplaceAllString(strings.ToLower(h[1]), ""), " ", "-"))
			}
			assert.Contains(t, anchors, to.Fragment, m[1])
		}
	})
}
