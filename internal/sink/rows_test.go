package sink

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// pieces feeds data in pieces of n bytes.
func pieces(data string, n int, write func([]byte)) {
	for len(data) > 0 {
		n = min(n, len(data))
		write([]byte(data[:n]))
		data = data[n:]
	}
}

func TestLines(t *testing.T) {
	for data, want := range map[string]int64{"": 0, "a": 1, "a\n": 1, "a\nb": 2, "\n\n": 2} {
		for n := 1; n <= 3; n++ {
			var l Lines
			pieces(data, n, l.Write)
			rows, err := l.Rows()
			assert.NoError(t, err)
			assert.Equal(t, want, rows, "%q by %d", data, n)
		}
	}
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
