package encode

import (
	"encoding/binary"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
)

// pgBinary is PostgreSQL's COPY … (FORMAT binary), manual page "COPY", Binary Format: a signature, flags and the length
// of a header extension (both 0), then for every row the number of columns as int16 and for every column its length
// as int32 and its bytes, all big-endian; in the end the int16 −1. Columns must have the exact types int8, bytea,
// text (or varchar), date, timestamp and numeric: the server checks lengths, it does not convert.
func pgBinary(columns int) layout {
	return layout{
		format: batch.PGBinary,
		head:   "PGCOPY\n\xFF\r\n\x00" + "\x00\x00\x00\x00" + "\x00\x00\x00\x00",
		tail:   "\xFF\xFF",
		begin:  string(binary.BigEndian.AppendUint16(nil, uint16(columns))),
		value: func(c rows.Column, _ int) writer {
			switch c.Type {
			case rows.Int64:
				return enclosed{"\x00\x00\x00\x08", "", bigEndian{}}
			case rows.Bytes, rows.Text:
				return counted{maxBytes: c.MaxBytes}
			case rows.Date:
				return enclosed{"\x00\x00\x00\x04", "", pgDates{}}
			case rows.Timestamp:
				return enclosed{"\x00\x00\x00\x08", "", pgTimes{}}
			case rows.Decimal:
				return newPGNumerics(c)
			default:
				return nil
			}
		},
	}
}

// counted writes values as they are, after their length.
type counted struct{ maxBytes int }

func (v counted) max() int { return 4 + v.maxBytes }

func (v counted) append(dst []byte, column *rows.Vector, i int) []byte {
	b := column.Value(i)
	dst = binary.BigEndian.AppendUint32(dst, uint32(len(b)))
	return append(dst, b...)
}
