package doris

import (
	"strconv"
	"time"
)

// group is one group commit under way: the loads of a table that end in the same transaction, when its interval is
// over or its bytes are full.
type group struct {
	txn   *txn
	bytes int64
	timer *time.Timer
	rows  []member
	done  chan struct{} // closed when the group is visible
}

// member is what one load brought.
type member struct {
	rows  [][]value
	async bool // acknowledged already, from the write-ahead log of one backend's disk
}

// Defaults of the table properties.
const (
	defaultGroupInterval = 10_000    // ms
	defaultGroupBytes    = 134217728 // 128 MB
)

func (t *table) number(property string, otherwise int64) int64 {
	if n, err := strconv.ParseInt(t.properties[property], 10, 64); err == nil {
		return n
	}
	return otherwise
}

// join adds rows to the table's group and returns it. The first load of a group starts its interval.
func (s *store) join(t *table, rows [][]value, bytes int64, async bool) *group {
	g := s.groups[t]
	if g == nil {
		x, err := s.begin(t, randomLabel("group_commit_"), "BACKEND_STREAMING")
		if err != nil {
			panic(err) // the label is ours, and new
		}
		g = &group{txn: x, done: make(chan struct{})}
		s.groups[t] = g
		g.timer = time.AfterFunc(time.Duration(t.number("group_commit_interval_ms", defaultGroupInterval))*time.Millisecond, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.end(t, g)
		})
	}
	g.rows = append(g.rows, member{rows, async})
	g.bytes += bytes
	if g.bytes >= t.number("group_commit_data_bytes", defaultGroupBytes) {
		s.end(t, g)
	}
	return g
}

// end commits the group, once.
func (s *store) end(t *table, g *group) {
	if s.groups[t] != g {
		return
	}
	delete(s.groups, t)
	g.timer.Stop()
	for _, m := range g.rows {
		g.txn.rows = append(g.txn.rows, m.rows...)
	}
	g.txn.loaded = int64(len(g.txn.rows))
	s.commit(g.txn, nil)
	close(g.done)
}

func (s *store) flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for t, g := range s.groups {
		s.end(t, g)
	}
}

func (s *store) loseWAL() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	var lost int64
	for _, g := range s.groups {
		for i := range g.rows {
			if g.rows[i].async {
				lost += int64(len(g.rows[i].rows))
				g.rows[i].rows = nil
			}
		}
	}
	return lost
}

func (s *store) grouped(table string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[s.named(table)]; g != nil {
		return len(g.rows)
	}
	return 0
}
