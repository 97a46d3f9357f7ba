//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// rehearse pushes rows of 512 bytes by load-data and copy into the sink, and into discard. Each run is killed with SIGKILL at
// a third and at two thirds and resumed, so three processes share it. The sink counts rows: its answers are verified.
func rehearse(ctx context.Context, o options, stdout io.Writer) error {
	o.count = true
	s, err := startSink(ctx, o, 0)
	if err != nil {
		return err
	}
	defer s.stop()
	w := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%d rows\tseconds\tGiB/s\tCPU s/GiB\tpeak MiB at 10 %%\tat 50 %%\tat 100 %%\tfolder bytes\tresume s\t\n", o.terabyte)
	for _, push := range []struct{ name, family, target string }{
		{"load-data", "mysql", s.url("mysql")}, {"copy", "postgres", s.url("postgres")}, {"discard", "", "discard://"},
	} {
		if !o.wants(push.family) {
			continue
		}
		r := rehearsal{options: o, target: push.target}
		if err := r.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", push.name, err)
		}
		gib := float64(o.terabyte) * 512 / (1 << 30)
		fmt.Fprintf(w, "%s\t%.1f\t%.2f\t%.3f\t%.0f\t%.0f\t%.0f\t%.0f\t%.2f\t\n", push.name, r.wall.Seconds(), gib/r.wall.Seconds(),
			r.cpu.Seconds()/gib, r.peak[0], r.peak[1], r.peak[2], r.folder, r.resume)
	}
	return w.Flush()
}

// rehearsal is one run in three processes.
type rehearsal struct {
	options
	target    string
	state     string
	wall, cpu time.Duration // of all processes, buffers filled three times
	peak      [3]float64    // MiB, of the process that moved the tenth, the half and the last of the rows
	folder    float64       // bytes of the run's
	resume    float64       // seconds of the last process until it could send: reading the journal and filling
}

func (r *rehearsal) run(ctx context.Context) (err error) {
	if r.state, err = os.MkdirTemp("", "terapush-terabyte-"); err != nil {
		return err
	}
	defer os.RemoveAll(r.state)
	begin := []string{
		"push", r.target, "--rows", fmt.Sprint(r.terabyte), "--payload-bytes", "512", "--workers", "8",
		"--create", "never", "--delivery", "at-least-once", "--verify", "ack",
	}
	if _, err := r.process(ctx, begin, r.terabyte/10, r.terabyte/3, &r.peak[0]); err != nil {
		return err
	}
	journals, err := filepath.Glob(filepath.Join(r.state, "*", "journal-000000000001.jsonl"))
	if err != nil || len(journals) != 1 {
		return fmt.Errorf("the killed run left the journals %v", journals)
	}
	resume := []string{"push", r.target, "--resume", filepath.Base(filepath.Dir(journals[0]))}
	if _, err := r.process(ctx, resume, r.terabyte/2, r.terabyte*2/3, &r.peak[1]); err != nil {
		return err
	}
	text, err := r.process(ctx, resume, 0, 0, nil)
	if err != nil {
		return err
	}
	var end struct {
		Result struct {
			Outcome string
			Rows    int64
		}
		Phases struct{ Prepare, Fill float64 }
		Client struct {
			Peak float64 `json:"peak_rss_bytes"`
		}
		Verify struct{ OK bool }
	}
	if err := json.Unmarshal(text, &end); err != nil {
		return err
	}
	if end.Result.Outcome != "ok" || end.Result.Rows != r.terabyte || !end.Verify.OK {
		return fmt.Errorf("the run ended %s with %d rows", end.Result.Outcome, end.Result.Rows)
	}
	r.peak[2], r.resume = end.Client.Peak/(1<<20), end.Phases.Prepare+end.Phases.Fill
	return filepath.WalkDir(filepath.Dir(journals[0]), func(_ string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			var file fs.FileInfo
			if file, err = e.Info(); err == nil {
				r.folder += float64(file.Size())
			}
		}
		return err
	})
}

// process runs terapush. At a number of rows it notes the peak of its memory, at another it kills it; 0 lets it run to its
// end, and returns its report.
func (r *rehearsal) process(ctx context.Context, args []string, noteAt, killAt int64, peak *float64) ([]byte, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, r.terapush, append(args,
		"--state-dir", r.state, "--json", "--progress", "none", "--metrics-addr", "127.0.0.1:"+port)...)
	var out, said bytes.Buffer
	c.Stdout, c.Stderr = &out, &said
	began := time.Now()
	if err := c.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for killed := false; ; {
		select {
		case err := <-ended:
			r.wall += time.Since(began)
			r.cpu += c.ProcessState.UserTime() + c.ProcessState.SystemTime()
			if (err != nil) != killed || killAt > 0 && !killed {
				return nil, errors.Join(fmt.Errorf("%s: %s", c, said.Bytes()), err)
			}
			return out.Bytes(), nil
		case <-tick.C:
			rows := movedRows(port)
			if noteAt > 0 && rows >= noteAt {
				noteAt, *peak = 0, peakMiB(c.Process.Pid)
			}
			if killAt > 0 && rows >= killAt && !killed {
				killed = true
				_ = c.Process.Kill()
			}
		}
	}
}

// movedRows returns the run's rows by the metrics of a process; 0 before it serves them.
func movedRows(port string) int64 {
	answer, err := http.Get("http://127.0.0.1:" + port + "/metrics")
	if err != nil {
		return 0
	}
	defer answer.Body.Close()
	for lines := bufio.NewScanner(answer.Body); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if base, _, _ := strings.Cut(name, "{"); base == "terapush_rows_total" {
			rows, _ := strconv.ParseFloat(value, 64)
			return int64(rows)
		}
	}
	return 0
}

// peakMiB returns the most memory that a process has had, 0 if it is gone.
func peakMiB(pid int) float64 {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	kib, _ := strconv.ParseFloat(strings.Fields(after + " 0")[0], 64)
	return kib / 1024
}
