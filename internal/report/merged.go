package report

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/terapush/terapush/internal/units"
)

// Merged is what a report of a whole run has in addition, if several processes sent it.
type Merged struct {
	Shards []ShardResult `json:"shards"`
}

// ShardResult is one shard's part. Start and end are of its last process's rows, Rows of all its processes.
type ShardResult struct {
	Shard
	Outcome        Outcome   `json:"outcome"`
	Start          time.Time `json:"start"`
	End            time.Time `json:"end"`
	RowsPerSecond  float64   `json:"rows_per_second"`
	BytesPerSecond float64   `json:"bytes_per_second"`
	BoundBy        string    `json:"bound_by"`
}

// writeText writes a line a shard. There is at least one.
func (m Merged) writeText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "shard\toutcome\trows\tfrom\tfor\trows/s\tpayload/s\tbound by\t")
	first := slices.MinFunc(m.Shards, func(a, b ShardResult) int { return a.Start.Compare(b.Start) }).Start
	for _, s := range m.Shards {
		from, took := duration(s.Start.Sub(first).Seconds()), duration(s.End.Sub(s.Start).Seconds())
		fmt.Fprintf(out, "%d\t%s\t%s\t%s\t%s\t%s\t%s/s\t%s\t\n", s.Index, s.Outcome, units.Count(s.Rows), from, took,
			units.Count(int64(s.RowsPerSecond)), units.Bytes(int64(s.BytesPerSecond)), s.BoundBy)
	}
	return out.Flush()
}
