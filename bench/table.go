//go:build linux

package main

import (
	"fmt"
	"io"
	"slices"
)

// printTable writes a Markdown table of the medians, with ratios of what of says to the first contender's of the same round.
func printTable(out io.Writer, what string, contenders []contender, costs [][]cost, of func(cost) float64) {
	fmt.Fprintf(out, "\n| | %s | ratio | lowest … highest | server CPU s/GiB | GiB/s | |\n|---|---|---|---|---|---|---|\n", what)
	for i, c := range contenders {
		if c.missing != "" {
			fmt.Fprintf(out, "| %s | | | | | | %s |\n", c.name, c.missing)
			continue
		}
		var ratios, own, server, wall []float64
		for round, spent := range costs[i] {
			ratios = append(ratios, of(spent)/of(costs[0][round]))
			own = append(own, of(spent))
			server = append(server, spent.sink.Seconds())
			wall = append(wall, spent.wall.Seconds())
		}
		fmt.Fprintf(out, "| %s | %.3f | %.2f | %.2f … %.2f | %.3f | %.2f | %s |\n", c.name,
			median(own), median(ratios), slices.Min(ratios), slices.Max(ratios), median(server), 1/median(wall), c.judge(median(ratios)))
		// The first is always the same work.
		if fastest, slowest := slices.Min(own), slices.Max(own); i == 0 && slowest > steady*fastest {
			defer fmt.Fprintf(out, "\nDo not believe these ratios: %s alone took %.3f to %.3f. Stop what else runs on this machine.\n", c.name, fastest, slowest)
		}
	}
}

// steady is by how much the first contender's turns may differ on a machine that does nothing else.
const steady = 1.25

// judge compares a ratio with what it should be.
func (c contender) judge(ratio float64) string {
	switch {
	case c.budget == 0:
		return ""
	case ratio <= c.budget:
		return fmt.Sprintf("within the budget of %.2f", c.budget)
	default:
		return fmt.Sprintf("over the budget of %.2f", c.budget)
	}
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
