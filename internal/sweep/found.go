package sweep

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/loader"
)

// Schema names the form of Found as JSON. Fields may be added under the same name.
const Schema = "terapush.tune/v1"

// Found is the result of a search.
type Found struct {
	Schema   string  `json:"schema"`
	Target   string  `json:"target"` // without secrets
	Table    string  `json:"table"`
	Method   string  `json:"method"`
	Near     float64 `json:"near"` // share of the best rate that was given away
	Seconds  float64 `json:"seconds"`
	Complete bool    `json:"complete"` // else there may be better settings
	Why      string  `json:"why"`      // the search is incomplete
	Trials   []Tried `json:"trials"`   // in the order of the first trial of each setting
	Best     Tried   `json:"best"`
	Smallest Tried   `json:"smallest"` // within Near of the best
	Command  string  `json:"use"`      // the push to make, which the caller fills in if the choice is decided

	// Decided reports whether the noise allows to say that Smallest is enough, by Turns or since nothing else is
	// possible.
	Decided bool  `json:"decided"`
	Turns   Turns `json:"turns"`

	// Use are the flags of the smallest setting, and those that a push needs after the last trial.
	Use     map[string][]string `json:"-"`
	Entries []results.Entry     `json:"-"` // every trial
}

func (s *Search) found(t *tune, best, smallest *Tried, cause error) Found {
	f := Found{
		Schema: Schema, Target: s.target, Table: s.Table(), Method: s.base.Plan.Method,
		Near: s.Near, Seconds: time.Since(s.started).Seconds(),
		Complete: !t.cut, Entries: s.entries, Use: map[string][]string{},
	}
	if t.cut {
		f.Why = loader.Explain(cmp.Or(cause, errBudget)) // which it was but for the turns
	}
	for _, one := range t.tried {
		one.BatchRows, one.Bytes, one.Share = s.rows[one.Setting], one.Rate*float64(s.base.Plan.RowBytes), one.Rate/best.Rate
		if one.err != nil && !one.usable() {
			one.Error = loader.Explain(one.err)
		}
		f.Trials = append(f.Trials, *one)
	}
	f.Best, f.Smallest = *best, *smallest
	for _, one := range results.Combination(s.part.Axes, s.number(smallest.Setting)) {
		f.Use[one.Axis] = []string{one.Value}
	}
	// What was given is passed on. So is create, since the rows of the last trial are in the table.
	for _, name := range []string{"workers", "batch-bytes", "batch-rows", "create"} {
		if given := s.base.Given[name]; given != nil && f.Use[name] == nil {
			f.Use[name] = given
		}
	}
	if s.base.Given[methodFlag] == nil {
		f.Use[methodFlag] = []string{f.Method}
	}
	return f
}

// WriteJSON prints one JSON object.
func (f Found) WriteJSON(w io.Writer) error { return report.WriteJSON(w, f) }

