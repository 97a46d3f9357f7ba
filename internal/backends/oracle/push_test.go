package oracle

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/backends/backendtest"
	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	fake "github.com/terapush/terapush/internal/standin/oracle"
	"github.com/terapush/terapush/pkg/loader"
)

// loggingTo are dependencies whose log can be read.
func loggingTo(w io.Writer) loader.Deps {
	deps := backendtest.Deps()
	deps.Log = slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return deps
}

// product is the whole of terapush beside a stand-in, with a state folder that outlives its processes. The binary cannot
// be tested so: it has no client for the stand-in.
type product struct {
	*standIn
	state string
	like  string // the table of --like
	log   strings.Builder
}

func newProduct(t *testing.T, s *standIn) *product {
	return &product{standIn: s, state: filepath.Join(t.TempDir(), "state")}
}

// push is one process.
func (p *product) push(ctx context.Context, t *testing.T, args string) (*report.Report, error) {
	t.Helper()
	drivers, err := loader.NewRegistry(p.backend)
	require.NoError(t, err)
	c := config.Push{}
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	require.NoError(t, f.Parse(strings.Fields(args)))
	require.NoError(t, config.Complete(f, func(string) (string, bool) { return "", false }, ""))
	own := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { own[flag.Name] = true })
	c.Target = fmt.Sprintf("oracle://tera:%s@%s/free", secret, p.Address())
	c.State = p.state
	if p.like != "" {
		c.Own, c.LikeTable = p.specOf(t, p.like), loader.TableName{Schema: "TERA", Name: p.like}
	} else {
		require.NoError(t, c.ReadSpec())
	}
	if c.Own != nil {
		d, err := c.Own.Compile(c.Seed)
		require.NoError(t, err)
		p.Know(d.Schema())
	}
	if c.Resume != "" {
		r, err := runlog.Read(c.State, c.Resume)
		require.NoError(t, err)
		require.NoError(t, config.Restore(f, r.Flags))
	}
	return push.Run(ctx, push.Job{
		Config: c, Drivers: drivers, Given: config.Given(f), Explicit: func(name string) bool { return own[name] },
		Drain: make(chan struct{}), Log: slog.New(slog.NewTextHandler(&p.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
}

func (p *product) succeeds(t *testing.T, args string) *report.Report {
	t.Helper()
	r, err := p.push(t.Context(), t, args)
	require.NoError(t, err, p.log.String())
	require.Equal(t, report.OK, r.Result.Outcome)
	require.NotContains(t, p.log.String(), secret)
	return r
}

// holds checks that a table has so many rows, each once.
func (p *product) holds(t *testing.T, table string, rows int) {
	t.Helper()
	assert.Equal(t, rows, p.Rows(table))
	assert.Len(t, p.Counts(table), rows)
	p.transacted(t)
}

// run is the id of the only run; "" before it has begun.
func (p *product) run() string {
	found, err := filepath.Glob(filepath.Join(p.state, "*", "journal-000000000001.jsonl"))
	if err != nil || len(found) != 1 {
		return ""
	}
	return filepath.Base(filepath.Dir(found[0]))
}

// begun asks the script only when the run has begun: before, nothing is sent again.
func (p *product) begun(script func(fake.Request) fake.Fault) {
	p.SetScript(func(r fake.Request) fake.Fault {
		if p.run() == "" {
			return fake.Fault{}
		}
		return script(r)
	})
}

// lossy loses the answer to one order to commit in five.
func lossy(r fake.Request) fake.Fault {
	return fake.Fault{CutAnswer: r.SQL == fake.Commit && r.Number%5 == 0}
}

// Small batches, of which many lose an answer, end proven row by row. The table is continued by --append, refused, and
// begun again by --create truncate.
func TestPush(t *testing.T) {
	for dataset, method := range map[string]string{
		"pairs": methodSingle, "lineitem": methodArray, "httplogs": methodFast, "people": methodDirect, "journal": methodBatch,
	} {
		t.Run(dataset+" "+method, func(t *testing.T) {
			t.Parallel()
			p := newProduct(t, startStandIn(t, fake.Options{Native: method == methodDirect, DrainRows: 50}))
			args := "--method " + method + " --dataset " + dataset +
				" --table t --primary-key --batch-rows 5 --workers 4 --retries 100 --verify full "
			if method != methodFast && method != methodSingle { // which are at least once
				p.begun(lossy)
			}
			r := p.succeeds(t, args+"--rows 100")
			assert.EqualValues(t, 100, r.Verify.FoundRows)
			p.SetScript(nil)
			r = p.succeeds(t, args+"--rows 52 --append")
			assert.EqualValues(t, 100, r.Plan.FirstKey)
			p.holds(t, "T", 152)
			_, err := p.push(t.Context(), t, args+"--rows 100")
			require.ErrorContains(t, err, "holds rows")
			p.succeeds(t, args+"--rows 51 --create truncate")
			p.holds(t, "T", 51)
		})
	}
}

// single commits parts of a batch. After a lost answer all of it is sent again, and the proof finds the rows that are
// there twice.
func TestSingleIsProven(t *testing.T) {
	for fault, want := range map[string]report.Outcome{"": report.OK, "a lost answer": report.VerificationFailed} {
		p := newProduct(t, startStandIn(t, fake.Options{}))
		if fault != "" {
			p.begun(fake.At(fake.Commit, 4, fake.Fault{CutAnswer: true}))
		}
		r, _ := p.push(t.Context(), t, "--method single --dataset pairs --table t "+
			"--rows 30 --batch-rows 10 --workers 1 --verify full")
		require.Equal(t, want, r.Result.Outcome, p.log.String())
		require.Len(t, p.Counts("T"), 30, "no row is missing")
		p.transacted(t)
	}
}

// A run that is broken off at a commit is resumed, and ends exact: by arrays, and with a commit for each row.
func TestPushIsResumed(t *testing.T) {
	for method, size := range map[string]int{methodArray: 10, methodBatch: 1} {
		t.Run(method, func(t *testing.T) {
			p := newProduct(t, startStandIn(t, fake.Options{}))
			ctx, breakOff := context.WithCancel(t.Context())
			defer breakOff()
			at := fake.At(fake.Commit, 4, fake.Fault{CutAnswer: true})
			p.begun(func(r fake.Request) fake.Fault {
				f := at(r)
				if f.CutAnswer {
					breakOff()
				}
				return f
			})
			_, err := p.push(ctx, t, fmt.Sprintf(
				"--method %s --dataset journal --rows 100 --batch-rows %d --workers 1 --verify full", method, size))
			require.Error(t, err)
			assert.Less(t, p.Rows("JOURNAL"), 100)
			p.SetScript(nil)
			p.succeeds(t, "--resume "+p.run())
			p.holds(t, "JOURNAL", 100)
		})
	}
}

// Rows of the user's own datasets are found again by a UUID, and by two columns.
func TestPushKeys(t *testing.T) {
	for key, columns := range map[string]string{
		"uuid":  "  id: {type: uuid, uuid: v4}\n",
		"text":  "  id: {type: text(36), uuid: v7}\n",
		"pair":  "  a: {type: int, sequence: {start: 5, every: 3}}\n  b: {type: smallint, sequence: {start: 1, cycle: 3}}\n",
		"small": "  id: {type: int unsigned, sequence: {start: 7}}\n",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			p := newProduct(t, startStandIn(t, fake.Options{Native: key == "text"}))
			file, keys := filepath.Join(t.TempDir(), "own.yaml"), "[id]"
			if key == "pair" {
				keys = "[a, b]"
			}
			text := "version: 1\nkey: " + keys + "\ncolumns:\n" + columns +
				"  note: {type: text(9), text: {length: 1..9}, nulls: 30%}\n  paid: {type: boolean, values: [true, false], nulls: 50%}\n"
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
			p.begun(lossy)
			p.succeeds(t, "--dataset "+file+" --table t --rows 120 --batch-rows 7 --retries 100 --verify full")
			p.holds(t, "T", 120)
		})
	}
}

// A text that may be empty or NULL would come back as another one, and stops the run before it begins.
func TestPushRefusesEmptyBesideNull(t *testing.T) {
	p := newProduct(t, startStandIn(t, fake.Options{}))
	file := filepath.Join(t.TempDir(), "own.yaml")
	text := "version: 1\ncolumns:\n  id: {type: bigint, sequence: {start: 1}}\n  note: {type: text(9), text: {length: 0..9}, nulls: 30%}\n"
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	_, err := p.push(t.Context(), t, "--dataset "+file+" --table t --rows 500 --batch-rows 50 --retries 0")
	require.ErrorContains(t, err, "column note: some values are NULL and others are empty")
	assert.Zero(t, p.Rows("T"))
}
