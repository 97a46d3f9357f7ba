package dataset_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/rows"
)

// BenchmarkDraw measures what a generator takes for a row, beside uniform and words. None allocates.
func BenchmarkDraw(b *testing.B) {
	people := filepath.Join(b.TempDir(), "people.csv")
	require.NoError(b, os.WriteFile(people, []byte("name,n\n"+strings.Repeat("Ada Lovelace,1815\nGrace,1906\n,\n", 3000)), 0o600))
	for _, one := range []struct{ name, column string }{
		{"uniform", "{type: bigint, uniform: {min: 0, max: 999999}}"},
		{"uniform/nulls", "{type: bigint, uniform: {min: 0, max: 999999}, nulls: 10%}"},
		{"exponential", "{type: bigint, exponential: {mean: 500}}"},
		{"histogram", "{type: bigint, histogram: [0, 10, 25, 100, 1000, 5000]}"},
		{"ref", "{type: bigint, ref: {table: t, column: id, rows: 100000}}"},
		{"ref/own", "{type: bigint, ref: {column: id, rows: 500}}"},
		{"sample/number", "{type: bigint, sample: {file: " + people + ", column: n}}"},
		{"sample/text", "{type: text, sample: {file: " + people + ", column: name}}"},
		{"words/30", "{type: text, words: {length: 30}}"},
		{"text/30", "{type: text, text: {length: 30}}"},
		{"histogram/text", "{type: text, histogram: [5, 10, 30]}"},
		{"pattern/30", `{type: text, pattern: "[A-Z]{2}-[0-9]{4,8}(-(red|green|blue))?[a-z]{16}"}`},
		{"words/common", "{type: text, words: {length: 30}, common: {v1: 20%, v2: 5%}}"},
		{"array/int", "{type: 'int[]', array: {length: 0..8, of: {uniform: {min: 0, max: 99}}}}"},
		{"vector/128", "{type: vector(128), vector: {}}"},
		{"vector/128/normalised", "{type: vector(128), vector: {normalised: true}}"},
		{"bytes/512", "{type: bytes, bytes: {length: 512}}"},
		{"json", "{type: json, json: {rssi: {uniform: {min: -95, max: -40}}, note: {words: {length: 9}, absent: 60%}}}"},
	} {
		b.Run(one.name, func(b *testing.B) {
			spec, err := dataset.ParseSpec("t.yaml", []byte("version: 1\ncolumns:\n  id: {type: bigint, sequence: {}}\n  c: "+one.column+"\n"), nil)
			require.NoError(b, err)
			d, err := spec.Compile(1)
			require.NoError(b, err)
			const rowsOnce = 1000
			block := rows.NewBlock(d.Schema())
			for first := range int64(20) { // its buffers are as long as they get
				d.Fill(block, first*rowsOnce, rowsOnce)
			}

			b.ReportAllocs()
			first := int64(0)
			for b.Loop() {
				d.Fill(block, first, rowsOnce)
				first += rowsOnce
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(first), "ns/row")
		})
	}
}
