package doris

import (
	"context"
	"database/sql"
	"math"
	"strconv"
	"time"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
	"github.com/terapush/terapush/pkg/rows"
)

// preparedInsert is a session's INSERT on the server. It has as many parameters as a batch has values, so the run's
// last batch, which is smaller, needs another one.
type preparedInsert struct {
	statement *sql.Stmt // nil before the first batch, and after an error
	rows      int
	args      []any
	texts     []byte // of dates, times and decimals among the arguments
}

// insert sends a batch's rows as parameters. The driver takes each as an interface, which allocates: there is no other
// way into its COM_STMT_EXECUTE. It sends a value by COM_STMT_SEND_LONG_DATA, which Doris does not know and whose
// answer would be taken for that of the statement, from 1 GiB / (parameters + 1) on (MaxAllowedPacket); caps keeps
// batches far below that.
func (p *preparedInsert) insert(ctx context.Context, c mysqlconn.Conn, text statements, b *batch.Batch) (int64, error) {
	values, err := b.Columns(text.Schema)
	if err != nil {
		return 0, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	defer func() { _ = values.Close() }()
	if n := values.Rows; p.statement == nil || p.rows != n {
		p.close()
		if p.statement, err = c.PrepareContext(ctx, text.insertParameters(n)); err != nil {
			return 0, &loader.Error{Op: "prepare the INSERT", Applied: loader.No, Err: err, Hint: hint(err)}
		}
		p.rows = n
	}
	p.bind(text.Schema, values)
	defer clear(p.args) // of references to the batch's buffer, which is reused
	values.Passed(values.Rows)
	result, err := p.statement.ExecContext(ctx, p.args...)
	if err != nil {
		p.close()
		return 0, err
	}
	return result.RowsAffected()
}

func (p *preparedInsert) close() {
	if p.statement != nil {
		_ = p.statement.Close() // not answered, and the connection may be gone
		p.statement = nil
	}
}

// bind makes the rows' values the statement's arguments. Integers are binary, and so are doubles. Dates, times and
// decimals are text as in the other formats: of a time at midnight the driver would send the date alone.
func (p *preparedInsert) bind(s rows.Schema, c *batch.Columns) {
	p.args, p.texts = p.args[:0], p.texts[:0]
	for row := range c.Rows {
		for i := range c.Vectors {
			v := &c.Vectors[i]
			if v.IsNull(row) {
				p.args = append(p.args, nil)
				continue
			}
			from := len(p.texts)
			switch v.Type {
			case rows.Int64, rows.Int32, rows.Int16, rows.Uint32, rows.Uint16, rows.Bool:
				p.args = append(p.args, v.Ints[row])
				continue
			case rows.Float64:
				p.args = append(p.args, math.Float64frombits(uint64(v.Ints[row])))
				continue
			case rows.Uint64:
				p.texts = strconv.AppendUint(p.texts, uint64(v.Ints[row]), 10)
			case rows.Wide:
				p.texts = rows.AppendWideText(p.texts, v.UUID(row), s.Columns[i].Scale)
			case rows.UUID:
				p.texts = rows.AppendUUID(p.texts, v.UUID(row))
			case rows.Decimal:
				p.texts = appendDecimal(p.texts, v.Ints[row], s.Columns[i].Scale)
			case rows.Date:
				p.texts = time.Unix(v.Ints[row]*24*60*60, 0).UTC().AppendFormat(p.texts, time.DateOnly)
			case rows.Timestamp:
				p.texts = time.UnixMicro(v.Ints[row]).UTC().AppendFormat(p.texts, "2006-01-02 15:04:05.000000")
			default:
				p.args = append(p.args, v.Value(row))
				continue
			}
			p.args = append(p.args, p.texts[from:])
		}
	}
}

// appendDecimal writes n / 10^scale with all its digits: -5 with scale 2 is -0.05.
func appendDecimal(dst []byte, n int64, scale int) []byte {
	value, one := uint64(n), uint64(1)
	if n < 0 {
		dst, value = append(dst, '-'), -value
	}
	for range scale {
		one *= 10
	}
	dst = strconv.AppendUint(dst, value/one, 10)
	if scale > 0 {
		dst = append(dst, '.')
	}
	for one /= 10; one > 0; one /= 10 {
		dst = append(dst, '0'+byte(value/one%10))
	}
	return dst
}
