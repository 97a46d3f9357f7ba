package oracle

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

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
	return failed("count the rows", l.somewhere(ctx, func(k *link) error {
		return k.each(ctx, "count the rows", r.SelectBuckets(g), func(row []string) error {
			b, err := sqlload.ReadBucket(zeros(row))
			if err != nil {
				return err
			}
			return f(b)
		})
	}))
}

// zeros replaces NULLs: the summed length of a column that has no value but empty ones is a NULL here.
func zeros(row []string) []string {
	for i, text := range row {
		if text == "" {
			row[i] = "0"
		}
	}
	return row
}

// Distinct reads the table once.
func (l *opened) Distinct(ctx context.Context, all loader.KeyRange) (n int64, err error) {
	r, err := l.prepared()
	if err != nil {
		return 0, err
	}
	err = l.somewhere(ctx, func(k *link) (err error) {
		n, err = k.number(ctx, "count the different rows", r.SelectDistinct(all))
		return err
	})
	return n, failed("count the different rows", err)
}

// Fetch reads everything but texts and RAW through TO_CHAR: go-ora and godror reshape numbers, dates and timestamps, each
// in a way of its own.
func (l *opened) Fetch(ctx context.Context, numbers []int64, f func(number int64, values []any) error) error {
	r, err := l.prepared()
	if err != nil || len(numbers) == 0 {
		return err
	}
	values := make([]any, len(r.Schema.Columns))
	return failed("fetch rows", l.somewhere(ctx, func(k *link) error {
		return k.each(ctx, "fetch rows", r.SelectRows(numbers), func(row []string) error {
			number, err := strconv.ParseInt(row[0], 10, 64)
			if err != nil {
				return fmt.Errorf("fetch: the server answered %q where a row's number was expected", row[0])
			}
			for i, column := range r.Schema.Columns {
				if values[i], err = valueOf(column, row[i+1]); err != nil {
					return fmt.Errorf("fetch: row %d, column %s: %w", number, column.Name, err)
				}
			}
			return f(number, values)
		})
	}))
}

// valueOf reads a value as SelectRows asks for it. An empty text or RAW went in as a NULL and comes back as one, so that
// for these types nobody can tell the two apart; for all others "" is a NULL.
func valueOf(c rows.Column, text string) (any, error) {
	switch {
	case c.Type.Variable():
		return []byte(text), nil
	case text == "":
		return nil, nil
	}
	return sqlload.ReadFixed(c, text)
}

// each hands the rows of a query to f as they come, every value as a text: "" is a NULL, which is what Oracle itself makes
// of an empty text. f must not keep the row. op is what failed, if it fails.
func (k *link) each(ctx context.Context, op, query string, f func(row []string) error) error {
	fail := func(err error) error { return failed(op, k.outcome(ctx, err)) }
	found, err := k.conn.QueryContext(ctx, query)
	if err != nil {
		return fail(err)
	}
	defer func() { _ = found.Close() }()
	names, err := found.Columns()
	if err != nil {
		return fail(err)
	}
	scanned := make([]sql.NullString, len(names))
	to, row := make([]any, len(names)), make([]string, len(names))
	for i := range scanned {
		to[i] = &scanned[i]
	}
	for found.Next() {
		if err := found.Scan(to...); err != nil {
			return fail(err)
		}
		for i, value := range scanned {
			row[i] = value.String // "" where it is not valid
		}
		if err := f(row); err != nil {
			return k.outcome(ctx, err)
		}
	}
	return fail(found.Err())
}

// number reads the one number that a query asks for.
func (k *link) number(ctx context.Context, op, query string) (int64, error) {
	found, err := k.texts(ctx, op, query)
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("%s: the server answered %d rows where one was expected", op, len(found))
	}
	n, err := strconv.ParseInt(found[0][0], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: the server answered %q where a number was expected", op, found[0][0])
	}
	return n, nil
}
