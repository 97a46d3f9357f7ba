package push_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/push"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// small is a run of 195 rows in 20 batches, the last of them short.
const small = "--rows 195 --batch-rows 10 --payload-bytes 16 --workers 4"

// place is a database, a state folder and a place to meddle: what outlives a process.
type place struct {
	*testing.T
	memory *loadertest.Memory
	state  string
	// meddle is called before the database is, with "open", "prepare", "probe", "reserve", "claimed", "session", "load",
	// "resolve", "count", "stored", "commit", "discard", "objects", "object" or "forget", and after it with "reserved",
	// "counted" and "committed". number is the batch's or the group's, where there is one. Its error is the database's.
	meddle   func(ctx context.Context, op string, number int64) error
	prepared func(loader.Preparation) // told of every Prepare; may be nil
	drain    chan struct{}            // of the next process
	log      strings.Builder
	// finish makes the back-end a Finisher, and measured a Measurer; shelf makes it a store that has objects and no table.
	finish   func(ctx context.Context, all loader.KeyRange, rows int64) ([]string, error)
	measured func(ctx context.Context) (map[string]float64, []string)
	// opened and closed count the sessions of a Measurer.
	opened, closed atomic.Int64
	// cannotTell makes Resolve answer that it does not know, for this reason.
	cannotTell string
	shelf      *shelf
	version    string                 // that the server says
	bare       bool                   // the back-end cannot set keys aside
	classes    map[error]loader.Class // of errors that the database in memory does not know
	foreign    []string               // names of objects in the run's folder that are none of its batches
}

func newPlace(t *testing.T) *place {
	return &place{
		T: t, memory: &loadertest.Memory{Identity: "table-1"}, state: filepath.Join(t.TempDir(), "state"), drain: make(chan struct{}),
		meddle: func(context.Context, string, int64) error { return nil },
	}
}

// job is what the command line makes of its arguments.
func (p *place) job(args string) push.Job {
	p.Helper()
	drivers, err := loader.NewRegistry(meddler{p.memory.Driver(), p})
	require.NoError(p, err)
	c := config.Push{}
	f := pflag.NewFlagSet("push", pflag.ContinueOnError)
	c.Flags(f, drivers)
	require.NoError(p, f.Parse(strings.Fields(args)))
	require.NoError(p, config.Complete(f, func(string) (string, bool) { return "", false }, ""))
	own := map[string]bool{}
	f.Visit(func(flag *pflag.Flag) { own[flag.Name] = true })
	c.Target = "memory://u@h/d"
	if c.State == "" {
		c.State = p.state
	}
	if c.Resume != "" {
		r, err := runlog.Read(c.State, c.Resume)
		require.NoError(p, err)
		require.NoError(p, config.Restore(f, r.Flags))
	}
	return push.Job{
		Config: c, Drivers: drivers, Given: config.Given(f), Explicit: func(name string) bool { return own[name] },
		Drain: p.drain, Log: slog.New(slog.NewTextHandler(&p.log, nil)),
	}
}

// push is one process.
func (p *place) push(args string) (*report.Report, error) {
	p.Helper()
	return push.Run(p.Context(), p.job(args))
}

// succeeds is push that has to.
func (p *place) succeeds(args string) *report.Report {
	p.Helper()
	r, err := p.push(args)
	require.NoError(p, err)
	require.Equal(p, report.OK, r.Result.Outcome)
	return r
}

// fails is push that must not succeed, with an outcome and a part of the error's text.
func (p *place) fails(args string, o report.Outcome, text string) *report.Report {
	p.Helper()
	r, err := p.push(args)
	require.ErrorContains(p, err, text)
	require.Equal(p, o, push.OutcomeOf(err), err.Error())
	require.Equal(p, o, r.Result.Outcome)
	return r
}

