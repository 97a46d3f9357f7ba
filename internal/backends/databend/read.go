package databend

import (
	"context"
	"encoding/hex"
	"fmt"
	"strconv"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Count scans the table once, bucket by bucket.
func (db *database) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	p, err := db.prepared()
	if err != nil {
		return err
	}
	var stopped error // the caller's own, which gets no hint
	err = db.run(ctx, statement{sql: p.SelectBuckets(g)}, func(r row) error {
		b, err := sqlload.ReadBucket(r.texts())
		if err == nil {
			stopped = f(b)
		}
		return firstOf(stopped, err)
	})
	return firstOf(stopped, failed("count", err))
}

func firstOf(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// Distinct scans the table once.
func (db *database) Distinct(ctx context.Context, r loader.KeyRange) (int64, error) {
	p, err := db.prepared()
	if err != nil {
		return 0, err
	}
	n, err := db.number(ctx, p.SelectDistinct(r))
	return n, failed("count different rows", err)
}

// fetchPage is how much one answer of Fetch may hold, in bytes of column data. JSON makes up to six bytes of one, and
// an answer has 16 MiB at most.
const fetchPage = 2 << 20

// Fetch reads single rows back.
func (db *database) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	p, err := db.prepared()
	if err != nil || len(numbers) == 0 {
		return err
	}
	s := statement{sql: p.SelectRows(numbers), pageRows: max(fetchPage/max(p.Schema.MaxRowBytes(), 1), 1)}
	var stopped error
	err = db.run(ctx, s, func(r row) error {
		number, values, err := readRow(p.Schema, r)
		if err == nil {
			stopped = f(number, values)
		}
		return firstOf(stopped, err)
	})
	return firstOf(stopped, failed("fetch rows", err))
}

// readRow reads one row of SelectRows: its number, then all columns.
func readRow(s rows.Schema, r row) (number int64, values []any, err error) {
	if len(r) != len(s.Columns)+1 {
		return 0, nil, fmt.Errorf("a row has %d values, asked for were %d", len(r), len(s.Columns)+1)
	}
	text := r.texts()
	if number, err = strconv.ParseInt(text[0], 10, 64); err != nil {
		return 0, nil, err
	}
	values = make([]any, len(s.Columns))
	for i, c := range s.Columns {
		switch c.Type {
		case rows.Text:
			values[i] = []byte(text[i+1])
		case rows.Bytes:
			values[i], err = hex.DecodeString(text[i+1])
		case rows.Decimal:
			values[i], err = sqlload.ReadFixed(c, text[i+1])
		default:
			values[i], err = strconv.ParseInt(text[i+1], 10, 64)
		}
		if err != nil {
			return number, nil, fmt.Errorf("column %s of row %d: %w", c.Name, number, err)
		}
	}
	return number, values, nil
}

// Stored is the size of the table with its indexes, as it lies in the object store.
func (db *database) Stored(ctx context.Context) (int64, error) {
	n, err := db.number(ctx, fmt.Sprintf("SELECT COALESCE(data_compressed_size, 0) + COALESCE(index_size, 0)"+
		" FROM system.tables WHERE database = %s AND name = %s", literal(db.plan.name.database), literal(db.plan.name.table)))
	return n, failed("size", err)
}
