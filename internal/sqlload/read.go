package sqlload

import (
	"context"
	"database/sql"

	"github.com/terapush/terapush/pkg/loader"
)

// Reader reads a table back over package sql, for the proof. Errors of the caller's functions come back as they are.
type Reader struct {
	DB *sql.DB
	Statements
	Failed func(op string, err error) error // says what was being done; nil for nil
	// MaxStatement is the longest statement that the server takes, in bytes; 0: there is no bound.
	MaxStatement int64
}

// Count is loader.Counter's: one scan, bucket by bucket.
func (r Reader) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	list, err := r.DB.QueryContext(ctx, r.SelectBuckets(g))
	if err != nil {
		return r.Failed("count", err)
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		b, err := ScanBucket(list)
		if err != nil {
			return r.Failed("count", err)
		}
		if err := f(b); err != nil {
			return err
		}
	}
	return r.Failed("count", list.Err())
}

// Distinct is loader.Counter's: one scan.
func (r Reader) Distinct(ctx context.Context, in loader.KeyRange) (n int64, err error) {
	err = r.DB.QueryRowContext(ctx, r.SelectDistinct(in)).Scan(&n)
	return n, r.Failed("count different rows", err)
}

// Fetch is loader.Fetcher's: in one statement, where the server takes it.
func (r Reader) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	if n := len(numbers) / 2; n > 0 && r.MaxStatement > 0 && int64(len(r.SelectRows(numbers))) > r.MaxStatement {
		if err := r.Fetch(ctx, numbers[:n], f); err != nil {
			return err
		}
		return r.Fetch(ctx, numbers[n:], f)
	}
	if len(numbers) == 0 {
		return nil
	}
	list, err := r.DB.QueryContext(ctx, r.SelectRows(numbers))
	if err != nil {
		return r.Failed("fetch rows", err)
	}
	defer func() { _ = list.Close() }()
	row := NewRow(r.Schema)
	for list.Next() {
		if err := list.Scan(row.To...); err != nil {
			return r.Failed("fetch rows", err)
		}
		values, err := row.Read()
		if err != nil {
			return r.Failed("fetch rows", err)
		}
		if err := f(row.Number, values); err != nil {
			return err
		}
	}
	return r.Failed("fetch rows", list.Err())
}
