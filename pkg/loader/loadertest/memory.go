package loadertest

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Memory is a database in this process: one table, its claims, and faults that follow a script. It never looks at the
// encoded bytes and keeps only which rows it was given, so terabytes fit. It outlives its loaders, as a server does.
// The zero value works; fields are set before the first use.
type Memory struct {
	// Script says what goes wrong with an attempt, counted from 1 for every batch number. nil: nothing.
	Script func(number int64, attempt int) Fault
	// Caps replace the ones of a database with transactions.
	Caps *loader.Caps
	// Row makes the values for Fetch and the lengths for Count. nil: Fetch finds nothing, lengths are 0.
	Row func(number int64) []any
	// Identity is what Prepare says of the table.
	Identity string
	// Unprovable is the reason why Probe finds the table not transactional; "": it is.
	Unprovable string

	mu       sync.Mutex
	schema   rows.Schema
	applied  []loader.Ref
	claims   map[batch.ID]loader.Ref
	reserved map[string]loader.KeyRange
	attempts map[int64]int
	resolved int
	sessions int
}

// Fault is what goes wrong with one attempt; the zero value is nothing.
type Fault struct {
	Delay   time.Duration // wait first
	Before  error         // fail before anything is applied
	After   error         // apply the batch and fail instead of answering
	Stall   bool          // hang until the context ends, with nothing applied
	Missing int64         // apply, acknowledge and keep that many rows too few
}

// The errors that Classify knows. Others are permanent and not applied.
var (
	ErrConnection = errors.New("loadertest: connection reset") // unknown, retry, session dead
	ErrRejected   = errors.New("loadertest: bad value")        // not applied, no retry
	ErrThrottled  = errors.New("loadertest: slow down")        // not applied, retry after a millisecond
)

var _ interface {
	loader.Loader
	loader.Resolver
	loader.Claims
	loader.Prober
	loader.Reserver
	loader.Counter
	loader.Fetcher
	loader.Sizer
} = (*memoryLoader)(nil)

// Applied lists the batches put in so far, in that order; at least once may list one twice.
func (m *Memory) Applied() []loader.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.applied)
}

// Attempts is how often the batch was sent.
func (m *Memory) Attempts(number int64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attempts[number]
}

// Resolved is how often Resolve was asked.
func (m *Memory) Resolved() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resolved
}

// Sessions is how many sessions were opened.
func (m *Memory) Sessions() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sessions
}

// Crash forgets all rows and claims, as an unlogged table does.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied, m.claims = nil, nil
}

// RemoveClaims forgets all claims and keeps the rows, as somebody with a DELETE would.
func (m *Memory) RemoveClaims() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.claims = nil
}

type memoryLoader struct {
	*Memory
	caps loader.Caps
}

func (l *memoryLoader) Server() loader.Server {
	return loader.Server{Product: "Memory", Version: "1", Endpoint: "memory"}
}
func (l *memoryLoader) Caps() loader.Caps { return l.caps }
func (l *memoryLoader) Close() error      { return nil }

func (l *memoryLoader) Prepare(_ context.Context, p loader.Preparation) (loader.Table, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.schema = p.Schema
	return loader.Table{Name: "memory", Identity: l.Identity, Created: len(l.applied) == 0, HasRows: len(l.applied) > 0}, nil
}

func (l *memoryLoader) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sessions++
	return &memorySession{Memory: l.Memory, contract: c}, nil
}

type memorySession struct {
	*Memory
	contract loader.Contract
	dead     bool
}

func (s *memorySession) Close() error { return nil }

func (s *memorySession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.dead {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: ErrConnection}
	}
	body := b.Open()
	defer func() { _ = body.Close() }()
	f := s.fault(b.ID.Number)
	if f.Stall {
		f.Delay = math.MaxInt64
	}
	if err := sleep(ctx, f.Delay); err != nil {
		s.dead = true
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	if f.Before != nil {
		s.dead = errors.Is(f.Before, ErrConnection)
		return loader.Ack{}, f.Before
	}
	ack, err := s.apply(b, f.Missing)
	if err == nil && f.After != nil {
		s.dead = true
		return loader.Ack{}, f.After
	}
	return ack, err
}

func (s *memorySession) fault(number int64) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.attempts == nil {
		s.attempts = make(map[int64]int)
	}
	s.attempts[number]++
	if s.Script == nil {
		return Fault{}
	}
	return s.Script(number, s.attempts[number])
}

// apply is the whole transaction. As in a table with a primary key, rows that are there are refused, unless nothing
// recognises a batch: then they are there twice.
func (s *memorySession) apply(b *batch.Batch, missing int64) (loader.Ack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := loader.Ref{ID: b.ID, First: b.First + b.Skip, Rows: b.Wanted() - missing}
	if s.contract.Dedup != loader.DedupNone {
		if c, taken := s.claims[b.ID]; taken {
			return loader.Ack{Rows: c.Rows, AlreadyApplied: true}, nil
		}
		for _, a := range s.applied {
			if a.First < ref.First+ref.Rows && ref.First < a.First+a.Rows {
				return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: ErrRejected}
			}
		}
		if s.claims == nil {
			s.claims = make(map[batch.ID]loader.Ref)
		}
		s.claims[b.ID] = loader.Ref{ID: b.ID, First: b.First, Rows: b.Rows - missing}
	}
	s.applied = append(s.applied, ref)
	return loader.Ack{Rows: ref.Rows}, nil
}

func sleep(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return ctx.Err()
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
}
