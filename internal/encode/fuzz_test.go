package encode_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/encode"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/rows"
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
	f.Add(int64(99_999_999), "", all)
	f.Add(int64(100_000_000), "", all) // more digits than are written at once
	f.Add(int64(-1<<63), "", all)
	f.Add(int64(1<<63-1), "", bytes.Repeat([]byte{0}, 3))
}

// fuzzed makes two rows of a fuzzer's input, so that one row could spoil the next. Dates and times are in the range of
// both MySQL and PostgreSQL, which begins in the year 1000.
func fuzzed(n int64, words string, raw []byte) []record {
	const firstDay, days = -354_285, 354_285 + 2_932_896
	make := func(id, n int64, words string, raw []byte) record {
		day := firstDay + int64(uint64(n)%days)
		return record{id, n, words, raw, day, day*86_400_000_000 + int64(uint64(n)%86_400_000_000), n % 1e18}
	}
	return []record{make(1, n, words, raw), make(2, ^n, strings.ToValidUTF8(string(raw), "?"), []byte(words))}
}

// dayText and timeText are the values as package time writes them.
func dayText(r record) string { return time.Unix(r.day*86_400, 0).UTC().Format(time.DateOnly) }
func timeText(r record) string {
	return time.UnixMicro(r.at).UTC().Format("2006-01-02 15:04:05.000000")
}

// sumText returns the decimal as exact arithmetic writes it.
func sumText(r record) string { return big.NewRat(r.sum, 100_000).FloatString(5) }

// sumOf reads a decimal back, whatever zeros it was written with.
func sumOf(t testing.TB, text string) int64 {
	number, ok := new(big.Rat).SetString(text)
	require.True(t, ok, text)
	number.Mul(number, big.NewRat(100_000, 1))
	require.True(t, number.IsInt(), text)
	return number.Num().Int64()
}

// encoded encodes one row after the other.
func encoded(t testing.TB, f batch.Format, records []record) []byte {
	longest := 0
	for _, r := range records {
		longest = max(longest, len(r.words), len(r.raw))
	}
	s := recordsSchema(f, longest+1<<14) // values are shorter than there is room for
	var blocks []*rows.Block
	for _, r := range records {
		blocks = append(blocks, blockOf(s, r))
	}
	buf, _ := whole(newEncoder(t, f, s), blocks...)
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
			require.Equal(t, []string{padded(r.id), strconv.FormatInt(r.n, 10), asRead(r.words), dayText(r), timeText(r), sumText(r)}, got[i])
		}
	})
}

// FuzzDorisCSV has no library to read it; what a reader does that knows of nothing but the two separators is all there
// is to the format.
func FuzzDorisCSV(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		records := fuzzed(n, words, raw)
		for i := range records {
			records[i].words = strings.Map(func(r rune) rune {
				if strings.ContainsRune("\x00\x01\x02\t\n\r\x1A\"',\\", r) {
					return -1
				}
				return r
			}, records[i].words)
		}
		lines := strings.SplitAfter(string(encoded(t, batch.DorisCSV, records)), "\x02")
		require.Len(t, lines, len(records)+1)
		for i, r := range records {
			require.Equal(t, []string{padded(r.id), strconv.FormatInt(r.n, 10), r.words, dayText(r), timeText(r), sumText(r)},
				strings.Split(strings.TrimSuffix(lines[i], "\x02"), "\x01"))
		}
	})
}

func FuzzNDJSON(f *testing.F) {
	seed(f)
	f.Fuzz(func(t *testing.T, n int64, words string, raw []byte) {
		if !utf8.ValidString(words) {
			t.Skip("not text")
		}
		records := fuzzed(n, words, raw)
		lines := strings.SplitAfter(string(encoded(t, batch.NDJSON, records)), "\n")
		require.Len(t, lines, len(records)+1)
		for i, r := range records {
			require.Contains(t, lines[i], fmt.Sprintf(`{"id":%*d,`, encode.MaxDigits, r.id))
			var got struct {
				ID, N          int64
				Words, Day, At string
				Sum            string
			}
			decoder := json.NewDecoder(strings.NewReader(lines[i]))
			decoder.DisallowUnknownFields()
			require.NoError(t, decoder.Decode(&got))
			require.Equal(t, []any{r.id, r.n, r.words, dayText(r), timeText(r), sumText(r)},
				[]any{got.ID, got.N, got.Words, got.Day, got.At, got.Sum})
		}
	})
}

var pgTypes = pgtype.NewMap()

func numericOf(t testing.TB, n pgtype.Numeric) int64 {
	text, err := n.Value()
	require.NoError(t, err)
	return sumOf(t, text.(string))
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
