package doris

import (
	"fmt"
	"math/big"
	"strings"
	"time"
	"unicode/utf8"
)

// aggregates are the functions over many rows.
var aggregates = map[string]bool{"COUNT": true, "SUM": true, "MIN": true, "MAX": true, "AVG": true}

func hasAggregate(x expr) bool {
	switch x := x.(type) {
	case call:
		if aggregates[x.name] {
			return true
		}
		for _, a := range x.args {
			if hasAggregate(a) {
				return true
			}
		}
	case unary:
		return hasAggregate(x.x)
	case binary:
		return hasAggregate(x.x) || hasAggregate(x.y)
	case between:
		return hasAggregate(x.x) || hasAggregate(x.low) || hasAggregate(x.high)
	case *inList:
		return hasAggregate(x.x)
	case isNull:
		return hasAggregate(x.x)
	case like:
		return hasAggregate(x.x)
	case cast:
		return hasAggregate(x.x)
	}
	return false
}

func (s *scope) aggregate(c call) (value, error) {
	if s.group == nil {
		return nil, fmt.Errorf("errCode = 2, detailMessage = aggregate function %s is not allowed here", c.name)
	}
	if c.star {
		return int64(len(s.group)), nil
	}
	if len(c.args) != 1 {
		return nil, fmt.Errorf("errCode = 2, detailMessage = %s takes one argument here", c.name)
	}
	inner := *s
	inner.group, inner.aliases = nil, nil
	var values []value
	seen := map[string]bool{}
	for _, row := range s.group {
		inner.row = row
		v, err := inner.eval(c.args[0])
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if c.distinct {
			if seen[text(v)] {
				continue
			}
			seen[text(v)] = true
		}
		values = append(values, v)
	}
	if c.name == "COUNT" {
		return int64(len(values)), nil
	}
	if len(values) == 0 {
		return nil, nil
	}
	result, err := values[0], error(nil)
	for _, v := range values[1:] {
		switch order := compare(v, result); {
		case c.name == "MIN" && order < 0, c.name == "MAX" && order > 0:
			result = v
		case c.name == "SUM" || c.name == "AVG":
			// SUM of integers is a BIGINT that wraps: sums that may be larger are cast before, not after.
			if result, err = arithmetic("+", result, v); err != nil {
				return nil, err
			}
		}
	}
	if c.name == "AVG" {
		return arithmetic("/", result, int64(len(values)))
	}
	return result, nil
}

func (s *scope) call(c call) (value, error) {
	var args []value
	for _, a := range c.args {
		v, err := s.eval(a)
		if err != nil {
			return nil, err
		}
		args = append(args, v)
	}
	anyNull := false
	for _, a := range args {
		anyNull = anyNull || a == nil
	}
	switch c.name {
	case "COALESCE", "IFNULL", "NVL":
		for _, a := range args {
			if a != nil {
				return a, nil
			}
		}
		return nil, nil
	case "IF":
		if len(args) == 3 {
			if args[0] != nil && isTrue(args[0]) {
				return args[1], nil
			}
			return args[2], nil
		}
	}
	if v, ok := s.session.function(c.name, len(args)); ok {
		return v, nil
	}
	f, known := functions[c.name]
	if !known || len(args) < f.least || len(args) > f.most {
		return nil, fmt.Errorf("errCode = 2, detailMessage = Can not found function '%s' which has %d arity. (this stand-in has few)", c.name, len(args))
	}
	if anyNull {
		return nil, nil
	}
	return f.apply(args)
}

// function is one that is NULL for a NULL.
type function struct {
	least, most int
	apply       func([]value) (value, error)
}

var functions = map[string]function{
	"GREATEST": {1, 1000, func(a []value) (value, error) { return extreme(a, 1), nil }},
	"LEAST":    {1, 1000, func(a []value) (value, error) { return extreme(a, -1), nil }},
	"LENGTH":   {1, 1, length},
	// An alias of LENGTH (assumed: the documentation that was read names it, the list of functions was not at hand).
	"OCTET_LENGTH": {1, 1, length},
	"CHAR_LENGTH": {1, 1, func(a []value) (value, error) {
		return int64(utf8.RuneCountInString(text(a[0]))), nil
	}},
	"ABS": {1, 1, func(a []value) (value, error) {
		if compare(a[0], int64(0)) >= 0 {
			return a[0], nil
		}
		return arithmetic("-", int64(0), a[0])
	}},
	"MOD":    {2, 2, func(a []value) (value, error) { return arithmetic("%", a[0], a[1]) }},
	"HEX":    {1, 1, hex},
	"LOWER":  {1, 1, func(a []value) (value, error) { return strings.ToLower(text(a[0])), nil }},
	"UPPER":  {1, 1, func(a []value) (value, error) { return strings.ToUpper(text(a[0])), nil }},
	"CONCAT": {1, 1000, concat},
	"DATEDIFF": {2, 2, func(a []value) (value, error) {
		x, y, ok := twoTimes(a)
		if !ok {
			return nil, nil
		}
		return int64(x.Truncate(24*time.Hour).Sub(y.Truncate(24*time.Hour)) / (24 * time.Hour)), nil
	}},
	"MICROSECONDS_DIFF": {2, 2, func(a []value) (value, error) {
		x, y, ok := twoTimes(a)
		if !ok {
			return nil, nil
		}
		return x.UnixMicro() - y.UnixMicro(), nil
	}},
}

func extreme(values []value, sign int) value {
	best := values[0]
	for _, v := range values[1:] {
		if compare(v, best)*sign > 0 {
			best = v
		}
	}
	return best
}

func length(a []value) (value, error) { return int64(len(text(a[0]))), nil }

func hex(a []value) (value, error) {
	if s, ok := a[0].(string); ok {
		return fmt.Sprintf("%X", s), nil
	}
	n, ok := integer(a[0])
	if !ok {
		return nil, nil
	}
	return strings.ToUpper(new(big.Int).Abs(n).Text(16)), nil
}

func concat(a []value) (value, error) {
	var all strings.Builder
	for _, v := range a {
		all.WriteString(text(v))
	}
	return all.String(), nil
}

func twoTimes(a []value) (x, y time.Time, ok bool) {
	x, okX := parseTime(text(a[0]))
	y, okY := parseTime(text(a[1]))
	return x, y, okX && okY
}
