package dataset

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKeyOf(t *testing.T) {
	for _, c := range []struct{ key, columns, row, rows string }{
		{"id", "id: {type: bigint, sequence: {start: 1}}", "id = 8", "id 8 to 9"},
		{"code", `code: {type: text(9), sequence: {start: 10, format: "{:05}"}}`, "code = '00017'", "code '00017' to '00018'"},
		{"at", "at: {type: timestamp, sequence: {start: 2026-01-01, step: 1us}}",
			"at = '2026-01-01 00:00:00.000007'", "at '2026-01-01 00:00:00.000007' to '2026-01-01 00:00:00.000008'"},
		{"u", "u: {type: uuid, uuid: v4}", "u = '2b766a19-d441-4c55-9000-000000000007'",
			"rows 7 to 8, from u = '2b766a19-d441-4c55-9000-000000000007'"},
		{"a, b", "a: {type: bigint, sequence: {start: 1, every: 5}}\n  b: {type: int, sequence: {start: 1, cycle: 5}}",
			"a = 2 AND b = 3", "rows 7 to 8, from a = 2 AND b = 3"},
	} {
		s, err := ParseSpec("t.yaml", []byte("version: 1\nkey: ["+c.key+"]\ncolumns:\n  "+c.columns), nil)
		require.NoError(t, err)
		d, err := s.Compile(1)
		require.NoError(t, err)
		require.Equal(t, c.row, KeyOf(d, 7))
		require.Equal(t, c.rows, KeysOf(d, 7, 8))
	}
}
