package sqlload_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
	"github.com/terapush/terapush/pkg/sqlload"
)

// The tables of a memory, as statements name them, and what Prepare may do to the first.
const (
	target = `"s"."t"`
	claims = `"s"."terapush_claims"`
	runs   = `"s"."terapush_runs"`

	never, ifMissing   = loader.CreateNever, loader.CreateIfMissing
	truncate, recreate = loader.CreateTruncate, loader.CreateRecreate
)

var (
	errMissing = errors.New("no such table")
	errExists  = errors.New("the table exists")
	errDenied  = errors.New("this user may not")
	errUseless = errors.New("the claims in it cannot be relied on")
)

// memory is a server with transactions and its catalog, the very least of both that Prepare asks.
type memory struct {
	sqlload.Catalog // what is not asked
	sqlload.Claims

	dialect sqlload.Dialect
	tables  map[string]relation
	denied  string // what statements begin with that this user may not send
	useless bool   // the claim table is there, and nothing to rely on
	hidden  string // a table that the catalog does not show to this user
	next    string // the claim table beside a new table; "": claims

	before func(statement string) // called before each statement: what others do meanwhile
	sent   []string               // statements other than queries
	made   int                    // tables so far
	fenced bool

	saved  map[string]relation // at the beginning of the transaction
	failed bool                // a statement of it has failed
}

// relation is a value: a change replaces it, and so a transaction can be rolled back.
type relation struct {
	kind, comment, id string
	unfit             bool   // it lacks a column
	claims            string // its claim table; "": claims
	rows              []record
}

// record is a row by the names of its columns.
type record map[string]string

func newMemory(atomic bool) *memory {
	d := postgres()
	d.AtomicDDL = atomic
	d.Types = nil
	for t := rows.Int64; t <= rows.Decimal; t++ {
		d.Types = append(d.Types, sqlload.Type{Ours: t, Name: "int", SQL: "int"})
	}
	return &memory{dialect: d, tables: make(map[string]relation)}
}

// table is a process's.
func (m *memory) table() *sqlload.Table {
	return &sqlload.Table{
		Name: "t", Catalog: m, Claims: m, Log: slog.New(slog.DiscardHandler), Classify: classify,
		Connect: func(context.Context) (sqlload.Conn, error) { return m, nil },
		Failed:  func(op string, err error) error { return loader.Mark(op, loader.No, err) },
	}
}

func classify(err error) loader.Verdict {
	switch {
	case errors.Is(err, errMissing):
		return loader.Refused(loader.ClassMissing)
	case errors.Is(err, errDenied):
		return loader.Refused(loader.ClassPermission)
	default:
		return loader.Refused(loader.ClassOther)
	}
}

func (m *memory) Plan(p loader.Preparation) sqlload.Statements {
	return sqlload.Statements{Dialect: m.dialect, Schema: p.Schema, Table: target, Claims: claims}
}

func (m *memory) Locate(context.Context, sqlload.Conn, *sqlload.State) (*sqlload.Relation, error) {
	t, there := m.tables[target]
	if !there || m.hidden == target {
		return nil, nil
	}
	return &sqlload.Relation{
		Schema: "s", Name: "t", Table: target, Kind: t.kind, Identity: t.id, Comment: t.comment,
		Claims: cmp.Or(t.claims, claims), NextClaims: m.next,
	}, nil
}

func (m *memory) Columns(
	_ context.Context, _ sqlload.Conn, s *sqlload.State, _ *sqlload.Relation,
) (all []sqlload.Column, err error) {
	for _, c := range s.Schema.Columns {
		all = append(all, sqlload.ColumnOf(c.Name, "int"))
	}
	if m.tables[target].unfit {
		all = all[1:]
	}
	return all, nil
}

func (m *memory) Fits(context.Context, sqlload.Conn, *sqlload.State, *sqlload.Relation) error {
	return nil
}

func (m *memory) Create(context.Context, sqlload.Conn, *sqlload.State) ([]string, error) {
	return []string{"CREATE TABLE " + target, "COMMENT ON TABLE " + target}, nil
}

func (m *memory) Exists(err error) bool { return errors.Is(err, errExists) }

func (m *memory) Grant(_ context.Context, _ sqlload.Conn, privileges, table string) string {
	return "GRANT " + privileges + " ON " + table
}

func (m *memory) Stored(*sqlload.State) []string { return []string{"SELECT bytes FROM sizes"} }

func (m *memory) CreateClaims(s *sqlload.State) string { return "CREATE TABLE " + s.Claims }

func (m *memory) CreateRuns(s *sqlload.State) string { return "CREATE TABLE " + s.Runs() }

func (m *memory) CheckClaims(_ context.Context, _ sqlload.Conn, s *sqlload.State) (bool, error) {
	_, there := m.tables[s.Claims]
	if there && m.useless {
		return false, errUseless
	}
	return there && m.hidden != s.Claims, nil
}

func (m *memory) Fence(_ context.Context, _ *sqlload.State, _ sqlload.Fence, change func(sqlload.Conn) error) error {
	m.meanwhile("the fence")
	m.fenced = true
	defer func() { m.fenced = false }()
	return change(m)
}

func (m *memory) Guard(*sqlload.State) sqlload.Guard {
	if m.dialect.AtomicDDL {
		return sqlload.Guard{Before: "BEGIN", After: "COMMIT", Failed: "ROLLBACK", Check: " FOR SHARE"}
	}
	return sqlload.Guard{Check: " FOR SHARE"}
}

func (m *memory) meanwhile(statement string) {
	if m.before != nil {
		m.before(statement)
	}
}

func (m *memory) Close() error { return nil }

