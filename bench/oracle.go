//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"text/tabwriter"
	"time"

	reports "github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/loader"
)

// oracleTurn is one line of the table.
type oracleTurn struct {
	method  string
	workers int
}

// oracleTurns compare the four ways to insert of the load generator whose dataset the journal is, slowest first.
func oracleTurns() []oracleTurn {
	var all []oracleTurn
	for _, method := range []string{"single", "batch", "array", "fast"} {
		for _, workers := range []int{1, 4, 16} {
			all = append(all, oracleTurn{method, workers})
		}
	}
	return all
}

// againstOracle measures a server that the user names: none can be installed.
func againstOracle(ctx context.Context, o options, stdout io.Writer) error {
	const usage = "name a schema that may create tables: make bench-oracle TARGET=oracle://user:password@host:1521/service"
	if o.target == "" {
		return errors.New("there is no Oracle server to install, so bench measures yours alone; " + usage)
	}
	t, err := loader.ParseTarget(o.target)
	if err != nil {
		return err
	}
	if t.Scheme != "oracle" {
		return fmt.Errorf("the target is %s://…, and these methods are Oracle's; %s", t.Scheme, usage)
	}
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(stdout, "\nOracle: the journal for %s a turn into table %s, which is made anew for each and stays behind after the last\n",
		o.duration, benchTable)
	fmt.Fprintln(w, "method\tworkers\trows\tacknowledged rows/s\tdurable rows/s\tMiB/s\tstored B/row\tredo B/row\trows/round trip\tserver CPU s/Mrow\tclient CPU s/Mrow\t")
	var notes []string
	for _, turn := range oracleTurns() {
		r, err := turn.push(ctx, o, t)
		if err != nil {
			_ = w.Flush() // what was measured until then
			return fmt.Errorf("%s, %d workers: %w", turn.method, turn.workers, err)
		}
		rows := float64(r.Result.Rows)
		fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.0f\t%.1f\t%s\t%s\t%s\t%s\t%.2f\t\n", turn.method, turn.workers, rows,
			r.Rates.Load, r.Result.RowsPerSecond, r.Result.BytesPerSecond/(1<<20), known(r.Stored.BytesPerRow, "%.0f"),
			known(r.Cost["redo_bytes"]/rows, "%.0f"), known(per(rows, r.Cost["round_trips"]), "%.1f"),
			known(r.Cost["cpu_seconds"]/rows*1e6, "%.2f"), r.Client.LoadSeconds/rows*1e6)
		for _, note := range r.Warnings {
			notes = append(notes, fmt.Sprintf("%s, %d workers: %s", turn.method, turn.workers, note))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, note := range notes {
		fmt.Fprintln(stdout, note)
	}
	return nil
}

// push is a turn. It has no claims, since what it is compared with has none, and counts the rows all the same. The password
// goes where other users of this machine do not see it.
func (turn oracleTurn) push(ctx context.Context, o options, t loader.Target) (reports.Report, error) {
	state, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return reports.Report{}, err
	}
	defer os.RemoveAll(state)
	c := exec.CommandContext(ctx, o.terapush, "push", withoutPassword(o.target, t), "--dataset", "journal", "--method", turn.method,
		"--workers", fmt.Sprint(turn.workers), "--duration", o.duration.String(), "--delivery", "at-least-once",
		"--table", benchTable, "--create", "recreate", "--verify", "count", "--json", "--progress", "none", "--state-dir", state)
	if c.Env = os.Environ(); t.Password != "" {
		c.Env = append(c.Env, "TERAPUSH_PASSWORD="+t.Password.Reveal())
	}
	c.Stderr = os.Stderr
	text, err := c.Output()
	if err != nil {
		return reports.Report{}, err
	}
	var r reports.Report
	if err := json.Unmarshal(text, &r); err != nil {
		return r, err
	}
	if r.Result.Outcome != reports.OK || r.Result.Rows == 0 {
		return r, fmt.Errorf("the push ended %s with %d rows: %s", r.Result.Outcome, r.Result.Rows, r.Result.Error)
	}
	return r, nil
}

// withoutPassword is the target with its parameters, which Target.String leaves out.
func withoutPassword(text string, t loader.Target) string {
	if t.Password == "" {
		return text
	}
	params := t.Params
	t.Params = nil // of which String shows some
	u := t.String()
	if len(params) > 0 {
		u += "?" + params.Encode()
	}
	return u
}

// per is n of one, and 0 when nobody counted.
func per(n, count float64) float64 {
	if count == 0 {
		return 0
	}
	return n / count
}

// known is a number, or a dash where the server does not tell.
func known(n float64, format string) string {
	if n == 0 {
		return "–"
	}
	return fmt.Sprintf(format, n)
}

// turnTime is how long one turn takes: long enough for the checkpoints and log switches of an ordinary server.
const turnTime = time.Minute
