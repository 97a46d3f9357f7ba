package sqlload

import (
	"database/sql"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/rows"
)

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

// ReadFixed reads what the server says as text of a column that is not variable: a number, days, microseconds, or a
// decimal number without its point. Dates are taken as they stand and not by a driver, which would put them into a time
// zone. One that has a time of day, as Oracle's have, is refused unless it is midnight: what has moved it might not move
// another past midnight.
func ReadFixed(c rows.Column, text string) (int64, error) {
	switch c.Type {
	case rows.Date:
		date, clock, _ := strings.Cut(text, " ")
		if strings.Trim(clock, "0:") != "" {
			return 0, fmt.Errorf("the date %s has a time of day", text)
		}
		day, err := time.Parse(time.DateOnly, date)
		return day.Unix() / (24 * 60 * 60), err
	case rows.Timestamp:
		at, err := time.Parse(time.DateTime, text) // takes a fraction behind the seconds, too
		return at.UnixMicro(), err
	case rows.Decimal:
		return readDecimal(c, text)
	default:
		return strconv.ParseInt(text, 10, 64)
	}
}

// readDecimal reads a number times 10^Scale. Servers write 1.50 as 1.5 or, without the zero, .5 for 0.5; what has more
// digits behind the point than the column may, or more in all, is not what was sent.
func readDecimal(c rows.Column, text string) (int64, error) {
	digits, negative := strings.CutPrefix(text, "-")
	whole, fraction, point := strings.Cut(digits, ".")
	missing := c.Scale - len(fraction)
	switch {
	case digits == "", point && fraction == "", strings.Trim(digits, "0123456789.") != "":
		return 0, fmt.Errorf("%q is no decimal number", text)
	case missing < 0:
		return 0, fmt.Errorf("%s has more than %d digits behind the point", text, c.Scale)
	}
	all := whole + fraction + strings.Repeat("0", missing)
	if len(strings.TrimLeft(all, "0")) > c.Digits {
		return 0, fmt.Errorf("%s has more than %d digits", text, c.Digits)
	}
	n, err := strconv.ParseInt(all, 10, 64)
	if negative {
		n = -n
	}
	return n, err
}
