package sqlload

// What back-ends use that have no Table yet.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// Trial is what a probe needs of a back-end.
type Trial struct {
	// Look counts the rows that have the probe's key and the claims of the probe, outside of Send's transaction.
	Look func(ctx context.Context, rows, claims string) (foundRows, foundClaims int64, err error)
	// Send claims, sends the one row and rolls back.
	Send func(ctx context.Context) error
	// Remove runs a DELETE in a transaction of its own.
	Remove func(ctx context.Context, statement string) error
}

// Probe finds out whether a rollback takes back the claim and the one row of ref, whose batch number is Probe.
//
// A row with the key may be somebody's: there before, or committed while the probe ran, as by an application that takes the
// next number of the same table. It is removed only where the probe's claim is in, too, and its row was accepted: then the
// transaction of both was committed. Any other row is left alone and is an error.
func (s Statements) Probe(ctx context.Context, ref loader.Ref, t Trial) (loader.Proof, error) {
	look := func() (rows, claims int64, err error) {
		return t.Look(ctx, s.SelectRow(ref.First), s.SelectClaim(ref.ID.Run, ref.ID.Number))
	}
	rows, claims, err := look()
	if err != nil {
		return loader.Proof{}, err
	}
	if rows > 0 {
		return loader.Proof{}, s.notFree(ref.First, "there already")
	}
	var sent error
	if claims == 0 { // else it has survived an earlier probe of the run
		sent = t.Send(ctx)
		if rows, claims, err = look(); err != nil {
			return loader.Proof{}, errors.Join(sent, err)
		}
	}
	var removed error
	if sent == nil && rows == 1 && claims > 0 {
		removed = t.Remove(ctx, s.DeleteRow(ref.First))
	}
	if claims > 0 {
		removed = errors.Join(removed, t.Remove(ctx, s.DeleteClaim(ref.ID.Run, ref.ID.Number)))
	}
	switch {
	case sent != nil || removed != nil:
		return loader.Proof{}, errors.Join(sent, removed)
	case rows > 1:
		return loader.Proof{}, s.notFree(ref.First, fmt.Sprintf("there %d times", rows))
	case rows == 1 && claims == 0:
		return loader.Proof{}, s.notFree(ref.First, "there after the probe was rolled back; unless the table has no transactions")
	}
	switch {
	case rows > 0 && claims > 0:
		return loader.Proof{Reason: "the load committed by itself: a row and its claim survived a rollback"}, nil
	case claims > 0:
		return loader.Proof{Reason: "a claim survived a rollback: the claim table has no transactions"}, nil
	}
	return loader.Proof{Transactional: true}, nil
}

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

// Row is where the rows of one Fetch over package sql are scanned to, again and again.
type Row struct {
	Number int64
	values []any
	schema rows.Schema
	To     []any // for Scan: &Number, then an *int64 or *sql.RawBytes for each column
}

// NewRow makes room for the columns of the schema behind a row's number, as SelectRows asks for them.
func NewRow(s rows.Schema) *Row {
	r := &Row{schema: s, values: make([]any, len(s.Columns))}
	r.To = append(r.To, &r.Number)
	for _, c := range s.Columns {
		if c.Type == rows.Int64 {
			r.To = append(r.To, new(int64))
		} else {
			r.To = append(r.To, new(sql.RawBytes))
		}
	}
	return r
}

// Read gives the values as loader.Fetcher wants them; nil is a NULL. They belong to the row until the next Scan.
func (r *Row) Read() (values []any, err error) {
	for i, to := range r.To[1:] {
		switch v := to.(type) {
		case *sql.RawBytes:
			r.values[i], err = valueOf(r.schema.Columns[i], *v)
		case *int64:
			r.values[i] = *v
		}
		if err != nil {
			return nil, fmt.Errorf("row %d, column %s: %w", r.Number, r.schema.Columns[i].Name, err)
		}
	}
	return r.values, nil
}

func valueOf(c rows.Column, text sql.RawBytes) (any, error) {
	switch {
	case text == nil:
		return nil, nil
	case c.Type.Variable():
		return []byte(text), nil
	}
	return ReadFixed(c, string(text))
}

// ReadFixed is readFixed.
func ReadFixed(c rows.Column, text string) (int64, error) { return readFixed(c, text) }

// ReadBucket is readBucket.
func ReadBucket(values []string) (loader.Bucket, error) {
	row := make([][]byte, len(values))
	for i, v := range values {
		row[i] = []byte(v)
	}
	return readBucket(row)
}

// ScanBucket reads the row of SelectBuckets that list stands at.
func ScanBucket(list *sql.Rows) (loader.Bucket, error) {
	columns, err := list.Columns()
	if err != nil {
		return loader.Bucket{}, err
	}
	values := make([]string, len(columns))
	to := make([]any, len(columns))
	for i := range values {
		to[i] = &values[i]
	}
	if err := list.Scan(to...); err != nil {
		return loader.Bucket{}, err
	}
	return ReadBucket(values)
}
