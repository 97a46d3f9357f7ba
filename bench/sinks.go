//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/feed"
)

// What a method may cost, as a ratio to the write loop, and what it would like to.
const (
	budget = 1.4
	goal   = 1.15
)

// defaultWorkers is what terapush chooses on two cores, and how many connections everybody has in the first table.
const defaultWorkers = 4

// againstSink lets every family's method push into the same sink, beside the write loop and iperf3.
func againstSink(ctx context.Context, o options, stdout io.Writer) error {
	if err := anyKeys(); err != nil {
		return err
	}
	row, err := commonRow(o)
	if err != nil {
		return err
	}
	r, err := newRing(o.ringBytes, o.bodyBytes, row)
	if err != nil {
		return err
	}
	defer r.free()
	s, err := startSink(ctx, o, row)
	if err != nil {
		return err
	}
	defer s.stop()
	loop, closeLoop, err := parallelLoop(loopName, s, r, defaultWorkers)
	if err != nil {
		return err
	}
	defer closeLoop()
	// Several connections cost two cores more than one does.
	single, closeSingle, err := parallelLoop("the same over one connection", s, r, 1)
	if err != nil {
		return err
	}
	defer closeSingle()
	beside, stopServer, err := iperf3(ctx, turns*o.ringBytes)
	if err != nil {
		return err
	}
	defer stopServer()

	contenders := []contender{loop, single, beside}
	var taking []string
	for _, family := range []string{"mysql", "postgres", "doris", "s3", "databend"} {
		m, found := method(family)
		if !found || !o.wants(family) {
			continue
		}
		taking = append(taking, family)
		contenders = append(contenders, contender{
			name: fmt.Sprintf("terapush %s (%s)", m.Name, family), budget: budget,
			turn: func(ctx context.Context) (cost, error) {
				return intoSink(o, family).cost(ctx, s.url(family), defaultWorkers, s.pid())
			},
		})
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s, %d connections each; budget %.2f, goal %.2f\n", cpuTitle, defaultWorkers, budget, goal)
	printTable(stdout, "client CPU s/GiB", contenders, costs, func(c cost) float64 { return c.client.Seconds() })
	for _, family := range taking {
		if err := byWorkers(ctx, o, s, family, stdout); err != nil {
			return err
		}
	}
	return nil
}

// intoSink is what is pushed into a family's port: defaults, but for text over HTTP. Doris has no type for bytes, and the
// others take them as Parquet, which is made anew for every batch: that would measure the making.
func intoSink(o options, family string) product {
	p := product{binary: o.terapush, ring: o.ringBytes}
	if slices.Contains(webFamilies, family) {
		p.extra = []string{"--payload-kind", string(dataset.Text)}
	}
	return p
}

// commonRow is how many bytes a row has, so that one sink that looks at none of them can answer everybody. Doris'
// answers are compared with what was sent, whatever is verified; the others take any number.
func commonRow(o options) (int, error) {
	d, err := documents()
	if err != nil {
		return 0, err
	}
	m, found := method("doris")
	if !found {
		return keyDigits + 1 + payloadBytes + 1, nil
	}
	e, err := feed.NewEncoder(m.Caps.Formats[0], d, 0, int64(turns*o.ringBytes)/d.Schema().RowBytes())
	if err != nil {
		return 0, err
	}
	return e.MaxRow(), nil
}

// parallelLoop is the plain write loop over some connections, each with a part of the ring's bodies.
func parallelLoop(name string, s *sinkProcess, r *ring, many int) (made contender, closes func(), err error) {
	var connections []net.Conn
	closes = func() {
		for _, c := range connections {
			_ = c.Close() // everything was answered
		}
	}
	shares := make([][][]byte, many)
	for i, b := range r.bodies {
		shares[i%len(shares)] = append(shares[i%len(shares)], b)
	}
	for range shares {
		c, err := net.Dial("tcp", s.addresses["raw"])
		if err != nil {
			closes()
			return contender{}, nil, err
		}
		connections = append(connections, c)
	}
	made = inProcess(name, s, r, func(context.Context, *ring) (int64, error) {
		var all errgroup.Group
		var rows atomic.Int64
		for i, c := range connections {
			all.Go(func() error {
				n, err := writeLoop(c, shares[i])
				rows.Add(n)
				return err
			})
		}
		err := all.Wait()
		return rows.Load(), err
	})
	return made, closes, nil
}

// byWorkers measures whether more connections than the machine can use do harm.
func byWorkers(ctx context.Context, o options, s *sinkProcess, family string, stdout io.Writer) error {
	if !o.workers {
		return nil
	}
	var contenders []contender
	for _, workers := range []int{defaultWorkers, 1, 2, 8, 16, 32, 64} {
		contenders = append(contenders, contender{
			name: fmt.Sprintf("%s, %d workers", family, workers),
			turn: func(ctx context.Context) (cost, error) {
				return intoSink(o, family).cost(ctx, s.url(family), workers, s.pid())
			},
		})
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintln(stdout, "\nthroughput into the discarding server by workers; it should never be below 0.9 of the best")
	printTable(stdout, "seconds/GiB", contenders, costs, func(c cost) float64 { return c.wall.Seconds() })
	return nil
}
