package oracle

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// statistic is a statistic of a session that the report shows.
type statistic struct {
	name, field string  // the server's name and the report's
	unit        float64 // of the server, in units of the report
}

var statistics = [...]statistic{
	{"redo size", "redo_bytes", 1},
	{"SQL*Net roundtrips to/from client", "round_trips", 1},
	{"bytes received via SQL*Net from client", "received_bytes", 1},
	{"CPU used by this session", "cpu_seconds", 0.01},
	{"user commits", "commits", 1},
}

// selectCost reads the statistics of its own session.
func selectCost() string {
	var names []string
	for _, s := range statistics {
		names = append(names, s.name)
	}
	return "SELECT n.name, TO_CHAR(s.value) FROM v$mystat s JOIN v$statname n ON n.statistic# = s.statistic# " +
		"WHERE n.name IN (" + sqlload.Literals(names) + ")"
}

// cost is what the closed sessions of a run have cost the server.
type cost struct {
	fields  map[string]float64
	lost    int    // sessions that broke
	refused string // why the server did not answer; it is not asked again
}

// addCost asks a session for what it has cost.
func (l *opened) addCost(ctx context.Context, s *session) {
	l.mu.Lock()
	refused := l.cost.refused != ""
	l.mu.Unlock()
	if refused {
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
		l.cost.lost++
	case is(err, codeNoTable):
		l.cost.refused = "what the run cost the server is unknown: GRANT SELECT ON V_$MYSTAT and V_$STATNAME to the user"
	case err != nil:
		l.cost.refused = "what the run cost the server is unknown: " + loader.Explain(err)
	default:
		l.cost.add(found)
	}
}

// add adds the rows of selectCost. A statistic without a value is left out.
func (c *cost) add(found [][]string) {
	if c.fields == nil {
		c.fields = make(map[string]float64)
	}
	for _, row := range found {
		value, err := strconv.ParseFloat(row[1], 64)
		for _, s := range statistics {
			if s.name == row[0] && err == nil {
				c.fields[s.field] += value * s.unit
			}
		}
	}
}

// Measured implements loader.Measurer.
func (l *opened) Measured(context.Context) (fields map[string]float64, notes []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cost.refused != "" {
		notes = append(notes, l.cost.refused)
	}
	if l.cost.lost > 0 {
		notes = append(notes,
			fmt.Sprintf("what the run cost the server leaves out %d sessions whose connection broke", l.cost.lost))
	}
	return maps.Clone(l.cost.fields), notes
}
