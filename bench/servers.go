//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// server is a real server and how its own command line loads a file into a table.
type server struct {
	name, family, url string
	format            batch.Format
	create, drop      string // statements
	// client makes the command that runs statements; load is the statement that loads a file.
	client func(statements ...string) *exec.Cmd
	load   func(file string) string
	csv    func(file string) string // the same of a csv file
}

const benchTable = "terapush_bench"

// againstServers measures rows per second.
func againstServers(ctx context.Context, o options, stdout io.Writer) error {
	for _, s := range servers() {
		if !o.wants(s.family) {
			continue
		}
		if _, err := exec.LookPath(s.client().Path); err != nil {
			fmt.Fprintf(stdout, "\n%s: left out, %s is not installed\n", s.name, s.client().Path)
			continue
		}
		if err := s.bench(ctx, o, stdout); err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return nil
}

// servers are those that the environment names.
func servers() []server {
	var all []server
	if url := os.Getenv("TERAPUSH_TEST_POSTGRES"); url != "" {
		all = append(all, server{
			name: "PostgreSQL", family: "postgres", url: url, format: batch.PGBinary,
			create: "CREATE TABLE " + benchTable + " (document_id bigint NOT NULL, payload bytea NOT NULL)",
			drop:   "DROP TABLE IF EXISTS " + benchTable,
			client: func(statements ...string) *exec.Cmd {
				args := []string{"-X", "-q", "-v", "ON_ERROR_STOP=1", url}
				for _, s := range statements {
					args = append(args, "-c", s)
				}
				return exec.Command("psql", args...)
			},
			load: func(file string) string {
				return `\copy ` + benchTable + ` from '` + file + `' with (format binary)`
			},
			csv: func(file string) string { return `\copy ` + benchTable + ` from '` + file + `' with (format csv)` },
		})
	}
	for _, c := range []struct{ name, variable, client string }{
		{"MariaDB", "TERAPUSH_TEST_MARIADB", "mariadb"},
		{"MySQL", "TERAPUSH_TEST_MYSQL", os.Getenv("TERAPUSH_TEST_MYSQL_CLIENT")},
	} {
		if url := os.Getenv(c.variable); url != "" {
			all = append(all, mysqlServer(c.name, url, c.client))
		}
	}
	return all
}

func mysqlServer(name, url, client string) server {
	return server{
		name: name, family: "mysql", url: url, format: batch.TSV,
		create: "CREATE TABLE " + benchTable + " (document_id BIGINT NOT NULL, payload LONGBLOB NOT NULL)",
		drop:   "DROP TABLE IF EXISTS " + benchTable,
		client: func(statements ...string) *exec.Cmd {
			args := []string{"--no-defaults", "--local-infile=1"}
			if t, err := loader.ParseTarget(url); err == nil {
				host, port, _ := net.SplitHostPort(t.Address(0, "3306"))
				args = append(args, "--host="+host, "--port="+port, "--user="+t.User, "--protocol=tcp", t.Database)
			}
			return exec.Command(client, append(args, "-e", strings.Join(statements, "; "))...)
		},
		load: func(file string) string {
			return "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE " + benchTable + " CHARACTER SET binary"
		},
		csv: func(file string) string {
			return "LOAD DATA LOCAL INFILE '" + file + "' INTO TABLE " + benchTable + " CHARACTER SET utf8mb4 " +
				`FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '"' ESCAPED BY ''`
		},
	}
}

// bench lets the server's own command line and terapush take turns on a table that is made anew every time.
func (s server) bench(ctx context.Context, o options, stdout io.Writer) error {
	file, rows, err := s.writeFile(ctx, o.loadBytes)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file) }()
	push := func(workers int) contender {
		return contender{name: fmt.Sprintf("terapush exactly once, %d workers", workers), turn: func(ctx context.Context) (cost, error) {
			return s.turn(ctx, rows, func() (time.Duration, error) { return s.push(ctx, o, rows, workers) })
		}}
	}
	contenders := []contender{
		{name: filepath.Base(s.client().Path), turn: func(ctx context.Context) (cost, error) {
			return s.turn(ctx, rows, func() (time.Duration, error) { return s.cli(ctx, file) })
		}},
		push(1), push(2), push(4),
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s: seconds to load a GiB of the same %d rows, beside its own command line reading them from a file\n", s.name, rows)
	printTable(stdout, "seconds/GiB", contenders, costs, func(c cost) float64 { return c.wall.Seconds() })
	return s.client(s.drop).Run()
}

// writeFile writes the rows that terapush will push as the server's command line wants them.
func (s server) writeFile(ctx context.Context, bytes int) (path string, rows int64, err error) {
	d, err := dataset.New("documents", dataset.Options{Seed: 1})
	if err != nil {
		return "", 0, err
	}
	rows = int64(bytes) / d.Schema().MaxRowBytes()
	e, err := source.NewEncoder(s.format, d, 0, rows)
	if err != nil {
		return "", 0, err
	}
	// One batch is the whole file: the binary format has a head and a tail.
	whole := source.Spans{Rows: rows, BatchRows: rows}
	f, err := source.New(source.Config{Spans: whole, Dataset: d, Encoder: e, Run: "bench", Buffers: 1})
	if err != nil {
		return "", 0, err
	}
	b, err := f.Batch(ctx, 0)
	if err != nil {
		return "", 0, err
	}
	file, err := os.CreateTemp("", "terapush-bench-")
	if err != nil {
		return "", 0, err
	}
	body := b.Open()
	_, err = body.WriteTo(file)
	_ = body.Close()
	b.Release()
	return file.Name(), rows, errors.Join(err, file.Close(), f.Close(), os.Chmod(file.Name(), 0o644))
}

// turn makes the table anew, loads, and counts the rows.
func (s server) turn(ctx context.Context, rows int64, load func() (time.Duration, error)) (cost, error) {
	if out, err := s.client(s.drop, s.create).CombinedOutput(); err != nil {
		return cost{}, fmt.Errorf("making the table: %w: %s", err, out)
	}
	took, err := load()
	if err != nil {
		return cost{}, err
	}
	d, err := dataset.New("documents", dataset.Options{})
	gib := float64(rows*d.Schema().MaxRowBytes()) / (1 << 30)
	return cost{wall: time.Duration(float64(took) / gib)}, errors.Join(err, ctx.Err())
}

// cli loads the file with the server's own command line; its start is a few milliseconds.
func (s server) cli(ctx context.Context, file string) (time.Duration, error) {
	start := time.Now()
	out, err := s.client(s.load(file)).CombinedOutput()
	if err != nil {
		return 0, fmt.Errorf("%w: %s", err, out)
	}
	return time.Since(start), ctx.Err()
}

// push loads with terapush as anybody would, claims and all; the time is that of the load.
func (s server) push(ctx context.Context, o options, rows int64, workers int) (time.Duration, error) {
	state, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(state)
	p, err := report(ctx, o.terapush, []string{
		"push", s.url, "--table", benchTable, "--json", "--progress", "none", "--state-dir", state,
		"--rows", fmt.Sprint(rows), "--workers", fmt.Sprint(workers), "--verify", "ack",
	})
	return time.Duration(p.Result.Seconds * float64(time.Second)), err
}
