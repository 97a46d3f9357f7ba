package sink

import (
	"encoding/csv"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// count counts data in pieces of n bytes.
func count(c RowCounter, data string, n int) (int64, error) {
	for p := range slices.Chunk([]byte(data), n) {
		c.Write(p)
	}
	return c.Rows()
}

func tally(t Text, data string, n int) (int64, error) { return count(NewDelimited(t), data, n) }

func TestDelimited(t *testing.T) {
	csv := Text{Quote: '"', Separator: ","}
	copyText := Text{Escape: '\\', Bare: true, Marker: `\.`}
	copyCSV := Text{Quote: '"', Anywhere: true, Marker: `\.`}
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
		{Text{End: "aab"}, "xaaab" + "yaab" + "aa", 3},
		{Text{End: "abab"}, "abaabab" + "ab", 2},
		{Text{Skip: 1}, "head\na\n", 1},
		{Text{Skip: 5}, "head\n", 0},
		{Text{Filled: true}, "\n\n\na\n\n\n\nb", 2},
		{Text{Filled: true, End: "ab"}, "ababxababab", 1},
		{csv, "1,\"a\nb\"\n2,\"\"\"\n\"\"\"\n", 2},
		{csv, "\"\n\"\n\"\n\",x\n", 2},
		{csv, "1,5\" pipe\n2,x\n", 2},
		{csv, "1,\"a\n", -1},
		{csv, "1,\"a\"", 1},
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
	f.Add("xaaabyaabaa", "aab", 2)
	f.Add("a\n", "\n", 1)
	f.Fuzz(func(t *testing.T, data, end string, n int) {
		if end == "" {
			return
		}
		all := strings.Split(data, end)
		if all[len(all)-1] == "" {
			all = all[:len(all)-1]
		}
		got, err := tally(Text{End: end}, data, max(1, n))
		require.NoError(t, err)
		require.EqualValues(t, len(all), got)
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
		text := Text{Quote: '"', Separator: ",", Escape: '\\', Bare: bare, Marker: `\.`}
		whole, wholeErr := tally(text, data, max(1, len(data)))
		got, err := tally(text, data, max(1, n))
		require.Equal(t, wholeErr, err)
		require.Equal(t, whole, got)
	})
}

func TestConstants(t *testing.T) {
	lookup := func(item string) (string, bool) {
		return "<" + item + ">", item != "@@no" && item != "*"
	}
	for _, c := range []struct {
		sql, unknown string
		row          []string
	}{
		{sql: "SELECT 1", row: []string{"1"}},
		{sql: "/* who */ select VERSION(), 'a,b' , -2 LIMIT 1;", row: []string{"<version()>", "a,b", "-2"}},
		{sql: "SELECT f(a, b) AS x", row: []string{"<f(a, b)>"}},
		{sql: "SELECT 1, @@no", unknown: "@@no"},
		{sql: "SELECT * FROM t", unknown: "FROM"},
		{sql: "SELECT", unknown: "FROM"},
	} {
		_, row, unknown := Constants(c.sql, lookup)
		assert.Equal(t, c.row, row, c.sql)
		assert.Equal(t, c.unknown, unknown, c.sql)
	}
}
