package results

// quantity is a sample of a point under the name that scripts know it by: it ends with its unit.
type quantity struct {
	name string
	of   func(Point) Sample
}

func quantities() []quantity {
	return []quantity{
		{"rows_per_second", func(p Point) Sample { return p.RowsPerSecond }},
		{"overall_rows_per_second", func(p Point) Sample { return p.OverallRowsPerSecond }},
		{"bytes_per_second", func(p Point) Sample { return p.BytesPerSecond }},
		{"seconds", func(p Point) Sample { return p.Seconds }},
		{"stage_seconds", func(p Point) Sample { return p.StageSeconds }},
		{"commit_seconds", func(p Point) Sample { return p.CommitSeconds }},
		{"visible_seconds", func(p Point) Sample { return p.VisibleSeconds }},
		{"batch_p50_seconds", func(p Point) Sample { return p.P50 }},
		{"batch_p90_seconds", func(p Point) Sample { return p.P90 }},
		{"batch_p99_seconds", func(p Point) Sample { return p.P99 }},
		{"batch_max_seconds", func(p Point) Sample { return p.Max }},
		{"cpu_seconds_per_gib", func(p Point) Sample { return p.CPUPerGiB }},
		{"stored_bytes_per_row", func(p Point) Sample { return p.BytesPerRow }},
	}
}
