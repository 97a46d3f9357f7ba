package encode

import (
	"bytes"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// utc follows a moment in text: ISO 8601's offset, as PostgreSQL and Databend read it.
const utc = "+00:00"

// tsv is what LOAD DATA reads without FIELDS and LINES clauses (MySQL manual, "LOAD DATA Statement", Field and
// Line Handling): fields end in TAB, lines in LF, the backslash escapes. Bytes go raw, so the statement has to say
// CHARACTER SET binary or one in which no trail byte looks like a backslash; gbk, big5 and sjis break it.
func tsv() layout {
	// No zone: MySQL's TIMESTAMP is read in the session's, which has to be UTC. MariaDB knows no other way.
	plain := notation{no: "0", yes: "1"}
	escapes := map[byte]string{'\\': `\\`, '\t': `\t`, '\n': `\n`, 0: `\0`}
	return layout{
		format:      batch.TSV,
		afterColumn: "\t",
		end:         "\n",
		null:        `\N`,
		value: func(c rows.Column, digits int) writer {
			switch {
			case c.Type.IsText() || c.Type == rows.Bytes:
				return text(c, "", "", escapes)
			case c.Type == rows.Arrays: // which are JSON to MySQL
				return newJSONArrays(c, "", escapes)
			}
			return plain.numeric(c, digits)
		},
	}
}

// pgText is PostgreSQL's COPY … (FORMAT text), manual page "COPY", Text Format: fields end in TAB, rows in LF, the
// backslash escapes itself, TAB, LF and CR. Bytes are written as bytea's hex format, whose own backslash COPY wants
// escaped: \\x and twice the size. The end marker \. is not written; the protocol's CopyDone ends the data.
//
// The server refuses a NUL in Text, which PostgreSQL cannot store in any notation.
func pgText() layout {
	// COPY reads an escape before the array does.
	plain := notation{zone: utc, no: "f", yes: "t", arrays: &arrays{
		quote: `"`, hex: `\\\\x`, escapes: map[byte]string{'"': `\\"`, '\\': `\\\\`, '\t': `\t`, '\n': `\n`, '\r': `\r`},
	}}
	return layout{
		format:      batch.PGText,
		afterColumn: "\t",
		end:         "\n",
		null:        `\N`,
		value: func(c rows.Column, digits int) writer {
			switch {
			case c.Type == rows.Bytes:
				return enclosed{`\\x`, "", &hexed{c.MaxBytes}}
			case c.Type.IsText():
				return text(c, "", "", map[byte]string{'\\': `\\`, '\t': `\t`, '\n': `\n`, '\r': `\r`})
			}
			return plain.numeric(c, digits)
		},
	}
}

// csv is RFC 4180 with LF line ends and no header, which PostgreSQL's COPY … (FORMAT csv), LOAD DATA with matching
// clauses and the warehouses read. It carries no Bytes: every database reads bytes in another notation (PostgreSQL \x and
// hex, MySQL raw, Databend hex or base64), so one file could not serve them.
//
// Databend reads it with its defaults (CsvFileFormatParams in its principal/file_format.rs): fields end in a comma,
// records in LF, quotes are doubled, nothing escapes. An unquoted empty field and an unquoted \N are NULL to it, so such
// values are quoted below. A NULL is \N: PostgreSQL and Redshift have to be told, by NULL '\N', for an unquoted empty field
// is one to them. Doris differs in both; see dorisCSV.
func csv() layout {
	plain := notation{list: `"`, zone: utc, no: "false", yes: "true", arrays: &arrays{
		around: `"`, quote: `""`, escapes: map[byte]string{'"': `\""`, '\\': `\\`},
	}}
	return layout{
		format:      batch.CSV,
		afterColumn: ",",
		end:         "\n",
		null:        `\N`,
		value: func(c rows.Column, digits int) writer {
			switch {
			case c.Type.IsText() && c.Derived: // plain and never empty
				return &raw{c.MaxBytes}
			case c.Type.IsText():
				return &csvText{maxBytes: c.MaxBytes, plain: c.Plain}
			}
			return plain.numeric(c, digits)
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
	plain := notation{zone: utc, no: "false", yes: "true"}
	return layout{
		format:      batch.DorisCSV,
		afterColumn: "\x01",
		end:         "\x02",
		null:        `\N`,
		refusal:     "it quotes and escapes nothing, and a value may hold 0x01, 0x02 or a backslash; use format ndjson",
		value: func(c rows.Column, digits int) writer {
			if c.Type.IsText() && c.Plain {
				return text(c, "", "", nil)
			}
			return plain.numeric(c, digits)
		},
	}
}
