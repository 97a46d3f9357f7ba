package sqlload

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// nextFree returns the first row number after all rows of the table. A key at the end of its type leaves no room for
// rows. Texts of other programs have no number: some servers take them for 0, and digits of another length sort
// elsewhere.
func (t *Table) nextFree(ctx context.Context, c Conn, s *State, count, last int64) (int64, error) {
	full := &loader.RangeError{First: math.MaxInt64, Rows: count, Last: last}
	query := s.SelectNextFree()
	if key := s.Schema.Key(); s.single() && (key.Type == rows.Text || key.Type == rows.Char) {
		found, err := Rows(ctx, c, fmt.Sprintf("SELECT MAX(%s) FROM %s", s.key(), s.own()))
		if err != nil {
			return 0, err
		}
		largest, after := "", int64(0)
		if len(found) > 0 {
			largest = strings.TrimRight(found[0][0], " ") // a char is filled up
		}
		if largest != "" {
			n, err := strconv.ParseUint(largest, 10, 63)
			switch {
			case errors.Is(err, strconv.ErrRange) || err == nil && n == math.MaxInt64:
				return 0, full
			case err != nil || len(largest) != key.MaxBytes:
				return 0, &loader.Error{
					Op: "reserve row numbers", Applied: loader.No, Hint: "give --first-key",
					Err: fmt.Errorf("the largest %s of table %s, %.40q, is no number of %d digits, so it does not tell which keys are free",
						key.Name, s.Table, largest, key.MaxBytes),
				}
			}
			after = max(int64(n)+1-s.start(), 0)
		}
		return after, nil
	}
	found, err := Rows(ctx, c, query)
	switch {
	case t.outOfRange(err):
		return 0, full
	case err != nil:
		return 0, err
	case len(found) != 1:
		return 0, fmt.Errorf("the server returned %d rows instead of one number", len(found))
	}
	first, err := strconv.ParseInt(found[0][0], 10, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, full
	}
	return max(first-s.start(), 0), err // rows before those of the dataset leave all of its numbers free
}

// outOfRange reports whether a number was too large for the server to compute with: SQLSTATE 22003 in every dialect.
func (t *Table) outOfRange(err error) bool {
	const state = "22003"
	if t.SQLState != nil {
		return t.SQLState(err) == state
	}
	var server interface{ SQLState() string }
	return errors.As(err, &server) && server.SQLState() == state
}
