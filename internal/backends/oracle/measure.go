package oracle

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"
)

// statistic is one of a session that the report shows.
type statistic struct {
	name string  // the server's
	as   string  // the report's
	unit float64 // what the server counts in, in units of the report
}

func measured() []statistic {
	return []statistic{
		{"redo size", "redo_bytes", 1},
		{"SQL*Net roundtrips to/from client", "round_trips", 1},
		{"bytes received via SQL*Net from client", "received_bytes", 1},
		{"CPU used by this session", "cpu_seconds", 0.01},
		{"user commits", "commits", 1},
	}
}

// selectCost reads them for the session that asks.
func selectCost() string {
	var names []string
	for _, s := range measured() {
		names = append(names, literal(s.name))
	}
	return "SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# " +
		"WHERE n.name IN (" + strings.Join(names, ", ") + ")"
}

// spent is what the sessions of a run have cost the server.
type spent struct {
	cost    map[string]float64
	lost    int    // sessions that broke before they were asked
	refused string // why the server does not tell
}

// settle asks a session that is about to be closed how far it came with Fast Ingest, and what it has cost: the first
// decides whether its rows can be read, the second is asked only of the run's own sessions and where asking is welcome.
func (l *opened) settle(ctx context.Context, s *session) {
	if s.method == methodFast && s.sent {
		l.noteFast(ctx, s)
	}
	if s.probing || s.silent {
		return
	}
	l.mu.Lock()
	refused := l.spent.refused != ""
	l.mu.Unlock()
	if refused {
		return
	}
	cost, why := s.cost(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent.cost == nil {
		l.spent.cost = make(map[string]float64)
	}
	for name, value := range cost {
		l.spent.cost[name] += value
	}
	switch {
	case s.dead:
		l.spent.lost++
	case why != "":
		l.spent.refused = why
	}
}

func (s *session) cost(ctx context.Context) (cost map[string]float64, refused string) {
	if s.dead {
		return nil, ""
	}
	found, err := s.texts(ctx, "read V$MYSTAT", selectCost())
	switch {
	case s.is(err, codeNoTable):
		return nil, "what the run cost the server is not known: GRANT SELECT ON V_$MYSTAT and V_$STATNAME to the user"
	case err != nil:
		_, text, said := numberOf(err)
		if !said {
			text = err.Error()
		}
		return nil, "what the run cost the server is not known: " + text
	}
	cost = make(map[string]float64)
	for _, row := range found {
		value, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			continue // a statistic without a value
		}
		for _, known := range measured() {
			if known.name == row[0] {
				cost[known.as] = value * known.unit
			}
		}
	}
	return cost, ""
}

// Measured sums up what closed sessions have cost.
func (l *opened) Measured(context.Context) (cost map[string]float64, notes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.spent.refused != "" {
		notes = append(notes, l.spent.refused)
	}
	if l.spent.lost > 0 {
		notes = append(notes, fmt.Sprintf("what the run cost the server leaves out %d sessions whose connection broke", l.spent.lost))
	}
	return maps.Clone(l.spent.cost), notes
}

// Stored asks for the segments of the table, its partitions and its indexes. They are counted where the schema is that of
// the user who has logged on, whatever current_schema says; of another one it is 0: DBA_SEGMENTS takes a privilege.
func (l *opened) Stored(ctx context.Context) (bytes int64, err error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	err = l.somewhere(ctx, func(k *link) error {
		found, err := k.texts(ctx, "ask for the table's size", r.selectStored())
		if err != nil || len(found) == 0 {
			return err
		}
		bytes, err = parseInt(found[0][0])
		return err
	})
	return bytes, err
}

func (s statements) selectStored() string {
	schema, name := unquoted(s.Table)
	return "SELECT TO_CHAR(NVL(SUM(g.bytes), 0)) FROM user_segments g WHERE " + ownerOf(schema) +
		" = SYS_CONTEXT('USERENV', 'SESSION_USER') AND (g.segment_name = " + literal(name) +
		" OR g.segment_name IN (SELECT i.index_name FROM user_indexes i WHERE i.table_name = " + literal(name) + "))"
}