func (m *memory) Exec(_ context.Context, statement string) (n int64, err error) {
	m.meanwhile(statement)
	m.sent = append(m.sent, statement)
	switch statement {
	case "BEGIN":
		m.saved, m.failed = maps.Clone(m.tables), false
		return 0, nil
	case "COMMIT", "ROLLBACK":
		if m.failed || statement == "ROLLBACK" { // as PostgreSQL does
			m.tables = m.saved
		}
		return 0, nil
	case m.dialect.Flush:
		return 0, nil
	}

	saved := maps.Clone(m.tables)
	for one := range strings.SplitSeq(statement, "; ") {
		if _, n, err = m.run(one); err != nil {
			m.tables, m.failed = saved, true // several in a message are a transaction
			return 0, err
		}
	}
	return n, nil
}

func (m *memory) Query(_ context.Context, query string, each func([][]byte) error) error {
	m.meanwhile(query)
	found, _, err := m.run(query)
	for _, texts := range found {
		row := make([][]byte, len(texts))
		for i, text := range texts {
			row[i] = []byte(text)
		}
		if err := each(row); err != nil {
			return err
		}
	}
	return err
}

// form is that of all statements here.
var form = regexp.MustCompile(
	`^(CREATE TABLE|COMMENT ON TABLE|DROP TABLE|TRUNCATE TABLE|INSERT INTO|UPDATE|DELETE FROM|SELECT (.+) FROM) (\S+)` +
		`(?: \((.+)\) VALUES \((.+)\))?(?: SET (.+?))?(?: WHERE (.+?))?(?: LIMIT 1| FOR SHARE)?$`)

func (m *memory) run(statement string) (found [][]string, n int64, err error) {
	p := form.FindStringSubmatch(statement)
	if p == nil {
		panic("no statement that is known: " + statement)
	}
	verb, read, name, columns, values, set, where := p[1], p[2], p[3], p[4], p[5], p[6], p[7]

	t, there := m.tables[name]
	switch {
	case m.denied != "" && strings.HasPrefix(statement, m.denied):
		return nil, 0, errDenied
	case verb == "CREATE TABLE" && there:
		return nil, 0, errExists
	case verb != "CREATE TABLE" && !there:
		return nil, 0, fmt.Errorf("%w: %s", errMissing, name)
	case name == runs && !m.fenced && verb == "INSERT INTO":
		panic("outside the fence: " + statement)
	}

	switch verb {
	case "CREATE TABLE":
		m.made++
		t = relation{id: fmt.Sprint(m.made), claims: m.next}
	case "COMMENT ON TABLE":
		t.comment = loader.MadeBy
	case "DROP TABLE":
		delete(m.tables, name)
		return nil, 0, nil
	case "TRUNCATE TABLE":
		m.made++
		t.id, t.rows = fmt.Sprint(m.made), nil
	case "INSERT INTO":
		r := make(record)
		texts := strings.Split(values, ", ")
		for i, column := range strings.Split(columns, ", ") {
			r[column] = strings.Trim(texts[i], "'")
		}
		t.rows, n = append(slices.Clone(t.rows), r), 1
	case "UPDATE":
		t.rows = slices.Clone(t.rows)
		for i, r := range t.rows {
			if r.meets(where) {
				t.rows[i], n = r.changed(set), n+1
			}
		}
	case "DELETE FROM":
		t.rows = slices.DeleteFunc(slices.Clone(t.rows), func(r record) bool { return r.meets(where) })
	default:
		for _, r := range t.rows {
			if r.meets(where) {
				found = append(found, r.read(read))
			}
		}
	}
	m.tables[name] = t
	return found, n, nil
}

// meets reports whether a condition holds: comparisons with AND between them.
func (r record) meets(condition string) bool {
	for one := range strings.SplitSeq(condition, " AND ") {
		switch left, right, _ := strings.Cut(one, " "); {
		case one == "" || one == "1 = 1":
		case one == "1 = 0":
			return false
		case strings.HasPrefix(right, "IN ("):
			if !strings.Contains(right, "'"+r[left]+"'") {
				return false
			}
		case strings.HasPrefix(right, "<> "):
			if right == "<> '"+r[left]+"'" {
				return false
			}
		default:
			if strings.Trim(right, "= '") != r[left] {
				return false
			}
		}
	}
	return true
}

func (r record) changed(set string) record {
	r = maps.Clone(r)
	for one := range strings.SplitSeq(set, ", ") {
		column, value, _ := strings.Cut(one, " = ")
		r[column] = strings.Trim(value, "'")
	}
	return r
}

func (r record) read(columns string) (values []string) {
	for column := range strings.SplitSeq(columns, ", ") {
		value, is := r[strings.TrimSuffix(strings.TrimPrefix(column, "MAX("), ")")]
		if !is {
			value = column // as in SELECT 1
		}
		values = append(values, value)
	}
	return values
}

// open adds the row of another run.
func (m *memory) open(name string, appends bool) {
	row := record{
		"name": name, "run": name, "part": loader.WholeRun, "state": "open", "epoch": "1-x", "target": "t", "owner": "them",
		"appends": "0", "fingerprint": "7", "first_key": "0", "last_key": "9", "changed": "0",
	}
	if appends {
		row["appends"] = "1"
	}
	m.tables[runs] = relation{rows: append(slices.Clone(m.tables[runs].rows), row)}
}

// rowsOf returns the rows of a run that is not forgotten.
func (m *memory) rowsOf(name string) (found []record) {
	for _, r := range m.tables[runs].rows {
		if r["name"] == name && r["state"] != "forgotten" {
			found = append(found, r)
		}
	}
	return found
}
