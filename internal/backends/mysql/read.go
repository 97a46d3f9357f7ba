package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"math/big"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Count scans the table once, bucket by bucket.
func (db *database) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	s, err := db.prepared()
	if err != nil {
		return err
	}
	list, err := db.control.QueryContext(ctx, s.SelectBuckets(g))
	if err != nil {
		return withHint("count", err)
	}
	defer func() { _ = list.Close() }()
	for list.Next() {
		b, err := scanBucket(list, g.Lengths, s.Schema)
		if err != nil {
			return withHint("count", err)
		}
		if err := f(b); err != nil {
			return err
		}
	}
	return withHint("count", list.Err())
}

// scanBucket reads one row of SelectBuckets. Sums come as DECIMAL, which the driver hands over as text.
func scanBucket(list *sql.Rows, lengths bool, s rows.Schema) (loader.Bucket, error) {
	var b loader.Bucket
	var sum, squares string
	to := []any{&b.Number, &b.Rows, &b.Min, &b.Max, &sum, &squares}
	for _, c := range s.Columns {
		if lengths && c.Type.Variable() {
			b.Lengths = append(b.Lengths, 0)
		}
	}
	for i := range b.Lengths {
		to = append(to, &b.Lengths[i])
	}
	if err := list.Scan(to...); err != nil {
		return b, err
	}
	var ok, also bool
	b.Sum, ok = new(big.Int).SetString(sum, 10)
	b.Squares, also = new(big.Int).SetString(squares, 10)
	if !ok || !also {
		return b, fmt.Errorf("sums of bucket %d are no integers: %q and %q", b.Number, sum, squares)
	}
	return b, nil
}

// Distinct scans the table once.
func (db *database) Distinct(ctx context.Context, r loader.KeyRange) (n int64, err error) {
	s, err := db.prepared()
	if err != nil {
		return 0, err
	}
	err = db.control.QueryRowContext(ctx, s.SelectDistinct(r)).Scan(&n)
	return n, withHint("count different rows", err)
}

// Fetch reads single rows back.
func (db *database) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	s, err := db.prepared()
	if err != nil || len(numbers) == 0 {
		return err
	}
	list, err := db.control.QueryContext(ctx, s.SelectRows(numbers))
	if err != nil {
		return withHint("fetch rows", err)
	}
	defer func() { _ = list.Close() }()
	row := newFetched(s.Schema)
	for list.Next() {
		if err := list.Scan(row.to...); err != nil {
			return withHint("fetch rows", err)
		}
		if err := f(row.number, row.read()); err != nil {
			return err
		}
	}
	return withHint("fetch rows", list.Err())
}

// fetched is where the rows of one Fetch are scanned to, again and again.
type fetched struct {
	number int64
	values []any
	to     []any // &number, then an *int64 or *sql.RawBytes for each column
}

func newFetched(s rows.Schema) *fetched {
	f := &fetched{values: make([]any, len(s.Columns))}
	f.to = append(f.to, &f.number)
	for _, c := range s.Columns {
		if c.Type.Variable() {
			f.to = append(f.to, new(sql.RawBytes))
		} else {
			f.to = append(f.to, new(int64))
		}
	}
	return f
}

func (f *fetched) read() []any {
	for i, to := range f.to[1:] {
		switch v := to.(type) {
		case *sql.RawBytes:
			f.values[i] = []byte(*v)
		case *int64:
			f.values[i] = *v
		}
	}
	return f.values
}

// Stored is the size of the table with its indexes. InnoDB counts it when it takes statistics, which after a load may be
// long ago: seen were 48 KiB for 200 MiB. So they are taken now, which reads a few pages and spares the first queries
// a bad plan. TiDB would scan the whole table for it, and SingleStore counts by itself.
func (db *database) Stored(ctx context.Context) (bytes int64, err error) {
	if f := db.server.flavour; f == mySQL || f == mariaDB {
		// ANALYZE answers with rows, also when it fails; the size is asked for all the same.
		_, err := db.control.ExecContext(ctx, "ANALYZE NO_WRITE_TO_BINLOG TABLE "+db.name.quoted())
		if err != nil {
			return 0, withHint("size", err)
		}
	}
	err = db.control.QueryRowContext(ctx, `SELECT COALESCE(SUM(data_length + index_length), 0) FROM information_schema.tables`+
		` WHERE table_schema = ? AND table_name = ?`, db.name.schema, db.name.table).Scan(&bytes)
	return bytes, withHint("size", err)
}
