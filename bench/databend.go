//go:build linux

package main

import (
	"bufio"
	"context"
	"database/sql"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"

	_ "github.com/datafuselabs/databend-go" // the driver "databend"
	"golang.org/x/sync/errgroup"

	"github.com/terapush/terapush/internal/dataset"
	"github.com/terapush/terapush/pkg/loader"
)

// driverScript has Databend's own client load the ring.
//
//go:embed databend.py
var driverScript string

// engineBodies is how many bodies are loaded in a turn: the server of these benches gives no space back before it
// stops, so every turn's rows stay on the disk.
const engineBodies = 8

// databend is the real server, and what everybody loads into it.
type databend struct {
	url     string
	target  loader.Target
	db      *sql.DB
	ring    *ring
	method  loader.Method
	session loader.Session
	turn    int
}

// againstDatabend lets everybody stream the same rows into a real server, where TERAPUSH_TEST_DATABEND names one.
func againstDatabend(ctx context.Context, o options, stdout io.Writer) (err error) {
	url := os.Getenv("TERAPUSH_TEST_DATABEND")
	m, found := method("databend")
	if url == "" || !found || !o.wants("databend") {
		return nil
	}
	d := databend{url: url, method: m}
	if d.target, err = loader.ParseTarget(url); err != nil {
		return err
	}
	if d.db, err = sql.Open("databend", url); err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, d.run(context.WithoutCancel(ctx), "DROP TABLE IF EXISTS "+benchTable), d.db.Close())
	}()
	if err := d.run(ctx, d.create()); err != nil {
		return err
	}
	if d.ring, err = newEncodedRing(ctx, m.Caps.Formats[0], engineBodies*o.bodyBytes, o.bodyBytes, 0); err != nil {
		return err
	}
	defer d.ring.free()
	if d.session, err = openSession(ctx, url, m, loader.Preparation{Create: loader.CreateIfMissing}); err != nil {
		return err
	}
	return d.bench(ctx, o, stdout)
}

func (d *databend) bench(ctx context.Context, o options, stdout io.Writer) error {
	run := func(name string, load func(context.Context) (cost, error)) contender {
		return contender{name: name, turn: func(ctx context.Context) (cost, error) { return d.counted(ctx, load) }}
	}
	contenders := []contender{
		run("PUT by hand, 256 KiB writes", func(ctx context.Context) (cost, error) { return measure(ctx, d.byHand, d.ring, 0) }),
		run("terapush's sessions", inParallel(d.ring, "", func(ctx context.Context, i int) error {
			// A label that was used would be skipped.
			return loadBatch(ctx, d.session, fmt.Sprintf("bench-%x-%d", os.Getpid(), d.turn), i, d.ring)
		}).turn),
		run("terapush "+d.method.Name, func(ctx context.Context) (cost, error) { return d.push(ctx, o.terapush) }),
	}
	if python := os.Getenv("TERAPUSH_TEST_DATABEND_PYTHON"); python != "" {
		folder, err := writeFiles(d.ring)
		if err != nil {
			return err
		}
		defer os.RemoveAll(folder)
		contenders = append(contenders, run("databend-driver (Python)", func(ctx context.Context) (cost, error) {
			return d.driver(ctx, python, folder)
		}))
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nDatabend: to load a GiB by streaming loads of %d bytes, %d at a time\n", len(d.ring.bodies[0]), defaultWorkers)
	printTable(stdout, "seconds/GiB", contenders, costs, func(c cost) float64 { return c.wall.Seconds() })
	printTable(stdout, "client CPU s/GiB", contenders, costs, func(c cost) float64 { return c.client.Seconds() })
	return nil
}

// counted makes the table anew, loads, and counts.
func (d *databend) counted(ctx context.Context, load func(context.Context) (cost, error)) (cost, error) {
	d.turn++
	if err := d.run(ctx, "DROP TABLE IF EXISTS "+benchTable); err != nil {
		return cost{}, err
	}
	if err := d.run(ctx, d.create()); err != nil {
		return cost{}, err
	}
	spent, err := load(ctx)
	if err != nil {
		return cost{}, err
	}
	spent.sink = 0 // the server's CPU time is not ours to read
	var rows int64
	if err := d.db.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+benchTable).Scan(&rows); err != nil {
		return cost{}, err
	}
	if rows != d.ring.rows {
		return cost{}, fmt.Errorf("%d rows are in the table, %d were loaded", rows, d.ring.rows)
	}
	return spent, nil
}

func (d *databend) create() string {
	return "CREATE TABLE " + benchTable + " (document_id BIGINT NOT NULL, payload VARCHAR NOT NULL)"
}

func (d *databend) run(ctx context.Context, statement string) error {
	_, err := d.db.ExecContext(ctx, statement)
	return err
}

// byHand puts the bodies over connections that share them out.
func (d *databend) byHand(ctx context.Context, r *ring) (rows int64, err error) {
	q := streamingRequest()
	q.header["X-Databend-SQL"] = "INSERT INTO " + benchTable + " (document_id, payload) FROM @_databend_load FILE_FORMAT = (type = CSV)"
	q.header["Authorization"] = "Basic " + base64.StdEncoding.EncodeToString([]byte(d.target.User+":"+d.target.Password.Reveal()))
	all, ctx := errgroup.WithContext(ctx)
	for w := range defaultWorkers {
		share := &ring{}
		for i := w; i < len(r.bodies); i += defaultWorkers {
			share.bodies = append(share.bodies, r.bodies[i])
			share.rows += r.bodyRows()
		}
		all.Go(func() error {
			c, err := new(net.Dialer).DialContext(ctx, "tcp", d.target.Address(0, "8000"))
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = putLoop(c, bufio.NewReader(c), q, share)
			return err
		})
	}
	return r.rows, all.Wait()
}

// push loads with terapush as anybody would, labels and all.
func (d *databend) push(ctx context.Context, binary string) (cost, error) {
	state, err := os.MkdirTemp("", "terapush-bench-")
	if err != nil {
		return cost{}, err
	}
	defer os.RemoveAll(state)
	p, err := report(ctx, binary, []string{
		"push", d.url, "--table", benchTable, "--json", "--progress", "none", "--state-dir", state, "--payload-kind", string(dataset.Text),
		"--rows", fmt.Sprint(d.ring.rows), "--batch-rows", fmt.Sprint(d.ring.bodyRows()), "--workers", fmt.Sprint(defaultWorkers), "--verify", "ack",
	})
	gib := float64(p.Result.EncodedBytes) / (1 << 30)
	perGiB := func(seconds float64) time.Duration { return time.Duration(seconds / gib * float64(time.Second)) }
	return cost{client: perGiB(p.Client.LoadSeconds), wall: perGiB(p.Result.Seconds)}, err
}

func (d *databend) driver(ctx context.Context, python, folder string) (cost, error) {
	c := exec.CommandContext(ctx, python, "-", d.url, benchTable, folder, fmt.Sprint(defaultWorkers))
	c.Stdin, c.Stderr = strings.NewReader(driverScript), os.Stderr
	text, err := c.Output()
	if err != nil {
		return cost{}, fmt.Errorf("databend-driver: %w", err)
	}
	var took struct{ Seconds, CPU float64 }
	if err := json.Unmarshal(text, &took); err != nil {
		return cost{}, err
	}
	perGiB := func(seconds float64) time.Duration {
		return time.Duration(seconds / float64(d.ring.bytes()) * (1 << 30) * float64(time.Second))
	}
	return cost{client: perGiB(took.CPU), wall: perGiB(took.Seconds)}, nil
}
