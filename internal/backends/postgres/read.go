package postgres

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/big"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Count reads the table once, in one statement.
func (l *opened) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	r, err := l.prepared()
	if err != nil {
		return err
	}
	return l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		return r.each(ctx, c, r.SelectBuckets(g), func(row [][]byte) error {
			b, err := bucket(row)
			if err != nil {
				return err
			}
			return f(b)
		})
	})
}

// bucket reads number, rows, min, max, sum, squares and the lengths.
func bucket(row [][]byte) (loader.Bucket, error) {
	n := make([]*big.Int, len(row))
	for i, text := range row {
		var ok bool
		if n[i], ok = new(big.Int).SetString(string(text), 10); !ok {
			return loader.Bucket{}, fmt.Errorf("count: the server answered %q where a number was expected", text)
		}
	}
	b := loader.Bucket{
		Number: n[0].Int64(), Rows: n[1].Int64(), Min: n[2].Int64(), Max: n[3].Int64(), Sum: n[4], Squares: n[5],
	}
	for _, length := range n[6:] {
		b.Lengths = append(b.Lengths, length.Int64())
	}
	return b, nil
}

// Distinct reads the table once.
func (l *opened) Distinct(ctx context.Context, k loader.KeyRange) (int64, error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	return l.number(ctx, "count the different rows", r.SelectDistinct(k))
}

// Stored counts the heap with TOAST and indexes.
func (l *opened) Stored(ctx context.Context) (int64, error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	if r.flavour == redshift {
		return l.number(ctx, "ask for the table's size", r.selectRedshiftSize())
	}
	return l.number(ctx, "ask for the table's size", "SELECT pg_total_relation_size("+literal(r.Table)+")")
}

// number asks for one number.
func (l *opened) number(ctx context.Context, what, sql string) (n int64, err error) {
	err = l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		found, err := rowsOf(ctx, c, sql)
		if err != nil {
			return failed(what, err)
		}
		n, err = parseInt(found[0][0])
		return err
	})
	return n, err
}

// Fetch asks for binary values: bytea comes as it is, numbers and dates as numbers. Redshift is asked for text, since
// nobody has written down what its binary values are.
func (l *opened) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	r, err := l.prepared()
	if err != nil || len(numbers) == 0 {
		return err
	}
	values := make([]any, len(r.Schema.Columns))
	read, format := binaryValue, int16(1)
	if r.flavour == redshift {
		read, format = textValue, 0
	}
	return l.somewhere(ctx, func(c *pgconn.PgConn, _ endpoint) error {
		found := c.ExecParams(ctx, r.SelectRows(numbers), nil, nil, nil, []int16{format})
		for found.NextRow() {
			row := found.Values()
			number, err := read(rows.Column{Type: rows.Int64}, row[0])
			for i, column := range r.Schema.Columns {
				values[i] = nil
				if err == nil && row[i+1] != nil {
					values[i], err = read(column, row[i+1])
				}
			}
			if err == nil {
				err = f(number.(int64), values)
			}
			if err != nil {
				hangUp(c)
				return err
			}
		}
		_, err := found.Close()
		return failed("fetch rows", cause(c, err))
	})
}

// The server counts from 2000-01-01, and rows.Date and rows.Timestamp from 1970-01-01.
const (
	daysTo2000   = 10957
	microsTo2000 = daysTo2000 * 24 * 60 * 60 * 1_000_000
)

// binaryValue reads a value in the binary format (PostgreSQL source, date_send and timestamp_send). Decimals were asked
// for as text.
func binaryValue(c rows.Column, b []byte) (any, error) {
	want := 0
	switch c.Type {
	case rows.Decimal:
		return sqlload.ReadFixed(c, string(b))
	case rows.Int64, rows.Timestamp:
		want = 8
	case rows.Date:
		want = 4
	default:
		return b, nil
	}
	if len(b) != want {
		return nil, fmt.Errorf("fetch: a %s of %d bytes", c.Type, len(b))
	}
	switch c.Type {
	case rows.Date:
		return daysTo2000 + int64(int32(binary.BigEndian.Uint32(b))), nil
	case rows.Timestamp:
		return microsTo2000 + int64(binary.BigEndian.Uint64(b)), nil
	default:
		return int64(binary.BigEndian.Uint64(b)), nil
	}
}

// textValue reads a value as the server writes it under DateStyle ISO, which is the default.
func textValue(c rows.Column, b []byte) (any, error) {
	if c.Type.Variable() {
		return b, nil
	}
	return sqlload.ReadFixed(c, string(b))
}
