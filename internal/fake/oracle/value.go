package oracle

import (
	"fmt"
	"math/big"
	"math/bits"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/fake/sqlread"
)

// A value is what a table holds or an expression gives: nil (NULL), int64, *big.Rat (a number that is no int64), string,
// raw, time.Time (a DATE or TIMESTAMP, in UTC), interval, or bool (a condition's). An empty text and an empty raw are nil.
type value any

type raw string

func emptyIsNull(s string) value {
	if s == "" {
		return nil
	}
	return s
}

// number reads a literal, or a text that becomes a number; nil if it is none.
func number(s string) value {
	r, ok := new(big.Rat).SetString(strings.TrimSpace(s))
	if !ok || strings.ContainsAny(s, "/_") {
		return nil
	}
	return small(r)
}

// small is the number as an int64 if it is one.
func small(r *big.Rat) value {
	if r.IsInt() && r.Num().IsInt64() {
		return r.Num().Int64()
	}
	return r
}

// rational reads a value as a number, texts as well.
func rational(v value) (*big.Rat, error) {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v), nil
	case *big.Rat:
		return v, nil
	case string:
		if n := number(v); n != nil {
			return rational(n)
		}
	}
	return nil, ora(1722, "invalid number")
}

func calculate(op string, a, b value) (value, error) {
	if op == "||" {
		return emptyIsNull(text(a) + text(b)), nil
	}
	if a == nil || b == nil {
		return nil, nil
	}
	if at, is := a.(time.Time); is {
		return datePlus(op, at, b)
	}
	x, xInt := a.(int64)
	y, yInt := b.(int64)
	if xInt && yInt {
		switch op {
		case "+":
			if sum := x + y; (sum > x) == (y > 0) {
				return sum, nil
			}
		case "-":
			if diff := x - y; (diff < x) == (y > 0) {
				return diff, nil
			}
		case "*":
			if high, low := bits.Mul64(uint64(max(x, -x)), uint64(max(y, -y))); high == 0 && low < 1<<62 {
				return x * y, nil
			}
		}
	}
	p, err := rational(a)
	if err != nil {
		return nil, err
	}
	q, err := rational(b)
	if err != nil {
		return nil, err
	}
	r := new(big.Rat)
	switch op {
	case "+":
		r.Add(p, q)
	case "-":
		r.Sub(p, q)
	case "*":
		r.Mul(p, q)
	default:
		if q.Sign() == 0 {
			return nil, ora(1476, "divisor is equal to zero")
		}
		r.Quo(p, q)
	}
	return small(r), nil
}

// datePlus adds days to a date, or takes two dates apart in days.
func datePlus(op string, at time.Time, b value) (value, error) {
	if other, is := b.(time.Time); is && op == "-" {
		return small(big.NewRat(int64(at.Sub(other)), int64(24*time.Hour))), nil
	}
	days, err := rational(b)
	if err != nil || op == "*" || op == "/" {
		return nil, ora(932, "inconsistent datatypes")
	}
	nanos := new(big.Rat).Mul(days, big.NewRat(int64(24*time.Hour), 1))
	d := time.Duration(new(big.Int).Quo(nanos.Num(), nanos.Denom()).Int64())
	if op == "-" {
		d = -d
	}
	return at.Add(d), nil
}

// compare orders two values that are not NULL: a text beside a number is read as one.
func compare(a, b value) (int, error) {
	switch x := a.(type) {
	case int64:
		if y, is := b.(int64); is {
			switch {
			case x < y:
				return -1, nil
			case x > y:
				return 1, nil
			}
			return 0, nil
		}
	case string:
		if y, is := b.(string); is {
			return strings.Compare(x, y), nil
		}
	case raw:
		if y, is := b.(raw); is {
			return strings.Compare(string(x), string(y)), nil
		}
		return 0, ora(932, "inconsistent datatypes: expected BINARY")
	case time.Time:
		if y, is := b.(time.Time); is {
			return x.Compare(y), nil
		}
		return 0, ora(932, "inconsistent datatypes: expected DATE")
	}
	p, err := rational(a)
	if err != nil {
		return 0, err
	}
	q, err := rational(b)
	if err != nil {
		return 0, err
	}
	return p.Cmp(q), nil
}

