package doris

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A value is what a table holds or an expression gives: nil (NULL), int64, *big.Int (LARGEINT), *decimal, float64, or
// string. Dates and times are strings in canonical form, which compare as they should.
type value any

type decimal struct {
	r     *big.Rat
	scale int
}

// columnType is a column's type, or a cast's target.
type columnType struct {
	name   string // upper case, without arguments: BIGINT, VARCHAR, DATETIME …
	length int    // bytes of CHAR and VARCHAR, precision of DECIMAL, digits behind the second of DATETIME
	scale  int    // of DECIMAL
}

const (
	maxVarchar = 65533   // bytes; more is STRING
	maxString  = 1 << 20 // string_type_length_soft_limit_bytes
	maxDecimal = 38      // digits, without enable_decimal256
)

func (t columnType) String() string {
	switch t.name {
	case "CHAR", "VARCHAR":
		return fmt.Sprintf("%s(%d)", strings.ToLower(t.name), t.length)
	case "DECIMAL":
		return fmt.Sprintf("decimal(%d,%d)", t.length, t.scale)
	case "DATETIME":
		if t.length > 0 {
			return fmt.Sprintf("datetime(%d)", t.length)
		}
	case "STRING":
		return "text" // as SHOW CREATE TABLE and information_schema write it
	}
	return strings.ToLower(t.name)
}

// integers are the bits of the integer types that fit an int64.
func (t columnType) bits() int {
	switch t.name {
	case "TINYINT":
		return 8
	case "SMALLINT":
		return 16
	case "INT":
		return 32
	case "BIGINT":
		return 64
	}
	return 0
}

// newType checks a type as CREATE TABLE does.
func newType(name string, args []int) (columnType, error) {
	t := columnType{name: strings.ToUpper(name)}
	switch t.name {
	case "INTEGER":
		t.name = "INT"
	case "TEXT":
		t.name = "STRING"
	case "BOOL":
		t.name = "BOOLEAN"
	case "DATEV2":
		t.name = "DATE"
	case "DATETIMEV2", "TIMESTAMP":
		t.name = "DATETIME"
	case "DECIMALV3", "NUMERIC":
		t.name = "DECIMAL"
	}
	limit := func(low, high, otherwise int) (int, error) {
		if len(args) == 0 {
			return otherwise, nil
		}
		if args[0] < low || args[0] > high {
			return 0, fmt.Errorf("%s size must be between %d and %d: %d", t.name, low, high, args[0])
		}
		return args[0], nil
	}
	var err error
	switch t.name {
	case "BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "LARGEINT", "FLOAT", "DOUBLE", "STRING", "DATE":
	case "CHAR":
		t.length, err = limit(1, 255, 1)
	case "VARCHAR":
		t.length, err = limit(1, maxVarchar, maxVarchar)
	case "DATETIME":
		t.length, err = limit(0, 6, 0)
	case "DECIMAL":
		t.length, err = limit(1, maxDecimal, maxDecimal)
		if len(args) == 0 {
			t.scale = 9
		}
		if len(args) > 1 {
			t.scale = args[1]
		}
		if err == nil && (t.scale < 0 || t.scale > t.length) {
			err = fmt.Errorf("scale of decimal must be between 0 and precision. Scale was set to: %d", t.scale)
		}
	default:
		err = fmt.Errorf("unsupported data type: %s", name)
	}
	return t, err
}

var errTooLong = errors.New("the length of input is too long than schema")

