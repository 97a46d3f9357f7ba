//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"text/tabwriter"
	"time"
)

// sinkProcess is the sink, in a process of its own. It ends when its input does, so it outlives nobody.
type sinkProcess struct {
	addresses map[string]string
	command   *exec.Cmd
	input     io.Closer
}

func startSink(ctx context.Context, binary string, rowBytes int) (*sinkProcess, error) {
	c := exec.CommandContext(ctx, binary, "-stdin", fmt.Sprint("-row-bytes=", rowBytes),
		"-mysql=127.0.0.1:0", "-postgres=127.0.0.1:0", "-tcp=127.0.0.1:0")
	c.Stderr = os.Stderr
	input, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("starting the sink: %w", err)
	}
	s := &sinkProcess{command: c, input: input}
	if err := json.NewDecoder(output).Decode(&s.addresses); err != nil {
		s.stop()
		return nil, fmt.Errorf("reading the sink's addresses: %w", err)
	}
	return s, nil
}

func (s *sinkProcess) pid() int { return s.command.Process.Pid }

func (s *sinkProcess) stop() {
	_ = s.input.Close()
	_ = s.command.Wait() // it has done its work
}

func printTable(out io.Writer, contenders []contender, costs [][]cost) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tclient CPU s/GiB\tratio\tlowest … highest\tsink CPU s/GiB\tGiB/s\t")
	for i, c := range contenders {
		var ratios []float64
		for round := range costs[i] {
			ratios = append(ratios, costs[i][round].client.Seconds()/costs[0][round].client.Seconds())
		}
		of := func(part func(cost) time.Duration) float64 {
			var seconds []float64
			for _, spent := range costs[i] {
				seconds = append(seconds, part(spent).Seconds())
			}
			return median(seconds)
		}
		fmt.Fprintf(w, "%s\t%.3f\t%.2f\t%.2f … %.2f\t%.3f\t%.2f\t\n", c.name,
			of(func(c cost) time.Duration { return c.client }), median(ratios), slices.Min(ratios), slices.Max(ratios),
			of(func(c cost) time.Duration { return c.sink }), 1/of(func(c cost) time.Duration { return c.wall }))
	}
	w.Flush()
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
