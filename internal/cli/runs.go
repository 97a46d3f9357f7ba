package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/terapush/terapush/internal/config"
	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/internal/runlog"
	"github.com/terapush/terapush/internal/units"
)

const runsSchema = "terapush.runs/v1"

// RunList is what terapush runs prints.
type RunList struct {
	Schema string      `json:"schema"`
	Runs   []listedRun `json:"runs"`
}

type listedRun struct {
	Run     string    `json:"run"`
	Shard   string    `json:"shard,omitempty"`
	Started time.Time `json:"started"`
	// State is running, incomplete, loaded or verified.
	State        string `json:"state"`
	Rows         int64  `json:"rows"`                   // that are in the table
	PlannedRows  int64  `json:"planned_rows,omitempty"` // of the shard; missing for a run by duration
	PayloadBytes int64  `json:"payload_bytes"`          // of Rows, by the average row; of a load those of the files
	Target       string `json:"target"`
	Table        string `json:"table"` // of a run of several tables their number, in words
	Method       string `json:"method"`
}

func (a *app) runs() *cobra.Command {
	var c config.Push
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List the runs in the state folder",
		Long: `List the runs in the state folder, newest first. "incomplete" means that push --resume, or load --resume, can continue the
run; "loaded" means that all rows are in the table, but not verified. A run stays in the list until terapush forget.`,
		Example: `  terapush runs
  terapush push postgres://user@host/db --resume last`,
		Args: exactly(0, "runs takes no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.complete(cmd.Flags(), &c, ""); err != nil {
				return usage(err)
			}
			if err := needFolder(c.Shared); err != nil {
				return usage(err)
			}
			found, err := runlog.Runs(c.State)
			list := RunList{Schema: runsSchema, Runs: []listedRun{}}
			for _, r := range found {
				list.Runs = append(list.Runs, listed(r))
			}
			list.Runs = withWholes(list.Runs, found)
			return errors.Join(a.print(list, c.JSON), err)
		},
	}
	c.Flags(cmd.Flags(), a.drivers) // a file may have all of them
	showOnly(cmd.Flags(), "state-dir", "json")
	cmd.Flags().Lookup("state-dir").Usage = "folder of the journals (default: the user's state folder)"
	cmd.Flags().Lookup("json").Usage = "print the list as one JSON object"
	return cmd
}

func listed(r runlog.Summary) listedRun {
	shard := r.Plan.Sends()
	one := listedRun{
		Run: r.Run, Shard: shard.String(), Started: r.Started, State: string(r.Stage), Rows: r.Rows,
		PayloadBytes: r.Bytes, Target: r.Target, Table: r.Table, Method: r.Plan.Method,
	}
	if !r.Plan.Open() {
		one.PlannedRows = r.Plan.ShardRows()
	}
	switch {
	case r.Running:
		one.State = "running"
	case r.Stage == runlog.Loading:
		one.State = "incomplete"
	}
	return one
}

// withWholes puts a line for each run of several tables before those of its parts, which follow in their order.
func withWholes(all []listedRun, found []runlog.Summary) (list []listedRun) {
	tables := map[string]*dataset.Tables{}
	parts := map[string][]listedRun{}
	for i, r := range found {
		whole, _, _ := config.ParentOf(r.Run)
		parts[whole] = append(parts[whole], all[i])
		if r.Tables != nil {
			tables[whole] = r.Tables
		}
	}
	for _, one := range all {
		whole, _, _ := config.ParentOf(one.Run)
		if tables[whole] == nil {
			list = append(list, one)
			continue
		}
		if mine := parts[whole]; len(mine) > 0 {
			slices.Reverse(mine) // the newest is the last
			list = append(append(list, wholeRun(whole, mine, tables[whole])), mine...)
			parts[whole] = nil
		}
	}
	return list
}

// wholeRun sums up the parts of a run of several tables, some of which may not have begun.
func wholeRun(name string, parts []listedRun, tables *dataset.Tables) listedRun {
	sum := parts[0]
	sum.Run, sum.Shard, sum.Table = name, "", english.Plural(len(tables.Tables), "table", "")
	sum.Rows, sum.PlannedRows, sum.PayloadBytes = 0, 0, 0
	for _, t := range tables.Tables {
		sum.PlannedRows += t.Spec.Rows
	}
	gravest := []string{string(runlog.Verified), string(runlog.Loaded), "incomplete", "running"}
	state := 0
	if len(parts) < len(tables.Tables) {
		state = 2
	}
	for _, p := range parts {
		sum.Rows += p.Rows
		sum.PayloadBytes += p.PayloadBytes
		state = max(state, slices.Index(gravest, p.State))
	}
	sum.State = gravest[state]
	return sum
}

// WriteText writes a table.
func (l RunList) WriteText(w io.Writer) error {
	out := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(out, "RUN\tSHARD\tAGE\tSTATE\tROWS\tSIZE\tMETHOD\tTABLE\tTARGET")
	for _, r := range l.Runs {
		rows := units.Count(r.Rows)
		if r.PlannedRows > r.Rows {
			rows += " of " + units.Count(r.PlannedRows)
		}
		fmt.Fprintln(out, strings.Join([]string{
			r.Run, cmp.Or(r.Shard, "-"), age(time.Since(r.Started)), r.State, rows, units.Bytes(r.PayloadBytes), r.Method, r.Table, r.Target,
		}, "\t"))
	}
	return out.Flush()
}

// WriteJSON writes one object.
func (l RunList) WriteJSON(w io.Writer) error { return report.WriteJSON(w, l) }

// age is a time in its largest unit.
func age(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d >= time.Hour:
		return fmt.Sprintf("%dh", d/time.Hour)
	case d >= time.Minute:
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}

// runsFor offers the ids and names of runs.
func (a *app) runsFor(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	var all []string
	all = append(all, cobra.CompletionWithDesc(config.LastRun, "the newest run of the target"))
	state := cmd.Flags().Lookup("state-dir").Value.String()
	if state == "" {
		state, _ = a.LookupEnv("TERAPUSH_STATE_DIR")
	}
	if state == "" {
		state, _ = a.stateDir()
	}
	records, _ := runlog.Records(state)
	for _, r := range records {
		one := listed(runlog.Summary{Record: r})
		all = append(all, cobra.CompletionWithDesc(one.Run, one.State+", table "+one.Table))
	}
	return slices.Compact(all), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}
