//go:build linux

// Command bench measures terapush beside others that do the same work in the same run, and prints ratios:
//
//	bench [-only postgres|mysql|databend|doris|s3|load] [-rounds 5]
//	bench -only oracle -target oracle://user:password@host/service [-duration 1m]
//	bench -terabyte 2147483648 [-only postgres|mysql]
//
// The first table is the client's CPU time for pushing a gibibyte into a sink, a server in another process that
// discards, by every method beside a plain write loop of as many bytes and iperf3, all with as many connections; the
// second is the same over TLS, beside a loop of crypto/tls. Tables of what others wrote for the same protocols follow,
// over one connection each. Then come real servers. Where TERAPUSH_TEST_POSTGRES, _MARIADB or _MYSQL name some, it is
// rows per second beside the server's own command line loading the same bytes from a file, and terapush load beside it
// with csv files; where TERAPUSH_TEST_DATABEND does, beside a PUT loop and Databend's own driver in the Python that
// TERAPUSH_TEST_DATABEND_PYTHON names; where TERAPUSH_TEST_S3 names a store, objects put beside the SDK's default
// client and s5cmd, if there is one. Oracle is measured alone, where somebody names a server: its methods beside each
// other, by duration.
//
// All contenders take a turn in every round, forwards and backwards, so that whatever else the machine does hits all of
// them; a contender's ratio is the median of its ratios to the first one of the same round. Tables are Markdown. Where
// the first contender's own turns differ by more than a quarter, the table says that it is not to be believed.
//
// -terabyte rehearses a long run instead, and prints what it costs in time, memory and journal.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
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

// options are the command line.
type options struct {
	terapush  string
	only      string
	count     bool
	workers   bool
	rounds    int
	ringBytes int
	bodyBytes int
	loadBytes int
	target    string
	duration  time.Duration
	terabyte  int64
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.terapush, "terapush", "bin/terapush", "`path` of terapush, which is the sink, too")
	flags.StringVar(&o.only, "only", "", "postgres, mysql, databend, doris, s3, oracle or load: leave the other `families` out")
	flags.BoolVar(&o.count, "count", false, "have the sink look at the data and count, instead of dropping it in the kernel")
	flags.BoolVar(&o.workers, "workers", true, "measure throughput by the number of workers too")
	flags.IntVar(&o.rounds, "rounds", 5, "`turns` of every contender")
	flags.IntVar(&o.ringBytes, "ring", 1<<30, "`bytes` of rows in memory; less than a cache holds is no measure")
	flags.IntVar(&o.bodyBytes, "body", 16<<20, "`bytes` of one load of the hand-written contenders")
	flags.IntVar(&o.loadBytes, "load", 512<<20, "`bytes` of column data loaded into a real server in a turn")
	flags.StringVar(&o.target, "target", "", "with -only oracle: the `URL` of a server")
	flags.DurationVar(&o.duration, "duration", turnTime, "with -only oracle: how long a turn takes")
	flags.Int64Var(&o.terabyte, "terabyte", 0, "push so many `rows` of 512 bytes, killed and resumed twice, and measure nothing else")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.terabyte > 0 {
		return rehearse(ctx, o, stdout)
	}
	if o.only != "" && !slices.Contains(families, o.only) {
		return fmt.Errorf("-only takes one of %v", families)
	}
	switch o.only {
	case "oracle":
		return againstOracle(ctx, o, stdout)
	case "load":
		return againstFiles(ctx, o, stdout)
	}
	if err := againstSink(ctx, o, stdout); err != nil {
		return err
	}
	if err := byHand(ctx, o, stdout); err != nil {
		return err
	}
	if err := againstServers(ctx, o, stdout); err != nil {
		return err
	}
	if o.only == "" {
		if err := againstFiles(ctx, o, stdout); err != nil {
			return err
		}
	}
	if err := againstDatabend(ctx, o, stdout); err != nil {
		return err
	}
	if err := againstS3(ctx, o, stdout); err != nil {
		return err
	}
	return sweepServers(ctx, o, stdout)
}

// webFamilies are loaded over HTTP.
var (
	webFamilies = []string{"databend", "doris", "s3"}
	families    = append([]string{"postgres", "mysql", "oracle", "load"}, webFamilies...)
)

// wants reports whether a family takes part.
func (o options) wants(family string) bool { return o.only == "" || o.only == family }

// takeTurns gives every contender its turns; the first round only warms up. Every other round goes backwards: whoever
// comes after a process that has just given a gigabyte back to the kernel pays some of that, and it must not always be
// the same.
func takeTurns(ctx context.Context, rounds int, contenders []contender) ([][]cost, error) {
	costs := make([][]cost, len(contenders))
	for round := -1; round < rounds; round++ {
		for turn := range contenders {
			i := turn
			if round%2 != 0 {
				i = len(contenders) - 1 - turn
			}
			c := contenders[i]
			if c.missing != "" {
				continue
			}
			spent, err := c.turn(ctx)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", c.name, err)
			}
			if round >= 0 {
				costs[i] = append(costs[i], spent)
			}
		}
	}
	return costs, nil
}
