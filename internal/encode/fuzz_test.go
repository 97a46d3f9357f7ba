package encode_test

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
)

// What the encoders write is read by decoders of other authors: here by libraries, in server_test.go by the servers
// that the formats are for.

// seed adds the nasty values; `go test` runs them without fuzzing.
func seed(f *testing.F) {
	for i, v := range nasty() {
		f.Add(int64(i)-20, v, []byte(v))
	}
	var all []byte
	for b := range 256 {
		all = append(all, byte(b))
	}
	f.Add(int64(-1<<63), "", all)
	f.Add(int64(1<<63-1), "", bytes.Repeat([]byte{0}, 3))
}

// fuzzed makes two rows of a fuzzer's input, so that one row could spoil the next.
func fuzzed(n int64, words string, raw []byte) []record {
	return []record{{1, n, words, raw}, {2, ^n, strings.ToValidUTF8(string(raw), "?"), []byte(words)}}
}

func encoded(t testing.TB, f batch.Format, records []record) []byte {
	s := recordsSchema(f, 1<<20)
	e := newEncoder(t, f, s)
	buf, _ := whole(e, blockOf(s, records...))
	require.LessOrEqual(t, len(buf), len(e.AppendHead(nil))+len(records)*e.MaxRow()+len(e.AppendTail(nil)))
	return buf
}

func FuzzCSV(f *testing.F) {
	seed(f)
	// encoding/csv drops a CR in front of an LF even between quotes, and says so.
	asRead := func(v string) string { return strings.ReplaceAll(v, "\r\n", "\n") }
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		got, err := csv.NewReader(bytes.NewReader(encoded(t, batch.CSV, records))).ReadAll()
		require.NoError(t, err)
		require.Len(t, got, len(records))
		for i, r := range records {
			require.Equal(t, []string{padded(r.id), strconv.FormatInt(r.n, 10), asRead(r.words)}, got[i])
		}
	})
}

func FuzzPGBinary(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		rest := encoded(t, batch.PGBinary, records)
		require.Equal(t, "PGCOPY\n\xFF\r\n\x00\x00\x00\x00\x00\x00\x00\x00\x00", string(rest[:19]))
		rest = rest[19:]
		types := pgtype.NewMap()
		for _, r := range records {
			require.Equal(t, uint16(4), binary.BigEndian.Uint16(rest))
			rest = rest[2:]
			var got record
			for _, field := range []struct {
				oid uint32
				to  any
			}{{pgtype.Int8OID, &got.id}, {pgtype.Int8OID, &got.n}, {pgtype.TextOID, &got.words}, {pgtype.ByteaOID, &got.raw}} {
				size := binary.BigEndian.Uint32(rest)
				require.NoError(t, types.Scan(field.oid, pgtype.BinaryFormatCode, rest[4:4+size], field.to))
				rest = rest[4+size:]
			}
			require.Equal(t, normal(r), normal(got))
		}
		require.Equal(t, "\xFF\xFF", string(rest))
	})
}

func FuzzPGText(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		lines := strings.SplitAfter(string(encoded(t, batch.PGText, records)), "\n")
		require.Len(t, lines, len(records)+1)
		types := pgtype.NewMap()
		for i, r := range records {
			require.NotContains(t, lines[i], "\r")
			fields := strings.Split(strings.TrimSuffix(lines[i], "\n"), "\t")
			require.Len(t, fields, 4)
			var got record
			for c, field := range []struct {
				oid uint32
				to  any
			}{{pgtype.Int8OID, &got.id}, {pgtype.Int8OID, &got.n}, {pgtype.TextOID, &got.words}, {pgtype.ByteaOID, &got.raw}} {
				require.NoError(t, types.Scan(field.oid, pgtype.TextFormatCode, []byte(unescapeCopy(fields[c])), field.to))
			}
			require.Equal(t, normal(r), normal(got))
		}
	})
}

// unescapeCopy undoes the escapes of COPY's text format, all of those that the manual lists for letters.
func unescapeCopy(field string) string {
	return strings.NewReplacer(
		`\\`, `\`, `\b`, "\b", `\f`, "\f", `\n`, "\n", `\r`, "\r", `\t`, "\t", `\v`, "\v",
	).Replace(field)
}

func padded(id int64) string {
	digits := strconv.FormatInt(id, 10)
	return strings.Repeat("0", encode.MaxDigits-len(digits)) + digits
}

// normal makes no difference between nil and no bytes.
func normal(r record) record {
	if r.raw == nil {
		r.raw = []byte{}
	}
	return r
}
