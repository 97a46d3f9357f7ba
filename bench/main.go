//go:build linux

// Command bench measures terapush beside others that do the same work in the same run, and prints ratios:
//
//	bench [-only postgres|mysql] [-rounds 5]
//
// The first table is the client's CPU time for pushing a gibibyte into a sink, a server in another process that counts
// and discards, beside a plain write loop of as many bytes. The second, where TERAPUSH_TEST_POSTGRES, _MARIADB or
// _MYSQL name servers, is rows per second beside the server's own command line loading the same bytes from a file.
//
// All contenders take a turn in every round, so that whatever else the machine does hits all of them; a contender's
// ratio is the median of its ratios to the first one of the same round.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
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
	sink, terapush string
	only           string
	count          bool
	workers        bool
	rounds         int
	ringBytes      int
	bodyBytes      int
	loadBytes      int
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.StringVar(&o.sink, "sink", "bin/sink", "`path` of the sink's binary")
	flags.StringVar(&o.terapush, "terapush", "bin/terapush", "`path` of terapush")
	flags.StringVar(&o.only, "only", "", "postgres or mysql: leave the other `family` out")
	flags.BoolVar(&o.count, "count", false, "have the sink look at the data and count, instead of dropping it in the kernel")
	flags.BoolVar(&o.workers, "workers", true, "measure throughput by the number of workers too")
	flags.IntVar(&o.rounds, "rounds", 5, "`turns` of every contender")
	flags.IntVar(&o.ringBytes, "ring", 1<<30, "`bytes` of rows in memory; less than a cache holds is no measure")
	flags.IntVar(&o.bodyBytes, "body", 16<<20, "`bytes` of one load of the hand-written contenders")
	flags.IntVar(&o.loadBytes, "load", 512<<20, "`bytes` of column data loaded into a real server in a turn")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if o.only != "" && o.only != "postgres" && o.only != "mysql" {
		return errors.New("-only takes postgres or mysql")
	}
	if err := againstSinks(ctx, o, stdout); err != nil {
		return err
	}
	return againstServers(ctx, o, stdout)
}

// wants tells whether a family takes part.
func (o options) wants(family string) bool { return o.only == "" || o.only == family }

// rounds gives every contender its turns; the first round only warms up.
func takeTurns(ctx context.Context, rounds int, contenders []contender) ([][]cost, error) {
	costs := make([][]cost, len(contenders))
	for round := -1; round < rounds; round++ {
		for i, c := range contenders {
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
