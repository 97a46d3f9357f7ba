package sweep

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/results"
	"github.com/terapush/terapush/internal/units"
)

// Schema names the form of Found as JSON. Fields may be added under the same name.
const Schema = "terapush.tune/v1"

// Found is what a search has found.
type Found struct {
	Schema   string  `json:"schema"`
	Target   string  `json:"target"` // without secrets
	Table    string  `json:"table"`
	Method   string  `json:"method"`
	Near     float64 `json:"near"` // share of the best rate that was given away
	Seconds  float64 `json:"seconds"`
	Complete bool    `json:"complete"` // else there may be better settings
	Why      string  `json:"why"`      // the search is not complete
	// Trials are the settings that were tried, in the order in which they were first; those that could not be have an error.
	Trials   []Tried  `json:"trials"`
	Best     Tried    `json:"best"`
	Smallest Tried    `json:"smallest"` // within Near of the best
	Warnings []string `json:"warnings"` // what speaks against believing it, in sentences
	// Command is the push that takes what was found. Who made the search's flags fills it in.
	Command string `json:"use"`

	// Use are the flags of the smallest setting, and those that a push needs behind the last trial.
	Use     map[string][]string `json:"-"`
	Entries []results.Entry     `json:"-"` // every push of the search

	search *Search
}

// Tried is a setting that was tried.
type Tried struct {
	Workers    int       `json:"workers"`
	BatchBytes int64     `json:"batch_bytes"` // encoded
	BatchRows  int64     `json:"batch_rows"`  // 0 when nothing was pushed
	Measured   []float64 `json:"measured_rows_per_second"`
	Rate       float64   `json:"rows_per_second"`  // the median
	Bytes      float64   `json:"bytes_per_second"` // of column data
	Share      float64   `json:"share"`            // of the best rate
	Error      string    `json:"error"`            // of the last push that failed
}

func (s *Search) found(r searchResult, cause error) Found {
	f := Found{
		Schema: Schema, Table: s.Table(), Method: s.base.Plan.Method, Near: s.Near, Seconds: time.Since(s.started).Seconds(),
		Complete: r.Complete, Entries: s.entries, search: s, Use: map[string][]string{},
	}
	if shown, err := ShownTarget(s.base.Config.Target); err == nil {
		f.Target = shown
	}
	if !r.Complete && cause != nil {
		f.Why = cause.Error()
	}
	made := func(t measured) Tried {
		one := Tried{
			Workers: t.Workers, BatchBytes: t.BatchBytes, BatchRows: s.rows[t.Setting], Measured: append([]float64{}, t.Rates...),
			Rate: t.Rate(), Bytes: t.Rate() * float64(s.base.Plan.RowBytes), Share: t.Rate() / r.Best.Rate(),
		}
		if t.Err != nil && len(t.Rates) == 0 {
			one.Error = t.Err.Error()
			if inner := errors.Unwrap(t.Err); inner != nil {
				one.Error = inner.Error() // the setting stands beside it
			}
		}
		return one
	}
	for _, t := range r.Trials {
		f.Trials = append(f.Trials, made(t))
	}
	f.Best, f.Smallest = made(r.Best), made(r.Smallest)
	f.Warnings = f.warnings()
	for _, one := range s.settings(r.Smallest.Setting) {
		f.Use[one.Axis] = []string{one.Value}
	}
	// Batches and workers that were given stand in the command that they were given in. create does as well, since the
	// rows of the last trial are in the table.
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

// warnings returns a sentence about every setting whose measurements lie further apart than what they decide.
func (f Found) warnings() []string {
	all := []string{}
	for i, t := range []Tried{f.Best, f.Smallest} {
		what := []string{"the best", "what is enough"}[i]
		if same := t.Workers == f.Best.Workers && t.BatchBytes == f.Best.BatchBytes; i == 1 && same {
			break
		}
		low, high := t.spread()
		if apart := (high - low) / t.Rate; apart > f.Near {
			all = append(all, fmt.Sprintf("measurements of %s lie %.1f %% apart, more than the %.4g %% that are given away: longer trials say more",
				what, 100*apart, 100*f.Near))
		}
	}
	return all
}

// spread is the smallest and the largest rate that was measured.
func (t Tried) spread() (low, high float64) { return slices.Min(t.Measured), slices.Max(t.Measured) }

// WriteJSON prints one JSON object.
func (f Found) WriteJSON(w io.Writer) error { return report.WriteJSON(w, f) }

// WriteText prints a table, what was found, and the command to use.
func (f Found) WriteText(w io.Writer) error {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "WORKERS\tBATCH\tROWS\tROWS/S\tBYTES/S\tOF THE BEST\tMEASURED")
	for _, t := range f.Trials {
		mark := ""
		switch {
		case t.Workers == f.Smallest.Workers && t.BatchBytes == f.Smallest.BatchBytes:
			mark = "\t← enough"
		case t.Workers == f.Best.Workers && t.BatchBytes == f.Best.BatchBytes:
			mark = "\t← best"
		}
		if len(t.Measured) == 0 {
			fmt.Fprintf(table, "%d\t%s\t%s\t-\t-\t-\t-\t%s\n", t.Workers, batch(t.BatchBytes), rows(t.BatchRows), short(t.Error))
			continue
		}
		fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%.1f %%\t%s%s\n", t.Workers, batch(t.BatchBytes), rows(t.BatchRows), count(t.Rate),
			size(t.Bytes), 100*t.Share, english.Plural(len(t.Measured), "time", ""), mark)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	tell := func(what string, t Tried, more string) {
		if low, high := t.spread(); len(t.Measured) > 1 {
			more = fmt.Sprintf(" (%s..%s)", count(low), count(high)) + more
		}
		fmt.Fprintf(w, "%-9s %s, batches of %s: %s rows/s, %s/s%s\n", what, workers(t.Workers), batch(t.BatchBytes), count(t.Rate), size(t.Bytes), more)
	}
	fmt.Fprintln(w)
	tell("best", f.Best, "")
	tell("enough", f.Smallest, fmt.Sprintf(", %.1f %% of the best", 100*f.Smallest.Share))
	if !f.Complete {
		fmt.Fprintf(w, "%-9s %s: the search has not come to its end, and there may be better settings\n", "note", f.Why)
	}
	for _, text := range f.Warnings {
		fmt.Fprintf(w, "%-9s %s\n", "note", text)
	}
	_, err := fmt.Fprintf(w, "use: %s\n", f.Command)
	return err
}

