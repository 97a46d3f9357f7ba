package sqlload

import (
	"context"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// Connect opens a connection.
type Connect func(ctx context.Context) (Conn, error)

// query hands the rows of a query over a connection of its own to f, whose error comes back as it is.
func (t *Table) query(ctx context.Context, connect Connect, op, query string, f func(row [][]byte) error) error {
	var stopped error
	c, err := connect(ctx)
	if err == nil {
		defer func() { _ = c.Close() }()
		err = c.Query(ctx, query, func(row [][]byte) error {
			stopped = f(row)
			return stopped
		})
	}
	if stopped != nil {
		return stopped
	}
	return t.Failed(op, err)
}

// number asks for one number.
func (t *Table) number(ctx context.Context, op, query string) (n int64, err error) {
	err = t.on(ctx, func(c Conn) error {
		n, err = Number(ctx, c, query)
		return err
	})
	return n, t.Failed(op, err)
}

// Count implements loader.Counter in one scan.
func (t *Table) Count(ctx context.Context, g loader.Grouping, f func(loader.Bucket) error) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.query(ctx, t.Connect, "count", s.SelectBuckets(g), func(row [][]byte) error {
		b, err := readBucket(row)
		if err != nil {
			return fmt.Errorf("count: %w", err)
		}
		return f(b)
	})
}

// Distinct implements loader.Counter in one scan.
func (t *Table) Distinct(ctx context.Context, r loader.KeyRange) (int64, error) {
	s, err := t.State()
	if err != nil {
		return 0, err
	}
	return t.number(ctx, "count different rows", s.SelectDistinct(r))
}

// CountRows counts the rows of a range.
func (t *Table) CountRows(ctx context.Context, r loader.KeyRange) (int64, error) {
	s, err := t.State()
	if err != nil {
		return 0, err
	}
	return t.number(ctx, "look for the rows", s.SelectCount(r))
}

// Fetch implements loader.Fetcher in one statement, where the server takes it.
func (t *Table) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	return t.FetchOver(ctx, t.Connect, numbers, f)
}

// FetchOver is Fetch over a connection of another kind, for a server that has to be told how large rows are.
func (t *Table) FetchOver(
	ctx context.Context, connect Connect, numbers []int64, f func(number int64, values []any) error,
) error {
	s, err := t.State()
	if err != nil || len(numbers) == 0 {
		return err
	}
	if n := len(numbers) / 2; n > 0 && t.MaxStatement > 0 && int64(len(s.SelectRows(numbers))) > t.MaxStatement {
		if err := t.FetchOver(ctx, connect, numbers[:n], f); err != nil {
			return err
		}
		return t.FetchOver(ctx, connect, numbers[n:], f)
	}
	values := make([]any, len(s.Schema.Columns))
	return t.query(ctx, connect, "fetch rows", s.SelectRows(numbers), func(row [][]byte) error {
		number, err := s.readRow(row, values)
		if err != nil {
			return fmt.Errorf("fetch: %w", err)
		}
		return f(number, values)
	})
}

// Stored implements loader.Sizer.
func (t *Table) Stored(ctx context.Context) (n int64, err error) {
	s, err := t.State()
	if err != nil {
		return 0, err
	}
	statements := t.Catalog.Stored(s)
	last := len(statements) - 1
	err = t.on(ctx, func(c Conn) (err error) {
		for _, statement := range statements[:last] {
			if _, err := c.Exec(ctx, statement); err != nil {
				return err
			}
		}
		n, err = Number(ctx, c, statements[last])
		return err
	})
	return n, t.Failed("ask for the table's size", err)
}
