//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// printTable shows the medians, with ratios of what of says to the first contender's of the same round.
func printTable(out io.Writer, what string, contenders []contender, costs [][]cost, of func(cost) float64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\tratio\tlowest … highest\tserver CPU s/GiB\tGiB/s\t\n", what)
	for i, c := range contenders {
		if c.missing != "" {
			fmt.Fprintf(w, "%s\t\t\t\t\t\t%s\n", c.name, c.missing)
			continue
		}
		var ratios, own, server, wall []float64
		for round, spent := range costs[i] {
			ratios = append(ratios, of(spent)/of(costs[0][round]))
			own = append(own, of(spent))
			server = append(server, spent.sink.Seconds())
			wall = append(wall, spent.wall.Seconds())
		}
		fmt.Fprintf(w, "%s\t%.3f\t%.2f\t%.2f … %.2f\t%.3f\t%.2f\t%s\n", c.name,
			median(own), median(ratios), slices.Min(ratios), slices.Max(ratios), median(server), 1/median(wall), c.judge(median(ratios)))
	}
	_ = w.Flush() // the terminal's business
}

// judge compares a ratio with what it may be and what it should be.
func (c contender) judge(ratio float64) string {
	switch {
	case c.budget == 0:
		return ""
	case ratio <= goal:
		return "  goal met"
	case ratio <= c.budget:
		return "  within the budget"
	default:
		return "  over the budget"
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
