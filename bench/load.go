//go:build linux

package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/files"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// againstFiles measures terapush load into the servers that take files and are named.
func againstFiles(ctx context.Context, o options, stdout io.Writer) error {
	for _, s := range servers() {
		if _, err := exec.LookPath(s.client().Path); err != nil {
			fmt.Fprintf(stdout, "\n%s: load left out, %s is not installed\n", s.name, s.client().Path)
			continue
		}
		if err := s.benchLoad(ctx, o, stdout); err != nil {
			return fmt.Errorf("%s: load: %w", s.name, err)
		}
	}
	return nil
}

// loadTable is what the csv files of benchLoad go into.
const loadTable = "CREATE TABLE " + benchTable + " (id bigint NOT NULL, name text NOT NULL, total decimal(12,2) NOT NULL, note text NOT NULL)"

// benchLoad lets terapush load, the server's own command line and, if it is installed, timescaledb-parallel-copy load
// the same csv file. What terapush reads, cuts and sends, over one connection into a sink, is compared in client CPU
// with a loop that reads the file and writes it there. The sink knows no tables, so that is done without the command
// around it.
func (s server) benchLoad(ctx context.Context, o options, stdout io.Writer) error {
	s.create = loadTable
	for _, kind := range []struct {
		name, quote string
		budget      float64
	}{{"without quotes", "", 1.3}, {"with all texts in quotes", `"`, 2.5}} {
		file, size, err := writeCSV(o.loadBytes, kind.quote)
		if err != nil {
			return err
		}
		err = s.loadFile(ctx, o, stdout, file, size, kind.name, kind.budget)
		if err := errors.Join(err, os.Remove(file)); err != nil {
			return err
		}
	}
	return s.client(s.drop).Run()
}

func (s server) loadFile(ctx context.Context, o options, stdout io.Writer, file string, size int64, kind string, budget float64) error {
	sink, err := startSink(ctx, o, 1)
	if err != nil {
		return err
	}
	defer sink.stop()
	perGiB := func(c cost, err error) (cost, error) {
		gib := float64(size) / (1 << 30)
		return cost{client: time.Duration(float64(c.client) / gib), wall: time.Duration(float64(c.wall) / gib)}, err
	}
	into := func(name string, load func(context.Context) (cost, error)) contender {
		return contender{name: name, turn: func(ctx context.Context) (cost, error) {
			if out, err := s.client(s.drop, s.create).CombinedOutput(); err != nil {
				return cost{}, fmt.Errorf("making the table: %w: %s", err, out)
			}
			return perGiB(load(ctx))
		}}
	}

	others := []contender{into(filepath.Base(s.client().Path), func(context.Context) (cost, error) {
		return timed(s.client(s.csv(file)))
	})}
	if s.family == "postgres" {
		others = append(others, parallelCopy(s.url, file, into)...)
	}
	for _, workers := range []int{1, 2, 4} {
		name := fmt.Sprintf("terapush load exactly once, %d workers", workers)
		others = append(others, into(name, func(ctx context.Context) (cost, error) {
			return s.loads(ctx, o, file, workers)
		}))
	}
	own := []contender{
		{name: "read and write loop, 256 KiB", turn: func(context.Context) (cost, error) {
			return perGiB(copyLoop(file, size, sink.addresses["raw"]))
		}},
		{name: "terapush's files and session", budget: budget, turn: func(ctx context.Context) (cost, error) {
			return perGiB(filesLoop(ctx, s.family, sink.url(s.family), file))
		}},
	}
	client := func(c cost) float64 { return c.client.Seconds() }

	costs, err := takeTurns(ctx, o.rounds, own)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s: the client's CPU for a GiB of csv %s, read from a file and sent to a discarding server\n", s.name, kind)
	printTable(stdout, "client CPU s/GiB", own, costs, client)

	if costs, err = takeTurns(ctx, o.rounds, others); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s: seconds to load a GiB of it, beside the server's own command line\n", s.name)
	printTable(stdout, "seconds/GiB", others, costs, func(c cost) float64 { return c.wall.Seconds() })
	fmt.Fprintf(stdout, "\n%s: the client's CPU for that\n", s.name)
	printTable(stdout, "client CPU s/GiB", others, costs, client)
	return nil
}