// Explain prints what a search would do, and connects to nothing.
func (s *Search) Explain(w io.Writer) error {
	p := s.base.Plan
	each := fmt.Sprintf("%s rows", humanize.Comma(p.Rows))
	if p.ByDuration {
		each = s.base.Config.Duration.String()
	}
	line := func(what, format string, args ...any) {
		fmt.Fprintf(w, "%-9s "+format+"\n", append([]any{what}, args...)...)
	}
	shown, err := ShownTarget(s.base.Config.Target)
	if err != nil {
		return err
	}
	fmt.Fprintln(w, "dry run: nothing was connected to, so limits of the server are not in these numbers")
	line("target", "%s, table %s", shown, s.Table())
	line("method", "%s, verify %s", p.Method, s.base.Config.Verify)
	line("trials", "of %s, what decides %d times, for at most %s", each, repeats, s.Budget)
	line("start", "%s, batches of %s", workers(s.start.Workers), batch(s.start.BatchBytes))
	line("workers", "%d to %d", s.least.Workers, s.most.Workers)
	_, err = fmt.Fprintf(w, "%-9s %s to %s\n", "batches", batch(s.least.BatchBytes), batch(s.most.BatchBytes))
	return err
}

// Record returns the search as the record of a sweep, without the version and the machine. Its cases are all combinations
// of the values that were tried.
func (f Found) Record() (results.Head, []results.Entry) {
	part := results.Part{Cells: 1, Sparse: true}
	for _, name := range f.search.sought {
		values := f.values(name)
		part.Axes = append(part.Axes, results.Axis{Name: name, Values: values})
		part.Cells *= len(values)
	}
	part.Push = recorded(f.search.base.Given, part.Axes)
	part.Push[targetName] = []string{f.Target}
	entries := slices.Clone(f.Entries)
	most := 1
	for i := range entries {
		entries[i].Cell = 0
		for j, a := range part.Axes {
			entries[i].Cell = entries[i].Cell*len(a.Values) + slices.Index(a.Values, entries[i].Settings[j].Value)
		}
		most = max(most, entries[i].Repeat+1)
	}
	parts := []results.Part{part}
	return results.Head{
		Schema: results.Schema, Name: "tune", Title: "Workers and batch size of " + f.Method, Digest: results.Digest(parts, 0),
		Started: entries[0].Started, Repeats: most, Parts: parts,
	}, entries
}

// values returns those of an axis that were pushed, by size.
func (f Found) values(axis string) []string {
	var all []string
	for _, e := range f.Entries {
		for _, s := range e.Settings {
			if s.Axis == axis && !slices.Contains(all, s.Value) {
				all = append(all, s.Value)
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int {
		x, _, _ := units.Parse(a)
		y, _, _ := units.Parse(b)
		return cmp.Compare(x, y)
	})
	return all
}

func workers(n int) string { return english.Plural(n, "worker", "") }

// batch is the size of a batch as --batch-bytes takes it: what is shown can be given.
func batch(n int64) string {
	size := config.Bytes(n)
	return size.String()
}

// size is a number of bytes for people.
func size[N int64 | float64](n N) string { return humanize.IBytesN(uint64(max(n, 0)), 4) }

// count is a number of things for people.
func count(n float64) string { return humanize.Comma(int64(math.Round(n))) }

func rows(n int64) string {
	if n == 0 {
		return "-"
	}
	return humanize.Comma(n)
}

// short is an error in a table.
func short(text string) string {
	const most = 100
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most]) + " …"
	}
	return text
}
