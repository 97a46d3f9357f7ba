package oracle

import (
	"bytes"
	"regexp"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/standin"
)

// pooled is a row in the memory of Fast Ingest: acknowledged, in no transaction, and not seen.
type pooled struct {
	table    *table
	row      standin.Row
	sequence int64
}

// remember writes a row to memory.
func (x *session) remember(t *table, row standin.Row) {
	s := x.server
	s.sequence++
	x.written = s.sequence
	s.memory = append(s.memory, pooled{t, row, s.sequence})
}

// drain writes the oldest n rows. Those that no table takes are lost: their client has gone on.
func (s *Server) drain(n int) {
	n = min(n, len(s.memory))
	for _, p := range s.memory[:n] {
		_, taken := p.table.taken[p.table.keyOf(p.row)]
		if s.tables[p.table.Name] == p.table && (p.table.key == nil || !taken) {
			change{table: p.table, row: p.row}.settle()
		}
	}
	s.memory = s.memory[n:]
}

func (x *session) flush([]string) (answer, error) {
	x.server.drain(len(x.server.memory))
	return answer{}, nil
}

// applied returns the highest number up to which all rows are on disk.
func (x *session) applied() int64 {
	s := x.server
	s.drain(s.options.DrainRows)
	if len(s.memory) > 0 {
		return s.memory[0].sequence - 1
	}
	return s.sequence
}

// external is where an external table's rows come from.
type external struct {
	uris     []string
	fields   map[string]int // the longest field, with quotes, by column
	embedded bool           // line feeds in quotes
}

var fieldShape = regexp.MustCompile(`^"(\w+)" CHAR\((\d+)\)`)

func (x *session) createExternal(m []string) (answer, error) {
	t, err := x.newTable(m[1], m[4])
	if err != nil {
		return answer{}, err
	}
	t.external = &external{
		uris: strings.Split(m[3], ","), fields: make(map[string]int), embedded: strings.Contains(m[6], `"csv with embedded"`),
	}
	for i, text := range definition.FindAllString(m[5], -1) {
		f := fieldShape.FindStringSubmatch(text)
		if f == nil || i >= len(t.Columns) || f[1] != t.Columns[i].Name {
			return answer{}, Ora(20000, "field list: "+text)
		}
		t.external.fields[f[1]] = length(f[0])
	}
	return answer{}, x.create(t)
}

var nameShape = regexp.MustCompile(`"(\w+)"`)

// insertExternal is INSERT … SELECT from an external table: all rows or none.
func (x *session) insertExternal(m []string) (a answer, err error) {
	t, err := x.table(m[2])
	if err != nil {
		return a, err
	}
	from, err := x.table(m[5])
	if err != nil {
		return a, err
	}
	same := slices.Equal(nameShape.FindAllString(m[3], -1), nameShape.FindAllString(m[4], -1))
	if from.external == nil || !same || x.hint(m[1]) != "APPEND" {
		return a, Ora(900, x.SQL)
	}
	mine := x.begin()
	if err := x.lock(t, exclusive); err != nil {
		return a, err
	}
	before := len(mine.changes)
	for _, uri := range from.external.uris {
		if err := x.readObject(t, from, uri); err != nil {
			mine.undo(before)
			return a, err
		}
	}
	a.rows = int64(len(mine.changes) - before)
	return a, nil
}

func (x *session) readObject(t, from *table, uri string) error {
	data, err := x.server.options.Objects(uri)
	if err != nil {
		return Ora(29913, "ORA-20404: Object not found - ", uri)
	}
	var names []string
	for _, c := range from.Columns {
		names = append(names, c.Name)
	}
	found, err := t.Decode(standin.Format{Kind: standin.CSV}, names, data)
	if err != nil {
		return Ora(29913, "ORA-30653: reject limit reached: ", err)
	}
	for _, row := range found {
		for i, v := range row.Values {
			text, variable := v.([]byte)
			if !variable {
				continue
			}
			name := t.Columns[i].Name
			size := len(text) + bytes.Count(text, []byte(`"`))
			if size > from.external.fields[name] || !from.external.embedded && bytes.Contains(text, []byte("\n")) {
				return Ora(29913, "KUP-04091: field ", name)
			}
			if len(text) == 0 {
				row.Values[i] = nil
			}
		}
		if refused := x.put(t, row); refused != nil {
			return refused
		}
	}
	return nil
}
