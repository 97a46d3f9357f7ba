package encode

import (
	"bytes"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// csv is RFC 4180 with LF line ends and no header, which PostgreSQL's COPY … (FORMAT csv), LOAD DATA with matching
// clauses and the warehouses read. It carries no Bytes: a CSV file is text, and every database wants bytes written
// another way in it (PostgreSQL \x and hex, MySQL raw, Databend hex or base64), so one file could not serve them.
//
// Databend's defaults read it as it is (CsvFileFormatParams in its principal/file_format.rs): fields end in a comma,
// records in LF, quotes are doubled, nothing escapes. To it too an empty field is a NULL without quotes and an empty
// string with them, and \N without quotes is a NULL: both are why such values are quoted below. Doris reads neither
// this way; see dorisCSV.
func csv() layout {
	return layout{
		format:      batch.CSV,
		afterColumn: ",",
		end:         "\n",
		value: func(c rows.Column, digits int) writer {
			switch c.Type {
			case rows.Int64:
				return number(c, digits)
			case rows.Text:
				if c.Derived { // plain and never empty
					return raw{c.MaxBytes}
				}
				return csvText{maxBytes: c.MaxBytes, plain: c.Plain}
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

// csvText quotes values only where that changes their meaning.
type csvText struct {
	maxBytes int
	plain    bool
}

func (t csvText) max() int {
	if t.plain {
		return max(t.maxBytes, len(`""`))
	}
	return len(`"`) + 2*t.maxBytes + len(`"`)
}

func (t csvText) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Value(i)
	// An empty field without quotes is a NULL to PostgreSQL. A line of \. alone ends the data for it (before version
	// 18), so a backslash is a reason to quote as well (PostgreSQL manual, "COPY", CSV Format); to Databend \N is a NULL.
	if len(v) > 0 && (t.plain || !bytes.ContainsAny(v, "\",\r\n\\")) {
		return append(dst, v...)
	}
	dst = append(dst, '"')
	for {
		quote := bytes.IndexByte(v, '"')
		if quote < 0 {
			dst = append(dst, v...)
			return append(dst, '"')
		}
		dst = append(dst, v[:quote+1]...)
		dst = append(dst, '"')
		v = v[quote+1:]
	}
}
