package push_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/runlog/runlogtest"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// crash runs a process that dies, with its disk, when so many batches were sent.
func (p *fixture) crash(args string, after int) {
	p.Helper()
	ctx, die := context.WithCancel(p.Context())
	sent := 0
	p.then("load", func() {
		if sent++; sent > after {
			p.files.Dead.Store(true)
			die()
		}
	})
	_, err := push.Run(ctx, p.job(args+" --workers 1"))
	require.Error(p, err)
	require.Greater(p, sent, after, err.Error())
	p.hook = nil
	p.files.Dead.Store(false)
	p.forgetFolder()
}

// Where no claims say which batches are in, the journals in common files do: shards that die with their disks go on,
// and nothing is sent twice that was acknowledged or can be asked for.
func TestSharedJournal(t *testing.T) {
	t.Parallel()
	for _, d := range []loader.Dedup{loader.DedupKey, loader.DedupTx, loader.DedupNone} {
		for _, staged := range []bool{false, true} {
			if d == loader.DedupTx && !staged {
				continue // claims
			}
			t.Run(fmt.Sprint(d, staged), func(t *testing.T) {
				p, args := newFixture(t), nightly
				if staged {
					p, args = newStaged(t, d), nightly+" --commit-batches 8 --staging s3://bucket/prefix"
				} else {
					p.memory.Caps = &loader.Caps{Formats: formats(), DefaultBatchBytes: 1 << 20, Dedup: d}
				}
				p.files = runlogtest.New()
				for i := range 3 {
					shard := fmt.Sprintf("%s --shard %d/3", args, i)
					p.crash(shard, 0)
					p.crash(shard, 20)
					_, err := push.Verify(t.Context(), p.job(args))
					require.ErrorContains(t, err, " is not loaded to its end")
					r := p.succeeds(shard)
					p.forgetFolder()
					require.Equal(t, d != loader.DedupNone || staged, r.Run.Resumed, "acknowledgements alone are kept once a second")
					require.Less(t, r.Result.Attempts, r.Run.Shard.Rows/10+5)
					require.Equal(t, r.Run.Shard.Rows, r.Verify.FoundRows)
				}
				if d != loader.DedupNone {
					p.exact(0, 1000)
					r, err := push.Verify(t.Context(), p.job(args))
					require.NoError(t, err)
					require.Equal(t, []any{"count", true, int64(1000)}, []any{r.Verify.Mode, r.Verify.OK, r.Verify.FoundRows})
				}
				require.Zero(t, p.memory.Objects())
				require.Zero(t, p.succeeds(args+" --shard 1/3").Result.Attempts)
				p.fails(args+" --shard 1/4", push.Usage, "was begun with 3 shards")
				p.fails(args+" --shard 1/3 --seed 2", push.Usage, "was begun with other rows")
				require.NoError(t, push.Forget(t.Context(), p.job(strings.Replace(args, "--run-id", "--resume", 1))))
				require.Empty(t, p.files.All)
				p.memory.Truncate()
				p.succeeds(args)
				if d != loader.DedupNone {
					p.exact(0, 1000)
				}
			})
		}
	}
}

// Without common files the journal of such a run would be lost with the machine.
func TestNamedRunWithoutClaimsOrFiles(t *testing.T) {
	p := newLabelled(t)
	p.fails(nightly, push.Usage, "give --state-dir s3://bucket/prefix, the same to every process")
	p.files = runlogtest.New()
	p.failFirst("prepare", loadertest.ErrConnection) // of the one that removes the rows
	require.NoError(t, push.Prepare(t.Context(), p.job(nightly+" --create truncate")), "it does not wait for itself")
	p.hook = nil
	_, err := push.Verify(t.Context(), p.job(nightly))
	require.ErrorContains(t, err, "no shard of run nightly-")
	require.NoError(t, push.Forget(t.Context(), p.job(strings.Replace(nightly, "--run-id", "--resume", 1))))
	p.failOn("prepare", &loader.Error{Op: "drop", Applied: loader.No, Err: errors.New("no privilege")})
	require.ErrorContains(t, push.Prepare(t.Context(), p.job(nightly+" --create truncate")), "no privilege")
	p.hook = nil
	require.Empty(t, p.files.All, "what was refused is in nobody's way")
	require.NoError(t, push.Prepare(t.Context(), p.job(nightly+" --create truncate")))
	for name := range p.files.All { // as if prepare had died before it announced the run
		if !strings.HasSuffix(name, "/preparing") {
			delete(p.files.All, name)
		}
	}
	err = push.Prepare(t.Context(), p.job(nightly+" --create truncate --retry-for 0s"))
	require.ErrorIs(t, err, runlog.ErrPreparing)
	p.files = nil
}

// A process that comes while another one of its shard is at work ends that one, before its next attempt. Shared files
// that cannot be opened are waited for if the error says that the store is away, and no Files come with it.
func TestSharedFilesThatCannotBeOpened(t *testing.T) {
	closed := errors.New("closed")
	for waited, refusal := range map[bool]error{false: closed, true: loader.Judged(closed, loader.Lost(loader.ClassConnection))} {
		p := newLabelled(t)
		j := p.job(nightly + " --retry-for 0")
		j.StateStore = func(context.Context) (push.StateStore, error) { return nil, refusal }
		r, err := push.Run(t.Context(), j)
		require.ErrorIs(t, err, closed)
		require.Equal(t, report.Failed, r.Result.Outcome, "another start may help")
		require.Equal(t, waited, strings.Contains(err.Error(), "waiting for run nightly"), err.Error())
	}
}

func TestSharedJournalIsTakenOver(t *testing.T) {
	p := newLabelled(t)
	p.files = runlogtest.New()
	sent := 0
	p.on("load", func(context.Context) error {
		if sent++; sent == 10 {
			p.hook = nil
			p.forgetFolder()
			p.succeeds(nightly)
		}
		return nil
	})
	p.fails(nightly+" --workers 1", report.TakenOver, "another process has taken over run nightly")
	p.exact(0, 1000)
}
