//go:build linux

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
)

// way is a push into a sink by a family's default method, and what it may cost as a ratio to the loop beside it.
type way struct {
	family, as string
	budget     float64
	flags      []string
}

// Over HTTP rows are text: Doris has no type for bytes, and the others take them as Parquet, which is a way of its own.
var (
	asText = []string{"--payload-kind", string(dataset.Text)}
	ways   = []way{
		{family: "mysql", budget: 1.15},
		{family: "postgres", budget: 1.15},
		{family: "doris", budget: 1.15, flags: asText},
		{family: "s3", budget: 1.15, flags: asText},
		{family: "databend", budget: 1.15, flags: asText},
	}
	otherWays = []way{
		{family: "s3", as: ", exactly once", budget: 1.15, flags: append([]string{"--delivery", "exactly-once"}, asText...)},
		{family: "s3", as: " as Parquet", budget: 1.25, flags: []string{"--format", string(batch.Parquet)}},
		{family: "mysql", as: ", pairs", flags: []string{"--dataset", "pairs"}},
		{family: "postgres", as: ", pairs", flags: []string{"--dataset", "pairs"}},
	}
)

// defaultWorkers is what terapush chooses on two cores, and how many connections everybody has in the first table.
const defaultWorkers = 4

// againstSink lets every family's method push into the same sink, beside the write loop and iperf3, and over TLS beside a
// loop of crypto/tls.
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
	plain := func() (net.Conn, error) { return net.Dial("tcp", s.addresses["raw"]) }
	loop := parallelLoop(loopName, s, r, defaultWorkers, plain, writeLoop)
	// Several connections cost two cores more than one does.
	single := parallelLoop("the same over one connection", s, r, 1, plain, writeLoop)
	beside, stopServer, err := iperf3(ctx, turns*o.ringBytes)
	if err != nil {
		return err
	}
	defer stopServer()
	contenders := append([]contender{loop, single, beside}, o.pushes(s, slices.Concat(ways, otherWays))...)
	if err := sinkTable(ctx, o, cpuTitle, contenders, stdout); err != nil {
		return err
	}

	encrypted := parallelLoop("HTTP PUT by crypto/tls, 256 KiB writes", s, r, defaultWorkers,
		func() (net.Conn, error) {
			return tls.Dial("tcp", s.addresses["s3"], &tls.Config{InsecureSkipVerify: true}) // the sink signs its own
		},
		func(c net.Conn, r *ring) (int64, error) { return putLoop(c, bufio.NewReader(c), requests("s3"), r) })
	var withTLS []way
	for _, w := range ways {
		w.as, w.budget, w.flags = ", TLS", 1.05, append([]string{"--tls", "require"}, w.flags...)
		withTLS = append(withTLS, w)
	}
	err = sinkTable(ctx, o, "the same over TLS", append([]contender{encrypted}, o.pushes(s, withTLS)...), stdout)
	if err != nil || !o.workers {
		return err
	}
	for _, w := range ways {
		if err := byWorkers(ctx, o, s, w, stdout); err != nil {
			return err
		}
	}
	return nil
}

func sinkTable(ctx context.Context, o options, title string, contenders []contender, stdout io.Writer) error {
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s, %d connections each\n", title, defaultWorkers)
	printTable(stdout, "client CPU s/GiB", contenders, costs, func(c cost) float64 { return c.client.Seconds() })
	return nil
}

// pushes are the contenders of those ways whose family takes part.
func (o options) pushes(s *sinkProcess, ways []way) (all []contender) {
	for _, w := range ways {
		if m, found := method(w.family); found && o.wants(w.family) {
			all = append(all, contender{
				name: fmt.Sprintf("terapush %s%s (%s)", m.Name, w.as, w.family), budget: w.budget,
				turn: func(ctx context.Context) (cost, error) { return w.push(ctx, o, s, defaultWorkers) },
			})
		}
	}
	return all
}

func (w way) push(ctx context.Context, o options, s *sinkProcess, workers int) (cost, error) {
	p := product{binary: o.terapush, ring: o.ringBytes, extra: w.flags}
	url := s.url(w.family)
	if slices.Contains(w.flags, "--tls") {
		url = s.encrypted(w.family)
	}
	return p.cost(ctx, url, workers, s.pid())
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
	e, err := source.NewEncoder(m.Caps.Formats[0], d, 0, int64(turns*o.ringBytes)/d.Schema().RowBytes())
	if err != nil {
		return 0, err
	}
	return e.MaxRow(), nil
}

// parallelLoop runs a loop over some connections, new ones in every turn, each with a part of the ring's bodies.
func parallelLoop(
	name string, s *sinkProcess, r *ring, many int, dial func() (net.Conn, error), loop func(net.Conn, *ring) (int64, error),
) contender {
	shares := make([]ring, many)
	for i, b := range r.bodies {
		share := &shares[i%many]
		share.bodies = append(share.bodies, b)
		share.rows += r.bodyRows()
	}
	return inProcess(name, s, r, func(context.Context, *ring) (int64, error) {
		var all errgroup.Group
		var rows atomic.Int64
		for i := range shares {
			all.Go(func() error {
				c, err := dial()
				if err != nil {
					return err
				}
				n, err := loop(c, &shares[i])
				rows.Add(n)
				return errors.Join(err, c.Close())
			})
		}
		err := all.Wait()
		return rows.Load(), err
	})
}

// byWorkers measures whether more connections than the machine can use do harm.
func byWorkers(ctx context.Context, o options, s *sinkProcess, w way, stdout io.Writer) error {
	if _, found := method(w.family); !found || !o.wants(w.family) {
		return nil
	}
	var contenders []contender
	for _, workers := range []int{defaultWorkers, 1, 2, 8, 16, 32, 64} {
		contenders = append(contenders, contender{
			name: fmt.Sprintf("%s, %d workers", w.family, workers),
			turn: func(ctx context.Context) (cost, error) { return w.push(ctx, o, s, workers) },
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
