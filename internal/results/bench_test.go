package results_test

import (
	"slices"
	"strconv"
	"testing"

	"github.com/terapush/terapush/internal/results"
)

// large is a sweep of 500 cells with 5 pushes each.
func large() results.Record {
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
	of := []results.Record{large()}
	for b.Loop() {
		results.Tables(of)
	}
}

func BenchmarkRedact500Cells(b *testing.B) {
	of := []results.Record{large()}
	for b.Loop() {
		results.Redact(slices.Clone(of))
	}
}

func BenchmarkCompare500Cells(b *testing.B) {
	of := large()
	for b.Loop() {
		results.Compare(of, of)
	}
}
