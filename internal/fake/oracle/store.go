package oracle

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// store is what all sessions know together. One lock guards all of it; a session that waits for another lets go of it.
type store struct {
	mu       sync.Mutex
	changed  *sync.Cond // a transaction or a session has ended
	closed   bool
	stop     chan struct{}
	tables   map[string]*table
	open     map[*transaction]struct{}
	sessions map[*session]struct{}
	numbers  struct{ session, object, sequence, constraint int64 }
	pool     []*pooled // the memory of Fast Ingest, oldest first
}

func (s *store) start() {
	s.changed = sync.NewCond(&s.mu)
	s.stop = make(chan struct{})
	s.tables = map[string]*table{}
	s.open = map[*transaction]struct{}{}
	s.sessions = map[*session]struct{}{}
	s.numbers.object = 70000
}

// endSessions closes all connections; their goroutines do the rest.
func (s *store) endSessions() {
	for x := range s.sessions {
		x.kill()
	}
	s.changed.Broadcast()
}

func (s *store) newObject() int64 {
	s.numbers.object++
	return s.numbers.object
}

// table is a table, or an external one.
type table struct {
	name         string
	object, data int64 // their numbers: TRUNCATE changes the second
	columns      []column
	checks       []check
	unique       []*uniqueKey
	partitions   []*partition
	partitioned  int // the column that PARTITION BY RANGE names
	comment      string
	memoptimized bool
	compressed   bool
	external     *external
	rows         []*row
	gone         int // rows that nobody can see any more
}

type column struct {
	name    string
	kind    columnType
	notNull bool
}

type check struct {
	name string
	x    expr
}

type uniqueKey struct {
	name    string
	primary bool
	local   bool // its index is partitioned as the table is
	columns []int
	rows    map[string][]*row // nil keys are not in it
}

type partition struct {
	name     string
	lessThan expr // nil: MAXVALUE
	table    *table
}

// row is one version; there are no others.
type row struct {
	values     []value
	born, dead *transaction // still open
	gone       bool
}

func (r *row) visible(x *transaction) bool {
	return !r.gone && (r.born == nil || r.born == x) && (r.dead == nil || r.dead != x)
}

func (t *table) names() (all []string) {
	for _, c := range t.columns {
		all = append(all, c.name)
	}
	return all
}

func (t *table) column(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return c.name == name })
}

func (u *uniqueKey) of(values []value) (string, bool) {
	k := make([]value, len(u.columns))
	null := true
	for i, c := range u.columns {
		k[i] = values[c]
		null = null && k[i] == nil
	}
	return key(k), !null
}

func (t *table) add(r *row) {
	t.rows = append(t.rows, r)
	for _, u := range t.unique {
		if k, is := u.of(r.values); is {
			u.rows[k] = append(u.rows[k], r)
		}
	}
}

// remove takes a row out for good.
func (t *table) remove(r *row) {
	r.gone = true
	for _, u := range t.unique {
		if k, is := u.of(r.values); is {
			left := slices.DeleteFunc(u.rows[k], func(other *row) bool { return other == r })
			if u.rows[k] = left; len(left) == 0 {
				delete(u.rows, k)
			}
		}
	}
	if t.gone++; t.gone > 100 && 2*t.gone > len(t.rows) {
		t.rows = slices.DeleteFunc(t.rows, func(r *row) bool { return r.gone })
		t.gone = 0
	}
}

func (t *table) empty() {
	t.rows, t.gone = nil, 0
	for _, u := range t.unique {
		u.rows = map[string][]*row{}
	}
}

// transaction is an open one; it begins with the first change or lock.
type transaction struct {
	session *session
	changes []change
	locks   map[any]lockMode // by *table or *partition
	direct  map[*table]bool  // loaded by direct path, and not to be read before the commit
	waits   *transaction
	done    bool
}

type change struct {
	table *table
	row   *row
}

// lockMode is how a table is locked.
type lockMode byte

// The modes, weakest first. Two of the same kind get on, except for exclusive ones; no others do.
const (
	rowExclusive lockMode = iota + 1
	share
	exclusive
)

func (s *session) transaction() *transaction {
	if s.tx == nil {
		s.tx = &transaction{session: s, locks: map[any]lockMode{}, direct: map[*table]bool{}}
		s.server.open[s.tx] = struct{}{}
	}
	return s.tx
}