// exact checks that the table holds the rows first … first+rows−1, each once.
func (p *place) exact(first, rows int64) {
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
func (p *place) run() string {
	p.Helper()
	entries, err := os.ReadDir(p.state)
	require.NoError(p, err)
	require.Len(p, entries, 1)
	return entries[0].Name()
}

func (p *place) record() runlog.Record {
	p.Helper()
	r, err := runlog.Read(p.state, p.run())
	require.NoError(p, err)
	return r
}

// claims counts the claims of a run.
func (p *place) claims(run string) int {
	p.Helper()
	l, err := p.memory.Driver().Open(p.Context(), loader.Target{}, loader.Deps{})
	require.NoError(p, err)
	n := 0
	require.NoError(p, l.(loader.Claims).Claimed(p.Context(), run, func(int64, int64) error { n++; return nil }))
	return n
}

// kill runs a process that dies as soon as so many batches are in: its journal remains as it was when it began, and its
// connections are cut.
func (p *place) kill(args string, after int) (run string) {
	p.Helper()
	ctx, die := context.WithCancel(p.Context())
	var journal []byte
	p.meddle = func(_ context.Context, op string, _ int64) error {
		if op == "load" && journal == nil {
			var err error
			journal, err = os.ReadFile(filepath.Join(p.state, p.run(), "journal.jsonl"))
			require.NoError(p, err)
		}
		if op == "load" && len(p.memory.Applied()) >= after {
			die()
		}
		return nil
	}
	j := p.job(args + " --workers 1")
	_, err := push.Run(ctx, j)
	require.Error(p, err)
	p.meddle = func(context.Context, string, int64) error { return nil }
	run = p.run()
	require.NoError(p, os.WriteFile(filepath.Join(p.state, run, "journal.jsonl"), journal, 0o600))
	return run
}

// whole is all that the database in memory can do.
type whole interface {
	loader.Loader
	loader.Resolver
	loader.Claims
	loader.Prober
	loader.Reserver
	loader.Counter
	loader.Fetcher
	loader.Sizer
	loader.Committer
	loader.Inventory
}

// meddler is a driver that asks its place before every call.
type meddler struct {
	loader.Driver
	place *place
}

func (d meddler) Open(ctx context.Context, t loader.Target, deps loader.Deps) (loader.Loader, error) {
	if err := d.place.meddle(ctx, "open", 0); err != nil {
		return nil, err
	}
	l, err := d.Driver.Open(ctx, t, deps)
	if err != nil {
		return nil, err
	}
	m := meddled{l.(whole), d.place}
	switch {
	case d.place.shelf != nil:
		return shelved{m, d.place.shelf}, nil
	case d.place.finish != nil:
		return finishing{m}, nil
	case d.place.measured != nil:
		return measuring{m}, nil
	case d.place.bare:
		return bare{m, m, m}, nil
	default:
		return m, nil
	}
}

// Classify knows the place's errors besides.
func (d meddler) Classify(err error) loader.Verdict {
	v := d.Driver.Classify(err)
	for known, class := range d.place.classes {
		if errors.Is(err, known) {
			v.Class = class
		}
	}
	return v
}

// bare is a back-end that can be asked, and that sets no keys aside.
type bare struct {
	loader.Loader
	loader.Resolver
	loader.Counter
}

// finishing is a back-end that shows rows later than it acknowledges them.
type finishing struct{ meddled }

func (l finishing) Finish(ctx context.Context, all loader.KeyRange, rows int64) ([]string, error) {
	return l.place.finish(ctx, all, rows)
}

// measuring is a back-end whose server counts what it does.
type measuring struct{ meddled }

func (l measuring) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := l.meddled.Session(ctx, c)
	if err != nil {
		return nil, err
	}
	l.place.opened.Add(1)
	return measuredSession{s, l.place}, nil
}

type measuredSession struct {
	loader.Session
	place *place
}

func (s measuredSession) Close() error {
	s.place.closed.Add(1)
	return s.Session.Close()
}

func (l measuring) Measured(ctx context.Context) (map[string]float64, []string) {
	return l.place.measured(ctx)
}

type meddled struct {
	whole
	place *place
}

func (l meddled) Server() loader.Server {
	s := l.whole.Server()
	if l.place.version != "" {
		s.Version = l.place.version
	}
	return s
}

