package dataset

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/rows"
)

// specType is a parsed type of a spec.
type specType struct {
	rows.Type
	name          string
	size          int // n of text(n) and bytes(n); 0 = as long as the longest value
	digits, scale int // of decimals
}

var typeNames = []string{"bigint", "text(n)", "bytes(n)", "date", "timestamp", "decimal(p,s)"}

// laterTypes says what to write instead of types that this version does not have.
var laterTypes = map[string]string{
	"int": "bigint", "integer": "bigint", "smallint": "bigint", "unsigned": "bigint",
	"boolean": "bigint", "bool": "bigint",
	"real": "decimal(p,s)", "double": "decimal(p,s)", "float": "decimal(p,s)", "numeric": "decimal(p,s)",
	"char": "text(n)", "varchar": "text(n)", "uuid": "text(36)", "json": "text(n)", "jsonb": "text(n)", "enum": "text(n)",
	"timestamptz": "timestamp", "time": "timestamp", "array": "text(n)", "vector": "bytes(n)",
}

// parseType reads a type. The error is for a person.
func parseType(text string) (t specType, err error) {
	text = strings.TrimSpace(text)
	base, inside, has := strings.Cut(text, "(")
	base = strings.ToLower(strings.TrimSpace(base))
	var params []int
	if has {
		list, closed := strings.CutSuffix(inside, ")")
		for p := range strings.SplitSeq(list, ",") {
			n, err := strconv.Atoi(strings.TrimSpace(p))
			if err != nil || !closed || n < 0 {
				params = append(params, -1)
				continue
			}
			params = append(params, n)
		}
	}

	t.name = base
	switch {
	case text == "":
		return t, fmt.Errorf("type is missing: one of %s", strings.Join(typeNames, ", "))
	case base == "bigint" && !has:
		t.Type = rows.Int64
	case base == "date" && !has:
		t.Type = rows.Date
	case base == "timestamp" && !has:
		t.Type = rows.Timestamp
	case (base == "text" || base == "bytes") && len(params) <= 1:
		t.Type = rows.Text
		if base == "bytes" {
			t.Type = rows.Bytes
		}
		if has {
			t.size = params[0]
		}
		if has && (t.size < 1 || t.size > MaxPayloadBytes) {
			return t, fmt.Errorf("type %s: a length is a whole number from 1 to %d bytes", quoted(text), MaxPayloadBytes)
		}
	case base == "decimal" && len(params) != 2:
		return t, fmt.Errorf("type %s: write its digits and those after the point, as decimal(12,2)", quoted(text))
	case base == "decimal":
		t.Type, t.digits, t.scale = rows.Decimal, params[0], params[1]
		switch {
		case t.digits > 18:
			return t, fmt.Errorf("type %s: more than 18 digits are not there yet", quoted(text))
		case t.scale == 0 && t.digits >= 1:
			return t, fmt.Errorf("type %s has no digits after the point: write bigint", quoted(text))
		case t.scale < 1 || t.scale > t.digits:
			return t, fmt.Errorf("type %s: decimal(p,s) has p digits, 1 to 18, and s of them after the point", quoted(text))
		}
	default:
		name := strings.TrimSuffix(base, "[]")
		if name != base {
			name = "array"
		}
		if instead, later := laterTypes[name]; later {
			return t, fmt.Errorf("type %s is not there yet: write %s; there is %s",
				quoted(text), instead, strings.Join(typeNames, ", "))
		}
		return t, errors.New(unknown("type", text, typeNames))
	}
	return t, nil
}

// String returns the type as a spec writes it.
func (t specType) String() string {
	switch {
	case t.Type == rows.Decimal:
		return fmt.Sprintf("decimal(%d,%d)", t.digits, t.scale)
	case t.Variable():
		return fmt.Sprintf("%s(%d)", t.name, t.size)
	default:
		return t.name
	}
}
