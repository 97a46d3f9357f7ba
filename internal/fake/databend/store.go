package databend

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// store is everything that outlives a request. Fake.mu guards it.
type store struct {
	databases map[string]bool
	tables    map[string]*table    // by database.table
	labels    map[string]time.Time // when a label is free again
	files     map[string][]byte    // of the server's own stages, by stage/path
	stages    map[string]string    // name to URL, "" for one of the server's own
	lastTable int
}

type table struct {
	id      int
	comment string
	columns []column
	rows    [][]any
	loaded  map[string]time.Time // files that COPY has loaded: when the name is forgotten
}

type column struct {
	name, kind    string // kind as the server describes it: BIGINT, VARCHAR, BINARY, DATE, TIMESTAMP, DECIMAL(15, 2)
	digits, scale int    // of a DECIMAL; digits is 0 otherwise
	nullable      bool
}

func newStore() store {
	return store{
		databases: map[string]bool{"default": true},
		tables:    map[string]*table{}, labels: map[string]time.Time{}, files: map[string][]byte{}, stages: map[string]string{"~": ""},
	}
}

func (s *store) list(stage, prefix string) []string {
	var found []string
	for path := range s.files {
		if rest, ok := strings.CutPrefix(path, stage+"/"); ok && strings.HasPrefix(rest, prefix) {
			found = append(found, rest)
		}
	}
	slices.Sort(found)
	return found
}

// stage gives a stage's URL.
func (s *store) stage(name string) (string, error) {
	url, ok := s.stages[name]
	if !ok {
		return "", failed(2501, "Stage '%s' does not exist", name)
	}
	return url, nil
}

func (s *store) table(name string) (*table, error) {
	database, _, _ := strings.Cut(name, ".")
	if !s.databases[database] {
		return nil, failed(1003, "Unknown database '%s'", database)
	}
	if t := s.tables[name]; t != nil {
		return t, nil
	}
	return nil, failed(1025, "Unknown table '%s'", name)
}

// column finds a column by its name.
func (t *table) column(name string) (int, error) {
	i := slices.IndexFunc(t.columns, func(c column) bool { return strings.EqualFold(c.name, name) })
	if i < 0 {
		return 0, failed(1065, "column %s doesn't exist", name)
	}
	return i, nil
}

// places finds where in a row the fields of a load go; all columns if none are named.
func (t *table) places(names []string) ([]int, error) {
	var at []int
	for _, n := range names {
		i, err := t.column(n)
		if err != nil {
			return nil, err
		}
		at = append(at, i)
	}
	if len(names) == 0 {
		for i := range t.columns {
			at = append(at, i)
		}
	}
	return at, nil
}

// failure is the error of a statement.
type failure struct {
	code    int
	message string
}

func (f *failure) Error() string { return f.message }

func failed(code int, format string, values ...any) error {
	return &failure{code: code, message: fmt.Sprintf(format, values...)}
}

const killed = 1043 // AbortedQuery
