package standin

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/rows"
)

const timestampLayout = "2006-01-02 15:04:05.000000"

// Parse reads a value of the column from its text. Text and Bytes are the text itself.
func Parse(c rows.Column, text string) (any, error) {
	var (
		value int64
		at    time.Time
		err   error
	)
	switch c.Type {
	case rows.Int64:
		value, err = strconv.ParseInt(text, 10, 64)
	case rows.Date:
		at, err = time.Parse(time.DateOnly, text)
		value = at.Unix() / (24 * 60 * 60)
	case rows.Timestamp:
		at, err = time.Parse("2006-01-02 15:04:05.999999", strings.Replace(text, "T", " ", 1))
		value = at.UnixMicro()
	case rows.Decimal:
		value, err = parseDecimal(c, text)
	default:
		if c.Type == rows.Text && !utf8.ValidString(text) {
			return nil, fmt.Errorf("column %s: %.40q is not UTF-8", c.Name, text)
		}
		return []byte(text), nil
	}
	if err != nil {
		return nil, fmt.Errorf("column %s: %q is no %s", c.Name, text, c.Type)
	}
	return value, nil
}

// parseDecimal refuses what a server would round: a client that sends it sends other rows than it counts.
func parseDecimal(c rows.Column, text string) (int64, error) {
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return 0, strconv.ErrSyntax
	}
	n.Mul(n, new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale)), nil)))
	if !n.IsInt() || len(n.Num().Text(10)) > c.Digits+(1-n.Sign())/2 {
		return 0, strconv.ErrRange
	}
	return n.Num().Int64(), nil
}

// Text writes a value of the column as SELECT would: days as 2006-01-02, microseconds with six digits, decimals with a
// point.
func Text(c rows.Column, value any) string {
	switch v := value.(type) {
	case []byte:
		return string(v)
	case int64:
		switch c.Type {
		case rows.Date:
			return time.Unix(v*24*60*60, 0).UTC().Format(time.DateOnly)
		case rows.Timestamp:
			return time.UnixMicro(v).UTC().Format(timestampLayout)
		case rows.Decimal:
			power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(c.Scale)), nil)
			return new(big.Rat).SetFrac(big.NewInt(v), power).FloatString(c.Scale)
		default:
			return strconv.FormatInt(v, 10)
		}
	default:
		return fmt.Sprint(v)
	}
}