func (x *transaction) commit() {
	for _, c := range x.changes {
		switch {
		case c.row.gone:
		case c.row.dead == x:
			c.table.remove(c.row)
		default:
			c.row.born = nil
		}
	}
	x.end()
}

func (x *transaction) rollback() {
	x.undo(0)
	x.end()
}

// undo takes back the changes behind the first n.
func (x *transaction) undo(n int) {
	for _, c := range slices.Backward(x.changes[n:]) {
		switch {
		case c.row.gone:
		case c.row.dead == x:
			c.row.dead = nil
		default:
			c.table.remove(c.row)
		}
	}
	x.changes = x.changes[:n]
}

func (x *transaction) end() {
	x.done, x.changes = true, nil
	if x.session.tx == x {
		x.session.tx = nil
	}
	delete(x.session.server.open, x)
	x.session.server.changed.Broadcast()
}

// patience is how long a lock is waited for: for ever, or until a point in time.
type patience struct {
	bounded bool
	until   time.Time
	refusal *Error // when it is over
}

// wait waits until the other transaction has ended. Who would wait for itself is told so at once; Oracle takes three
// seconds for it.
func (s *session) wait(other *transaction, p patience) error {
	mine := s.transaction()
	for x := other; x != nil; x = x.waits {
		if x == mine {
			return ora(60, "deadlock detected while waiting for resource")
		}
	}
	mine.waits = other
	defer func() { mine.waits = nil }()
	if p.bounded {
		timer := time.AfterFunc(time.Until(p.until), s.wake)
		defer timer.Stop()
	}
	if idle := s.server.options.IdleBlocker; idle > 0 {
		timer := time.AfterFunc(idle, func() { other.session.endIfIdle(other) })
		defer timer.Stop()
	}
	for !other.done {
		switch {
		case s.server.closed || s.killed:
			return ora(28, "your session has been killed")
		case p.bounded && !time.Now().Before(p.until):
			return p.refusal
		}
		s.server.changed.Wait()
	}
	return nil
}

func (s *session) wake() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	s.server.changed.Broadcast()
}

// endIfIdle ends a session that waits for its client while others wait for its transaction.
func (s *session) endIfIdle(x *transaction) {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.tx == x && s.idle {
		s.kill()
	}
}

// lock takes a lock on a table, with those on its partitions.
func (s *session) lock(t *table, only *partition, mode lockMode, p patience) error {
	mine := s.transaction()
	for {
		other := s.inTheWay(t, only, mode)
		if other == nil {
			break
		}
		if p.bounded && p.until.IsZero() {
			return p.refusal
		}
		if err := s.wait(other, p); err != nil {
			return err
		}
	}
	if only != nil {
		mine.locks[only] = max(mine.locks[only], mode)
		mode = rowExclusive
	}
	mine.locks[t] = max(mine.locks[t], mode)
	return nil
}

func (s *session) inTheWay(t *table, only *partition, mode lockMode) *transaction {
	clash := func(other lockMode, mode lockMode) bool {
		return other != 0 && (other != mode || mode == exclusive)
	}
	for x := range s.server.open {
		if x == s.tx {
			continue
		}
		if only == nil {
			if clash(x.locks[t], mode) {
				return x
			}
			continue
		}
		if clash(x.locks[only], mode) || clash(x.locks[t], rowExclusive) {
			return x
		}
		// Rows that were inserted through the table may be anybody's.
		if mode == exclusive && x.locks[t] == rowExclusive && !x.inPartitions(t) {
			return x
		}
	}
	return nil
}

// inPartitions tells that the transaction has locked partitions of the table only.
func (x *transaction) inPartitions(t *table) bool {
	return slices.ContainsFunc(t.partitions, func(p *partition) bool { return x.locks[p] != 0 })
}

// table finds one of the user's tables.
func (s *session) table(owner, name string) (*table, error) {
	if owner == "" {
		owner = s.schema()
	}
	if t := s.server.tables[name]; t != nil && owner == s.server.options.Owner {
		return t, nil
	}
	return nil, ora(942, "table or view %q does not exist", name)
}

func (s *store) sorted() (all []*table) {
	for _, name := range slices.Sorted(maps.Keys(s.tables)) {
		all = append(all, s.tables[name])
	}
	return all
}
