package encode

import (
	"fmt"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// ndjson is one JSON object (RFC 8259) a line, {"id":  12,"name":"…"}, each line ended by LF. Names repeat in every row,
// since readers match columns by them. Derived integers are padded with blanks, which RFC 8259 allows before any value,
// unlike leading zeros. A reader that parses them as doubles would change those above 2^53.
//
// Decimals are strings: Databend (1.2.895) silently parses a number as a double and truncates it to the scale, so one
// price in twenty is a cent too low. It reads a string exactly, and so does Doris.
//
// A JSON document is a value as it is, not a string. It carries no Bytes: a JSON string is Unicode, and every database has another notation for bytes.
func ndjson() layout {
	escapes := jsonEscapes()
	return layout{
		format:      batch.NDJSON,
		begin:       "{",
		afterColumn: ",",
		end:         "}\n",
		null:        "null",
		label: func(c rows.Column) string {
			return `"` + string(appendEscaped(nil, []byte(c.Name), newEscapes(escapes))) + `":`
		},
		value: func(c rows.Column, digits int) writer {
			if c.Type == rows.Arrays {
				return newJSONArrays(c, "", nil)
			}
			return jsonValue(c, digits, escapes)
		},
	}
}

// jsonValue returns the writer of a column that is no array; nil if JSON has no notation for it. escapes are those of texts.
func jsonValue(c rows.Column, digits int, escapes map[byte]string) writer {
	quoted := notation{quote: `"`, zone: utc, no: "false", yes: "true"}
	switch {
	case c.Type.IsInteger() && c.Derived:
		return padded{width: digits, pad: ' '}
	case c.Type == rows.JSON:
		return &raw{c.MaxBytes}
	case c.Type.IsText():
		return text(c, `"`, `"`, escapes)
	case c.Type.IsDecimal():
		return enclosed{`"`, `"`, quoted.numeric(c, digits)}
	}
	return quoted.numeric(c, digits)
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
