package encode

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// tsv is what LOAD DATA reads without FIELDS and LINES clauses (MySQL manual, "LOAD DATA Statement", Field and
// Line Handling): fields end in TAB, lines in LF, the backslash escapes. Bytes go raw, so the statement has to say
// CHARACTER SET binary or one in which no trail byte looks like a backslash; gbk, big5 and sjis break it.
func tsv() layout {
	return layout{
		format:      batch.TSV,
		afterColumn: "\t",
		end:         "\n",
		value: func(c rows.Column, digits int) writer {
			switch c.Type {
			case rows.Int64:
				return number(c, digits)
			case rows.Bytes, rows.Text:
				return text(c, "", "", map[byte]string{'\\': `\\`, '\t': `\t`, '\n': `\n`, 0: `\0`})
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
