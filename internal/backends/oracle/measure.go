package oracle

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/terapush/terapush/internal/sqlload"
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
		names = append(names, s.name)
	}
	return "SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# " +
		"WHERE n.name IN (" + sqlload.Literals(names) + ")"
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
	l.mu.Lock()
	refused := l.spent.refused != ""
	l.mu.Unlock()
	if s.unmeasured || refused {
		return
	}
	var found [][]string
	var err error
	if !s.dead {
		found, err = sqlload.Rows(ctx, s, selectCost())
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case s.dead:
		l.spent.lost++
	case s.is(err, codeNoTable):
		l.spent.refused = "what the run cost the server is not known: GRANT SELECT ON V_$MYSTAT and V_$STATNAME to the user"
	case err != nil:
		l.spent.refused = "what the run cost the server is not known: " + err.Error()
	default:
		l.spent.add(found)
	}
}

// add takes the rows of selectCost. A statistic may have no value.
func (s *spent) add(found [][]string) {
	if s.cost == nil {
		s.cost = make(map[string]float64)
	}
	for _, row := range found {
		value, _ := strconv.ParseFloat(row[1], 64)
		for _, known := range measured() {
			if known.name == row[0] && row[1] != "" {
				s.cost[known.as] += value * known.unit
			}
		}
	}
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
