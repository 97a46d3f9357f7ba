package spelling_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/spelling"
)

func TestNearest(t *testing.T) {
	schemes := []string{"postgres", "postgresql", "yugabyte", "mysql", "mariadb", "tidb", "singlestore", "discard"}
	methods := []string{"load-data", "copy", "insert"}
	modes := []string{"none", "ack", "count", "full"}
	for _, c := range []struct {
		word  string
		valid []string
		want  string
	}{
		{"postgre", schemes, "postgres"}, // both begin with it: the first one
		{"MySQL", schemes, "mysql"},
		{"maraidb", schemes, "mariadb"}, // two letters swapped
		{"oracle", schemes, ""},
		{"loaddata", methods, "load-data"},
		{"stream-load", methods, ""},
		{"doc", []string{"documents"}, "documents"},
		{"all", modes, "full"},
		{"off", modes, ""},
		{"", modes, ""},
		{"x", nil, ""},
		{strings.Repeat("x", 65), []string{strings.Repeat("x", 65) + "y"}, ""}, // a stranger's, and long
		{"abcdefgh", []string{strings.Repeat("abcdefgh", 20)}, strings.Repeat("abcdefgh", 20)},
	} {
		require.Equal(t, c.want, spelling.Nearest(c.word, c.valid), c.word)
	}
}
