package push_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/runlog/runlogtest"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

const (
	// small is a run of 195 rows in 20 batches, the last of them short.
	small = "--rows 195 --batch-rows 10 --payload-bytes 16 --workers 4"
	// timed is a run by duration, to which its time is added.
	timed = "--distinct-bytes 1KiB --batch-rows 10 --payload-bytes 16 --duration "
)

func TestMain(m *testing.M) {
	*push.PollInterval = 20 * time.Millisecond
	os.Exit(m.Run())
}

// fixture is a database and a state folder: what outlives a process.
type fixture struct {
	*testing.T
	memory *loadertest.Memory
	state  string
	target string
	// hook is called before each call of the database, with its name, and after it with "after " and its name if it
	// succeeded. number is the batch's or group's, where there is one. Its error is the database's. It may be nil.
	hook     func(ctx context.Context, op string, number int64) error
	wrap     func(hooked) loader.Loader // gives the loader other features; may be nil
	claiming bool                       // the loader has claims
	prepared []loader.Preparation       // those that Prepare was called with
	drain    chan struct{}              // of the next process
	watch    func(push.Watched) (func(), error)
	log      strings.Builder
	open     atomic.Int64           // sessions
	version  string                 // that the server says
	classes  map[error]loader.Class // of errors that the database in memory does not know
	foreign  []string               // names of objects in the run's folder that are none of its batches
	files    *runlogtest.Files      // of --state-dir; nil without
}

func newFixture(t *testing.T) *fixture {
	return &fixture{
		T: t, memory: &loadertest.Memory{Identity: "table-1"}, state: filepath.Join(t.TempDir(), "state"), drain: make(chan struct{}),
		target: "memory://u@h/d",
	}
}

// failOn makes every call of op fail.
func (p *fixture) failOn(op string, err error) {
	p.on(op, func(context.Context) error { return err })
}

// failFirst makes the first calls of op fail, one with each of the errors.
func (p *fixture) failFirst(op string, errs ...error) {
	p.on(op, func(context.Context) (err error) {
		if len(errs) > 0 {
			err, errs = errs[0], errs[1:]
		}
		return err
	})
}

// then does something when the database is asked for op.
func (p *fixture) then(op string, do func()) {
	p.on(op, func(context.Context) error { do(); return nil })
}

func (p *fixture) on(op string, do func(context.Context) error) {
	p.hook = func(ctx context.Context, now string, _ int64) error {
		if now == op {
			return do(ctx)
		}
		return nil
	}
}

// at does something when the database is asked for op of one batch or group.
func (p *fixture) at(op string, number int64, do func() error) {
	p.hook = func(_ context.Context, now string, n int64) error {
		if now == op && n == number {
			return do()
		}
		return nil
	}
}

// first scripts faults for the first attempts at one batch or group, over all processes.
func first(number int64, faults ...loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(n int64, attempt int) loadertest.Fault {
		if n != number || attempt > len(faults) {
			return loadertest.Fault{}
		}
		return faults[attempt-1]
	}
}

// job is what the command line makes of its arguments.
func (p *fixture) job(args string) push.Job {
	p.Helper()
	drivers, err := loader.NewRegistry(driver{p.memory.Driver(), p})
	require.NoError(p, err)
	c := config.Push{}
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	require.NoError(p, f.Parse(strings.Fields(args)))
	require.NoError(p, config.Complete(f, func(string) (string, bool) { return "", false }, ""))
	own := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { own[flag.Name] = true })
	c.Target = p.target
	if c.State == "" {
		c.State = p.state
	}
	if c.Resume != "" && !config.IsRunName(c.Resume) {
		r, err := runlog.Read(c.State, c.Resume)
		require.NoError(p, err)
		require.NoError(p, config.Restore(f, r.Flags))
	}
	var files func(context.Context) (push.StateStore, error)
	if p.files != nil {
		files = func(context.Context) (push.StateStore, error) { return p.files, nil }
	}
	return push.Job{
		StateStore: files, Config: c, Drivers: drivers, Given: config.Given(f), Explicit: func(name string) bool { return own[name] },
		Drain: p.drain, Watch: p.watch, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}

