package dataset

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/rows"
)

// The bounds of dates and times: the years 1 to 9999.
const (
	earliestDay, latestDay       = -719_162, 2_932_896
	earliestMicros, latestMicros = earliestDay * dayMicros, latestDay*dayMicros + dayMicros - 1
)

// The largest numbers, in units of 2^−binary, that floating-point numbers of 32 and 64 bits hold exactly.
const mostFloat32, mostFloat64 = 1 << 24, 1 << 53

// bounds returns the smallest and the largest value of a type of numbers.
func (t specType) bounds() (least, most int64) {
	switch t.Type {
	case rows.Date:
		return earliestDay, latestDay
	case rows.Timestamp, rows.TimestampTZ:
		return earliestMicros, latestMicros - latestMicros%t.unit()
	case rows.Time:
		return 0, dayMicros - t.unit()
	case rows.Uint16:
		return 0, math.MaxUint16
	case rows.Uint32:
		return 0, math.MaxUint32
	case rows.Uint64: // what is beyond has no int64
		return 0, math.MaxInt64
	case rows.Decimal:
		return 1 - tenTo(t.digits), tenTo(t.digits) - 1
	case rows.Int16:
		return math.MinInt16, math.MaxInt16
	case rows.Int32:
		return math.MinInt32, math.MaxInt32
	case rows.Float32:
		return -mostFloat32, mostFloat32
	case rows.Float64:
		return -mostFloat64, mostFloat64
	default:
		return math.MinInt64, math.MaxInt64
	}
}

// tenTo is 10^n, 0 ≤ n ≤ 18.
func tenTo(n int) int64 {
	power := int64(1)
	for range n {
		power *= 10
	}
	return power
}

// parse reads a value of a type of numbers.
func (t specType) parse(text string) (v int64, err error) {
	switch t.Type {
	case rows.Date:
		at, err := time.Parse(time.DateOnly, text)
		if err != nil || at.Year() < 1 {
			return 0, fmt.Errorf("%s is no date: write 2026-01-31", quoted(text))
		}
		return at.Unix() / (24 * 60 * 60), nil
	case rows.Timestamp, rows.TimestampTZ:
		return t.parseTime(text)
	case rows.Time:
		return t.parseClock(text)
	case rows.Uint64:
		return parseUnsigned(text)
	case rows.Decimal:
		return parseDecimal(text, t.scale, t.digits)
	case rows.Bool:
		switch strings.ToLower(text) {
		case "true":
			return 1, nil
		case "false":
			return 0, nil
		}
		return 0, fmt.Errorf("%s is neither true nor false", quoted(text))
	case rows.Float32, rows.Float64:
		return t.parseBinary(text)
	default:
		v, err := strconv.ParseInt(withoutUnderscores(text), 10, 64)
		if least, most := t.bounds(); err != nil || v < least || v > most {
			return 0, fmt.Errorf("%s is no whole number of %d bits", quoted(text), 8*t.Size())
		}
		return v, nil
	}
}

// parseUnsigned reads an integer of 64 bits, of which the int64 has the bits.
func parseUnsigned(text string) (int64, error) {
	v, err := strconv.ParseUint(withoutUnderscores(text), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is no whole number of 64 bits, from 0 on", quoted(text))
	}
	return int64(v), nil
}

// parseClock reads a time of day.
func (t specType) parseClock(text string) (int64, error) {
	for _, layout := range []string{time.TimeOnly, "15:04"} {
		at, err := time.Parse(layout, text) // reads digits after the seconds, too
		if err != nil || at.Nanosecond()%1000 != 0 {
			continue
		}
		v := at.Sub(at.Truncate(24 * time.Hour)).Microseconds()
		if v%t.unit() != 0 {
			return 0, fmt.Errorf("%s has more digits after its seconds than %s", quoted(text), t)
		}
		return v, nil
	}
	return 0, fmt.Errorf("%s is no time of day: write 23:59:59.000001", quoted(text))
}

// maxBinary is how many bits after the point a floating-point number may have.
const maxBinary = 20

