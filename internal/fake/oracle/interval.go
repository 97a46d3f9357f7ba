package oracle

import (
	"fmt"
	"math/big"
	"time"
)

// interval is an INTERVAL DAY TO SECOND: what is between a TIMESTAMP literal and another time. Both have the same sign.
type interval struct{ seconds, nanos int64 }

func between(from, to time.Time) interval {
	i := interval{to.Unix() - from.Unix(), int64(to.Nanosecond() - from.Nanosecond())}
	switch {
	case i.seconds > 0 && i.nanos < 0:
		i.seconds, i.nanos = i.seconds-1, i.nanos+int64(time.Second)
	case i.seconds < 0 && i.nanos > 0:
		i.seconds, i.nanos = i.seconds+1, i.nanos-int64(time.Second)
	}
	return i
}

// field is what EXTRACT takes out of it; all have its sign.
func (i interval) field(name string) value {
	switch name {
	case "DAY":
		return i.seconds / 86400
	case "HOUR":
		return i.seconds % 86400 / 3600
	case "MINUTE":
		return i.seconds % 3600 / 60
	}
	seconds := new(big.Rat).SetInt64(i.seconds % 60)
	return small(seconds.Add(seconds, big.NewRat(i.nanos, int64(time.Second))))
}

// extract is EXTRACT(field FROM x) of an interval.
type extract struct {
	field string
	x     expr
}

func (p *parser) extract() expr {
	p.Expect("(")
	x := extract{field: p.OneOf("DAY", "HOUR", "MINUTE", "SECOND")}
	if x.field == "" {
		p.Fail("expected DAY, HOUR, MINUTE or SECOND")
	}
	p.Expect("FROM")
	x.x = p.expression()
	p.Expect(")")
	return x
}

func (x extract) eval(s *scope) (value, error) {
	v, err := x.x.eval(s)
	if err != nil || v == nil {
		return nil, err
	}
	i, is := v.(interval)
	if !is {
		return nil, ora(30076, "invalid extract field for extract source (the stand-in knows those of intervals)")
	}
	return i.field(x.field), nil
}

// apart is the interval of a difference with a TIMESTAMP literal on either side; that of two DATEs would be days.
func (x arithmetic) apart(a, b value) (interval, bool) {
	literally := func(x expr) bool {
		l, is := x.(literal)
		return is && l.timestamp
	}
	to, is := a.(time.Time)
	from, also := b.(time.Time)
	if x.op != "-" || !is || !also || !literally(x.x) && !literally(x.y) {
		return interval{}, false
	}
	return between(from, to), true
}

// String is as the server writes it.
func (i interval) String() string {
	sign, s, n := "+", i.seconds, i.nanos
	if s < 0 || n < 0 {
		sign, s, n = "-", -s, -n
	}
	return fmt.Sprintf("%s%09d %02d:%02d:%02d.%09d", sign, s/86400, s%86400/3600, s%3600/60, s%60, n)
}
