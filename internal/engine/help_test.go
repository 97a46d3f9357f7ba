package engine_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/engine"
	"github.com/terapush/terapush/internal/engine/retry"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/internal/stats"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/event"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

const (
	batchRows  = 10
	lastRows   = 3 // of the last batch
	encodedRow = 8
)

// bench is an engine on a database in memory, with everything a test looks at.
type bench struct {
	*testing.T
	memory *loadertest.Memory
	loader *spy
	config engine.Config
	source *batches
	progress
	log   bytes.Buffer
	drain chan struct{}
}

func newBench(t *testing.T, count int64, m *loadertest.Memory) *bench {
	b := &bench{T: t, memory: m, source: &batches{batches: count}, drain: make(chan struct{})}
	l, err := m.Driver().Open(t.Context(), loader.Target{}, loader.Deps{})
	require.NoError(t, err)
	b.loader = &spy{database: l.(database)}
	dedup := l.Caps().Dedup
	b.config = engine.Config{
		Target: engine.Target{
			Loader: b.loader, Classify: m.Driver().Classify,
			Contract: loader.Contract{Delivery: l.Caps().Delivery(), Dedup: dedup, BatchRows: batchRows},
		},
		Source: b.source, Progress: &b.progress, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
		Workers: 4, Retry: retry.Policy{Retries: 8},
	}
	b.end, b.note = count, b.journal.add
	return b
}

// labelled returns a bench on a database that knows batches by their labels, which are checks and no locks.
func labelled(t *testing.T, batches int64, m *loadertest.Memory) *bench {
	m.Caps = &loader.Caps{Dedup: loader.DedupKey}
	return newBench(t, batches, m)
}

// locking returns a bench on a database whose labels lock: a second attempt finds the first, so it is no Resolver.
func locking(t *testing.T, batches int64, m *loadertest.Memory) *bench {
	b := labelled(t, batches, m)
	b.config.Loader = struct{ loader.Loader }{b.loader}
	return b
}

// atLeastOnce returns a bench on a database that recognises no batch.
func atLeastOnce(t *testing.T, batches int64, m *loadertest.Memory) *bench {
	m.Caps = &loader.Caps{}
	return newBench(t, batches, m)
}

// staged returns a bench whose batches are stored first and committed four at a time.
func staged(t *testing.T, batches int64, m *loadertest.Memory) *bench {
	m.Caps = &loader.Caps{Dedup: loader.DedupKey, Staged: true}
	b := newBench(t, batches, m)
	b.config.Contract.GroupBatches, b.config.Contract.Commits = 4, 2
	return b
}

// run runs the engine, and checks what holds however it ends.
func (b *bench) run(ctx context.Context) (engine.Result, event.Snapshot, error) {
	b.Helper()
	b.config.Stats = stats.New(stats.Options{Workers: b.config.Workers})
	b.config.Stats.Phase(map[bool]event.Phase{false: event.Load, true: event.Stage}[b.config.Contract.Staged()])
	b.config.Features = loader.FeaturesOf(b.config.Loader)
	result, err := engine.Run(ctx, b.drain, b.config)
	require.Zero(b, b.source.out.Load(), "batches that were not given back")
	require.Zero(b, b.loader.open.Load(), "sessions that were not closed")
	s := b.config.Stats.Snapshot()
	require.EqualValues(b, len(result.Unknown), s.UnknownBatches)
	require.Zero(b, s.BytesInFlight)
	return result, s, err
}

// exact checks that every batch is in, once and whole.
func (b *bench) exact() {
	b.Helper()
	seen := map[int64]int{}
	for _, ref := range b.memory.Applied() {
		seen[ref.ID.Number]++
		require.Equal(b, b.source.ref(ref.ID.Number), ref)
	}
	require.Len(b, seen, int(b.source.batches))
	for number, times := range seen {
		require.Equal(b, 1, times, "batch %d", number)
	}
}

// batches makes batches of row numbers, and counts those that are out.
type batches struct {
	source.Source // nil: the engine asks for no more than Span and Batch
	batches       int64
	out           atomic.Int64
}

func (s *batches) ref(number int64) loader.Ref {
	r := loader.Ref{ID: batch.ID{Run: "r", Number: number}, First: number * batchRows, Rows: batchRows}
	if number == s.batches-1 {
		r.Rows = lastRows
	}
	return r
}

func (s *batches) Span(number int64) (first, rows int64) {
	r := s.ref(number)
	return r.First, r.Rows
}

func (s *batches) Proof() source.Proof { return source.Proof{Dataset: keyed{}} }

// keyed is a dataset that is only there.
type keyed struct{ dataset.Dataset }