// push is one process. Whatever its outcome, its report holds no null: what is empty is {} or [].
func (p *fixture) push(args string) (*report.Report, error) {
	p.Helper()
	r, err := push.Run(p.Context(), p.job(args))
	text, problem := json.Marshal(r)
	require.NoError(p, problem)
	require.NotContains(p, string(text), ":null")
	return r, err
}

// succeeds is push that has to.
func (p *fixture) succeeds(args string) *report.Report {
	p.Helper()
	r, err := p.push(args)
	require.NoError(p, err)
	require.Equal(p, report.OK, r.Result.Outcome)
	return r
}

// fails is push that must not succeed, with an outcome and a part of the error's text.
func (p *fixture) fails(args string, o report.Outcome, text string) *report.Report {
	p.Helper()
	r, err := p.push(args)
	require.ErrorContains(p, err, text)
	require.Equal(p, o, push.OutcomeOf(err), err.Error())
	require.Equal(p, o, r.Result.Outcome)
	return r
}

// verifies is the verify command, which has to succeed.
func (p *fixture) verifies(run string) *report.Report {
	p.Helper()
	r, err := push.Verify(p.Context(), p.job("--resume "+run))
	require.NoError(p, err)
	require.True(p, r.Verify.OK)
	return r
}

// exact checks that the table holds the rows first … first+rows−1, each once.
func (p *fixture) exact(first, rows int64) {
	p.Helper()
	seen := map[int64]bool{}
	for _, ref := range p.memory.Applied() {
		for row := ref.First; row < ref.First+ref.Rows; row++ {
			require.False(p, seen[row], "row %d is there twice", row)
			require.True(p, first <= row && row < first+rows, "row %d", row)
			seen[row] = true
		}
	}
	require.Len(p, seen, int(rows))
}

// run is the id of the only run in the state folder.
func (p *fixture) run() string {
	p.Helper()
	entries, err := os.ReadDir(p.state)
	require.NoError(p, err)
	require.Len(p, entries, 1)
	return entries[0].Name()
}

// forgetFolder makes room for another run.
func (p *fixture) forgetFolder() { require.NoError(p, os.RemoveAll(p.state)) }

func (p *fixture) record() runlog.Record {
	p.Helper()
	r, err := runlog.Read(p.state, p.run())
	require.NoError(p, err)
	return r
}

// pieces are the files of a run's journal.
func (p *fixture) pieces(run string) []string {
	p.Helper()
	paths, err := filepath.Glob(filepath.Join(p.state, run, "journal-*"))
	require.NoError(p, err)
	return paths
}

// journal is the text of the run's journal.
func (p *fixture) journal() (text string) {
	p.Helper()
	for _, piece := range p.pieces(p.run()) {
		one, err := os.ReadFile(piece)
		require.NoError(p, err)
		text += string(one)
	}
	return text
}

// damage makes the first piece of a run's journal unreadable behind its first line.
func (p *fixture) damage(run string) {
	p.Helper()
	piece := p.pieces(run)[0]
	text, err := os.ReadFile(piece)
	require.NoError(p, err)
	head, _, _ := bytes.Cut(text, []byte("\n"))
	require.NoError(p, os.WriteFile(piece, append(head, "\nhello\n"...), 0o600))
}

// claims counts the claims of a run, by its id or name.
func (p *fixture) claims(name string) int {
	p.Helper()
	l, err := p.memory.Driver().Open(p.Context(), loader.Target{}, loader.Deps{})
	require.NoError(p, err)
	n := 0
	known := map[string]bool{}
	for _, r := range p.memory.Runs() {
		if r.Name == name && !known[r.Run] {
			known[r.Run] = true
			require.NoError(p, l.(loader.Claims).Claimed(p.Context(), r.Run, func(int64, int64) error { n++; return nil }))
		}
	}
	return n
}

// states are those of the rows of a run.
func (p *fixture) states(name string) (all []loader.RunState) {
	for _, r := range p.memory.Runs() {
		if r.Name == name {
			all = append(all, r.State)
		}
	}
	return all
}

