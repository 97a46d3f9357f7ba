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
// It carries no Bytes: a JSON string is Unicode, and how bytes are written in one differs by database.
func ndjson() layout {
	return layout{
		format:      batch.NDJSON,
		begin:       "{",
		afterColumn: ",",
		end:         "}\n",
		label: func(c rows.Column) string {
			name := text(rows.Column{}, `"`, `":`, jsonEscapes()).(quoted)
			v := rows.Vector{Data: []byte(c.Name), Ends: []uint32{uint32(len(c.Name))}}
			return string(name.append(nil, &v, 0))
		},
		value: func(c rows.Column, digits int) value {
			switch c.Type {
			case rows.Int64:
				if c.Derived {
					return padded{width: digits, pad: ' '}
				}
				return decimal{}
			case rows.Text:
				return text(c, `"`, `"`, jsonEscapes())
			case rows.Date:
				return dates{`"`, `"`}
			case rows.Timestamp:
				return times{`"`, `"`}
			default:
				return nil
			}
		},
	}
}

// jsonEscapes are those that RFC 8259 demands: the quote, the backslash and the control characters.
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
