package sqltx

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
			r.values[i], err = valueOf(r.schema.Columns[i].Type, *v)
		case *int64:
			r.values[i] = *v
		}
		if err != nil {
			return nil, fmt.Errorf("row %d, column %s: %w", r.Number, r.schema.Columns[i].Name, err)
		}
	}
	return r.values, nil
}

func valueOf(t rows.Type, text sql.RawBytes) (any, error) {
	switch {
	case text == nil:
		return nil, nil
	case t.Variable():
		return []byte(text), nil
	}
	return ReadFixed(t, string(text))
}

// ReadFixed reads what the server says as text of a column that is not variable: a number, days or microseconds. Dates are
// taken as they stand and not by a driver, which would put them into a time zone. One that has a time of day, as Oracle's
// have, is refused unless it is midnight: what has moved it might not move another past midnight.
func ReadFixed(t rows.Type, text string) (int64, error) {
	switch t {
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
	default:
		return strconv.ParseInt(text, 10, 64)
	}
}
