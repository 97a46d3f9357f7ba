package sqlload

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
)

// Connector makes connections of package sql that are the recorder's.
func (r *Recorder) Connector() driver.Connector { return recorded{r} }

// recorded is connector, connection and transaction.
type recorded struct{ *Recorder }

// Connect implements driver.Connector.
func (c recorded) Connect(context.Context) (driver.Conn, error) { return c, nil }

// Driver implements driver.Connector.
func (recorded) Driver() driver.Driver { return nil }

// ExecContext implements driver.ExecerContext.
func (c recorded) ExecContext(ctx context.Context, statement string, _ []driver.NamedValue) (driver.Result, error) {
	n, err := c.Exec(ctx, statement)
	return driver.RowsAffected(n), err
}

// Prepare implements driver.Conn.
func (c recorded) Prepare(statement string) (driver.Stmt, error) {
	return &recordedStatement{recorded: c, text: statement}, nil
}

// CheckNamedValue implements driver.NamedValueChecker: arrays are bound as well.
func (recorded) CheckNamedValue(*driver.NamedValue) error { return nil }

// Begin implements driver.Conn.
func (c recorded) Begin() (driver.Tx, error) { return c, nil }

// BeginTx implements driver.ConnBeginTx.
func (c recorded) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

// Commit implements driver.Tx.
func (c recorded) Commit() error {
	_, err := c.Exec(context.Background(), "COMMIT")
	return err
}

// Rollback implements driver.Tx.
func (c recorded) Rollback() error {
	_, err := c.Exec(context.Background(), "ROLLBACK")
	return err
}

// recordedStatement is a statement and the rows of its answer.
type recordedStatement struct {
	recorded
	text  string
	found [][][]byte
	width int
}

// NumInput implements driver.Stmt: any number.
func (*recordedStatement) NumInput() int { return -1 }

// Exec implements driver.Stmt.
func (s *recordedStatement) Exec(values []driver.Value) (driver.Result, error) {
	if s.Binary {
		s.Write("COM_STMT_PREPARE " + s.text)
		s.text = fmt.Sprintf("COM_STMT_EXECUTE with %d parameters", len(values))
	}
	return s.ExecContext(context.Background(), s.text, nil)
}

// Query implements driver.Stmt.
func (s *recordedStatement) Query([]driver.Value) (driver.Rows, error) {
	return s, s.recorded.Query(context.Background(), s.text, func(row [][]byte) error {
		s.found, s.width = append(s.found, row), len(row)
		return nil
	})
}

// Columns implements driver.Rows.
func (s *recordedStatement) Columns() []string { return make([]string, s.width) }

// Next implements driver.Rows.
func (s *recordedStatement) Next(to []driver.Value) error {
	if len(s.found) == 0 {
		return io.EOF
	}
	for i, value := range s.found[0] {
		to[i] = value
	}
	s.found = s.found[1:]
	return nil
}