// parseBinary reads a number in units of 2^−binary, of which it has to be a multiple.
func (t specType) parseBinary(text string) (int64, error) {
	v, err := parseFraction(text)
	if err != nil {
		return 0, err
	}
	v.Mul(v, new(big.Rat).SetInt64(1<<t.binary))
	if !v.IsInt() {
		return 0, fmt.Errorf("%s is no multiple of 1/%d, which every server would print and read exactly: write 0.125, "+
			"or take decimal(p,s)", quoted(text), 1<<t.binary)
	}
	if least, most := t.bounds(); !v.Num().IsInt64() || v.Num().Int64() < least || v.Num().Int64() > most {
		return 0, fmt.Errorf("%s has more digits than %s holds exactly in steps of 1/%d", quoted(text), t, 1<<t.binary)
	}
	return v.Num().Int64(), nil
}

// parseFraction reads a decimal number without an exponent, of a length that people write.
func parseFraction(text string) (*big.Rat, error) {
	bare := withoutUnderscores(text)
	v, ok := new(big.Rat).SetString(bare)
	if !ok || len(bare) > 40 || strings.Trim(bare, "-.0123456789") != "" {
		return nil, fmt.Errorf("%s is no number", quoted(text))
	}
	return v, nil
}

// binaryOf returns how many bits after the point some numbers have, at most maxBinary. The first is finest if it is not
// given. What is no number is left to parse.
func binaryOf(texts ...string) (bits int) {
	for i, text := range texts {
		if i == 0 && text == "" {
			text = finest
		}
		v, err := parseFraction(text)
		if err != nil {
			continue
		}
		if v.Denom().TrailingZeroBits() != uint(v.Denom().BitLen()-1) { // no power of two: 0.1 has no end in binary
			return maxBinary
		}
		bits = max(bits, min(v.Denom().BitLen()-1, maxBinary))
	}
	return bits
}

// format writes a value of a type of numbers as parse reads it.
func (t specType) format(v int64) string {
	if t.isFloat() {
		return exactBinary(v, t.binary)
	}
	return rows.Column{Type: t.Type, Scale: t.scale}.Text(v)
}

// exactBinary writes v in units of 2^−binary with all its digits: the fewest that tell two floating-point numbers apart
// are not always a multiple of the unit.
func exactBinary(v int64, binary int) string {
	text := strconv.FormatFloat(math.Ldexp(float64(v), -binary), 'f', binary, 64)
	if binary == 0 {
		return text
	}
	return trimmed(text)
}

// withoutUnderscores removes those between digits, as in 2_000_000.
func withoutUnderscores(text string) string {
	if bare := strings.TrimPrefix(text, "-"); bare != strings.Trim(bare, "_") || strings.Contains(text, "__") {
		return text
	}
	return strings.ReplaceAll(text, "_", "")
}

