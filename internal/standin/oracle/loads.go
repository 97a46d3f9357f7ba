package oracle

import "github.com/terapush/terapush/internal/standin"

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
