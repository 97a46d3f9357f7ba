package oracle

import (
	"cmp"
	"encoding/hex"
	"math/big"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// aggregates are the functions over many rows.
var aggregates = map[string]bool{"COUNT": true, "SUM": true, "MIN": true, "MAX": true, "LISTAGG": true}

func (s *scope) aggregate(c call) (value, error) {
	if s.group == nil {
		return nil, ora(934, "group function is not allowed here")
	}
	if c.star {
		return int64(len(s.group)), nil
	}
	inner := *s
	inner.group, inner.aliases = nil, nil
	var values, orders []value
	seen := map[string]bool{}
	for _, inner.row = range s.group {
		v, err := c.args[0].eval(&inner)
		if err != nil {
			return nil, err
		}
		if v == nil || c.distinct && seen[key([]value{v})] {
			continue
		}
		if c.distinct {
			seen[key([]value{v})] = true
		}
		values = append(values, v)
		if c.order != nil {
			o, err := c.order.eval(&inner)
			if err != nil {
				return nil, err
			}
			orders = append(orders, o)
		}
	}
	if c.name == "COUNT" {
		return int64(len(values)), nil
	}
	if c.name == "LISTAGG" {
		return s.listAgg(c, values, orders)
	}
	if len(values) == 0 {
		return nil, nil
	}
	result := values[0]
	for _, v := range values[1:] {
		if c.name == "SUM" {
			sum, err := calculate("+", result, v)
			if err != nil {
				return nil, err
			}
			result = sum
			continue
		}
		order, err := compare(v, result)
		if err != nil {
			return nil, err
		}
		if c.name == "MIN" && order < 0 || c.name == "MAX" && order > 0 {
			result = v
		}
	}
	return result, nil
}

func (s *scope) listAgg(c call, values, orders []value) (value, error) {
	between := ""
	if len(c.args) > 1 {
		v, err := c.args[1].eval(s)
		if err != nil {
			return nil, err
		}
		between = text(v)
	}
	at := make([]int, len(values))
	for i := range at {
		at[i] = i
	}
	if orders != nil {
		slices.SortStableFunc(at, func(a, b int) int {
			o, _ := compare(orders[a], orders[b])
			return o
		})
	}
	var all []string
	for _, i := range at {
		all = append(all, text(values[i]))
	}
	return emptyIsNull(strings.Join(all, between)), nil
}

// pseudo are names that look like columns.
func (s *scope) pseudo(x columnRef) (value, bool) {
	if x.source != "" {
		return nil, false
	}
	switch x.name {
	case "USER":
		return s.server.options.Owner, true
	case "SYSDATE":
		return time.Now().UTC().Truncate(time.Second), true
	case "SYSTIMESTAMP":
		return time.Now().UTC(), true
	}
	return nil, false
}

// function calls what is no aggregate.
func (s *scope) function(c call) (v value, known bool, err error) {
	var args []value
	for _, a := range c.args {
		v, err := a.eval(s)
		if err != nil {
			return nil, true, err
		}
		args = append(args, v)
	}
	if v, known, err := s.packaged(c.name, args); known {
		return v, true, err
	}
	f, known := functions[c.name]
	if !known {
		return nil, false, nil
	}
	if len(args) < f.least || len(args) > f.most {
		return nil, true, ora(909, "invalid number of arguments")
	}
	if slices.Contains(args, nil) && !f.nulls {
		return nil, true, nil
	}
	switch c.name {
	case "TO_CHAR":
		v, err = s.toChar(args)
	case "TO_NUMBER":
		v, err = s.toNumber(args)
	default:
		v, err = f.apply(args)
	}
	return v, true, err
}

// function is one that is NULL for a NULL, unless it says otherwise.
type function struct {
	least, most int
	nulls       bool
	apply       func([]value) (value, error)
}

var functions = map[string]function{
	"TO_CHAR":      {1, 3, false, nil}, // these two depend on the session
	"TO_NUMBER":    {1, 3, false, nil},
	"TO_DATE":      {2, 2, false, toTime},
	"TO_TIMESTAMP": {2, 2, false, toTime},
	"TRUNC":        {1, 1, false, trunc},
	"FLOOR":        {1, 1, false, floor},
	"MOD":          {2, 2, false, mod},
	"GREATEST":     {1, 100, false, func(a []value) (value, error) { return extreme(a, 1) }},
	"LEAST":        {1, 100, false, func(a []value) (value, error) { return extreme(a, -1) }},
	"NVL":          {2, 2, true, coalesce},
	"COALESCE":     {2, 100, true, coalesce},
	"DECODE":       {3, 100, true, decode},
	"VSIZE":        {1, 1, false, size},
	"LENGTHB":      {1, 1, false, size},
	"LENGTH":       {1, 1, false, func(a []value) (value, error) { return int64(utf8.RuneCountInString(text(a[0]))), nil }},
	"UTL_RAW.LENGTH": {1, 1, false, func(a []value) (value, error) {
		if _, is := a[0].(raw); !is {
			return nil, ora(6502, "PL/SQL: value or conversion error")
		}
		return size(a)
	}},
	"RAWTOHEX":    {1, 1, false, func(a []value) (value, error) { return text(a[0]), nil }},
	"HEXTORAW":    {1, 1, false, func(a []value) (value, error) { return toRaw(a[0]) }},
	"TO_CLOB":     {1, 1, false, func(a []value) (value, error) { return text(a[0]), nil }},
	"UPPER":       {1, 1, false, func(a []value) (value, error) { return strings.ToUpper(text(a[0])), nil }},
	"LOWER":       {1, 1, false, func(a []value) (value, error) { return strings.ToLower(text(a[0])), nil }},
	"TRIM":        {1, 1, false, func(a []value) (value, error) { return emptyIsNull(strings.Trim(text(a[0]), " ")), nil }},
	"INSTR":       {2, 2, false, func(a []value) (value, error) { return int64(strings.Index(text(a[0]), text(a[1])) + 1), nil }},
	"SUBSTR":      {2, 3, false, substr},
	"JSON_OBJECT": {0, 100, true, jsonObject},
}

func toTime(a []value) (value, error) {
	if at, is := a[0].(time.Time); is {
		return at, nil
	}
	return parseTime(text(a[0]), text(a[1]))
}

func trunc(a []value) (value, error) {
	if at, is := a[0].(time.Time); is {
		return at.Truncate(24 * time.Hour), nil
	}
	r, err := rational(a[0])
	if err != nil {
		return nil, err
	}
	return small(new(big.Rat).SetInt(new(big.Int).Quo(r.Num(), r.Denom()))), nil
}

func floor(a []value) (value, error) {
	r, err := rational(a[0])
	if err != nil {
		return nil, err
	}
	return small(new(big.Rat).SetInt(new(big.Int).Div(r.Num(), r.Denom()))), nil
}

func mod(a []value) (value, error) {
	quotient, err := calculate("/", a[0], a[1])
	if err != nil {
		return nil, err
	}
	whole, err := trunc([]value{quotient})
	if err != nil {
		return nil, err
	}
	product, err := calculate("*", whole, a[1])
	if err != nil {
		return nil, err
	}
	return calculate("-", a[0], product)
}

func extreme(a []value, sign int) (value, error) {
	best := a[0]
	for _, v := range a[1:] {
		c, err := compare(v, best)
		if err != nil {
			return nil, err
		}
		if c*sign > 0 {
			best = v
		}
	}
	return best, nil
}

func coalesce(a []value) (value, error) {
	for _, v := range a {
		if v != nil {
			return v, nil
		}
	}
	return nil, nil
}

func decode(a []value) (value, error) {
	for i := 1; i+1 < len(a); i += 2 {
		if a[0] == nil && a[i] == nil {
			return a[i+1], nil
		}
		if a[0] == nil || a[i] == nil {
			continue
		}
		if c, err := compare(a[0], a[i]); err != nil || c == 0 {
			return a[i+1], err
		}
	}
	if len(a)%2 == 0 {
		return a[len(a)-1], nil
	}
	return nil, nil
}

// size is the length in bytes; a NUMBER's would be that of its own form, which nobody should want to know.
func size(a []value) (value, error) {
	switch v := a[0].(type) {
	case string:
		return int64(len(v)), nil
	case raw:
		return int64(len(v)), nil
	}
	return nil, ora(932, "inconsistent datatypes (the stand-in knows lengths of texts and raws only)")
}

func toRaw(v value) (value, error) {
	if r, is := v.(raw); is {
		return r, nil
	}
	b, err := hex.DecodeString(text(v))
	if err != nil {
		return nil, ora(1465, "invalid hex number")
	}
	return raw(b), nil
}

func substr(a []value) (value, error) {
	s, from := text(a[0]), int(cmp.Or(a[1], value(int64(1))).(int64))
	from = min(max(from, 1)-1, len(s))
	to := len(s)
	if len(a) == 3 {
		to = min(from+int(a[2].(int64)), len(s))
	}
	return emptyIsNull(s[from:to]), nil
}

func jsonObject(a []value) (value, error) {
	var all []string
	for _, v := range a {
		all = append(all, text(v))
	}
	return "{" + strings.Join(all, ",") + "}", nil
}