func (s *batches) Batch(ctx context.Context, number int64) (*batch.Batch, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if number >= s.batches {
		return nil, &source.EndError{Batches: s.batches}
	}
	r := s.ref(number)
	b := &batch.Batch{
		ID: r.ID, First: r.First, Rows: r.Rows, Payload: r.Rows * encodedRow,
		Free: func() { s.out.Add(-1) },
	}
	for i := range r.Rows {
		b.Encoded = binary.BigEndian.AppendUint64(b.Encoded, uint64(r.First+i))
	}
	s.out.Add(1)
	b.Hold()
	return b, nil
}

// database is what the engine needs of the one in memory.
type database interface {
	loader.Loader
	loader.Resolver
	loader.Committer
}

// spy stands between engine and loader: it counts sessions, and lets a test take the place of its calls.
type spy struct {
	database
	open    atomic.Int64
	load    func(ctx context.Context, b *batch.Batch, next loader.Session) (loader.Ack, error)
	resolve func(ctx context.Context, ref loader.Ref, next loader.Resolver) (loader.Resolution, error)
	discard error // of Discard
	asked   atomic.Int64
	refused map[int]error // the n-th session, from 1
}

func (s *spy) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	if err := s.refused[int(s.asked.Add(1))]; err != nil {
		return nil, err
	}
	next, err := s.database.Session(ctx, c)
	if err != nil {
		return nil, err
	}
	s.open.Add(1)
	return &spySession{Session: next, spy: s}, nil
}

func (s *spy) Resolve(ctx context.Context, ref loader.Ref) (loader.Resolution, error) {
	if s.resolve != nil {
		return s.resolve(ctx, ref, s.database)
	}
	return s.database.Resolve(ctx, ref)
}

func (s *spy) Discard(ctx context.Context, g loader.Group) error {
	if s.discard != nil {
		return s.discard
	}
	return s.database.Discard(ctx, g)
}

type spySession struct {
	loader.Session
	spy *spy
}

func (s *spySession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.spy.load != nil {
		return s.spy.load(ctx, b, s.Session)
	}
	return s.Session.Load(ctx, b)
}

func (s *spySession) Close() error {
	s.spy.open.Add(-1)
	return s.Session.Close()
}

// progress is what a test says of earlier processes, and keeps what this one does.
type progress struct {
	end     int64
	done    func(number int64) bool // nil: none is
	begun   map[int64]engine.Attempts
	groups  map[int64]engine.Attempts
	stored  []engine.Stored
	resumed bool
	note    func(event.Event) error
	journal journal
}

func (p *progress) Range() (first, end int64)                  { return 0, p.end }
func (p *progress) Done(number int64) bool                     { return p.done != nil && p.done(number) }
func (p *progress) Attempts(number int64) engine.Attempts      { return p.begun[number] }
func (p *progress) GroupAttempts(number int64) engine.Attempts { return p.groups[number] }
func (p *progress) Stored() []engine.Stored                    { return p.stored }
func (p *progress) Resumed() bool                              { return p.resumed }
func (p *progress) Note(e event.Event) error                   { return p.note(e) }

// journal keeps the events.
type journal struct {
	mu     sync.Mutex
	events []event.Event
}

func (j *journal) add(e event.Event) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.events = append(j.events, e)
	return nil
}

// about returns the events of a batch, or of the commit group that begins with it, in order.
func (j *journal) about(first int64, group bool) (all []event.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Batch == first && group == (e.Members > 0) {
			all = append(all, e)
		}
	}
	return all
}

func (j *journal) outcomes(number int64) []event.Outcome     { return outcomes(j.about(number, false)) }
func (j *journal) groupOutcomes(first int64) []event.Outcome { return outcomes(j.about(first, true)) }

func outcomes(events []event.Event) (all []event.Outcome) {
	for _, e := range events {
		all = append(all, e.Outcome)
	}
	return all
}

// always scripts one fault for all attempts.
func always(f loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(int64, int) loadertest.Fault { return f }
}

// at scripts faults for the first attempts at one batch or group.
func at(number int64, faults ...loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(n int64, attempt int) loadertest.Fault {
		if n == number && attempt <= len(faults) {
			return faults[attempt-1]
		}
		return loadertest.Fault{}
	}
}

// atEveryThird scripts a fault for the first attempt at every third batch.
func atEveryThird(f loadertest.Fault) func(int64, int) loadertest.Fault {
	return func(number int64, attempt int) loadertest.Fault {
		if number%3 == 1 && attempt == 1 {
			return f
		}
		return loadertest.Fault{}
	}
}

// subtest runs f in a bubble, where time passes only while all goroutines wait.
func subtest(t *testing.T, name string, f func(t *testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}
