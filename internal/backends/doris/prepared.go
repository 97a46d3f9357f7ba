package doris

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// preparedInsert is a session's INSERT on the server. It has as many parameters as a batch has values, so the run's last batch,
// which is smaller, needs another one.
type preparedInsert struct {
	statement *sql.Stmt // nil before the first batch, and after an error
	rows      int
	args      []any
}

// insert sends a batch's rows as parameters. The driver takes each as an interface, which allocates: there is no other way
// into its COM_STMT_EXECUTE. It sends a value by COM_STMT_SEND_LONG_DATA, which Doris does not know and whose answer
// would be taken for that of the statement, from 1 GiB / (parameters + 1) on (MaxAllowedPacket); caps keeps batches far
// below that.
func (p *preparedInsert) insert(ctx context.Context, c sqlload.MySQLConn, text statements, b *batch.Batch) (int64, error) {
	values, err := b.Columns(text.Schema)
	if err != nil {
		return 0, &loader.Error{Op: "load", Applied: loader.No, Err: err}
	}
	defer func() { _ = values.Close() }()
	if n := values.Rows - values.From; p.statement == nil || p.rows != n {
		p.close()
		if p.statement, err = c.PrepareContext(ctx, text.insertParameters(n)); err != nil {
			return 0, &loader.Error{Op: "prepare the INSERT", Applied: loader.No, Err: err, Hint: hint(err)}
		}
		p.rows = n
	}
	p.args = appendParameters(p.args[:0], text.Schema, values)
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

// appendParameters appends the wanted rows' values. Numbers are binary. Dates and times are text as in the other formats:
// of a time at midnight the driver would send the date alone.
func appendParameters(args []any, s rows.Schema, c *batch.Columns) []any {
	for row := c.From; row < c.Rows; row++ {
		for i := range c.Vectors {
			switch v := &c.Vectors[i]; v.Type {
			case rows.Int64:
				args = append(args, v.Ints[row])
			case rows.Decimal:
				args = append(args, decimalText(v.Ints[row], s.Columns[i].Scale))
			case rows.Date:
				args = append(args, time.Unix(v.Ints[row]*24*60*60, 0).UTC().Format(time.DateOnly))
			case rows.Timestamp:
				args = append(args, time.UnixMicro(v.Ints[row]).UTC().Format("2006-01-02 15:04:05.000000"))
			default:
				args = append(args, v.Value(row))
			}
		}
	}
	return args
}

// decimalText writes n / 10^scale with all its digits: -5 with scale 2 is -0.05.
func decimalText(n int64, scale int) string {
	digits, negative := strings.CutPrefix(strconv.FormatInt(n, 10), "-")
	if missing := scale + 1 - len(digits); missing > 0 {
		digits = strings.Repeat("0", missing) + digits
	}
	if negative {
		digits = "-" + digits
	}
	point := len(digits) - scale
	return strings.TrimSuffix(digits[:point]+"."+digits[point:], ".")
}
