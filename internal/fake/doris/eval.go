package doris

import (
	"fmt"
	"math/big"
	"strings"
)

// scope is what names mean while an expression is evaluated.
type scope struct {
	session *session
	columns []string
	row     []value
	group   [][]value       // the rows an aggregate counts; nil outside of one
	aliases map[string]expr // of the select list, for GROUP BY, HAVING and ORDER BY
}

func (s *scope) lookup(name string) (value, error) {
	for i, c := range s.columns {
		if strings.EqualFold(c, name) {
			if s.row == nil { // an aggregate over no rows
				return nil, nil
			}
			return s.row[i], nil
		}
	}
	if x, ok := s.aliases[strings.ToLower(name)]; ok {
		inner := *s
		inner.aliases = nil
		return inner.eval(x)
	}
	return nil, fmt.Errorf("errCode = 2, detailMessage = Unknown column '%s' in 'table list'", name)
}

// eval computes an expression.
func (s *scope) eval(x expr) (value, error) {
	switch x := x.(type) {
	case literal:
		return x.v, nil
	case columnRef:
		return s.lookup(x.name)
	case variable:
		return s.session.variable(x.name)
	case unary:
		v, err := s.eval(x.x)
		if err != nil || v == nil {
			return nil, err
		}
		if x.op == "NOT" {
			return truth(!isTrue(v)), nil
		}
		return arithmetic("-", int64(0), v)
	case binary:
		return s.binary(x)
	case between:
		return s.binary(binary{"AND", binary{">=", x.x, x.low}, binary{"<=", x.x, x.high}})
	case *inList:
		return s.in(x)
	case isNull:
		v, err := s.eval(x.x)
		return truth(v == nil), err
	case like:
		v, pattern, err := s.two(x.x, x.pattern)
		if err != nil || v == nil || pattern == nil {
			return nil, err
		}
		return truth(matchLike(text(v), text(pattern))), nil
	case cast:
		v, err := s.eval(x.x)
		if err != nil {
			return nil, err
		}
		if r, err := x.kind.fit(v); err == nil {
			return r, nil
		}
		return nil, nil // a cast that fails is NULL
	case call:
		if aggregates[x.name] {
			return s.aggregate(x)
		}
		return s.call(x)
	case scalarQuery:
		r, err := s.session.run(x.query)
		if err != nil {
			return nil, err
		}
		if len(r.rows) > 1 || len(r.names) != 1 {
			return nil, fmt.Errorf("errCode = 2, detailMessage = Expected EQ 1 to be returned by expression")
		}
		if len(r.rows) == 0 {
			return nil, nil
		}
		return r.rows[0][0], nil
	}
	return nil, fmt.Errorf("an expression of type %T", x)
}

func (s *scope) two(x, y expr) (a, b value, err error) {
	if a, err = s.eval(x); err == nil {
		b, err = s.eval(y)
	}
	return a, b, err
}

func (s *scope) binary(x binary) (value, error) {
	a, b, err := s.two(x.x, x.y)
	if err != nil {
		return nil, err
	}
	switch x.op {
	case "AND":
		if a != nil && !isTrue(a) || b != nil && !isTrue(b) {
			return int64(0), nil
		}
	case "OR":
		if a != nil && isTrue(a) || b != nil && isTrue(b) {
			return int64(1), nil
		}
	case "<=>":
		return truth((a == nil) == (b == nil) && (a == nil || compare(a, b) == 0)), nil
	}
	if a == nil || b == nil {
		return nil, nil
	}
	switch x.op {
	case "AND":
		return int64(1), nil
	case "OR":
		return int64(0), nil
	case "=":
		return truth(compare(a, b) == 0), nil
	case "<>", "!=":
		return truth(compare(a, b) != 0), nil
	case "<":
		return truth(compare(a, b) < 0), nil
	case "<=":
		return truth(compare(a, b) <= 0), nil
	case ">":
		return truth(compare(a, b) > 0), nil
	case ">=":
		return truth(compare(a, b) >= 0), nil
	}
	return arithmetic(x.op, a, b)
}

// in looks a value up in a list. Lists of constants are hashed once: those of row numbers have thousands.
func (s *scope) in(x *inList) (value, error) {
	v, err := s.eval(x.x)
	if err != nil || v == nil {
		return nil, err
	}
	if x.set == nil {
		set := map[string]bool{}
		for _, e := range x.list {
			w, err := s.eval(e)
			if err != nil {
				return nil, err
			}
			if w != nil {
				set[text(w)] = true
			}
		}
		x.set = set
	}
	return truth(x.set[text(v)]), nil
}

