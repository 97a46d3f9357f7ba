//go:build linux

// Command bench tells what pushing a gibibyte costs the client, beside a plain write loop of the same bytes in the
// same run:
//
//	bench -sink bin/sink [-count] [-rounds 7] [-ring 1073741824] [-body 67108864]
//
// The sink runs in another process. All contenders take a turn in every round, so that whatever else the machine does
// hits all of them; a contender's ratio is the median of its ratios to the loop of the same round.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	binary := flags.String("sink", "sink", "`path` of the sink's binary")
	count := flags.Bool("count", false, "have the sink look at the data and count, instead of dropping it in the kernel")
	rounds := flags.Int("rounds", 7, "`turns` of every contender")
	ringBytes := flags.Int("ring", 1<<30, "`bytes` of rows in memory, pushed once a turn; less than a cache holds is no measure")
	bodyBytes := flags.Int("body", 64<<20, "`bytes` of one load")
	if err := flags.Parse(args); err != nil {
		return err
	}

	rowBytes := payloadBytes + keyDigits + 2
	if *count {
		rowBytes = 0
	}
	s, err := startSink(ctx, *binary, rowBytes)
	if err != nil {
		return err
	}
	defer s.stop()
	r, err := newRing(*ringBytes, *bodyBytes)
	if err != nil {
		return err
	}
	defer r.free()

	contenders, err := newContenders(ctx, s.addresses)
	if err != nil {
		return err
	}
	costs := make([][]cost, len(contenders))
	for round := -1; round < *rounds; round++ { // the first one warms up: sockets, caches, the CPU's clock
		for i, c := range contenders {
			spent, err := measure(ctx, c, r, s.pid())
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= 0 {
				costs[i] = append(costs[i], spent)
			}
		}
	}
	printTable(stdout, contenders, costs)
	return nil
}

// cost is what one turn took, per GiB.
type cost struct{ client, sink, wall time.Duration }

func measure(ctx context.Context, c contender, r *ring, sinkPID int) (cost, error) {
	client, sink, start := cpuTime(0), cpuTime(sinkPID), time.Now()
	rows, err := c.push(ctx, r)
	wall := time.Since(start)
	if err == nil && rows != r.rows {
		err = fmt.Errorf("%d rows acknowledged of %d", rows, r.rows)
	}
	perGiB := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) / float64(r.bytes()) * (1 << 30))
	}
	return cost{perGiB(cpuTime(0) - client), perGiB(cpuTime(sinkPID) - sink), perGiB(wall)}, err
}
