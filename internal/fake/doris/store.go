package doris

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// store is what frontends and backends know together: databases, tables, transactions. One lock guards all of it.
type store struct {
	cluster *Cluster

	mu        sync.Mutex
	databases map[string]*database
	lastID    int64
	groups    map[*table]*group // under way
	pending   sync.WaitGroup    // publications that wait for their channel
}

type database struct {
	name   string
	tables map[string]*table
	labels map[string][]*txn // oldest first; all but the last are aborted
	txns   map[int64]*txn
}

type table struct {
	id         int64
	partition  int64 // its id
	database   *database
	name       string
	columns    []column
	model      string // DUPLICATE or UNIQUE
	keys       []string
	hash       []string // columns of DISTRIBUTED BY HASH; none is RANDOM
	buckets    string   // a number, or AUTO
	properties map[string]string
	comment    string
	created    time.Time

	rows  [][]value
	byKey map[string]int // of a UNIQUE table: where a key's row is
}

type column struct {
	name         string
	kind         columnType
	notNull      bool
	defaultValue *string
	comment      string
}

func newStore(c *Cluster) *store {
	return &store{cluster: c, databases: map[string]*database{}, groups: map[*table]*group{}, lastID: 10000}
}

func (s *store) close() {
	s.flush()
	s.pending.Wait()
}

// newID numbers transactions, tables and the rest.
func (s *store) newID() int64 {
	s.lastID++
	return s.lastID
}

func (s *store) hasDatabase(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.databases[name] != nil
}

func (s *store) hasTable(db, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.find(db, name)
	return err == nil
}

// find looks a table up, with Doris' words where there is none.
func (s *store) find(db, name string) (*table, error) {
	d := s.databases[db]
	if d == nil {
		return nil, fmt.Errorf("errCode = 7, detailMessage = Unknown database '%s'", db)
	}
	if t := d.tables[name]; t != nil {
		return t, nil
	}
	return nil, fmt.Errorf("errCode = 7, detailMessage = unknown table, tableName=%s", name)
}

func (s *store) named(table string) *table {
	db, name, _ := strings.Cut(table, ".")
	t, err := s.find(db, name)
	if err != nil {
		return nil
	}
	return t
}

func (s *store) rows(table string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.named(table); t != nil {
		return int64(len(t.rows))
	}
	return 0
}

func (s *store) keyCounts(table string) map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[string]int{}
	if t := s.named(table); t != nil {
		for _, row := range t.rows {
			counts[text(row[0])]++
		}
	}
	return counts
}

// publish makes rows visible. In a UNIQUE table the newest row of a key replaces the others.
func (t *table) publish(rows [][]value) {
	if t.model != "UNIQUE" {
		t.rows = append(t.rows, rows...)
		return
	}
	for _, row := range rows {
		key := t.key(row)
		if i, there := t.byKey[key]; there {
			t.rows[i] = row
			continue
		}
		t.byKey[key] = len(t.rows)
		t.rows = append(t.rows, row)
	}
}

func (t *table) key(row []value) string {
	var key strings.Builder
	for i := range t.keys { // the keys are the first columns
		v := text(row[i])
		fmt.Fprintf(&key, "%v:%d:%s", row[i] == nil, len(v), v)
	}
	return key.String()
}

// keep leaves the rows for which f is true.
func (t *table) keep(f func([]value) (bool, error)) error {
	var left [][]value
	for _, row := range t.rows {
		stays, err := f(row)
		if err != nil {
			return err
		}
		if stays {
			left = append(left, row)
		}
	}
	t.rows, t.byKey = nil, map[string]int{}
	t.publish(left)
	return nil
}

func (t *table) column(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return strings.EqualFold(c.name, name) })
}

func (t *table) names() []string {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	return names
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
