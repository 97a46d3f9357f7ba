package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// leastBlocks is the least that is worth a part: 8 MiB of the usual blocks.
const leastBlocks = 1024

// split splits a table by ranges of blocks, each of which a TID range scan reads alone (since PostgreSQL 14), or by
// keys if the run is a small part of a table with an index. Redshift and YugabyteDB have no such blocks.
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

// Sample implements loader.Sampler by the first row of each of n blocks of a heap.
func (l *opened) Sample(ctx context.Context, n int, f func(number int64, values []any) error) error {
	s, err := l.State()
	if err != nil || l.flavour != postgreSQL {
		return err
	}
	var blocks int64
	err = failed("ask for the table's size", l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		found, err := sqlload.Rows(ctx, conn{PgConn: c}, "SELECT pg_relation_size(oid) / current_setting('block_size')::int FROM pg_class c "+
			"WHERE oid = to_regclass("+sqlload.Literal(s.Table)+") AND NOT "+hasIndex(s))
		if err == nil && len(found) == 1 {
			blocks, err = sqlload.ParseNumber(found[0][0])
		}
		return err
	}))
	if err != nil || blocks < 4*int64(n) { // a scan reads hardly more
		return err
	}
	places := make([]string, n)
	for i, span := range sqlload.Spans(loader.KeyRange{Last: blocks - 1}, n) {
		places[i] = fmt.Sprintf("\"(%d,1)\"", span.First)
	}
	return l.FetchWhere(ctx, "ctid = ANY ('{"+strings.Join(places, ",")+"}'::tid[])", f)
}
