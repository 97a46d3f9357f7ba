package analysis_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/terapush/terapush/internal/analysis"
	"github.com/terapush/terapush/internal/record"
)

// large is a sweep of 500 cells with 5 pushes each.
func large() record.Record {
	values := make([]string, 500)
	rates := make([][]float64, len(values))
	for i := range values {
		values[i] = strconv.Itoa(i + 1)
		for n := range 5 {
			rates[i] = append(rates[i], float64(1000*(i+1)+n))
		}
	}
	r := sweep("workers", values, rates...)
	for i := range r.Entries {
		r.Entries[i].Report.Plan.Workers, r.Entries[i].Report.Plan.BatchRows = i/5, int64(i)
	}
	return r
}

func BenchmarkTables500Cells(b *testing.B) {
	of := []record.Record{large()}
	for b.Loop() {
		analysis.Tables(of)
	}
}

func BenchmarkRedact500Cells(b *testing.B) {
	of := []record.Record{large()}
	for b.Loop() {
		analysis.Redact(slices.Clone(of))
	}
}

func BenchmarkCompare500Cells(b *testing.B) {
	of := large()
	for b.Loop() {
		analysis.Compare(of, of)
	}
}
