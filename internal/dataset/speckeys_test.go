package dataset

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// keyed is a file with some keys.
func keyed(keys string) string {
	return "version: 1\nname: t\n" + keys + `
columns:
  a: {type: bigint, sequence: {start: 1, every: 60}}
  b: {type: smallint, sequence: {start: 10, every: 5, cycle: 12}}
  c: {type: text(2), sequence: {format: "{:02}", cycle: 5}}
  id: {type: bigint, sequence: {}}
  maybe: {type: bigint, sequence: {}, nulls: 0%}
  v: {type: bigint, uniform: {min: 1, max: 9}, nulls: 0 %}
`
}

// A table that is made has the key of the file as its primary one, unless the file says another one, or none.
func TestKeysOfTable(t *testing.T) {
	for keys, want := range map[string][]string{
		"key: [id]":                        {"id"},
		"key: [id]\nprimary: [id]":         {"id"},
		"key: [id]\nprimary: [c, id]":      {"c", "id"},
		"key: [maybe]\nprimary: []":        {},
		"key: [maybe]\nprimary: [c, b, a]": {"c", "b", "a"},
		"key: [a, b, c]":                   {"a", "b", "c"},
	} {
		s, err := ParseSpec("t.yaml", []byte(keyed(keys)), nil)
		require.NoError(t, err, keys)
		d, err := s.Compile(1)
		require.NoError(t, err, keys)
		assert.Equal(t, want, d.Schema().Primary, keys)
		assert.Equal(t, slices.Equal(want, s.Key), s.Primary == nil, keys)

		takes := map[string]bool{}
		for _, c := range d.Schema().Columns {
			takes[c.Name] = c.TakesNull && !c.Nullable
		}
		assert.Equal(t, map[string]bool{"a": false, "b": false, "c": false, "id": false, "maybe": true, "v": true}, takes)
	}

	for keys, want := range map[string]string{
		"key: [maybe]":                    "t.yaml:3: key: column maybe may be NULL, and a primary key has no NULL: leave nulls out, or write primary: []",
		"key: [id]\nprimary: [id, v]":     "t.yaml:4: primary: column v may be NULL, and a primary key has no NULL: leave nulls out, or write primary: []",
		"key: [id]\nprimary: [a, b]":      "t.yaml:4: primary [a, b]: these columns do not decide the row: one of them must be",
		"key: [id]\nprimary: [idd]":       "t.yaml:4: primary [idd]: column idd: did you mean id?",
		"key: [a, c, b]":                  "t.yaml:3: key [a, c, b]: the first needs no cycle, the last no every, and every of each is every × cycle of the next",
		"key: [a, b, c, id, maybe]":       "t.yaml:3: key: 5 columns are not there yet: one to 4",
		"key: [a, b, a]":                  "t.yaml:3: key: column a is here twice",
		"key: [id]\nunique: [[id, id]]":   "t.yaml:4: unique [id, id]: column id is here twice",
		"key: [id]\nprimary: [id, id, a]": "t.yaml:4: primary [id, id, a]: column id is here twice",
	} {
		_, err := ParseSpec("t.yaml", []byte(keyed(keys)), nil)
		assert.ErrorContains(t, err, want, keys)
	}
}
