package doris

import (
	"context"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// reader reads the table that Prepare has settled.
func (db *database) reader() (sqlload.Reader, error) {
	s, err := db.prepared()
	if err != nil {
		return sqlload.Reader{}, err
	}
	return sqlload.Reader{DB: db.control, Statements: s.Statements, Failed: failed}, nil
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

// Stored is the size of the table with its replicas as the frontend counts them, which it does every few minutes.
func (db *database) Stored(ctx context.Context) (bytes int64, err error) {
	err = db.control.QueryRowContext(ctx, "SELECT COALESCE(SUM(data_length), 0) FROM information_schema.tables"+
		" WHERE table_schema = ? AND table_name = ?", db.name.schema, db.name.table).Scan(&bytes)
	return bytes, failed("size", err)
}
