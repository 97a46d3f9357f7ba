package encode

import (
	"bytes"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// numeric returns the text writer of a column that is not variable, with quotes around dates and times; nil for others.
func numeric(c rows.Column, digits int, quote string) writer {
	switch c.Type {
	case rows.Int64:
		if c.Derived {
			return padded{width: digits, pad: '0'}
		}
		return &plainNumber{}
	case rows.Date:
		return enclosed{quote, quote, newDates()}
	case rows.Timestamp:
		return enclosed{quote, quote, &times{}}
	case rows.Decimal:
		return newDecimals(c)
	default:
		return nil
	}
}

// tsv is what LOAD DATA reads without FIELDS and LINES clauses (MySQL manual, "LOAD DATA Statement", Field and
// Line Handling): fields end in TAB, lines in LF, the backslash escapes. Bytes go raw, so the statement has to say
// CHARACTER SET binary or one in which no trail byte looks like a backslash; gbk, big5 and sjis break it.
func tsv() layout {
	return layout{
		format:      batch.TSV,
		afterColumn: "\t",
		end:         "\n",
		value: func(c rows.Column, digits int) writer {
			if c.Type.Variable() {
				return text(c, "", "", map[byte]string{'\\': `\\`, '\t': `\t`, '\n': `\n`, 0: `\0`})
			}
			return numeric(c, digits, "")
		},
	}
}

// pgText is PostgreSQL's COPY … (FORMAT text), manual page "COPY", Text Format: fields end in TAB, rows in LF, the
// backslash escapes itself, TAB, LF and CR. Bytes are written as bytea's hex format, whose own backslash COPY wants
// escaped: \\x and twice the size. The end marker \. is not written; the protocol's CopyDone ends the data.
//
// The server refuses a NUL in Text, which PostgreSQL cannot store in any notation.
func pgText() layout {
	return layout{
		format:      batch.PGText,
		afterColumn: "\t",
		end:         "\n",
		value: func(c rows.Column, digits int) writer {
			switch c.Type {
			case rows.Bytes:
				return enclosed{`\\x`, "", &hexed{c.MaxBytes}}
			case rows.Text:
				return text(c, "", "", map[byte]string{'\\': `\\`, '\t': `\t`, '\n': `\n`, '\r': `\r`})
			}
			return numeric(c, digits, "")
		},
	}
}

// csv is RFC 4180 with LF line ends and no header, which PostgreSQL's COPY … (FORMAT csv), LOAD DATA with matching
// clauses and the warehouses read. It carries no Bytes: every database reads bytes in another notation (PostgreSQL \x and
// hex, MySQL raw, Databend hex or base64), so one file could not serve them.
//
// Databend reads it with its defaults (CsvFileFormatParams in its principal/file_format.rs): fields end in a comma,
// records in LF, quotes are doubled, nothing escapes. An unquoted empty field and an unquoted \N are NULL to it, so such
// values are quoted below. Doris differs in both; see dorisCSV.
func csv() layout {
	return layout{
		format:      batch.CSV,
		afterColumn: ",",
		end:         "\n",
		value: func(c rows.Column, digits int) writer {
			switch {
			case c.Type == rows.Text && c.Derived: // plain and never empty
				return &raw{c.MaxBytes}
			case c.Type == rows.Text:
				return &csvText{maxBytes: c.MaxBytes, plain: c.Plain}
			}
			return numeric(c, digits, "")
		},
	}
}

// csvText quotes values only if that changes their meaning.
type csvText struct {
	maxBytes int
	plain    bool
}

func (t *csvText) max() int {
	if t.plain {
		return max(t.maxBytes, len(`""`))
	}
	return len(`"`) + 2*t.maxBytes + len(`"`)
}

func (t *csvText) append(dst []byte, column *rows.Vector, i int) []byte {
	v := column.Value(i)
	// An unquoted empty field is NULL to PostgreSQL, and before version 18 a line of only \. ends the data, so a backslash
	// is quoted as well (PostgreSQL manual, "COPY", CSV Format).
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

// dorisCSV is what a Doris stream load reads with column_separator \x01 and line_delimiter \x02 and neither enclose nor
// escape set (Doris manual, "Loading CSV", and be/src/vec/exec/format/csv): nothing is quoted, an empty field is an empty
// string, \N is NULL. A reader that looks for quotes would cost the server CPU, and plain text needs none.
//
// It carries only Plain columns: others may contain a separator, a quote (which trim_double_quotes would remove) or \N.
func dorisCSV() layout {
	return layout{
		format:      batch.DorisCSV,
		afterColumn: "\x01",
		end:         "\x02",
		refusal:     "it quotes and escapes nothing, and a value may hold 0x01, 0x02 or a backslash; use format ndjson",
		value: func(c rows.Column, digits int) writer {
			if c.Type == rows.Text && c.Plain {
				return text(c, "", "", nil)
			}
			return numeric(c, digits, "")
		},
	}
}
