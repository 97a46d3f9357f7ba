package mysql

import (
	"context"
	"fmt"
	"slices"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// split splits a table by its primary key, in whose order InnoDB and TiDB store the rows, or by TiDB's own row id. Without
// a primary key InnoDB has nothing that a scan could begin at. SingleStore scans with all its partitions anyway.
func (l *opened) split(ctx context.Context, c sqlload.Conn, s *sqlload.State, r loader.KeyRange, n int) ([]string, error) {
	if l.server.flavour == singleStore {
		return nil, nil
	}
	l.control.SetMaxOpenConns(0) // the sessions are closed, and the proof limits itself
	indexes, err := l.indexes(ctx, c, s)
	if err != nil {
		return nil, err
	}
	primary := slices.Contains(indexes, "PRIMARY")
	if l.server.flavour == tiDB {
		return l.splitTiDB(ctx, c, s, r, n, primary)
	}
	if !primary {
		return nil, nil
	}
	return s.SplitKeys(r, n), nil
}

// indexed implements sqlload.Table.Indexed. SingleStore's tables are column stores, which skip what cannot match.
func (l *opened) indexed(ctx context.Context, c sqlload.Conn, s *sqlload.State) (bool, error) {
	if l.server.flavour == singleStore {
		return true, nil
	}
	indexes, err := l.indexes(ctx, c, s)
	return len(indexes) > 0, err
}

// indexes lists the indexes that begin with the key's column.
func (l *opened) indexes(ctx context.Context, c sqlload.Conn, s *sqlload.State) ([]string, error) {
	found, err := sqlload.Rows(ctx, c, "SELECT index_name FROM information_schema.statistics WHERE "+l.name.where()+
		" AND seq_in_index = 1 AND column_name = "+literal(s.Schema.Key().Name))
	return firsts(found), err
}

// splitTiDB splits by the primary key only where it orders the rows. All other tables have the column _tidb_rowid.
func (l *opened) splitTiDB(ctx context.Context, c sqlload.Conn, s *sqlload.State, r loader.KeyRange, n int, keyed bool) ([]string, error) {
	kind, err := sqlload.Rows(ctx, c, "SELECT tidb_pk_type FROM information_schema.tables WHERE "+l.name.where())
	if err != nil {
		return nil, err
	}
	if len(kind) == 1 && kind[0][0] == "CLUSTERED" {
		if !keyed {
			return nil, nil // by another column
		}
		return s.SplitKeys(r, n), nil
	}
	ids, err := sqlload.Rows(ctx, c, "SELECT MIN(_tidb_rowid), MAX(_tidb_rowid) FROM "+s.Table)
	if err != nil || len(ids) != 1 || ids[0][0] == "" {
		return nil, err
	}
	var all loader.KeyRange
	if all.First, err = sqlload.ParseNumber(ids[0][0]); err == nil {
		all.Last, err = sqlload.ParseNumber(ids[0][1])
	}
	if err != nil {
		return nil, err
	}
	spans := sqlload.Spans(all, n)
	parts := make([]string, len(spans))
	for i, span := range spans {
		parts[i] = fmt.Sprintf("_tidb_rowid BETWEEN %d AND %d", span.First, span.Last)
	}
	return parts, nil
}
