//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"slices"
	"text/tabwriter"
)

// sinkProcess is the sink, in a process of its own. It ends when its input does, so it outlives nobody.
type sinkProcess struct {
	addresses map[string]string
	command   *exec.Cmd
	input     io.Closer
}

// startSink starts one that drops rows of the ring's length in the kernel, or looks at them if it is asked to.
func startSink(ctx context.Context, o options, r *ring) (*sinkProcess, error) {
	rowBytes := r.rowBytes()
	if o.count {
		rowBytes = 0
	}
	c := exec.CommandContext(ctx, o.sink, "-stdin", fmt.Sprint("-row-bytes=", rowBytes),
		"-mysql=127.0.0.1:0", "-postgres=127.0.0.1:0", "-s3=127.0.0.1:0", "-databend=127.0.0.1:0",
		"-doris=127.0.0.1:0", "-doris-sql=127.0.0.1:0", "-tcp=127.0.0.1:0")
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

// url is the target that terapush and the drivers push to.
func (s *sinkProcess) url(family string) string {
	switch family {
	case "mysql":
		return "mysql://bench@" + s.addresses[family] + "/bench?tls=false"
	case "s3":
		return "s3://bench/prefix?path_style=true&region=us-east-1&endpoint=http://" + s.addresses[family]
	case "databend":
		return "databend://bench@" + s.addresses[family] + "/bench?sslmode=disable"
	case "doris":
		_, port, _ := net.SplitHostPort(s.addresses[family])
		return "doris://bench@" + s.addresses["doris-sql"] + "/bench?http_port=" + port
	default:
		return "postgres://bench@" + s.addresses[family] + "/bench?sslmode=disable"
	}
}

func (s *sinkProcess) pid() int { return s.command.Process.Pid }

func (s *sinkProcess) stop() {
	_ = s.input.Close()
	_ = s.command.Wait() // it has done its work
}

// printTable shows the medians, with ratios of what of says to the first contender's.
func printTable(out io.Writer, what string, contenders []contender, costs [][]cost, of func(cost) float64) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\t%s\tratio\tlowest … highest\tserver CPU s/GiB\tGiB/s\t\n", what)
	for i, c := range contenders {
		var ratios, own, server, wall []float64
		for round, spent := range costs[i] {
			ratios = append(ratios, of(spent)/of(costs[0][round]))
			own = append(own, of(spent))
			server = append(server, spent.sink.Seconds())
			wall = append(wall, spent.wall.Seconds())
		}
		fmt.Fprintf(w, "%s\t%.3f\t%.2f\t%.2f … %.2f\t%.3f\t%.2f\t\n", c.name,
			median(own), median(ratios), slices.Min(ratios), slices.Max(ratios), median(server), 1/median(wall))
	}
	_ = w.Flush() // the terminal's business
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}
