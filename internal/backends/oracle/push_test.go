package oracle

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	fake "github.com/terapush/terapush/internal/fake/oracle"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/loader"
)

// product is the whole of terapush beside a stand-in, with a state folder that outlives its processes.
type product struct {
	*standIn
	state string
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
	if c.Resume != "" {
		r, err := runlog.Read(c.State, c.Resume)
		require.NoError(t, err)
		require.NoError(t, config.Restore(f, r.Flags))
	}
	return push.Run(ctx, push.Job{
		Config: c, Drivers: drivers, Given: config.Given(f), Explicit: func(name string) bool { return own[name] },
		Drain: make(chan struct{}), Log: slog.New(slog.NewTextHandler(&p.log, nil)),
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

// run is the id of the newest run in the state folder.
func (p *product) run(t *testing.T) string {
	t.Helper()
	entries, err := os.ReadDir(p.state)
	require.NoError(t, err)
	require.NotEmpty(t, entries)
	return entries[len(entries)-1].Name()
}

// journal is what the only run has written down; nil before it has begun.
func (p *product) journal() []byte {
	found, err := filepath.Glob(filepath.Join(p.state, "*", "journal.jsonl"))
	if err != nil || len(found) != 1 {
		return nil
	}
	text, err := os.ReadFile(found[0])
	if err != nil {
		return nil
	}
	return text
}

// kill runs a process that dies at the n-th request that contains the text: its connections are cut, and its journal
// remains as it was when it began to load.
func (p *product) kill(t *testing.T, args, at string, n int) (run string) {
	t.Helper()
	ctx, die := context.WithCancel(t.Context())
	defer die()
	var mu sync.Mutex
	var journal []byte
	seen := 0
	p.SetScript(func(s fake.Statement) fake.Fault {
		mu.Lock()
		defer mu.Unlock()
		if journal == nil && s.Is("INSERT") {
			journal = p.journal() // there is none yet when the probe inserts
		}
		if seen < n && journal != nil && s.Is(at) {
			if seen++; seen == n {
				die()
				return fake.Fault{Drop: true}
			}
		}
		return fake.Fault{}
	})
	_, err := p.push(ctx, t, args+" --workers 1")
	require.Error(t, err)
	p.SetScript(func(fake.Statement) fake.Fault { return fake.Fault{} })
	run = p.run(t)
	mu.Lock()
	defer mu.Unlock()
	require.NotEmpty(t, journal)
	require.NoError(t, os.WriteFile(filepath.Join(p.state, run, "journal.jsonl"), journal, 0o600))
	return run
}

// The whole product, by every method: small batches, of which many lose an answer, proven row by row.
func TestPushWithLostAnswers(t *testing.T) {
	for _, w := range ways(10) {
		if w.contract.Delivery != loader.ExactlyOnce {
			continue
		}
		t.Run(w.label, func(t *testing.T) {
			t.Parallel()
			s := startStandIn(t, w.native, fake.Options{})
			p := newProduct(t, s)
			s.SetScript(func(st fake.Statement) fake.Fault {
				if p.journal() == nil { // nothing is sent twice before the run has begun
					return fake.Fault{}
				}
				if commits := st.Kind == fake.Commit || st.Is(fake.Commit); !commits && !st.Is("INSERT INTO \"TERA\".\"TERAPUSH_CLAIMS") {
					return fake.Fault{} // with each row at risk most of the time would go into the pauses before retries
				}
				return lossy(st)
			})
			args := "--method " + w.contract.Method + " --dataset journal --rows 100 --batch-rows 5 --workers 4 --retries 100 --verify full"
			r := p.succeeds(t, args)
			assert.Equal(t, string(loader.ExactlyOnce), r.Plan.Delivery)
			assert.Equal(t, 100, s.Rows("JOURNAL"))
			assert.Len(t, s.Keys("JOURNAL"), 100)
			s.transacted(t)
		})
	}
}

func TestPushFast(t *testing.T) {
	s := startStandIn(t, false, fake.Options{IgnoreHints: true, DrainRows: 100})
	p := newProduct(t, s)
	r := p.succeeds(t, "--method fast --dataset journal --rows 500 --batch-rows 50 --workers 4 --verify full")
	assert.Equal(t, string(loader.AtLeastOnce), r.Plan.Delivery)
	assert.Len(t, s.Keys("JOURNAL"), 500)
	for _, st := range s.Log() {
		if st.Is("MEMOPTIMIZE_WRITE */") {
			assert.True(t, st.Explicit)
		}
	}
	_, err := newProduct(t, s).push(t.Context(), t, "--method fast --dataset journal --table other --rows 500 --delivery exactly-once")
	require.ErrorContains(t, err, "exactly")
}

// Rows that Fast Ingest has acknowledged and not kept, or kept twice, are found, and the run is no success.
func TestPushFastLosesRows(t *testing.T) {
	for label, fault := range map[string]fake.Fault{"lost": {Lose: 3}, "doubled": {Twice: true}} {
		t.Run(label, func(t *testing.T) {
			s := startStandIn(t, false, fake.Options{Script: fake.At("MEMOPTIMIZE_WRITE */", 3, fault)})
			p := newProduct(t, s)
			found, reason := 197, "short"
			if label == "doubled" { // at least once forgives what is sent again, and nothing was
				found, reason = 220, "doubled"
			}
			r, err := p.push(t.Context(), t, "--method fast --dataset journal --rows 200 --batch-rows 20 --workers 2 --verify count")
			require.Error(t, err)
			assert.NotEqual(t, report.OK, r.Result.Outcome)
			assert.Equal(t, found, s.Rows("JOURNAL"))
			assert.True(t, r.Verify.Ran)
			assert.False(t, r.Verify.OK)
			assert.EqualValues(t, found, r.Verify.FoundRows)
			require.Len(t, r.Verify.BadBatches, 1)
			assert.Equal(t, reason, r.Verify.BadBatches[0].Reason)
		})
	}
}

// A process that dies between claim and commit, at the commit or behind it leaves a run that is resumed and ends exact.
func TestPushIsResumed(t *testing.T) {
	for _, method := range []string{methodSingle, methodBatch, methodArray} {
		for _, at := range []string{`INTO "TERA"."JOURNAL"`, fake.Commit} {
			t.Run(method+" at "+at, func(t *testing.T) {
				s := startStandIn(t, false, fake.Options{})
				p := newProduct(t, s)
				args := "--method " + method + " --dataset journal --rows 100 --batch-rows 10 --verify full"
				run := p.kill(t, args, at, 4)
				assert.Less(t, s.Rows("JOURNAL"), 100)
				p.succeeds(t, "--resume "+run)
				assert.Equal(t, 100, s.Rows("JOURNAL"))
				assert.Len(t, s.Keys("JOURNAL"), 100)
			})
		}
	}
}

// Groups whose answers are lost are asked about, and loaded again only where they are not in.
func TestPushThroughAStore(t *testing.T) {
	t.Parallel()
	s, b := startWithStore(t, fake.Options{})
	p := newProduct(t, s)
	s.SetScript(func(st fake.Statement) fake.Fault {
		if p.journal() == nil {
			return fake.Fault{}
		}
		return lossy(st)
	})
	via := viaOf(b)
	args := fmt.Sprintf("--method cloud-copy --via s3://%s/%s?%s --dataset people --rows 300 --batch-rows 10 --commit-batches 3 --workers 4 --retries 100 --verify full",
		via.Hosts[0], via.Database, via.Params.Encode())
	p.succeeds(t, args)
	assert.Equal(t, 300, s.Rows("PEOPLE"))
	assert.Len(t, s.Keys("PEOPLE"), 300)
	s.transacted(t)
}

// Whole runs of every dataset, each proven row by row and gone on with, by each way in; then the table is emptied and filled
// anew, whoever filled it before.
func TestPushEveryDataset(t *testing.T) {
	for _, dataset := range []string{"pairs", "lineitem", "httplogs"} {
		for _, method := range []string{methodSingle, methodBatch, methodArray, methodFast, methodDirect} {
			t.Run(dataset+" "+method, func(t *testing.T) {
				t.Parallel()
				s := startStandIn(t, method == methodDirect, fake.Options{DrainRows: 50, NumericCharacters: ",."})
				p := newProduct(t, s)
				args := "--method " + method + " --dataset " + dataset + " --table t --primary-key --batch-rows 33 --workers 3 --verify full "
				r := p.succeeds(t, args+"--rows 200")
				assert.EqualValues(t, 200, r.Verify.FoundRows)
				r = p.succeeds(t, args+"--rows 101 --append")
				assert.EqualValues(t, 200, r.Plan.FirstKey)
				assert.Equal(t, 301, s.Rows("T"))
				_, err := p.push(t.Context(), t, args+"--rows 200")
				require.ErrorContains(t, err, "holds rows")
				p.succeeds(t, args+"--rows 150 --create truncate")
				assert.Equal(t, 150, s.Rows("T"))
			})
		}
	}
}
