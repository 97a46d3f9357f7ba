package encode

import (
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// values is the part of a multi-row INSERT after VALUES, in MySQL's literals (MySQL manual, "String Literals" and
// "Character Set Introducers"): (12,_binary'…'),(13,'…'). The escapes are those of mysql_real_escape_string. It needs
// an sql_mode without NO_BACKSLASH_ESCAPES, and a character_set_client in which no trail byte looks like a quote or a
// backslash: utf8mb4 and latin1 are fine, gbk, big5 and sjis are not.
func values() layout {
	quoted := notation{quote: "'", list: "'", no: "0", yes: "1"} // no zone, as in tsv
	return layout{
		format:      batch.Values,
		between:     ",",
		begin:       "(",
		afterColumn: ",",
		end:         ")",
		null:        "NULL",
		value: func(c rows.Column, digits int) writer {
			switch {
			case c.Type == rows.Bytes:
				return text(c, "_binary'", "'", mysqlEscapes())
			case c.Type.IsText():
				return text(c, "'", "'", mysqlEscapes())
			case c.Type == rows.Arrays:
				return newJSONArrays(c, "'", mysqlEscapes())
			}
			return quoted.numeric(c, digits)
		},
	}
}

func mysqlEscapes() map[byte]string {
	return map[byte]string{0: `\0`, '\n': `\n`, '\r': `\r`, 0x1A: `\Z`, '\'': `\'`, '"': `\"`, '\\': `\\`}
}

// pgValues is the same in PostgreSQL's literals (PostgreSQL manual, "String Constants" and "bytea Hex Format"):
// (12,'\x…'),(13,'…'). Bytes take twice their size. It needs standard_conforming_strings, on since PostgreSQL 9.1,
// under which the quote is the only special character. As with pgText, the server refuses a NUL in Text.
func pgValues() layout {
	l := values()
	l.format = batch.PGValues
	quoted := notation{quote: "'", list: "'", zone: utc, no: "FALSE", yes: "TRUE", arrays: &arrays{
		around: "'", quote: `"`, hex: `\\x`, escapes: map[byte]string{'\'': `''`, '"': `\"`, '\\': `\\`},
	}}
	l.value = func(c rows.Column, digits int) writer {
		switch {
		case c.Type == rows.Bytes:
			return enclosed{`'\x`, `'`, &hexed{c.MaxBytes}}
		case c.Type.IsText():
			return text(c, "'", "'", map[byte]string{'\'': `''`})
		}
		return quoted.numeric(c, digits)
	}
	return l
}
