package mysql

import (
	"context"
	"fmt"
	"strings"

	"github.com/terapush/terapush/pkg/sqlload"
)

// effects is a query for triggers that see a row before it is inserted.
func (l *opened) effects(*sqlload.State) string {
	return "SELECT CONCAT('trigger ', trigger_name), 'may change rows or refuse them', 'choose another --table' " +
		"FROM information_schema.triggers WHERE event_object_schema = " + literal(l.name.schema) + " AND event_object_table = " +
		literal(l.name.table) + " AND event_manipulation = 'INSERT' AND action_timing = 'BEFORE' ORDER BY 1"
}

// behind implements sqlload.Table.Behind for a DEFAULT NEXTVAL(…), which MariaDB has. SETVAL moves no sequence back.
// Values up to next_not_cached_value may be in the server's cache, and still be handed out. AUTO_INCREMENT moves by
// itself.
func (l *opened) behind(ctx context.Context, c sqlload.Conn, s *sqlload.State, largest int64) ([]string, error) {
	fallback, err := value(ctx, c, "SELECT column_default FROM information_schema.columns WHERE "+l.name.where()+
		" AND column_name = "+literal(s.Schema.Key().Name))
	sequence, is := strings.CutPrefix(fallback, "nextval(")
	if err != nil || !is {
		return nil, err
	}
	sequence = strings.TrimSuffix(sequence, ")")
	next, err := value(ctx, c, fmt.Sprintf("SELECT increment < 0 OR "+
		"next_not_cached_value - CAST(cache_size AS SIGNED) * increment > %d FROM %s", largest, sequence))
	if err != nil || next == "1" {
		return nil, err
	}
	return []string{fmt.Sprintf("SELECT SETVAL(%s, %d)", sequence, largest)}, nil
}
