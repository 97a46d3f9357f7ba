package encode_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// calendar is some days of every year from 1 to 9999, and every day at both ends and around leap years and none.
func calendar() []int64 {
	var days []int64
	for _, span := range []struct{ first, last, step int64 }{
		{-719_162, 2_932_896, 97},
		{-719_162, -719_162 + 900, 1},
		{-25_567 - 900, -25_567 + 900, 1}, // 1900
		{10_957 - 900, 10_957 + 900, 1},   // 2000
		{2_932_896 - 900, 2_932_896, 1},
	} {
		for day := span.first; day <= span.last; day += span.step {
			days = append(days, day)
		}
	}
	return days
}

// TestCalendar compares every way to write a date with package time.
func TestCalendar(t *testing.T) {
	s := rows.Schema{Dataset: "d", Columns: []rows.Column{
		{Name: "day", Type: rows.Date, Derived: true}, {Name: "at", Type: rows.Timestamp, Derived: true},
	}}
	days := calendar()
	b := rows.NewBlock(s)
	b.Reset(len(days))
	for i, day := range days {
		b.Columns[0].Ints[i] = day
		b.Columns[1].Ints[i] = day*86_400_000_000 + int64(i)*86_399_999_999%86_400_000_000
	}
	e := newEncoder(t, batch.PGText, s)
	buf, at := whole(e, b)
	check := func() {
		for i, line := range strings.Split(strings.TrimSuffix(string(buf), "\n"), "\n") {
			want := time.Unix(b.Columns[0].Ints[i]*86_400, 0).UTC().Format(time.DateOnly) + "\t" +
				time.UnixMicro(b.Columns[1].Ints[i]).UTC().Format("2006-01-02 15:04:05.000000")
			if line != want {
				t.Fatalf("%q, want %q", line, want)
			}
		}
	}
	check()
	for i, day := range days { // in the other direction, and one day off
		j := len(days) - 1 - i
		b.Columns[0].Ints[j], b.Columns[1].Ints[j] = max(day-1, -719_162), day*86_400_000_000+int64(i)
	}
	e.(encode.Stamper).Stamp(buf, at, 0, b)
	check()
	for i, day := range days {
		b.Columns[0].Ints[i], b.Columns[1].Ints[i] = day, day*86_400_000_000+int64(i)*1000
	}
	e.(encode.Stamper).Stamp(buf, at, 0, b)
	check()
	require.Len(t, at.Fields, 2*len(days))
}
