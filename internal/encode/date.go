package encode

import (
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/terapush/terapush/pkg/rows"
)

// Dates and times in text are those of ISO 8601 and SQL, 2020-01-31 and 2020-01-31 23:59:59.000000. Every database reads
// them, and all values have one length, so derived ones need no padding.
const (
	dateBytes = len("2020-01-31")
	timeBytes = len("2020-01-31 23:59:59.000000")
)

const secondMicros, daySeconds = 1_000_000, 24 * 60 * 60

// dates writes Date columns.
type dates struct{ century string }

func newDates() *dates { return &dates{century()} }

// century has the texts of the days from 1950-01-01 to 2049-12-31, one after the other. Computing a text takes several
// times as long as copying it, and the days of a table lie close together.
var century = sync.OnceValue(func() string {
	text := make([]byte, centuryDays*dateBytes)
	for day := range centuryDays {
		formatDate(text[day*dateBytes:], centuryFirst+int64(day))
	}
	return string(text)
})

const centuryFirst, centuryDays = -7305, 36_525

func (dates) max() int { return dateBytes }

func (d *dates) append(dst []byte, column *rows.Vector, i int) []byte {
	n := len(dst)
	dst = extend(dst, dateBytes)
	d.format(dst[n:], column.Ints[i])
	return dst
}

func (d *dates) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	for i, v := range column.Ints[:n] {
		p := int(at[i*stride])
		d.format(buf[p:p+dateBytes], v)
	}
}

func (d *dates) format(text []byte, v int64) {
	if day := int(v - centuryFirst); uint(day) < centuryDays {
		copy(text[:dateBytes], d.century[day*dateBytes:][:dateBytes])
		return
	}
	formatDate(text, v)
}

// times writes Timestamp columns.
type times struct{}

func (*times) max() int { return timeBytes }

func (*times) append(dst []byte, column *rows.Vector, i int) []byte {
	n := len(dst)
	dst = extend(dst, timeBytes)
	_, micros := formatSecond(dst[n:], column.Ints[i])
	putMicros(dst[n+20:], micros)
	return dst
}

// clocks writes Time columns.
type clocks struct{}

const clockBytes = len("23:59:59.000000")

func (*clocks) max() int { return clockBytes }

func (*clocks) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Ints[i]
	checkClock(v)
	n := len(dst)
	dst = extend(dst, clockBytes)
	text, seconds := dst[n:], uint64(v)/secondMicros
	text[2], text[5], text[8] = ':', ':', '.'
	putPair(text, seconds/3600)
	putPair(text[3:], seconds/60%60)
	putPair(text[6:], seconds%60)
	putMicros(text[9:], v%secondMicros)
	return dst
}

// checkClock panics if a time of day is not within a day.
func checkClock(v int64) {
	if uint64(v) >= daySeconds*secondMicros {
		panic(fmt.Sprintf("encode: %d microseconds since midnight are no time of day", v))
	}
}

// stamp relies on consecutive times: it computes the calendar once a second, and, if times advance by a microsecond, the
// fraction's digits once in a hundred.
func (*times) stamp(buf []byte, at []uint32, stride int, column *rows.Vector, n int) {
	var memory [timeBytes]byte
	var text rolling
	var second int64 // the first microsecond of the second in memory; memory[0] = 0: none yet
	for i := 0; i < n; {
		v := column.Ints[i]
		micros := v - second
		if micros < 0 || micros >= secondMicros || memory[0] == 0 {
			second, micros = formatSecond(memory[:], v)
		}
		const span = 100
		base := v - micros%span
		if i+1 < n && uint64(column.Ints[i+1]-base) < span {
			putMicros(memory[20:], micros)
			text.set(memory[:], 2)
			i += text.run(buf, at[i*stride:], stride, column.Ints[i:n], base, span)
			continue
		}
		to := buf[at[i*stride]:][:timeBytes]
		copy(to, memory[:20])
		putMicros(to[20:], micros)
		i++
	}
}

// formatSecond writes the microsecond v up to its seconds and the point after them. It returns the first microsecond of
// that second, and v's distance from it.
func formatSecond(text []byte, v int64) (second, micros int64) {
	seconds := floorDiv(v, secondMicros)
	days := floorDiv(seconds, daySeconds)
	formatDate(text, days)
	ofDay := uint64(seconds - days*daySeconds)
	text[10], text[13], text[16], text[19] = ' ', ':', ':', '.'
	putPair(text[11:], ofDay/3600)
	putPair(text[14:], ofDay/60%60)
	putPair(text[17:], ofDay%60)
	return seconds * secondMicros, v - seconds*secondMicros
}

func putMicros(text []byte, micros int64) {
	v := uint64(micros)
	_ = text[5]
	putPair(text, v/10000)
	putPair(text[2:], v/100%100)
	putPair(text[4:], v%100)
}

// putPair writes v, 0 … 99, as two digits.
func putPair(text []byte, v uint64) {
	binary.LittleEndian.PutUint16(text, twoDigits[v]+'0'+'0'<<8)
}

// formatDate writes the day v days after 1970-01-01. It panics outside of the years 1 to 9999.
//
// Eras of 400 years begin on March 1, so that a leap day is the last of its year (Howard Hinnant, "chrono-Compatible
// Low-Level Date Algorithms", civil_from_days).
func formatDate(text []byte, v int64) {
	checkDate(v)
	fromMarch := uint64(v + 719_468) // since 0000-03-01; v is later
	era := fromMarch / 146_097
	ofEra := fromMarch % 146_097
	yearOfEra := (ofEra - ofEra/1460 + ofEra/36_524 - ofEra/146_096) / 365
	ofYear := ofEra - (365*yearOfEra + yearOfEra/4 - yearOfEra/100)
	shifted := (5*ofYear + 2) / 153 // 0 = March
	first := (153*shifted + 2) / 5
	year, month := era*400+yearOfEra, shifted+3
	if month > 12 {
		year, month = year+1, month-12
	}
	putPair(text, year/100)
	putPair(text[2:], year%100)
	text[4], text[7] = '-', '-'
	putPair(text[5:], month)
	putPair(text[8:], ofYear-first+1)
}

// checkDate panics outside of the years 1 to 9999.
func checkDate(v int64) {
	const first, last = -719_162, 2_932_896
	if v < first || v > last {
		panic(fmt.Sprintf("encode: %d days since 1970-01-01 are not in the years 1 to 9999", v))
	}
}

// checkTime is checkDate for microseconds.
func checkTime(v int64) {
	const day, first, days = daySeconds * secondMicros, -719_162, 719_162 + 2_932_897
	if uint64(v-first*day) >= days*day {
		panicTime(v)
	}
}

func panicTime(v int64) {
	panic(fmt.Sprintf("encode: %d microseconds since 1970-01-01 are not in the years 1 to 9999", v))
}

// floorDiv divides and rounds down, unlike /, which rounds towards zero.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
