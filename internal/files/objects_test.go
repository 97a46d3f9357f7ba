package files

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is sent of a line is what another author reads in it, but that numbers for a quoted column are texts; what is
// bad has names of no column or one twice, or is not JSON.
func FuzzObjects(f *testing.F) {
	for _, line := range []string{
		`{"id":1,"total":-8.29,"note":"x"}`, `{ "total" : 1e3 , "id":[1,{"total":2},"]}\"\\"] }` + "\r", `{}`, ` {"t\u006ftal":12}`,
		`{"id":1,"id":2}`, `{"ID":1,"id":2}`, `{"other":1}`, `{"":1}`, `{"id":1}{"id":2}`, `{"id":1`, `{"id"`, `{"id:1}`, `{"id":}`, `[1]`, `5`, ``,
		`{"id":"\`, `{"id":1 "note":2}`, `{"id":1,}`, `{,"id":1}`,
	} {
		f.Add(line)
	}
	columns := []Field{{Column: "id"}, {Column: "total", Quoted: true}, {Column: "note"}}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.ReplaceAll(line, "\n", "")
		w := rewriter{how: NewSpec(NDJSON).dialect(), columns: columns, from: []byte(line + "\n{\"note\":1}\n"), line: 1}
		sent := string(w.objects(nil, false))
		sent, last := strings.CutSuffix(sent, "{\"note\":1}\n")
		require.True(t, last)

		var is, want map[string]json.RawMessage
		valid := json.Unmarshal([]byte(line), &want) == nil && want != nil
		if len(w.bad) > 0 {
			require.Empty(t, sent)
			require.EqualValues(t, 1, w.bad[0].Line)
			names := slices.Sorted(maps.Keys(want))
			known := !slices.ContainsFunc(names, func(name string) bool { return w.column([]byte(name), 0) < 0 })
			require.False(t, valid && known && !strings.Contains(w.bad[0].Why, "twice"), "%s: %s", line, w.bad[0].Why)
			return
		}
		if !valid { // the server says so
			return
		}
		require.NoError(t, json.Unmarshal([]byte(sent), &is))
		for name, value := range want {
			if strings.EqualFold(name, "total") && strings.ContainsAny(string(value[:1]), "-0123456789") {
				want[name] = []byte(`"` + string(value) + `"`)
			}
		}
		require.Equal(t, want, is)
	})
}

// Each line that is refused is named, and the others go on.
func TestObjects(t *testing.T) {
	text := `{"id":1,"total":8.290}` + "\n" + `{"id":1,"x":2}` + "\n\n" + `{"total":"1","ID":2}` + "\r\n" + `{"id":3,"Id":3}` + "\n" + `{"id":4` + "\n" +
		`{"id":"0000-00-00"}` + "\n"
	for _, some := range []bool{false, true} {
		w := rewriter{
			how: NewSpec(NDJSON).dialect(), from: []byte(text), line: 7,
			columns: []Field{{Column: "id", NoZeroDay: true}, {Column: "total", Quoted: true}},
		}
		sent := string(w.objects(nil, some))
		var lines []int64
		for _, bad := range w.bad {
			lines = append(lines, bad.Line)
		}
		want, rest := []int64{8, 9, 11, 12, 13}, `{"total":"1","ID":2}`+"\r\n"
		if some {
			want, rest = want[1:], `{"id":1,"x":2}`+"\n"+rest
		}
		require.Equal(t, want, lines)
		require.Equal(t, `{"id":1,"total":"8.290"}`+"\n"+rest, sent)
	}
}
