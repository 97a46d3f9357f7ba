package mysql

import (
	"context"
	"strconv"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// reader reads the table that Prepare has settled.
func (db *database) reader() (sqlload.Reader, error) {
	s, err := db.prepared()
	if err != nil {
		return sqlload.Reader{}, err
	}
	r := sqlload.Reader{DB: db.control, Statements: s.Statements, Failed: failed}
	if packet, err := strconv.ParseInt(db.server.vars["max_allowed_packet"], 10, 64); err == nil {
		r.MaxStatement = packet - 1 // the packet holds the command's byte, too
	}
	return r, nil
}

// Count scans the table once, bucket by bucket.
func (db *database) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	r, err := db.reader()
	if err != nil {
		return err
	}
	return r.Count(ctx, g, f)
}

// Distinct scans the table once.
func (db *database) Distinct(ctx context.Context, in loader.KeyRange) (int64, error) {
	r, err := db.reader()
	if err != nil {
		return 0, err
	}
	return r.Distinct(ctx, in)
}

// Fetch reads single rows back.
func (db *database) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	r, err := db.reader()
	if err != nil {
		return err
	}
	return r.Fetch(ctx, numbers, f)
}

// Stored is the size of the table with its indexes. InnoDB counts it when it takes statistics, which after a load may be
// long ago: seen were 48 KiB for 200 MiB. So they are taken now, which reads a few pages and spares the first queries
// a bad plan. TiDB would scan the whole table for it, and SingleStore counts by itself.
func (db *database) Stored(ctx context.Context) (bytes int64, err error) {
	if f := db.server.flavour; f == mySQL || f == mariaDB {
		// ANALYZE answers with rows, also when it fails; the size is asked for all the same.
		_, err := db.control.ExecContext(ctx, "ANALYZE NO_WRITE_TO_BINLOG TABLE "+db.name.quoted())
		if err != nil {
			return 0, failed("size", err)
		}
	}
	err = db.control.QueryRowContext(ctx, `SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables`+
		` WHERE table_schema = ? AND table_name = ?`, db.name.schema, db.name.table).Scan(&bytes)
	return bytes, failed("size", err)
}