func (l meddled) Prepare(ctx context.Context, p loader.Preparation) (loader.Table, error) {
	if err := l.place.meddle(ctx, "prepare", 0); err != nil {
		return loader.Table{}, err
	}
	if l.place.prepared != nil {
		l.place.prepared(p)
	}
	t, err := l.whole.Prepare(ctx, p)
	if p.Silent {
		t.Identity, t.HasRows = "", false
	}
	return t, err
}

func (l meddled) Probe(ctx context.Context, c loader.Contract, b *batch.Batch) (loader.Proof, error) {
	if err := l.place.meddle(ctx, "probe", b.First); err != nil {
		return loader.Proof{}, err
	}
	return l.whole.Probe(ctx, c, b)
}

func (l meddled) Reserve(ctx context.Context, run string, rows, last int64) (int64, error) {
	if err := l.place.meddle(ctx, "reserve", rows); err != nil {
		return 0, err
	}
	first, err := l.whole.Reserve(ctx, run, rows, last)
	if problem := l.place.meddle(ctx, "reserved", rows); problem != nil {
		return 0, problem
	}
	return first, err
}

func (l meddled) Claimed(ctx context.Context, run string, f func(number, rows int64) error) error {
	if err := l.place.meddle(ctx, "claimed", 0); err != nil {
		return err
	}
	return l.whole.Claimed(ctx, run, f)
}

func (l meddled) Forget(ctx context.Context, run string) (int64, error) {
	if err := l.place.meddle(ctx, "forget", 0); err != nil {
		return 0, err
	}
	return l.whole.Forget(ctx, run)
}

func (l meddled) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	if err := l.place.meddle(ctx, "resolve", ref.ID.Number); err != nil {
		return loader.Resolution{}, err
	}
	if l.place.cannotTell != "" {
		return loader.Resolution{Reason: l.place.cannotTell}, nil
	}
	return l.whole.Resolve(ctx, ref)
}

func (l meddled) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	if err := l.place.meddle(ctx, "count", 0); err != nil {
		return err
	}
	if err := l.whole.Count(ctx, g, f); err != nil {
		return err
	}
	return l.place.meddle(ctx, "counted", 0)
}

func (l meddled) Commit(ctx context.Context, g loader.Group) (loader.Ack, error) {
	if err := l.place.meddle(ctx, "commit", g.ID.Number); err != nil {
		return loader.Ack{}, err
	}
	ack, err := l.whole.Commit(ctx, g)
	if problem := l.place.meddle(ctx, "committed", g.ID.Number); problem != nil {
		return loader.Ack{}, problem
	}
	return ack, err
}

func (l meddled) Discard(ctx context.Context, g loader.Group) error {
	if err := l.place.meddle(ctx, "discard", g.ID.Number); err != nil {
		return err
	}
	return l.whole.Discard(ctx, g)
}

func (l meddled) Objects(ctx context.Context, run string, f func(name string, number, bytes int64) error) error {
	if err := l.place.meddle(ctx, "objects", 0); err != nil {
		return err
	}
	for _, name := range l.place.foreign {
		if err := f(name, -1, 1); err != nil {
			return err
		}
	}
	return l.whole.Objects(ctx, run, func(name string, number, bytes int64) error {
		if err := l.place.meddle(ctx, "object", number); err != nil {
			return err
		}
		return f(name, number, bytes)
	})
}

func (l meddled) Stored(ctx context.Context) (int64, error) {
	if err := l.place.meddle(ctx, "stored", 0); err != nil {
		return 0, err
	}
	return l.whole.Stored(ctx)
}

func (l meddled) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	if err := l.place.meddle(ctx, "session", 0); err != nil {
		return nil, err
	}
	s, err := l.whole.Session(ctx, c)
	return meddledSession{s, l.place}, err
}

type meddledSession struct {
	loader.Session
	place *place
}

func (s meddledSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if err := s.place.meddle(ctx, "load", b.ID.Number); err != nil {
		return loader.Ack{}, err
	}
	return s.Session.Load(ctx, b)
}
