package mysql

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// split splits a table by its primary key, in whose order InnoDB and TiDB store the rows, or by TiDB's own row id.
// Without a primary key InnoDB has nothing that a scan could begin at. SingleStore scans with all its partitions
// anyway.
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

// splitTiDB splits by the primary key only where it orders the rows.
func (l *opened) splitTiDB(ctx context.Context, c sqlload.Conn, s *sqlload.State, r loader.KeyRange, n int, keyed bool) ([]string, error) {
	ids, clustered, err := l.rowIDs(ctx, c, s)
	switch {
	case err != nil, clustered && !keyed: // by another column
		return nil, err
	case clustered:
		return s.SplitKeys(r, n), nil
	case ids == nil:
		return nil, nil
	}
	spans := sqlload.Spans(*ids, n)
	parts := make([]string, len(spans))
	for i, span := range spans {
		parts[i] = fmt.Sprintf("_tidb_rowid BETWEEN %d AND %d", span.First, span.Last)
	}
	return parts, nil
}

// rowIDs finds the range of TiDB's own row ids, nil if there are no rows. Every table has them, unless its primary key
// is the rows' place.
func (l *opened) rowIDs(
	ctx context.Context, c sqlload.Conn, s *sqlload.State,
) (ids *loader.KeyRange, clustered bool, err error) {
	kind, err := value(ctx, c, "SELECT tidb_pk_type FROM information_schema.tables WHERE "+l.name.where())
	if err != nil || kind == "CLUSTERED" {
		return nil, err == nil, err
	}
	found, err := sqlload.Rows(ctx, c, "SELECT MIN(_tidb_rowid), MAX(_tidb_rowid) FROM "+s.Table)
	if err != nil || len(found) != 1 || found[0][0] == "" {
		return nil, false, err
	}
	ids = &loader.KeyRange{}
	if ids.First, err = sqlload.ParseNumber(found[0][0]); err == nil {
		ids.Last, err = sqlload.ParseNumber(found[0][1])
	}
	return ids, false, err
}

// Sample implements loader.Sampler by TiDB's row ids, which are the rows' places: a row is read without a scan.
func (l *opened) Sample(ctx context.Context, n int, f func(number int64, values []any) error) error {
	s, err := l.State()
	if err != nil || l.server.flavour != tiDB {
		return err
	}
	ids, err := l.sampled(ctx, s)
	if err != nil || ids == nil {
		return failed("look for row ids", err)
	}
	spans := sqlload.Spans(*ids, n)
	places := make([]string, len(spans))
	for i, span := range spans {
		places[i] = strconv.FormatInt(span.First, 10)
	}
	return l.FetchWhere(ctx, "_tidb_rowid IN ("+strings.Join(places, ",")+")", f)
}

// sampled is the range of the row ids of a table whose rows no index finds by their numbers, nil for another.
func (l *opened) sampled(ctx context.Context, s *sqlload.State) (*loader.KeyRange, error) {
	c, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = c.Close() }()
	if indexed, err := l.indexed(ctx, c, s); indexed || err != nil {
		return nil, err
	}
	ids, _, err := l.rowIDs(ctx, c, s)
	return ids, err
}
