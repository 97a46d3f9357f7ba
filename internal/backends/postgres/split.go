package postgres

import (
	"context"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// leastBlocks is the least that is worth a part: 8 MiB of the usual blocks.
const leastBlocks = 1024

// split splits a table by ranges of blocks, each of which a TID range scan reads alone (since PostgreSQL 14), or by keys
// if the run is a small part of a table with an index. Redshift and YugabyteDB have no such blocks.
func (l *opened) split(ctx context.Context, c sqlload.Conn, s *sqlload.State, r loader.KeyRange, n int) ([]string, error) {
	if l.flavour != postgreSQL {
		return nil, nil
	}
	found, err := sqlload.Rows(ctx, c, "SELECT current_setting('server_version_num')::int, "+
		"pg_relation_size(oid) / current_setting('block_size')::int, reltuples > "+strconv.FormatInt(2*(r.Last-r.First), 10)+
		" AND "+hasIndex(s)+" FROM pg_class c WHERE oid = to_regclass("+sqlload.Literal(s.Table)+")")
	if err != nil || len(found) != 1 {
		return nil, err
	}
	version, blocks, small := found[0][0], found[0][1], found[0][2] == "t"
	if small {
		return s.SplitKeys(r, n), nil
	}
	if major, err := strconv.Atoi(version); err != nil || major < 140000 {
		return nil, err
	}
	all, err := sqlload.ParseNumber(blocks)
	if err != nil || all < 2*leastBlocks { // 0 of a partitioned table
		return nil, err
	}
	spans := sqlload.Spans(loader.KeyRange{Last: all - 1}, int(min(int64(n), all/leastBlocks)))
	parts := make([]string, len(spans))
	for i, span := range spans {
		parts[i] = fmt.Sprintf("ctid >= '(%d,0)' AND ctid < '(%d,0)'", span.First, span.Last+1)
	}
	last := len(parts) - 1
	parts[last] = fmt.Sprintf("ctid >= '(%d,0)'", spans[last].First) // and what other programs have appended since
	return parts, nil
}

// indexed implements sqlload.Table.Indexed. Redshift reads one column, and skips the blocks that cannot hold the key.
func (l *opened) indexed(ctx context.Context, c sqlload.Conn, s *sqlload.State) (bool, error) {
	if l.flavour == redshift {
		return true, nil
	}
	found, err := sqlload.Rows(ctx, c, "SELECT "+hasIndex(s)+" FROM pg_class c WHERE oid = to_regclass("+sqlload.Literal(s.Table)+")")
	return len(found) == 1 && found[0][0] == "t", err
}

// hasIndex is the condition that table c has an index on all rows that begins with the key's column.
func hasIndex(s *sqlload.State) string {
	return "EXISTS (SELECT FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] " +
		"WHERE i.indrelid = c.oid AND i.indisvalid AND i.indpred IS NULL AND a.attname = " + sqlload.Literal(s.Schema.Key().Name) + ")"
}
