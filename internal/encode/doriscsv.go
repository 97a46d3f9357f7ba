package encode

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// dorisCSV is what a Doris stream load reads with column_separator \x01 and line_delimiter \x02 and neither
// enclose nor escape set (Doris manual, "Loading CSV", and be/src/vec/exec/format/csv): nothing is quoted, an empty
// field is an empty string, \N is a NULL. The readers that look for quotes cost the server CPU, and what a plain text
// holds needs none.
//
// A text that may hold a separator, a quote (which trim_double_quotes would take off) or \N cannot be told from one
// that does not without looking at every byte, so only Plain columns are carried.
func dorisCSV() layout {
	return layout{
		format:      batch.DorisCSV,
		afterColumn: "\x01",
		end:         "\x02",
		refusal:     "it quotes and escapes nothing, and a value may hold 0x01, 0x02 or a backslash; use format ndjson",
		value: func(c rows.Column, digits int) writer {
			switch {
			case c.Type == rows.Int64:
				return number(c, digits)
			case c.Type == rows.Text && c.Plain:
				return text(c, "", "", nil)
			case c.Type == rows.Date:
				return dates{}
			case c.Type == rows.Timestamp:
				return times{}
			case c.Type == rows.Decimal:
				return newDecimals(c)
			default:
				return nil
			}
		},
	}
}
