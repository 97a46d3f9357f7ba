package sqlload

import (
	"context"
	"database/sql"
	"fmt"
	"net"
	"strconv"
	"strings"
)

// Conn is a connection for everything but the rows of a load: queries, DDL and the claim table.
type Conn interface {
	// Exec runs a statement, or several where the server takes them in one message, and returns how many rows the last
	// one changed.
	Exec(ctx context.Context, statement string) (rows int64, err error)
	// Query calls each for every row, of several statements for those of one after the other, with the values as text;
	// nil is NULL. The values are valid until each returns. Query returns an error of each unchanged.
	Query(ctx context.Context, query string, each func(row [][]byte) error) error
	Close() error
}

// Rows reads all rows of a query as text; NULL is "".
func Rows(ctx context.Context, c Conn, query string) (all [][]string, err error) {
	err = c.Query(ctx, query, func(row [][]byte) error {
		texts := make([]string, len(row))
		for i, value := range row {
			texts[i] = string(value)
		}
		all = append(all, texts)
		return nil
	})
	return all, err
}

// ExecAll runs statements until one fails.
func ExecAll(ctx context.Context, c Conn, statements ...string) error {
	for _, statement := range statements {
		if _, err := c.Exec(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Number reads the one number that a query returns.
func Number(ctx context.Context, c Conn, query string) (int64, error) {
	found, err := Rows(ctx, c, query)
	if err != nil {
		return 0, err
	}
	if len(found) != 1 {
		return 0, fmt.Errorf("the server returned %d rows instead of one number", len(found))
	}
	return ParseNumber(found[0][0])
}

// ParseNumber reads an integer in the answer of a server.
func ParseNumber(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server returned %q instead of a number", text)
	}
	return n, nil
}

// Integer reads an integer in a text of the server, with or without blanks around it; 0 if there is none, as in NULL
// and UNLIMITED. ParseNumber is for what has to be one.
func Integer(text string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSpace(text), 10, 64)
	return n
}

// SQL makes a Conn of a connection of package sql. Close gives it back to its pool, as it is.
type SQL struct{ *sql.Conn }

// Exec implements Conn.
func (c SQL) Exec(ctx context.Context, statement string) (int64, error) {
	result, err := c.ExecContext(ctx, statement)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Query implements Conn.
func (c SQL) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	list, err := c.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer func() { _ = list.Close() }()
	for more := true; more; more = list.NextResultSet() {
		columns, err := list.Columns()
		if err != nil {
			return err
		}
		values, row, to := make([]sql.RawBytes, len(columns)), make([][]byte, len(columns)), make([]any, len(columns))
		for i := range values {
			to[i] = &values[i]
		}
		for list.Next() {
			if err := list.Scan(to...); err != nil {
				return err
			}
			for i, value := range values {
				row[i] = value
			}
			if err := each(row); err != nil {
				return err
			}
		}
	}
	return list.Err()
}

// WriteBuffers writes all buffers, with as few system calls as the kernel and c allow. It consumes b.
func WriteBuffers(c net.Conn, b *net.Buffers) (int64, error) {
	if c, is := c.(interface {
		WriteBuffers(b *net.Buffers) (int64, error)
	}); is {
		return c.WriteBuffers(b)
	}
	return b.WriteTo(c)
}