// fit converts a value into the type. An error says why it cannot be.
func (t columnType) fit(v value) (value, error) {
	if v == nil {
		return nil, nil
	}
	switch t.name {
	case "BOOLEAN":
		switch strings.ToLower(text(v)) {
		case "1", "true":
			return int64(1), nil
		case "0", "false":
			return int64(0), nil
		}
	case "TINYINT", "SMALLINT", "INT", "BIGINT":
		if n, ok := integer(v); ok && n.IsInt64() && fits(n.Int64(), t.bits()) {
			return n.Int64(), nil
		}
	case "LARGEINT":
		if n, ok := integer(v); ok && n.BitLen() <= 127 {
			return n, nil
		}
	case "FLOAT", "DOUBLE":
		if f, err := strconv.ParseFloat(strings.TrimSpace(text(v)), 64); err == nil {
			return f, nil
		}
	case "DECIMAL":
		return t.fitDecimal(v)
	case "CHAR", "VARCHAR", "STRING":
		s, limit := text(v), t.length
		if t.name == "STRING" {
			limit = maxString
		}
		if limit > 0 && len(s) > limit {
			return nil, fmt.Errorf("%w. schema length: %d; actual length: %d", errTooLong, limit, len(s))
		}
		return s, nil
	case "DATE", "DATETIME":
		if at, ok := parseTime(text(v)); ok {
			return t.format(at), nil
		}
	}
	return nil, fmt.Errorf("parse value %q as %s failed", shorten(text(v)), t.name)
}

var decimalForm = regexp.MustCompile(`^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?$`)

// fitDecimal rounds what is behind the scale, and refuses what has more in front than there is room for.
func (t columnType) fitDecimal(v value) (value, error) {
	number := strings.TrimSpace(text(v))
	r, ok := new(big.Rat).SetString(number)
	if !ok || !decimalForm.MatchString(number) {
		return nil, fmt.Errorf("parse value %q as DECIMAL failed", shorten(text(v)))
	}
	d := &decimal{r, t.scale}
	rounded, _ := new(big.Rat).SetString(r.FloatString(t.scale))
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.length-t.scale)), nil)
	if d.r = rounded; new(big.Rat).Abs(rounded).Cmp(new(big.Rat).SetInt(limit)) >= 0 {
		return nil, fmt.Errorf("decimal value is not valid for definition, value=%s, precision=%d, scale=%d", shorten(text(v)), t.length, t.scale)
	}
	return d, nil
}

func fits(n int64, bits int) bool {
	return bits == 64 || n >= -1<<(bits-1) && n < 1<<(bits-1)
}

func integer(v value) (*big.Int, bool) {
	switch v := v.(type) {
	case int64:
		return big.NewInt(v), true
	case *big.Int:
		return v, true
	case *decimal:
		return new(big.Int).Quo(v.r.Num(), v.r.Denom()), true
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, false
		}
		n, _ := big.NewFloat(v).Int(nil)
		return n, true
	case string:
		return new(big.Int).SetString(strings.TrimSpace(v), 10)
	}
	return nil, false
}

// parseTime reads a date or a timestamp in the forms Doris takes without a time zone, years 0 to 9999.
func parseTime(s string) (time.Time, bool) {
	s = strings.TrimSpace(s)
	for _, layout := range []string{time.DateOnly, time.DateTime, "2006-01-02T15:04:05", "20060102", "20060102150405"} {
		if at, err := time.Parse(layout, s); err == nil { // takes a fraction behind the seconds as well
			return at, true
		}
	}
	return time.Time{}, false
}

// format writes a time in the type's form. Digits it has no room for are rounded, as Doris does.
func (t columnType) format(at time.Time) string {
	if t.name == "DATE" {
		return at.Format(time.DateOnly)
	}
	layout := time.DateTime
	if t.length > 0 {
		layout += "." + strings.Repeat("0", t.length)
	}
	unit := time.Second
	for range t.length {
		unit /= 10
	}
	return at.Round(unit).Format(layout)
}

// text is a value as SELECT writes it.
func text(v value) string {
	switch v := v.(type) {
	case nil:
		return "NULL"
	case int64:
		return strconv.FormatInt(v, 10)
	case *big.Int:
		return v.String()
	case *decimal:
		return v.r.FloatString(v.scale)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return v
	default:
		panic(fmt.Sprintf("a value of type %T", v))
	}
}

func shorten(s string) string {
	if len(s) > 64 {
		return s[:64] + "…"
	}
	return s
}
