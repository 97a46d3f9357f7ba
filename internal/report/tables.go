package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/terapush/terapush/internal/units"
	"github.com/terapush/terapush/pkg/event"
)

// TablesSchema names the JSON's form of Tables.
const TablesSchema = "terapush.schema/v1"

// Tables is a run of several tables: a sequence of runs, each with its own report.
type Tables struct {
	Schema string        `json:"schema"`
	Run    string        `json:"run"`
	Target string        `json:"target"`
	Result TablesResult  `json:"result"`
	Tables []TableResult `json:"tables"`
}

// TablesResult is what this process has done, all tables together.
type TablesResult struct {
	Outcome        Outcome `json:"outcome"`  // the gravest of the tables'
	Rows           int64   `json:"rows"`     // that are in, of all processes
	NewRows        int64   `json:"new_rows"` // of this process
	PlannedRows    int64   `json:"planned_rows"`
	VerifiedRows   int64   `json:"verified_rows"` // likewise
	Seconds        float64 `json:"seconds"`       // sending rows
	RowsPerSecond  float64 `json:"rows_per_second"`
	BytesPerSecond float64 `json:"bytes_per_second"` // of payload
	BoundBy        Bound   `json:"bound_by"`
}

// TableResult is one table.
type TableResult struct {
	Table  string  `json:"table"`
	Run    string  `json:"run"`
	Rows   int64   `json:"rows"`   // planned
	Done   bool    `json:"done"`   // by another process: its rows were in and proven, or the first shard sends them
	Report *Report `json:"report"` // nil if this process did nothing to it
}

// Begun reports whether anything was done to a table, by this process or another.
func (t *Tables) Begun() bool {
	return slices.ContainsFunc(t.Tables, func(one TableResult) bool { return one.Done || one.Report != nil })
}

// Sum completes the result of a run that has ended so.
func (t *Tables) Sum(ended Outcome) {
	t.Schema = TablesSchema
	is := &t.Result
	is.Outcome = ended
	lost := make(map[event.Limit]float64)
	var rows, bytes float64
	for _, one := range t.Tables {
		is.PlannedRows += one.Rows
		if one.Done {
			is.Rows, is.VerifiedRows = is.Rows+one.Rows, is.VerifiedRows+one.Rows
		}
		r := one.Report
		if r == nil {
			continue
		}
		t.Target = r.Target.URL
		is.Rows += r.Result.Rows
		is.NewRows += r.Result.Rows - r.Run.ResumedRows
		is.Seconds += r.Result.Seconds
		rows += r.Result.RowsPerSecond * r.Result.Seconds
		bytes += r.Result.BytesPerSecond * r.Result.Seconds
		if r.Verify.OK {
			is.VerifiedRows += r.Verify.FoundRows
		}
		for limit, seconds := range r.BoundBy.Seconds {
			lost[event.Limit(limit)] += seconds
		}
	}
	is.RowsPerSecond, is.BytesPerSecond = ratio(rows, is.Seconds), ratio(bytes, is.Seconds)
	is.BoundBy = NewBound(lost, Evidence{})
}

// WriteJSON writes one object.
func (t Tables) WriteJSON(w io.Writer) error { return WriteJSON(w, t) }

// WriteText writes a line for each table between the totals and the verdict. Only if every table is proven a line begins
// with "verify ok".
func (t Tables) WriteText(w io.Writer) error {
	is := t.Result
	all := fmt.Sprintf("%s: %s of %s in %s", is.Outcome, units.Count(is.Rows), counted(is.PlannedRows, "row"),
		counted(int64(len(t.Tables)), "table"))
	if is.Seconds > 0 && is.NewRows < is.Rows {
		all += fmt.Sprintf(", %s of them now", units.Count(is.NewRows))
	}
	if is.Seconds > 0 {
		all = join(all+", in "+duration(is.Seconds), units.Count(int64(is.RowsPerSecond))+" rows/s",
			units.Bytes(int64(is.BytesPerSecond))+"/s payload")
	}
	fmt.Fprintln(w, all)
	if t.Target != "" {
		fmt.Fprintf(w, "%-10s%s\n", "target", t.Target)
	}
	fmt.Fprintf(w, "%-10s%s\n", "run", t.Run)

	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, "  table\toutcome\trows\trows/s\tpayload/s\tbound by\tproof")
	for _, one := range t.Tables {
		fmt.Fprintln(out, "  "+strings.Join(one.cells(), "\t"))
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("report: write the summary: %w", err)
	}

	if verdict := is.BoundBy.Verdict; verdict != "" {
		fmt.Fprintf(w, "%-10s%s: %s of worker time\n", "bound by", verdict, percent(is.BoundBy.Shares[verdict]))
	}
	fmt.Fprintln(w, t.proof())
	_, err := io.WriteString(w, strings.Join(append(warnings(t.warnings(), maxLines), ""), "\n"))
	return err
}

func (t TableResult) cells() []string {
	r := t.Report
	switch {
	case t.Done:
		return []string{t.Table, "in already", units.Count(t.Rows), "", "", "", ""}
	case r == nil:
		return []string{t.Table, "not begun", "0 of " + units.Count(t.Rows), "", "", "", ""}
	}
	rows := units.Count(r.Result.Rows)
	if r.Result.Rows != t.Rows {
		rows += " of " + units.Count(t.Rows)
	}
	proof, _, _ := strings.Cut(strings.TrimSpace(strings.TrimPrefix(r.Verify.line(), proofWord)), " · ")
	if r.Result.Seconds == 0 {
		return []string{t.Table, string(r.Result.Outcome), rows, "", "", "", proof}
	}
	return []string{
		t.Table, string(r.Result.Outcome), rows, units.Count(int64(r.Result.RowsPerSecond)),
		units.Bytes(int64(r.Result.BytesPerSecond)) + "/s", r.BoundBy.Verdict, proof,
	}
}

func (t Tables) proof() string {
	var open, modes []string
	for _, one := range t.Tables {
		r := one.Report
		switch {
		case one.Done:
		case r == nil || !r.Verify.OK || r.Verify.Mode == "none":
			open = append(open, one.Table)
		case !slices.Contains(modes, r.Verify.Mode):
			modes = append(modes, r.Verify.Mode)
		}
	}
	what := "found"
	if slices.Contains(modes, "ack") {
		what = "acknowledged"
	}
	rows := fmt.Sprintf("%s of %s %s", units.Count(t.Result.VerifiedRows), counted(t.Result.PlannedRows, "row"), what)
	if len(open) == 0 {
		return "verify ok: " + join(strings.Join(modes, ", "), counted(int64(len(t.Tables)), "table"), rows)
	}
	const most = 5
	names := strings.Join(open[:min(len(open), most)], ", ")
	if more := len(open) - most; more > 0 {
		names += fmt.Sprintf(" and %d more", more)
	}
	return "verify    " + join(rows, "not verified: "+names)
}

// warnings lists those of all tables, each once, with the first table that it is of.
func (t Tables) warnings() (all []string) {
	seen := map[string]bool{}
	for _, one := range t.Tables {
		if one.Report == nil {
			continue
		}
		for _, w := range one.Report.Warnings {
			if !seen[w] {
				all = append(all, one.Table+": "+w)
			}
			seen[w] = true
		}
	}
	return all
}
