package results_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/results"
)

func TestDifference(t *testing.T) {
	head := func(change func(*results.Head)) results.Head {
		h := results.Head{Name: "p", Scale: "ci", Limit: 600, Parts: []results.Part{{
			Name: "a", Title: "A", Push: map[string][]string{"rows": {"10"}, "set": {"a=b", "c=d"}},
			Methods: map[string]map[string][]string{"copy": {"unlogged": {"true"}}},
			Axes:    []results.Axis{{Name: "workers", Values: []string{"1", "2"}}, {Name: "method", Values: []string{"copy"}}},
		}}}
		change(&h)
		h.Digest = results.Digest(h.Parts, time.Duration(h.Limit*float64(time.Second)))
		return h
	}
	was := head(func(*results.Head) {})
	for want, change := range map[string]func(*results.Head){
		"": func(h *results.Head) {
			h.Parts[0].Title, h.Parts[0].Facts, h.Parts[0].Knee, h.Repeats = "B", &results.Facts{}, "workers", 7
		},
		`part a: --rows was 10, now it is 11`:                                      func(h *results.Head) { h.Parts[0].Push["rows"] = []string{"11"} },
		`part a: --rows was 10, now it is not given`:                               func(h *results.Head) { delete(h.Parts[0].Push, "rows") },
		`part a: --target was not given, now it is discard:///`:                    func(h *results.Head) { h.Parts[0].Push["target"] = []string{"discard:///"} },
		`part a: --unlogged of copy was true, now it is not given`:                 func(h *results.Head) { h.Parts[0].Methods = nil },
		`part a: --set was a=b, c=d, now it is a=b`:                                func(h *results.Head) { h.Parts[0].Push["set"] = []string{"a=b"} },
		`part a: axis workers was [1, 2], now it is [1, 4]`:                        func(h *results.Head) { h.Parts[0].Axes[0].Values = []string{"1", "4"} },
		`part a: axis method was [copy], now it is not given`:                      func(h *results.Head) { h.Parts[0].Axes = h.Parts[0].Axes[:1] },
		`part a: the order of axes was workers, method, now it is method, workers`: func(h *results.Head) { a := h.Parts[0].Axes; a[0], a[1] = a[1], a[0] },
		`the list of parts was a, now it is b`:                                     func(h *results.Head) { h.Parts[0].Name = "b" },
		`the list of parts was a, now it is a, z`:                                  func(h *results.Head) { h.Parts = append(h.Parts, results.Part{Name: "z"}) },
		`limit was 10m0s, now it is 11m0s`:                                         func(h *results.Head) { h.Limit = 660 },
		`the plan was p, now it is q`:                                              func(h *results.Head) { h.Name = "q"; h.Parts[0].Name = "x" },
		`the scale was ci, now it is cloud`:                                        func(h *results.Head) { h.Scale = "cloud"; h.Parts[0].Name = "x" },
	} {
		require.Equal(t, want, was.Difference(head(change)))
	}
}