// The layouts of times. Digits after the seconds are read, too.
var (
	timeLayouts = []string{
		time.DateOnly, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04",
	}
	zonedLayouts = []string{time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04Z07:00", "2006-01-02T15:04Z07:00"}
)

// parseTime reads a time, which has no more digits than the type. It is in UTC, unless a timestamptz has a zone.
func (t specType) parseTime(text string) (int64, error) {
	layouts := timeLayouts
	if t.Type == rows.TimestampTZ {
		layouts = slices.Concat(zonedLayouts, timeLayouts)
	}
	for _, layout := range layouts {
		at, err := time.Parse(layout, text)
		micros := at.UnixMicro()
		if err != nil || at.Nanosecond()%1000 != 0 || micros < earliestMicros || micros > latestMicros {
			continue
		}
		if micros%t.unit() != 0 {
			return 0, fmt.Errorf("%s has more digits after its seconds than %s", quoted(text), t)
		}
		return micros, nil
	}

	_, err := time.Parse(time.RFC3339Nano, text)
	switch {
	case t.Type == rows.TimestampTZ:
		return 0, fmt.Errorf("%s is no date or time: write 2026-01-31, or 2026-01-31 23:59:59.5Z", quoted(text))
	case err == nil:
		return 0, fmt.Errorf("%s: a timestamp has no time zone: leave it out", quoted(text))
	}
	return 0, fmt.Errorf("%s is no timestamp: write 2026-01-31 23:59:59.000001", quoted(text))
}

// parseDecimal reads a number with at most scale digits after the point and at most digits in all, times 10^scale.
func parseDecimal(text string, scale, digits int) (int64, error) {
	unsigned, negative := strings.CutPrefix(withoutUnderscores(text), "-")
	whole, fraction, point := strings.Cut(unsigned, ".")
	number := strings.TrimLeft(whole, "0") + fraction
	switch {
	case whole == "" || point && fraction == "" || strings.Trim(number, "0123456789") != "":
		return 0, fmt.Errorf("%s is no number", quoted(text))
	case len(fraction) > scale:
		return 0, fmt.Errorf("%s has more than %d digits after the point", quoted(text), scale)
	case len(number)-len(fraction)+scale > digits:
		return 0, fmt.Errorf("%s has more than %d digits before the point", quoted(text), digits-scale)
	}

	v, err := strconv.ParseInt("0"+number+strings.Repeat("0", scale-len(fraction)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s is too large", quoted(text))
	}
	if negative {
		v = -v
	}
	return v, nil
}

func formatDecimal(v int64, scale int) string {
	return rows.Column{Type: rows.Decimal, Scale: scale}.Text(v)
}

// trimmed removes the zeros at the end of a number with a point.
func trimmed(decimal string) string { return strings.TrimSuffix(strings.TrimRight(decimal, "0"), ".") }

// units of the steps of dates and timestamps, in microseconds, the largest first.
var units = []struct {
	name   string
	micros int64
}{
	{"d", dayMicros}, {"h", dayMicros / 24}, {"m", 60_000_000}, {"s", 1_000_000}, {"ms", 1000}, {"us", 1},
}

// parseStep reads the distance of two values: a duration for dates and timestamps.
func (t specType) parseStep(text string) (int64, error) {
	var v int64
	var err error
	switch t.Type {
	case rows.Date, rows.Timestamp, rows.TimestampTZ, rows.Time:
		if v, err = parseDuration(text); err != nil {
			return 0, err
		}
		if t.Type == rows.Date {
			if v%dayMicros != 0 {
				return 0, fmt.Errorf("%s is no number of whole days: write 1d", quoted(text))
			}
			v /= dayMicros
		}
		if v%t.unit() != 0 {
			return 0, fmt.Errorf("%s is no multiple of %s, as the values of %s are", quoted(text), t.formatStep(t.unit()), t)
		}
	default:
		if v, err = t.parse(text); err != nil {
			return 0, err
		}
	}
	if v < 1 {
		return 0, fmt.Errorf("%s: a step is more than 0", quoted(text))
	}
	return v, nil
}

// parseDuration reads one number and one unit, as in 250us or 0.5s, in microseconds.
func parseDuration(text string) (int64, error) {
	bad := fmt.Errorf("%s is no duration: write 250us, 10ms, 1s, 5m, 1h or 1d", quoted(text))
	at := strings.IndexFunc(text, func(r rune) bool { return (r < '0' || r > '9') && r != '.' && r != '_' })
	if at < 1 {
		return 0, bad
	}
	name := strings.Replace(text[at:], "µ", "u", 1)
	for _, u := range units {
		if u.name != name {
			continue
		}
		v, err := parseDecimal(text[:at], 6, 18)
		if err != nil {
			return 0, bad
		}
		const million = 1_000_000
		whole, rest := v/million, v%million
		if whole > latestMicros/u.micros || rest*u.micros%million != 0 {
			return 0, fmt.Errorf("%s is no number of whole microseconds below 10,000 years", quoted(text))
		}
		return whole*u.micros + rest*u.micros/million, nil
	}
	return 0, bad
}

// formatStep writes a step with the largest unit of which it is a multiple.
func (t specType) formatStep(v int64) string {
	switch t.Type {
	case rows.Date:
		return strconv.FormatInt(v, 10) + "d"
	case rows.Timestamp, rows.TimestampTZ, rows.Time:
		for _, u := range units {
			if v%u.micros == 0 {
				return strconv.FormatInt(v/u.micros, 10) + u.name
			}
		}
	}
	return t.format(v)
}

// value reads a value of any type: a number, or bytes.
func (t specType) value(text string) (number int64, bytes []byte, err error) {
	switch {
	case t.Type == rows.UUID:
		bytes, err = parseUUID(text)
	case t.Type == rows.Wide:
		bytes, err = t.wide().ParseWide(withoutUnderscores(text))
	case t.Variable():
		bytes, err = t.parseBytes(text)
	default:
		number, err = t.parse(text)
	}
	return number, bytes, err
}

// written writes a value in its one notation; a text stays as it is.
func (t specType) written(text string, number int64, bytes []byte) string {
	switch {
	case t.Type == rows.Bytes:
		return hex.EncodeToString(bytes)
	case t.Type == rows.Wide:
		return t.wide().TextOf(bytes)
	case t.Variable():
		return text
	}
	return t.format(number)
}

// wide is a column of a decimal of more than 18 digits, which reads and writes its values.
func (t specType) wide() rows.Column {
	return rows.Column{Type: rows.Wide, Digits: t.digits, Scale: t.scale}
}

// parseBytes reads a value of a variable type.
func (t specType) parseBytes(text string) ([]byte, error) {
	if t.Type == rows.Bytes {
		value, err := hex.DecodeString(text)
		if err != nil {
			return nil, fmt.Errorf("%s are no bytes: write them in hex, as 00ff", quoted(text))
		}
		return value, nil
	}
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return nil, fmt.Errorf("%s: a text is UTF-8 without NUL", quoted(text))
	}
	if t.Type == rows.Char && strings.TrimRight(text, " ") != text {
		return nil, fmt.Errorf("%q: a char(n) ends in no blank: servers cut them off", text)
	}
	if t.Type == rows.Enum && strings.TrimRight(text, " ") != text {
		return nil, fmt.Errorf("%q: a label of an enum ends in no blank: MySQL cuts them off", text)
	}
	if t.Type == rows.JSON {
		return compactJSON(text)
	}
	return []byte(text), nil
}

// compactJSON returns a document without blanks and line breaks.
func compactJSON(text string) ([]byte, error) {
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		return nil, fmt.Errorf("%s is no JSON document: %w", quoted(text), err)
	}
	return out.Bytes(), exactNumbers(out.Bytes())
}

