package oracle

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// columnType is a column's type, or a cast's target.
type columnType struct {
	name     string // NUMBER, VARCHAR2, RAW, DATE, TIMESTAMP
	length   int    // of VARCHAR2 and RAW in bytes, NUMBER's precision (0: none), TIMESTAMP's digits
	scale    int    // of NUMBER
	absolute bool   // NUMBER without a scale of its own: any
}

// The longest values, with and without MAX_STRING_SIZE=EXTENDED.
const (
	maxExtended = 32767
	maxStandard = 4000
	maxRaw      = 2000
)

func (p *parser) columnType() columnType {
	t := columnType{name: p.Identifier()}
	args := func() {
		if p.Take("(") {
			if t.length = int(p.Integer()); p.Take(",") {
				t.scale = int(p.Integer())
			}
			if p.Take("CHAR") {
				t.length *= 4
			} else {
				p.Take("BYTE")
			}
			p.Expect(")")
		}
	}
	switch t.name {
	case "NUMBER":
		args()
		t.absolute = t.length == 0
	case "INTEGER":
		t.name, t.length = "NUMBER", 38
	case "VARCHAR2", "RAW":
		if args(); t.length == 0 {
			p.Fail("%s wants a length", t.name)
		}
	case "VARCHAR":
		t.name = "VARCHAR2"
		args()
	case "DATE":
	case "TIMESTAMP":
		t.length = 6
		args()
	default:
		p.Fail("type %s is not known", t.name)
	}
	return t
}

// allowed checks a type's length against the server's.
func (t columnType) allowed(standard bool) error {
	most := maxExtended
	if standard && t.name == "VARCHAR2" {
		most = maxStandard
	}
	if standard && t.name == "RAW" {
		most = maxRaw
	}
	switch {
	case (t.name == "VARCHAR2" || t.name == "RAW") && t.length > most:
		return ora(910, "specified length too long for its datatype")
	case t.name == "NUMBER" && t.length > 38:
		return ora(1727, "numeric precision specifier is out of range (1 to 38)")
	}
	return nil
}

// fit converts a value into the type; what names it in errors.
func (t columnType) fit(v value, what string) (value, error) {
	if v == nil {
		return nil, nil
	}
	switch t.name {
	case "NUMBER":
		return t.fitNumber(v)
	case "VARCHAR2":
		if _, is := v.(time.Time); is {
			return nil, ora(1861, "literal does not match format string: a date as text without TO_CHAR (the stand-in refuses it)")
		}
		if s := text(v); len(s) > t.length {
			return nil, ora(12899, "value too large for column %s (actual: %d, maximum: %d)", what, len(s), t.length)
		}
		return emptyIsNull(text(v)), nil
	case "RAW":
		r, err := toRaw(v)
		if err != nil {
			return nil, err
		}
		if n := len(r.(raw)); n > t.length {
			return nil, ora(12899, "value too large for column %s (actual: %d, maximum: %d)", what, n, t.length)
		}
		if r == raw("") {
			return nil, nil
		}
		return r, nil
	}
	at, is := v.(time.Time)
	if !is {
		// The session's NLS_DATE_FORMAT would read it, which is somebody else's setting.
		return nil, ora(1861, "literal does not match format string: a text as %s without TO_DATE or TO_TIMESTAMP (the stand-in refuses it)", t.name)
	}
	unit := time.Second
	if t.name == "TIMESTAMP" {
		for range t.length {
			unit /= 10
		}
	}
	// DATE cuts the fraction off, TIMESTAMP rounds it.
	if t.name == "DATE" {
		return at.Truncate(unit), nil
	}
	return at.Round(unit), nil
}

func (t columnType) fitNumber(v value) (value, error) {
	if s, is := v.(string); is && strings.ContainsAny(s, ".,") { // the session's NLS_NUMERIC_CHARACTERS would read it
		return nil, ora(1722, "invalid number: %s without a TO_NUMBER that says what the point is (the stand-in refuses it)", s)
	}
	r, err := rational(v)
	if err != nil || t.absolute {
		if err == nil {
			return small(r), nil
		}
		return nil, err
	}
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.scale)), nil))
	shifted := new(big.Rat).Mul(r, scale)
	digits, ok := new(big.Int).SetString(shifted.FloatString(0), 10)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.length)), nil)
	if !ok || new(big.Int).Abs(digits).Cmp(limit) >= 0 {
		return nil, ora(1438, "value larger than specified precision allowed for this column")
	}
	return small(new(big.Rat).Quo(new(big.Rat).SetInt(digits), scale)), nil
}

// String is the type as ALL_TAB_COLUMNS.DATA_TYPE has it.
func (t columnType) String() string {
	if t.name == "TIMESTAMP" {
		return fmt.Sprintf("TIMESTAMP(%d)", t.length)
	}
	return t.name
}

// bytes is DATA_LENGTH.
func (t columnType) bytes() int64 {
	switch t.name {
	case "VARCHAR2", "RAW":
		return int64(t.length)
	case "NUMBER":
		return 22
	case "TIMESTAMP":
		return 11
	}
	return 7
}
