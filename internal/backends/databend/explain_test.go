package databend

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/golden"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/rows"
)

// go test ./internal/backends/databend -run Explain -update

// everyType has a column of each type.
func everyType() rows.Schema {
	return rows.Schema{
		Dataset: "test",
		Columns: []rows.Column{
			{Name: "id", Type: rows.Int64, Derived: true}, {Name: "name", Type: rows.Text, MaxBytes: 10},
			{Name: "raw", Type: rows.Bytes, MaxBytes: 10}, {Name: "day", Type: rows.Date}, {Name: "t", Type: rows.Timestamp},
			{Name: "price", Type: rows.Decimal, Digits: 15, Scale: 2},
		},
		Number: []rows.Term{{Column: 0, Minus: 100, Times: 1}},
	}
}

// textKey, timeKey and twoTerms change how a row's number is read from everyType.
func textKey(s *rows.Schema) {
	s.Columns[0] = rows.Column{Name: "id", Type: rows.Text, MaxBytes: 20, Derived: true, Plain: true}
	s.Number[0].Minus = 0
}

func timeKey(s *rows.Schema) {
	s.Columns[4].Derived = true
	s.Number = []rows.Term{{Column: 4, Minus: 1_767_225_600_000_000, Times: 1}}
}

func twoTerms(s *rows.Schema) {
	s.Columns = append(s.Columns, rows.Column{Name: "line", Type: rows.Int64, Derived: true})
	s.Number = []rows.Term{{Column: 0, Minus: 1, Times: 4}, {Column: 6, Minus: 1, Times: 1}}
}

func TestExplain(t *testing.T) {
	via, err := loader.ParseTarget("s3://bucket/prefix?endpoint=http://store:9000&path_style=true&region=eu-1")
	require.NoError(t, err)
	const csv, labelled = batch.CSV, loader.DedupKey
	for name, c := range map[string]struct {
		method string
		format batch.Format
		dedup  loader.Dedup
		schema func(*rows.Schema)
		create loader.CreateMode
		stage  map[string]string
		via    *loader.Target
	}{
		"streaming-load":               {method: methodStreamingLoad, format: csv, dedup: labelled},
		"streaming-load-ndjson":        {method: methodStreamingLoad, format: batch.NDJSON, dedup: labelled, create: loader.CreateRecreate},
		"streaming-load-at-least-once": {method: methodStreamingLoad, format: batch.Parquet, create: loader.CreateNever},
		"streaming-load-text-key":      {method: methodStreamingLoad, format: csv, dedup: labelled, schema: textKey},
		"streaming-load-time-key":      {method: methodStreamingLoad, format: csv, dedup: labelled, schema: timeKey, create: loader.CreateTruncate},
		"streaming-load-two-terms":     {method: methodStreamingLoad, format: csv, dedup: labelled, schema: twoTerms},
		"insert":                       {method: methodInsert, format: csv, dedup: labelled, stage: map[string]string{"stage": "loads"}},
		"insert-no-presign":            {method: methodInsertNoPresign, format: csv, dedup: labelled},
		"stage-load":                   {method: methodStageLoad, format: csv, dedup: labelled},
		"stage-load-via":               {method: methodStageLoad, format: csv, dedup: labelled, via: &via},
	} {
		t.Run(name, func(t *testing.T) {
			target := loader.Target{
				Scheme: "databend", Hosts: []string{"h"}, User: "u", Password: "hidden-password", Database: "shop", Table: "people",
				Method: c.method, Options: c.stage, Via: c.via,
			}
			contract := contractOf(c.method)
			contract.Format, contract.Dedup, contract.BatchRows = c.format, c.dedup, 50000
			schema := everyType()
			if c.schema != nil {
				c.schema(&schema)
			}
			var b strings.Builder
			for _, s := range New().Explain(target, loader.Preparation{Schema: schema, Contract: contract, Create: c.create}) {
				_, _ = fmt.Fprintf(&b, "-- %s\n%s;\n", s.When, s.Text)
			}
			require.NotContains(t, b.String(), "hidden")
			golden.Equal(t, filepath.Join("explain", name+".sql"), b.String())
		})
	}
}