// text is a value as TO_CHAR writes it without a format; "" for NULL.
func text(v value) string {
	switch v := v.(type) {
	case nil:
		return ""
	case int64:
		return fmt.Sprint(v)
	case *big.Rat:
		if v.IsInt() {
			return v.Num().String()
		}
		s := strings.TrimRight(v.FloatString(38), "0")
		if rest, negative := strings.CutPrefix(s, "-0"); negative {
			return "-" + rest
		}
		return strings.TrimPrefix(s, "0")
	case string:
		return v
	case raw:
		return fmt.Sprintf("%X", string(v))
	case interval:
		return v.String()
	case time.Time: // NLS_DATE_FORMAT's default: what nobody should rest on
		return strings.ToUpper(v.Format("02-Jan-06"))
	default:
		panic(fmt.Sprintf("a value of type %T", v))
	}
}

// key tells values apart in maps.
func key(values []value) string {
	var k strings.Builder
	for _, v := range values {
		s := text(v)
		if at, is := v.(time.Time); is {
			s = at.Format(time.RFC3339Nano)
		}
		fmt.Fprintf(&k, "%t%d:%s", v == nil, len(s), s)
	}
	return k.String()
}

// cell is a value as the answer carries it.
func cell(v value) Cell {
	switch v := v.(type) {
	case nil:
		return Cell{}
	case string:
		return Cell{Kind: TextBind, Text: v}
	case raw:
		return Cell{Kind: RawBind, Text: string(v)}
	case time.Time:
		return Cell{Kind: TimeBind, At: v, Text: v.Format(time.RFC3339Nano)}
	case bool, interval:
		return Cell{Kind: TextBind, Text: fmt.Sprint(v)}
	}
	r, err := rational(v)
	if err != nil {
		panic(err)
	}
	f, _ := r.Float64()
	return Cell{Kind: NumberBind, Number: f, Text: text(v)}
}

// elements of a date's format, longest first.
var formatElements = []struct{ oracle, layout string }{
	{"YYYY", "2006"}, {"HH24", "15"}, {"MM", "01"}, {"DD", "02"}, {"MI", "04"}, {"SS", "05"},
}

// layout turns a format of TO_CHAR or TO_DATE into one of package time; fraction is how many digits FF has, −1 for none.
func layout(format string) (out string, fraction int, err error) {
	fraction = -1
next:
	for rest := format; rest != ""; {
		for _, e := range formatElements {
			if after, is := strings.CutPrefix(strings.ToUpper(rest), e.oracle); is {
				out, rest = out+e.layout, rest[len(rest)-len(after):]
				continue next
			}
		}
		if after, is := strings.CutPrefix(strings.ToUpper(rest), "FF"); is {
			rest, fraction = rest[len(rest)-len(after):], 9
			if rest != "" && sqlread.Digit(rest[0]) {
				fraction, rest = int(rest[0]-'0'), rest[1:]
			}
			out = strings.TrimSuffix(out, ".")
			continue
		}
		if rest[0] == '"' {
			inside, n, err := sqlread.Quote{Mark: '"'}.Read(rest)
			if err != nil {
				return "", 0, err
			}
			out, rest = out+inside, rest[n:]
			continue
		}
		if strings.IndexByte("-/,.:; ", rest[0]) < 0 {
			return "", 0, ora(1821, "date format not recognized")
		}
		out, rest = out+rest[:1], rest[1:]
	}
	return out, fraction, nil
}

func parseTime(s, format string) (value, error) {
	l, _, err := layout(format)
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(l, s) // takes a fraction behind the seconds as well
	if err != nil {
		return nil, ora(1858, "a non-numeric character was found where a numeric was expected: %q for %s", s, format)
	}
	return at, nil
}

func formatTime(at time.Time, format string) (value, error) {
	l, fraction, err := layout(format)
	if err != nil {
		return nil, err
	}
	if fraction > 0 {
		l += "." + strings.Repeat("0", fraction)
	}
	return at.Format(l), nil
}