func truth(b bool) value {
	if b {
		return int64(1)
	}
	return int64(0)
}

func isTrue(v value) bool {
	if s, ok := v.(string); ok {
		return strings.EqualFold(s, "true") || s == "1"
	}
	return rational(v).Sign() != 0
}

// rational is a number's exact value; of text that is none, 0.
func rational(v value) *big.Rat {
	switch v := v.(type) {
	case int64:
		return new(big.Rat).SetInt64(v)
	case *big.Int:
		return new(big.Rat).SetInt(v)
	case *decimal:
		return v.r
	case float64:
		if r := new(big.Rat).SetFloat64(v); r != nil {
			return r
		}
	case string:
		if r, ok := new(big.Rat).SetString(strings.TrimSpace(v)); ok {
			return r
		}
	}
	return new(big.Rat)
}

// compare orders two values: strings as bytes, all else as numbers.
func compare(a, b value) int {
	if x, ok := a.(int64); ok {
		if y, ok := b.(int64); ok {
			switch {
			case x < y:
				return -1
			case x > y:
				return 1
			}
			return 0
		}
	}
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y)
		}
	}
	if x, y := whole(a), whole(b); x != nil && y != nil {
		return x.Cmp(y)
	}
	return rational(a).Cmp(rational(b))
}

// whole is the number of an integer type, else nil. A sum over a table is of these, and of fractions it would take many
// times as long.
func whole(v value) *big.Int {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v)
	case *big.Int:
		return v
	}
	return nil
}

// arithmetic follows Doris' types: integers stay BIGINT and wrap, / gives DOUBLE, anything divided by zero is NULL.
func arithmetic(op string, a, b value) (value, error) {
	x, xInt := a.(int64)
	y, yInt := b.(int64)
	if xInt && yInt && op != "/" {
		switch op {
		case "+":
			return x + y, nil
		case "-":
			return x - y, nil
		case "*":
			return x * y, nil
		}
		if y == 0 {
			return nil, nil
		}
		if op == "DIV" {
			return x / y, nil
		}
		return x % y, nil
	}
	if x, y := whole(a), whole(b); x != nil && y != nil {
		switch op {
		case "+":
			return new(big.Int).Add(x, y), nil
		case "-":
			return new(big.Int).Sub(x, y), nil
		case "*":
			return new(big.Int).Mul(x, y), nil
		}
	}
	p, q := rational(a), rational(b)
	if (op == "/" || op == "DIV" || op == "%") && q.Sign() == 0 {
		return nil, nil
	}
	switch op {
	case "/":
		f, _ := new(big.Rat).Quo(p, q).Float64()
		return f, nil
	case "DIV":
		r := new(big.Rat).Quo(p, q)
		return new(big.Int).Quo(r.Num(), r.Denom()), nil
	case "+":
		return like2(a, b, new(big.Rat).Add(p, q)), nil
	case "-":
		return like2(a, b, new(big.Rat).Sub(p, q)), nil
	case "*":
		return like2(a, b, new(big.Rat).Mul(p, q)), nil
	case "%":
		r := new(big.Rat).Quo(p, q)
		times := new(big.Rat).SetInt(new(big.Int).Quo(r.Num(), r.Denom()))
		return like2(a, b, new(big.Rat).Sub(p, times.Mul(times, q))), nil
	}
	return nil, fmt.Errorf("an operator %s", op)
}

// like2 gives a result the wider of two operands' types.
func like2(a, b value, r *big.Rat) value {
	scale, integers := 0, true
	for _, v := range []value{a, b} {
		switch v := v.(type) {
		case float64, string:
			f, _ := r.Float64()
			return f
		case *decimal:
			scale, integers = max(scale, v.scale), false
		}
	}
	if integers {
		return new(big.Int).Set(r.Num())
	}
	return &decimal{r, scale}
}

func matchLike(s, pattern string) bool {
	if pattern == "" {
		return s == ""
	}
	switch pattern[0] {
	case '%':
		for i := 0; i <= len(s); i++ {
			if matchLike(s[i:], pattern[1:]) {
				return true
			}
		}
		return false
	case '_':
		return s != "" && matchLike(s[1:], pattern[1:])
	case '\\':
		if len(pattern) > 1 {
			pattern = pattern[1:]
		}
	}
	return s != "" && strings.EqualFold(s[:1], pattern[:1]) && matchLike(s[1:], pattern[1:])
}
