package sqlload

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A server that cannot compute the number after the largest key has no room for rows. How its error says so is the driver's.
func TestOutOfRange(t *testing.T) {
	full := &loader.RangeError{First: math.MaxInt64, Rows: 5, Last: 9}
	silent := errors.New("out of range")
	for name, c := range map[string]struct {
		answer error
		read   func(error) string
		want   error
	}{
		"the error's method":   {answer: coded("22003"), want: full},
		"another code":         {answer: coded("22012"), want: coded("22012")},
		"no code":              {answer: silent, want: silent},
		"the table's function": {answer: silent, read: func(error) string { return "22003" }, want: full},
		"another of its codes": {answer: silent, read: func(error) string { return "" }, want: silent},
	} {
		t.Run(name, func(t *testing.T) {
			table := &Table{SQLState: c.read}
			s := &State{Statements: Statements{Schema: rows.Schema{
				Columns: []rows.Column{{Name: "id", Type: rows.Int64}},
				Number:  []rows.Term{{Times: 1}},
			}}}
			_, err := table.nextFree(t.Context(), refusing{c.answer}, s, full.Rows, full.Last)
			require.Equal(t, c.want, err)
		})
	}
}

// Keys from 1,000 on are all free behind rows of other programs with smaller ones.
func TestNextFreeBehindOtherRows(t *testing.T) {
	s := &State{Statements: Statements{Schema: rows.Schema{
		Columns: []rows.Column{{Name: "id", Type: rows.Int64}},
		Number:  []rows.Term{{Times: 1, Minus: 1000}},
	}}}
	for free, want := range map[string]int64{"7": 0, "-7": 0, "1000": 0, "1001": 1, "5000": 4000} {
		first, err := new(Table).nextFree(t.Context(), answering(free), s, 5, 9)
		require.NoError(t, err)
		require.Equal(t, want, first, "free from %s", free)
	}
}

// answering is a connection that answers every query with one value.
type answering string

func (a answering) Exec(context.Context, string) (int64, error) { return 0, nil }
func (a answering) Close() error                                { return nil }
func (a answering) Query(_ context.Context, _ string, row func([][]byte) error) error {
	return row([][]byte{[]byte(a)})
}

// coded is an error with an SQLSTATE.
type coded string

func (c coded) Error() string    { return "refused" }
func (c coded) SQLState() string { return string(c) }

// refusing is a connection that answers everything with an error.
type refusing struct{ err error }

func (r refusing) Exec(context.Context, string) (int64, error)                   { return 0, r.err }
func (r refusing) Query(context.Context, string, func(row [][]byte) error) error { return r.err }
func (r refusing) Close() error                                                  { return nil }
