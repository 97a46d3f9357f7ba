package encode

import (
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// ndjson is one JSON object (RFC 8259) a line, {"id":  12,"name":"…"}, each line ended by LF. Names repeat in every row,
// since readers match columns by them. Derived integers are padded with blanks, which RFC 8259 allows in front of any
// value; it forbids leading zeros. A reader that took them for doubles would spoil those above 2^53.
//
// Decimals are strings: Databend (1.2.895) makes a double of a number and cuts off what is behind the scale, so that one
// price in twenty is a cent too low, without a word. It reads a string exactly, as Doris does.
//
// It carries no Bytes: a JSON string is Unicode, and how bytes are written in one differs by database.
func ndjson() layout {
	return layout{
		format:      batch.NDJSON,
		begin:       "{",
		afterColumn: ",",
		end:         "}\n",
		label: func(c rows.Column) string {
			return `"` + string(appendEscaped(nil, []byte(c.Name), newEscapes(jsonEscapes()))) + `":`
		},
		value: func(c rows.Column, digits int) writer {
			switch c.Type {
			case rows.Int64:
				if c.Derived {
					return padded{width: digits, pad: ' '}
				}
				return plainNumber{}
			case rows.Text:
				return text(c, `"`, `"`, jsonEscapes())
			case rows.Date:
				return enclosed{`"`, `"`, dates{}}
			case rows.Timestamp:
				return enclosed{`"`, `"`, times{}}
			case rows.Decimal:
				return enclosed{`"`, `"`, newDecimals(c)}
			default:
				return nil
			}
		},
	}
}

// jsonEscapes returns those that RFC 8259 demands: the quote, the backslash and the control characters.
func jsonEscapes() map[byte]string {
	escapes := map[byte]string{}
	for c := range byte(0x20) {
		escapes[c] = fmt.Sprintf(`\u%04x`, c)
	}
	for c, short := range map[byte]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`} {
		escapes[c] = short
	}
	return escapes
}
