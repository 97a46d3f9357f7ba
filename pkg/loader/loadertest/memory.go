package loadertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Memory is a database in this process: one table, its claims, and faults that follow a script. It keeps only which
// rows it was given, so terabytes fit. Of formats for a wire it never looks at the bytes; columns it reads as a driver
// does that binds arrays, and refuses rows that are not what Row says. It outlives its loaders, as a server does. The
// zero value works; fields are set before the first use.
type Memory struct {
	// Script returns what goes wrong with an attempt, counted from 1 for every batch number. nil: nothing.
	Script func(number int64, attempt int) Fault
	// GroupScript is the same for the commits of a staged contract, by the group's number.
	GroupScript func(group int64, attempt int) Fault
	// Caps replace the ones of a database with transactions.
	Caps *loader.Caps
	// Row makes the values for Fetch, the lengths for Count, and what columns must hold. nil: Fetch finds nothing,
	// lengths are 0, and any values go in.
	Row func(number int64) []any
	// Identity is what Prepare returns of the table, with a number behind it once it has been dropped or emptied.
	Identity string
	// Unprovable is the reason why Probe finds the table not transactional; "": it is.
	Unprovable string

	mu       sync.Mutex
	schema   rows.Schema
	applied  []loader.Ref
	remade   int // how often it was dropped or emptied
	claims   map[batch.ID]loader.Ref
	runs     []loader.RunRow
	epochs   int
	attempts map[int64]int
	resolved int

	running  map[batch.ID]loader.Ref // attempts that outlive their clients
	objects  map[batch.ID]object
	commits  map[int64]int
	discards int
}

// Fault is what goes wrong with one attempt; the zero value is nothing.
type Fault struct {
	Delay   time.Duration // wait first
	Before  error         // fail before anything is applied
	After   error         // apply the batch and fail instead of answering
	Stall   bool          // hang until the context ends, with nothing applied
	Missing int64         // apply, acknowledge and keep that many rows too few
	// Linger fails the attempt at once and leaves it running on the server: it is applied beside the next attempt at
	// the batch, unless Resolve has ended it by then. Only where labels are checked and not locked (DedupKey).
	Linger error
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
	loader.Counter
	loader.Fetcher
	loader.Sizer
	loader.Committer
	loader.Inventory
} = (*memoryLoader)(nil)

// Applied lists the batches put in so far, in that order; at least once may list one twice.
func (m *Memory) Applied() []loader.Ref {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.applied)
}

// Attempts returns how often the batch was sent.
func (m *Memory) Attempts(number int64) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.attempts[number]
}

// Resolved returns how often Resolve was asked.
func (m *Memory) Resolved() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.resolved
}

// Crash forgets all rows and claims, as an unlogged table does. Objects lie elsewhere and stay.
func (m *Memory) Crash() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = nil
	clear(m.claims)
}

// Truncate forgets all rows and keeps the claims.
func (m *Memory) Truncate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.applied = nil
}

// RemoveClaims forgets all claims and keeps the rows, as a DELETE would.
func (m *Memory) RemoveClaims() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.claims)
}

type memoryLoader struct {
	*Memory
	caps loader.Caps
	row  *loader.RunRow // of this process

	shard, owner string // of the Preparation
}

func (l *memoryLoader) Server() loader.Server {
	return loader.Server{Product: "Memory", Version: "1", Endpoint: "memory"}
}
func (l *memoryLoader) Caps() loader.Caps { return l.caps }
func (l *memoryLoader) Close() error      { return nil }

func (l *memoryLoader) Prepare(_ context.Context, p loader.Preparation) (loader.Table, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.begin(p); err != nil {
		return loader.Table{}, err
	}
	if !p.Silent && (p.Create == loader.CreateRecreate || p.Create == loader.CreateTruncate) {
		l.applied = nil // claims are in a table of their own and stay
		l.remade++
	}
	l.schema = p.Schema
	created := len(l.applied) == 0
	return loader.Table{Name: memoryTable, Identity: l.identity(), Created: created, HasRows: len(l.applied) > 0, Row: *l.row}, nil
}

