package oracle

import (
	"regexp"
	"strings"
	"time"
)

// numericCharacters are the decimal point and the group separator of a session: its client's country decides, unless
// somebody sets them.
func (s *session) numericCharacters() string {
	for _, set := range []string{s.settings["NLS_NUMERIC_CHARACTERS"], s.server.options.NumericCharacters} {
		if set != "" {
			return set
		}
	}
	return ".,"
}

// toChar is TO_CHAR. Numbers have the session's decimal point where the third argument names no other.
func (s *session) toChar(args []value) (value, error) {
	point, err := s.point(args)
	if err != nil {
		return nil, err
	}
	if at, is := args[0].(time.Time); is && len(args) > 1 {
		return formatTime(at, text(args[1]))
	}
	if len(args) > 1 && !strings.HasPrefix(text(args[1]), "TM") {
		return nil, ora(1481, "invalid number format model (the stand-in knows TM only)")
	}
	written := text(args[0])
	if _, is := args[0].(string); !is {
		written = strings.Replace(written, ".", point, 1)
	}
	return emptyIsNull(written), nil
}

// toNumber is TO_NUMBER. A format bounds the digits, and its D is the decimal point.
func (s *session) toNumber(args []value) (value, error) {
	point, err := s.point(args)
	if err != nil {
		return nil, err
	}
	written, is := args[0].(string)
	if !is {
		return calculate("+", args[0], int64(0))
	}
	written = strings.TrimSpace(written)
	if len(args) > 1 {
		m := numberFormat.FindStringSubmatch(text(args[1]))
		if m == nil {
			return nil, ora(1481, "invalid number format model (the stand-in knows 9, 0 and D)")
		}
		whole, fraction, _ := strings.Cut(strings.TrimLeft(written, "+-"), point)
		if len(whole) > len(m[1]) || len(fraction) > max(len(m[2])-1, 0) {
			return nil, ora(1722, "invalid number")
		}
	}
	if point != "." && strings.Contains(written, ".") {
		return nil, ora(1722, "invalid number")
	}
	n := number(strings.Replace(written, point, ".", 1))
	if n == nil {
		return nil, ora(1722, "invalid number")
	}
	return n, nil
}

var (
	numberFormat = regexp.MustCompile(`^([90]+)(D[90]*)?$`)
	nlsParameter = regexp.MustCompile(`^NLS_NUMERIC_CHARACTERS ?= ?'(.)(.)'$`)
)

// point is the decimal point of a conversion with up to three arguments.
func (s *session) point(args []value) (string, error) {
	if len(args) < 3 {
		return s.numericCharacters()[:1], nil
	}
	m := nlsParameter.FindStringSubmatch(text(args[2]))
	if m == nil {
		return "", ora(12702, "invalid NLS parameter string used in SQL function")
	}
	return m[1], nil
}