// filesLoop cuts a file into batches and sends them, each a load of its own without a claim.
func filesLoop(ctx context.Context, family, url, file string) (cost, error) {
	m, found := method(family)
	if !found {
		return cost{}, fmt.Errorf("there is no back-end %s", family)
	}
	c := files.Config{
		Spec: files.NewSpec(files.CSV), Run: "bench", Wire: m.Caps.Files[0], Fields: 4,
		BatchBytes: 4 << 20, Buffers: 3, Workers: 1, BufferBytes: 32 << 20, Parallel: 1,
	}
	var err error
	if c.Spec.Files, err = files.Find([]string{file}); err != nil {
		return cost{}, err
	}
	session, err := openSession(ctx, url, m, loader.Preparation{
		Create: loader.CreateNever, Silent: true, Records: true, Contract: loader.Contract{Method: m.Name, Format: c.Wire},
	})
	if err != nil {
		return cost{}, err
	}
	defer func() { _ = session.Close() }()

	client, start := cpuTime(0), time.Now()
	from, err := files.New(c)
	if err != nil {
		return cost{}, err
	}
	for number := int64(0); err == nil; number++ {
		var b *batch.Batch
		if b, err = from.Batch(ctx, number); err != nil {
			break
		}
		b.Layout = &batch.Layout{Columns: []string{"id", "name", "total", "note"}, Delimiter: ",", Quote: `"`, Escape: `"`}
		_, err = session.Load(ctx, b) // a sink that drops what it gets guesses the rows
		b.Release()
	}
	if errors.As(err, new(*files.EndError)) {
		err = nil
	}
	return cost{client: cpuTime(0) - client, wall: time.Since(start)}, errors.Join(err, from.Close())
}

// writeCSV writes a file of so many bytes, with a doubled quote in each fourth text if texts are in quotes.
func writeCSV(bytes int, quote string) (path string, size int64, err error) {
	file, err := os.CreateTemp("", "terapush-bench-*.csv")
	if err != nil {
		return "", 0, err
	}
	out := bufio.NewWriterSize(file, writeBytes)
	word := strings.Repeat(quote, 2)
	for row := 0; size < int64(bytes) && err == nil; row++ {
		said := ""
		if row%4 == 0 {
			said = word + "so" + word
		}
		var n int
		n, err = fmt.Fprintf(out, "%d,%scustomer %d %s%s,%d.%02d,%s%s%s\n", row, quote, row%9973, said, quote, row%99_991, row%100,
			quote, strings.Repeat("note ", 1+row%12), quote)
		size += int64(n)
	}
	return file.Name(), size, errors.Join(err, out.Flush(), file.Close(), os.Chmod(file.Name(), 0o644))
}

// copyLoop is the least that a client of files can do.
func copyLoop(file string, size int64, address string) (cost, error) {
	in, err := os.Open(file)
	if err != nil {
		return cost{}, err
	}
	defer in.Close()
	client, start := cpuTime(0), time.Now()
	out, err := net.Dial("tcp", address)
	if err != nil {
		return cost{}, err
	}
	defer out.Close()

	// The buffer is kept from io.ReaderFrom, which would copy within the kernel.
	buffer := make([]byte, writeBytes)
	_, err = out.Write(binary.BigEndian.AppendUint64(nil, uint64(size)))
	if err == nil {
		_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{in}, buffer)
	}
	if err == nil {
		_, err = io.ReadFull(out, make([]byte, 8))
	}
	return cost{client: cpuTime(0) - client, wall: time.Since(start)}, err
}

// timed runs a command, and returns what it took.
func timed(c *exec.Cmd) (cost, error) {
	start := time.Now()
	out, err := c.CombinedOutput()
	if err != nil {
		return cost{}, fmt.Errorf("%s: %w: %s", filepath.Base(c.Path), err, out)
	}
	return cost{client: c.ProcessState.UserTime() + c.ProcessState.SystemTime(), wall: time.Since(start)}, nil
}

// parallelCopy are timescaledb-parallel-copy's contenders, with batches of 5,000 rows, as it has by default.
func parallelCopy(url, file string, into func(string, func(context.Context) (cost, error)) contender) (all []contender) {
	const name = "timescaledb-parallel-copy"
	binary, err := exec.LookPath(name)
	if err != nil {
		return []contender{{name: name, missing: "not installed"}}
	}
	for _, workers := range []int{1, 2, 4} {
		all = append(all, into(fmt.Sprintf("%s, %d workers", name, workers), func(ctx context.Context) (cost, error) {
			return timed(exec.CommandContext(ctx, binary, "--connection", url, "--table", benchTable, "--file", file,
				"--workers", fmt.Sprint(workers)))
		}))
	}
	return all
}

// loads runs terapush load as anybody would, claims and all; the time is that of the load.
func (s server) loads(ctx context.Context, o options, file string, workers int) (cost, error) {
	state, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(state)
	p, err := report(ctx, o.terapush, []string{
		"load", s.url, file, "--table", benchTable, "--json", "--progress", "none", "--state-dir", state,
		"--workers", fmt.Sprint(workers), "--verify", "ack",
	})
	seconds := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	return cost{client: seconds(p.Client.LoadSeconds), wall: seconds(p.Result.Seconds)}, err
}