// killed runs a process of one worker until die is called. Its journal remains as it was when keep was first called.
// prepare sets up when both are.
func (p *fixture) killed(args string, prepare func(keep, die func())) (run string) {
	p.Helper()
	ctx, die := context.WithCancel(p.Context())
	kept := map[string][]byte{}
	keep := func() {
		if len(kept) > 0 {
			return
		}
		for _, piece := range p.pieces(p.run()) {
			text, err := os.ReadFile(piece)
			require.NoError(p, err)
			kept[piece] = text
		}
	}
	prepare(keep, die)
	_, err := push.Run(ctx, p.job(args+" --workers 1"))
	require.Error(p, err)
	require.NotEmpty(p, kept)
	p.hook = nil
	for _, piece := range p.pieces(p.run()) {
		require.NoError(p, os.Remove(piece))
	}
	for piece, text := range kept {
		require.NoError(p, os.WriteFile(piece, text, 0o600))
	}
	return p.run()
}

// kill runs a process that dies as soon as so many batches are in: its journal remains as it was when it began, and its
// connections are cut.
func (p *fixture) kill(args string, after int) (run string) {
	p.Helper()
	return p.killed(args, func(keep, die func()) {
		p.then("load", func() {
			keep()
			if len(p.memory.Applied()) >= after {
				die()
			}
		})
	})
}

// killAt runs a process that dies when op is called for the n-th time: its journal remains as it was then.
func (p *fixture) killAt(args, op string, n int) (run string) {
	p.Helper()
	calls := 0
	return p.killed(args, func(keep, die func()) {
		p.on(op, func(context.Context) error {
			if calls++; calls < n {
				return nil
			}
			keep()
			die()
			return errors.New("the process is gone")
		})
	})
}

// driver is the memory's, with options and the fixture's hooks.
type driver struct {
	loader.Driver
	fixture *fixture
}

func (d driver) Methods() []loader.Method {
	methods := d.Driver.Methods()
	for i := range methods {
		methods[i].Options = []loader.Option{{Name: "unlogged", Kind: loader.BoolOption}, {Name: "hint"}}
	}
	return methods
}

func (d driver) Open(ctx context.Context, t loader.Target, deps loader.Deps) (l loader.Loader, err error) {
	err = d.fixture.call(ctx, "open", 0, func() error {
		if l, err = d.Driver.Open(ctx, t, deps); err != nil {
			return err
		}
		h := hooked{l.(whole), d.fixture}
		if l = h; d.fixture.wrap != nil {
			l = d.fixture.wrap(h)
		}
		_, d.fixture.claiming = l.(loader.Claims)
		return nil
	})
	return l, err
}

func (d driver) Classify(err error) loader.Verdict {
	return loader.Judge(err, func(err error) (loader.Fault, bool) {
		v := d.Driver.Classify(err)
		for known, class := range d.fixture.classes {
			if errors.Is(err, known) {
				v.Class = class
			}
		}
		return loader.Fault{Verdict: v}, true
	})
}

// call is f between two calls of the hook.
func (p *fixture) call(ctx context.Context, op string, number int64, f func() error) error {
	if p.hook == nil {
		return f()
	}
	err := p.hook(ctx, op, number)
	if err == nil {
		err = f()
	}
	if err == nil && p.hook != nil {
		err = p.hook(ctx, "after "+op, number)
	}
	return err
}

// whole is all that the database in memory can do.
type whole interface {
	loader.Loader
	loader.Resolver
	loader.Claims
	loader.Prober
	loader.Counter
	loader.Fetcher
	loader.Sizer
	loader.Committer
	loader.Inventory
}

// hooked is a loader that calls the fixture's hook.
type hooked struct {
	whole
	*fixture
}

func (l hooked) Server() loader.Server {
	s := l.whole.Server()
	if l.version != "" {
		s.Version = l.version
	}
	return s
}

func (l hooked) Prepare(ctx context.Context, p loader.Preparation) (t loader.Table, err error) {
	err = l.call(ctx, "prepare", 0, func() error {
		l.prepared = append(l.prepared, p)
		if !l.claiming {
			p.Begin = nil
		}
		t, err = l.whole.Prepare(ctx, p)
		if p.Silent {
			t.Identity, t.HasRows = "", false
		}
		return err
	})
	return t, err
}

