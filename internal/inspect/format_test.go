package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// A unique column whose CHECK has a pattern counts in the pattern's digits.
func TestFormatsOf(t *testing.T) {
	for _, c := range []struct {
		pattern string
		longest int
		want    string
	}{
		{`^W[0-9]{3}$`, 4, "W{:03}"},
		{`^\d{3}-\d{2}-\d{4}$`, 11, "000-00-{:04}"},
		{`^[A-Z]{2}[0-9][0-9]+$`, 9, "AA{:07}"},
		{`^(X|Y)-[a-z0-9]{2,30}!$`, 0, "X-{:018}!"},
		{`^[1-9]\d{0,5}(\.\d)?$`, 0, "1{:05}"},
		{`^[a-z]{2}$`, 2, ""},
		{`^[0-9]{8}$`, 4, ""},
	} {
		pattern, ok := patternOf(c.pattern)
		require.True(t, ok)
		var want []string
		if c.want != "" {
			want = []string{`sequence: {format: "` + c.want + `"}`}
			require.Regexp(t, c.pattern, fmt.Sprintf(strings.NewReplacer("{:", "%", "}", "d").Replace(c.want), 7))
		}
		require.Equal(t, want, formatsOf(pattern, c.longest), c.pattern)
	}
	short := bigint("u")
	short.Values = &rows.Column{Type: rows.Text, MaxBytes: 9}
	file, err := Write(&loader.Description{Table: "t",
		Columns: []loader.Column{bigint("id"), short}, Keys: []loader.Key{primary("id")}, Checks: []string{"u LIKE 'CUST-%'"},
	}, "Server 1", false)
	require.NoError(t, err)
	require.Contains(t, string(file), `u: {type: text(9), pattern: "CUST-[0-9a-z]{0,4}"}`)
	require.Equal(t, []string{`sequence: {format: "CUST-{:06}"}`}, formatsOf(likePattern(`CUST-%`), 11))
}
