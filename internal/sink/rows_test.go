package sink

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// count counts data in pieces of n bytes.
func count(c RowCounter, data string, n int) (int64, error) {
	for p := range slices.Chunk([]byte(data), n) {
		c.Write(p)
	}
	return c.Rows()
}

func tally(t Text, data string, n int) (int64, error) {
	d, err := NewDelimited(t)
	if err != nil {
		return 0, err
	}
	return count(d, data, n)
}

func TestDelimited(t *testing.T) {
	csv := Text{Quote: '"', Separator: ","}
	copyText := Text{Escape: '\\', Bare: true, Marker: true}
	copyCSV := Text{Quote: '"', Anywhere: true, Marker: true}
	loadData := Text{Quote: '"', Separator: ",", Escape: '\\', Bare: true}
	for _, c := range []struct {
		text Text
		data string
		want int64 // −1: an error
	}{
		{Text{}, "", 0},
		{Text{}, "a", 1},
		{Text{}, "a\nb\n", 2},
		{Text{}, "\n\n", 2},
		{Text{End: "\x02"}, "a\n\x02b", 2},
		{Text{End: "\r\n"}, "a\r\nb\nc\r\r\n\r\nd\r", 4},
		{Text{End: "\r\n"}, "\r\n\n\r", 2},
		{Text{End: "\r\n", Quote: '"', Separator: ","}, "\"a\r\n\",b\r\n\"c\"\r\n", 2},
		{Text{End: "ab"}, "", -1},
		{Text{End: "\r\n", Filled: true}, "", -1},
		{Text{Skip: 1}, "head\na\n", 1},
		{Text{Skip: 5}, "head\n", 0},
		{Text{Filled: true}, "\n\n\na\n\n\n\nb", 2},
		{Text{Filled: true, End: "|"}, "||x|||", 1},
		{csv, "1,\"a\nb\"\n2,\"\"\"\n\"\"\"\n", 2},
		{csv, "\"\n\"\n\"\n\",x\n", 2},
		{csv, "1,5\" pipe\n2,x\n", 2},
		{csv, "1,\"a\n", -1},
		{csv, "1,\"a\"", 1},
		{Text{Quote: '"'}, "x\"a\n\"\"b\"\n\"c\n\"\n", 3},
		{Text{Quote: '"', Separator: ",", Filled: true}, "\"\"\n\n\"\n\n\"\n", 2},
		{Text{Quote: '"', Separator: ",", Escape: '\\'}, "\"a\\\"\nb\"\n\\\nc\n", 3},
		{copyText, "1\ta\\\nb\n2\tc\n", 2},
		{copyText, "\\\\\n\\\\.\n\\N\n", 3},
		{copyText, "a\n\\.\n", 1},
		{copyText, "a\r\n\\.\r\nb\r\n", 1},
		{copyText, "a\n\\.", 1},
		{copyText, "a\\.\nb\n\\.c\n", 3},
		{copyCSV, "1,\"a\n\\.\nb\"\n\\.\n", 1},
		{copyCSV, "1,x\"a\nb\"\n2,\\\n", 2},
		{copyCSV, "\\\n\\..\n", 2},
		{Text{Quote: '\'', Anywhere: true, Escape: '\\'}, "'a\\'\n'\nb\n", 2},
		{loadData, "\"a\\\"\nb\",c\\\nd\n\"e\"\"\n\"\n", 2},
		{loadData, "\\\"\n\\\\\n", 2},
	} {
		for n := 1; n <= 5; n++ {
			got, err := tally(c.text, c.data, n)
			if c.want < 0 {
				require.Error(t, err)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got, "%q by %d", c.data, n)
		}
	}
}

// In however many pieces, rows are those that splitting the whole gives.
func FuzzDelimited(f *testing.F) {
	f.Add("a\r\r\nb\n\r\n", true, 2)
	f.Add("a\n", false, 1)
	f.Fuzz(func(t *testing.T, data string, crlf bool, n int) {
		end := "\n"
		if crlf {
			end = "\r\n"
		}
		all := strings.Split(data, end)
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		got, err := tally(Text{End: end}, data, max(1, n))
		require.NoError(t, err)
		require.EqualValues(t, len(all), got)
		if crlf {
			return
		}
		filled, err := tally(Text{End: end, Filled: true}, data, max(1, n))
		require.NoError(t, err)
		require.EqualValues(t, len(slices.DeleteFunc(all, func(row string) bool { return row == "" })), filled)
	})
}

// What another reader of CSV finds is what is counted, and in pieces as in one.
func FuzzQuoted(f *testing.F) {
	f.Add("1,\"a\nb\"\n\n\"\"\"\n\"\n", 2)
	f.Fuzz(func(t *testing.T, data string, n int) {
		all, err := csv.NewReader(strings.NewReader(data)).ReadAll()
		if err != nil || strings.Contains(data, "\r") {
			return // it reads carriage returns otherwise
		}
		for _, anywhere := range []bool{false, true} {
			got, err := tally(Text{Quote: '"', Separator: ",", Filled: true, Anywhere: anywhere}, data, max(1, n))
			require.NoError(t, err)
			require.EqualValues(t, len(all), got)
		}
	})
}

// Whatever it reads, a counter of all features counts the same in pieces.
func FuzzPieces(f *testing.F) {
	f.Add("\\.\n\"\\\"\n\"a\n\\.\n", 2, true)
	f.Fuzz(func(t *testing.T, data string, n int, bare bool) {
		text := Text{Quote: '"', Separator: ",", Escape: '\\', Bare: bare, Marker: true}
		whole, wholeErr := tally(text, data, max(1, len(data)))
		got, err := tally(text, data, max(1, n))
		require.Equal(t, wholeErr, err)
		require.Equal(t, whole, got)
	})
}