// exactNumbers returns an error if a document has a number that a server changes which keeps integers of 64 bits, and
// all else as floating point.
func exactNumbers(document []byte) error {
	d := json.NewDecoder(bytes.NewReader(document))
	d.UseNumber()
	for t, err := d.Token(); err == nil; t, err = d.Token() { // up to the end: the document was read before
		n, is := t.(json.Number)
		if is && !isExact(n.String()) {
			return fmt.Errorf(
				"number %s has more than %d digits, or is beyond 64 bits: some servers change it; write a text",
				shortened(n.String()), exactDigits)
		}
	}
	return nil
}

func isExact(number string) bool {
	if !strings.ContainsAny(number, ".eE") {
		_, err := strconv.ParseInt(number, 10, 64)
		return err == nil
	}
	_, err := strconv.ParseFloat(number, 64)
	digits, _, _ := strings.Cut(strings.ToLower(number), "e")
	digits = strings.Trim(strings.Replace(digits, ".", "", 1), "-0")
	return err == nil && len(digits) <= exactDigits
}

// isASCII reports what rows.Column.ASCII promises of a value.
func isASCII(value []byte) bool {
	return !slices.ContainsFunc(value, func(b byte) bool { return b >= utf8.RuneSelf })
}

// isPlain reports what rows.Column.Plain promises of a value.
func isPlain(value []byte) bool {
	return !strings.ContainsAny(string(value), "\x00\x01\x02\t\n\r\x1A\"',\\")
}
