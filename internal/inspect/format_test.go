package inspect

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A unique column whose CHECK has a pattern counts in the pattern's digits.
func TestFormatOf(t *testing.T) {
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
		want := ""
		if c.want != "" {
			want = `sequence: {format: "` + c.want + `"}`
			require.Regexp(t, c.pattern, fmt.Sprintf(strings.NewReplacer("{:", "%", "}", "d").Replace(c.want), 7))
		}
		require.Equal(t, want, formatOf(pattern, c.longest), c.pattern)
	}
	require.Equal(t, `sequence: {format: "CUST-{:06}"}`, formatOf(likePattern(`CUST-%`), 11))
}
