package config

import (
	"testing"
	"testing/quick"

	"github.com/stretchr/testify/require"
)

func TestSuggest(t *testing.T) {
	schemes := []string{"postgres", "postgresql", "yugabyte", "mysql", "mariadb", "tidb", "singlestore", "discard"}
	methods := []string{"load-data", "copy", "insert"}
	modes := []string{"none", "ack", "count", "full"}
	for _, c := range []struct {
		word  string
		valid []string
		want  string
	}{
		{"postgre", schemes, "postgres"}, // both begin with it: the first one
		{"postgresq", schemes, "postgresql"},
		{"mysq", schemes, "mysql"},
		{"MySQL", schemes, "mysql"},
		{"maraidb", schemes, "mariadb"}, // two letters swapped
		{"oracle", schemes, ""},
		{"loaddata", methods, "load-data"},
		{"ocpy", methods, "copy"},
		{"stream-load", methods, ""},
		{"doc", []string{"documents"}, "documents"},
		{"cuont", modes, "count"},
		{"all", modes, "full"},
		{"off", modes, ""},
		{"", modes, ""},
		{"x", nil, ""},
	} {
		require.Equal(t, c.want, Suggest(c.word, c.valid), c.word)
	}
}

func TestUnknown(t *testing.T) {
	methods := []string{"copy", "insert"}
	require.EqualError(t, Unknown("method", "cpy", methods),
		`method "cpy" does not exist; did you mean "copy"? There is: copy, insert`)
	require.EqualError(t, Unknown("method", "stage", methods), `method "stage" does not exist; there is: copy, insert`)
}

func TestDistance(t *testing.T) {
	require.Equal(t, 3, distance("kitten", "sitting"))
	require.Equal(t, 4, distance("", "copy"))

	metric := func(a, b, c string) bool {
		return distance(a, a) == 0 && distance(a, b) == distance(b, a) &&
			distance(a, c) <= distance(a, b)+distance(b, c) && (a == b) == (distance(a, b) == 0)
	}
	require.NoError(t, quick.Check(metric, nil))
}
