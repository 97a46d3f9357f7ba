package standin

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/terapush/terapush/pkg/rows"
)

const timestampLayout = "2006-01-02 15:04:05.000000"

// Parse reads a value of the column from its text. Text and Bytes are the text itself.
func Parse(c rows.Column, text string) (value any, err error) {
	bits := 8 * int(c.Type.Size())
	switch c.Type {
	case rows.Int64, rows.Int32, rows.Int16:
		value, err = strconv.ParseInt(text, 10, bits)
	case rows.Uint64, rows.Uint32, rows.Uint16:
		var n uint64
		n, err = strconv.ParseUint(text, 10, bits)
		value = int64(n)
	case rows.Bool:
		value, err = parseBool(text)
	case rows.Float32, rows.Float64:
		value, err = parseFloat(text, bits)
	case rows.Decimal:
		value, err = parseDecimal(c, text)
	case rows.Wide:
		value, err = c.ParseWide(text)
	case rows.Date, rows.Timestamp, rows.TimestampTZ, rows.Time:
		value, err = parseTime(c, text)
	case rows.UUID:
		value, err = parseUUID(text)
	default:
		value, err = []byte(text), checkText(c, text)
	}
	if err != nil {
		return nil, fmt.Errorf("column %s: %.80q is no %s", c.Name, text, c.Type)
	}
	return value, nil
}

func parseBool(text string) (int64, error) {
	yes, err := strconv.ParseBool(text)
	if yes {
		return 1, err
	}
	return 0, err
}

func parseFloat(text string, bits int) (int64, error) {
	f, err := strconv.ParseFloat(text, bits)
	if bits == 32 {
		return int64(math.Float32bits(float32(f))), err
	}
	return int64(math.Float64bits(f)), err
}

// parseTime reads days, or microseconds. A moment has its offset behind it, which is that of UTC.
func parseTime(c rows.Column, text string) (int64, error) {
	layout := timestampLayout
	switch c.Type {
	case rows.Date:
		layout = time.DateOnly
	case rows.Time:
		layout, text = timestampLayout, "1970-01-01 "+text
	case rows.TimestampTZ:
		text = strings.TrimSuffix(text, "+00:00")
	}
	at, err := time.Parse(strings.Replace(layout, ".000000", ".999999", 1), strings.Replace(text, "T", " ", 1))
	if c.Type == rows.Date {
		return at.Unix() / (24 * 60 * 60), err
	}
	return at.UnixMicro(), err
}

var uuidShape = regexp.MustCompile(`^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

func parseUUID(text string) ([]byte, error) {
	if !uuidShape.MatchString(text) {
		return nil, strconv.ErrSyntax
	}
	return hex.DecodeString(strings.ReplaceAll(text, "-", ""))
}

func checkText(c rows.Column, text string) error {
	isWrong := c.Type.IsText() && !utf8.ValidString(text) || c.Type == rows.JSON && !json.Valid([]byte(text))
	if isWrong {
		return strconv.ErrSyntax
	}
	return nil
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
// point, 1 for true.
func Text(c rows.Column, value any) string {
	switch v := value.(type) {
	case []byte:
		switch c.Type {
		case rows.UUID:
			return string(rows.AppendUUID(nil, v))
		case rows.Wide:
			return c.TextOf(v)
		}
		return string(v)
	case int64:
		switch c.Type {
		case rows.Timestamp, rows.TimestampTZ:
			return time.UnixMicro(v).UTC().Format(timestampLayout)
		case rows.Bool:
			return strconv.FormatInt(v, 10)
		case rows.Float32: // as a double
			return strconv.FormatFloat(float64(math.Float32frombits(uint32(v))), 'g', -1, 64)
		}
		return c.Text(v)
	default:
		return fmt.Sprint(v)
	}
}
