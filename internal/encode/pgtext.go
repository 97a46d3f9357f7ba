package encode

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// pgText is PostgreSQL's COPY … (FORMAT text), manual page "COPY", Text Format: fields end in TAB, rows in LF, the
// backslash escapes itself, TAB, LF and CR. Bytes are written as bytea's hex format, whose own backslash COPY wants
// escaped: \\x and twice the size. The end marker \. is not written; the protocol's CopyDone ends the data.
//
// A NUL in Text goes as it is and the server refuses it: PostgreSQL's text cannot hold one, however it is written.
func pgText() layout {
	return layout{
		format:      batch.PGText,
		afterColumn: "\t",
		end:         "\n",
		value: func(c rows.Column, digits int) writer {
			switch c.Type {
			case rows.Int64:
				return number(c, digits)
			case rows.Bytes:
				return enclosed{`\\x`, "", hexed{c.MaxBytes}}
			case rows.Text:
				return text(c, "", "", map[byte]string{'\\': `\\`, '\t': `\t`, '\n': `\n`, '\r': `\r`})
			case rows.Date:
				return dates{}
			case rows.Timestamp:
				return times{}
			case rows.Decimal:
				return newDecimals(c)
			default:
				return nil
			}
		},
	}
}