// WriteText prints a table, what was found, and the command to use.
func (f Found) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "WORKERS\tBATCH\tROWS\tROWS/S\tBYTES/S\tOF THE BEST\tMEASURED")
	for _, t := range f.Trials {
		mark, batchRows := "", "-"
		switch t.Setting {
		case f.Smallest.Setting:
			mark = "\t← enough"
		case f.Best.Setting:
			mark = "\t← best"
		}
		if t.BatchRows > 0 {
			batchRows = units.Count(t.BatchRows)
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t", t.Workers, batch(t.BatchBytes), batchRows)
		if t.usable() {
			fmt.Fprintf(table, "%s\t%s\t%.1f %%\t%s%s\n", rate(t.Rate), units.Bytes(int64(t.Bytes)), 100*t.Share,
				english.Plural(len(t.Measured), "time", ""), mark)
		} else {
			fmt.Fprintf(table, "-\t-\t-\t-\t%.100s\n", t.Error)
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	line := func(what string, t Tried, more string) {
		if len(t.Measured) > 1 {
			more = fmt.Sprintf(" (%s..%s)", rate(slices.Min(t.Measured)), rate(slices.Max(t.Measured))) + more
		}
		fmt.Fprintf(w, "%-9s %s: %s%s\n", what, t.Setting, rates(t.Rate, t.Bytes), more)
	}
	fmt.Fprintln(w)
	line("best", f.Best, "")
	line("enough", f.Smallest, fmt.Sprintf(", %.1f %% of the best", 100*f.Smallest.Share))
	if !f.Complete {
		fmt.Fprintf(w, "note      %s: the search is incomplete, and there may be better settings\n", f.Why)
	}
	if n := f.alike(); n > 1 && f.Decided {
		fmt.Fprintf(w, "note      no setting is better than another here: all %d are within %.4g %% of the best\n", n, 100*f.Near)
	}
	if low, high, known := f.Turns.within(); known {
		fmt.Fprintf(w, "in turns  %s reached %.1f to %.1f %% of %s\n", f.Turns.Setting, 100*low, 100*high, f.Turns.Rival)
	}
	if f.Decided {
		_, err := fmt.Fprintf(w, "use: %s\n", f.Command)
		return err
	}
	_, err := fmt.Fprintf(w, "undecided %s\n", f.doubt())
	return err
}

// alike returns how many settings were measured if the rates of all are near the best, else 0.
func (f Found) alike() (n int) {
	for _, t := range f.Trials {
		if !t.usable() {
			continue
		}
		if t.Share < 1-f.Near {
			return 0
		}
		n++
	}
	return n
}

// doubt says why no command is printed, and what would decide.
func (f Found) doubt() string {
	if _, _, known := f.Turns.within(); !known {
		return "the search ended before its choice was measured again, in turns with its rival: give a larger --budget"
	}
	return fmt.Sprintf("with --tolerance %.4g %% the noise is too large to choose between the two: give a longer --trial, "+
		"a larger --tolerance, or the server less to do beside this", 100*f.Near)
}

// Explain prints what a search would do, and connects to nothing.
func (s *Search) Explain(w io.Writer) error {
	p, workers, batches := s.base.Plan, s.values[byWorkers], s.values[byBatch]
	each := fmt.Sprintf("%s rows", units.Count(p.Rows))
	if p.ByDuration() {
		each = s.base.Config.Duration.String()
	}
	_, err := fmt.Fprintf(w, `dry run: nothing was connected to, so limits of the server are not in these numbers
target    %s, table %s
method    %s, verify %s
trials    of %s, what decides %d times and then %d times in turns, for at most %s
start     %s
workers   %d to %d
batches   %s to %s
`, s.target, s.Table(), p.Method, s.base.Config.Verify, each, repeats, rounds, s.Budget, s.start,
		workers[0], workers[len(workers)-1], batch(batches[0]), batch(batches[len(batches)-1]))
	return err
}

// Head returns the head of the search's record, without version and machine: that of a sweep which makes few of its
// cases.
func (s *Search) Head() results.Head {
	part := results.Part{Sparse: true, Axes: s.part.Axes, Cells: results.Combinations(s.part.Axes)}
	part.Push = byFlag(recorded(s.base.Given, part.Axes))
	part.Push[targetName] = []string{s.target}
	parts := []results.Part{part}
	return results.Head{
		Schema: results.Schema, Name: "tune", Title: "Workers and batch size of " + s.base.Plan.Method,
		Digest: results.Digest(parts, 0), Started: s.started, Repeats: repeats + rounds, Parts: parts,
	}
}

// String returns the setting for people.
func (s Setting) String() string {
	return english.Plural(s.Workers, "worker", "") + ", batches of " + batch(s.BatchBytes)
}

// batch returns the size of a batch as --batch-bytes takes it.
func batch(n int64) string {
	size := config.Bytes(n)
	return size.String()
}

func rate(n float64) string { return units.Count(int64(math.Round(n))) }

func rates(rows, bytes float64) string {
	return fmt.Sprintf("%s rows/s, %s/s", rate(rows), units.Bytes(int64(bytes)))
}
