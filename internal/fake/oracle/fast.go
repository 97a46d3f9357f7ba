package oracle

// pooled is a row in the memory of Fast Ingest: acknowledged, in no transaction, seen by nobody.
type pooled struct {
	table    *table
	session  *session
	values   []value
	sequence int64
}

func (s *session) toPool(t *table, values []value) {
	s.server.numbers.sequence++
	s.sequence = s.server.numbers.sequence
	s.server.pool = append(s.server.pool, &pooled{t, s, values, s.sequence})
}

// drain writes the rows that which names. What no table takes is lost without a word, as nobody waits for an answer.
func (s *Server) drain(which func(*pooled) bool) {
	var left []*pooled
	for _, p := range s.pool {
		if !which(p) {
			left = append(left, p)
			continue
		}
		to := &target{table: p.table}
		writer := &session{server: s, settings: map[string]string{}}
		if s.tables[p.table.name] != p.table || writer.checked(to, p.values) != nil || writer.taken(p.table, p.values) {
			continue
		}
		p.table.add(&row{values: p.values})
	}
	s.pool = left
}

// taken reports whether a row's keys are, without waiting for anybody.
func (s *session) taken(t *table, values []value) bool {
	for _, u := range t.unique {
		if k, is := u.of(values); is && len(u.rows[k]) > 0 {
			return true
		}
	}
	return false
}

// drainSome writes the oldest n rows.
func (s *Server) drainSome(n int) {
	if n = min(n, len(s.pool)); n > 0 {
		last := s.pool[n-1].sequence
		s.drain(func(p *pooled) bool { return p.sequence <= last })
	}
}

// appliedUpTo is the highest sequence number of which, and of all below, nothing is in memory any more.
func (s *Server) appliedUpTo() int64 {
	if len(s.pool) > 0 {
		return s.pool[0].sequence - 1
	}
	return s.numbers.sequence
}