func (l hooked) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (proof loader.Proof, err error) {
	err = l.call(ctx, "probe", b.First, func() error { proof, err = l.whole.Probe(ctx, c, b); return err })
	return proof, err
}

func (l hooked) Reserve(ctx context.Context, from, rows, last int64) (first int64, err error) {
	err = l.call(ctx, "reserve", rows, func() error { first, err = l.whole.Reserve(ctx, from, rows, last); return err })
	return first, err
}

func (l hooked) Claimed(ctx context.Context, run string, f func(number, rows int64) error) error {
	return l.call(ctx, "claimed", 0, func() error { return l.whole.Claimed(ctx, run, f) })
}

func (l hooked) Announce(ctx context.Context, fingerprint int64) error {
	return l.call(ctx, "announce", 0, func() error { return l.whole.Announce(ctx, fingerprint) })
}

func (l hooked) Take(ctx context.Context, run string) (row loader.RunRow, err error) {
	err = l.call(ctx, "take", 0, func() error { row, err = l.whole.Take(ctx, run); return err })
	return row, err
}

func (l hooked) Settle(ctx context.Context, state loader.RunState, keys loader.KeyRange) error {
	return l.call(ctx, "settle "+string(state), 0, func() error { return l.whole.Settle(ctx, state, keys) })
}

func (l hooked) GiveBack(ctx context.Context) error {
	return l.call(ctx, "give back", 0, func() error { return l.whole.GiveBack(ctx) })
}

func (l hooked) Forget(ctx context.Context, run string) (claims int64, known bool, err error) {
	err = l.call(ctx, "forget", 0, func() error { claims, known, err = l.whole.Forget(ctx, run); return err })
	return claims, known, err
}

func (l hooked) Resolve(ctx context.Context, ref loader.Ref) (answer loader.Resolution, err error) {
	err = l.call(ctx, "resolve", ref.ID.Number, func() error { answer, err = l.whole.Resolve(ctx, ref); return err })
	if unknown := (cannotTell("")); errors.As(err, &unknown) {
		return loader.Resolution{Reason: string(unknown)}, nil
	}
	return answer, err
}

// cannotTell is the hook's error for a Resolve that answers that it does not know, for this reason.
type cannotTell string

func (c cannotTell) Error() string { return string(c) }

func (l hooked) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	return l.call(ctx, "count", 0, func() error { return l.whole.Count(ctx, g, f) })
}

func (l hooked) Commit(ctx context.Context, g loader.Group) (ack loader.Ack, err error) {
	err = l.call(ctx, "commit", g.ID.Number, func() error { ack, err = l.whole.Commit(ctx, g); return err })
	return ack, err
}

func (l hooked) Discard(ctx context.Context, g loader.Group) error {
	return l.call(ctx, "discard", g.ID.Number, func() error { return l.whole.Discard(ctx, g) })
}

func (l hooked) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	return l.call(ctx, "objects", 0, func() error {
		for _, name := range l.foreign {
			if err := f(name, -1, 1); err != nil {
				return err
			}
		}
		return l.whole.Objects(ctx, run, func(name string, number, bytes int64) error {
			return l.call(ctx, "object", number, func() error { return f(name, number, bytes) })
		})
	})
}

func (l hooked) Stored(ctx context.Context) (bytes int64, err error) {
	err = l.call(ctx, "stored", 0, func() error { bytes, err = l.whole.Stored(ctx); return err })
	return bytes, err
}

func (l hooked) Session(ctx context.Context, c loader.Contract) (s loader.Session, err error) {
	err = l.call(ctx, "session", 0, func() error { s, err = l.whole.Session(ctx, c); return err })
	l.open.Add(1)
	return hookedSession{s, l.fixture}, err
}

type hookedSession struct {
	loader.Session
	fixture *fixture
}

func (s hookedSession) Close() error {
	s.fixture.open.Add(-1)
	return s.Session.Close()
}

func (s hookedSession) Load(ctx context.Context, b *batch.Batch) (ack loader.Ack, err error) {
	err = s.fixture.call(ctx, "load", b.ID.Number, func() error { ack, err = s.Session.Load(ctx, b); return err })
	return ack, err
}