const memoryTable = "memory"

func (m *Memory) identity() string {
	if m.Identity == "" || m.remade == 0 {
		return m.Identity
	}
	return fmt.Sprintf("%s/%d", m.Identity, m.remade)
}

func (l *memoryLoader) Session(_ context.Context, c loader.Contract) (loader.Session, error) {
	return &memorySession{Memory: l.Memory, contract: c, row: *l.row}, nil
}

type memorySession struct {
	*Memory
	contract loader.Contract
	row      loader.RunRow // under which it claims
	dead     bool
}

func (s *memorySession) Close() error { return nil }

func (s *memorySession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	if s.dead {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: ErrConnection}
	}
	reading, err := s.read(b)
	if err != nil {
		return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	defer func() { _ = reading.Close() }()
	f := s.fault(s.Script, s.attempts, b.ID.Number)
	early, taken := s.label(b)
	ack, err := f.strikes(ctx, "load", func() (loader.Ack, error) {
		switch {
		case f.Linger != nil:
			s.linger(b)
			return loader.Ack{}, f.Linger
		case taken:
			return early, nil
		}
		return s.put(b, f.Missing)
	})
	s.dead = err != nil && (ctx.Err() != nil || errors.Is(err, f.After) || errors.Is(f.Before, ErrConnection))
	return ack, err
}

// fault counts an attempt and returns what goes wrong with it.
func (m *Memory) fault(script func(int64, int) Fault, attempts map[int64]int, number int64) Fault {
	m.mu.Lock()
	defer m.mu.Unlock()
	attempts[number]++
	if script == nil {
		return Fault{}
	}
	return script(number, attempts[number])
}

// strikes does what the fault leaves of an attempt.
func (f Fault) strikes(ctx context.Context, op string, do func() (loader.Ack, error)) (loader.Ack, error) {
	if f.Stall {
		f.Delay = math.MaxInt64
	}
	if err := sleep(ctx, f.Delay); err != nil {
		return loader.Ack{}, &loader.Error{Op: op, Applied: loader.No, Err: err}
	}
	if f.Before != nil {
		return loader.Ack{}, f.Before
	}
	ack, err := do()
	if err == nil && f.After != nil {
		return loader.Ack{}, f.After
	}
	return ack, err
}

// put stores the batch or applies it, as the contract says.
func (s *memorySession) put(b *batch.Batch, missing int64) (loader.Ack, error) {
	switch {
	case s.contract.Staged():
		return s.store(b), nil
	case s.contract.Dedup == loader.DedupKey:
		return s.applyLabelled(b, missing), nil
	default:
		return s.apply(b, missing)
	}
}

// apply is the whole transaction. As in a table with a primary key, rows that are there are refused, unless
// nothing recognises a batch: then they are there twice.
func (s *memorySession) apply(b *batch.Batch, missing int64) (loader.Ack, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ref := loader.Ref{ID: b.ID, First: b.First, Rows: b.Rows - missing}
	if s.contract.Dedup != loader.DedupNone {
		if err := s.mayWrite(s.row); err != nil {
			return loader.Ack{}, &loader.Error{Op: "claim", Applied: loader.No, Err: err}
		}
		id := batch.ID{Run: cmp.Or(s.row.Run, b.ID.Run), Number: b.ID.Number}
		if c, taken := s.claims[id]; taken {
			return loader.Ack{Rows: c.Rows, AlreadyApplied: true}, nil
		}
		for _, a := range s.applied {
			if a.First < ref.First+ref.Rows && ref.First < a.First+a.Rows {
				return loader.Ack{}, &loader.Error{Op: "load", Applied: loader.No, Err: ErrRejected}
			}
		}
		s.claims[id] = ref
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
