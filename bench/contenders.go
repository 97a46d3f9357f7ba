//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

// contender is one way to push.
type contender struct {
	name    string
	turn    func(ctx context.Context) (cost, error)
	budget  float64 // the most that the ratio should be; 0: there is none
	missing string  // why it cannot take part
}

// cost is what one turn took, per GiB.
type cost struct{ client, sink, wall time.Duration }

const cpuTitle = "client CPU for a GiB pushed over loopback into a discarding server, start-up excluded"

// inProcess is a contender that pushes the ring from within the bench.
func inProcess(name string, s *sinkProcess, r *ring, push func(context.Context, *ring) (int64, error)) contender {
	return contender{name: name, turn: func(ctx context.Context) (cost, error) { return measure(ctx, push, r, s.pid()) }}
}

// byHand measures what others wrote, or anybody could, for the same protocols: one connection each, no keys stamped.
func byHand(ctx context.Context, o options, stdout io.Writer) error {
	if o.wants("mysql") || o.wants("postgres") {
		if err := sqlByHand(ctx, o, stdout); err != nil {
			return err
		}
	}
	for _, family := range webFamilies {
		m, found := method(family)
		if !found || !o.wants(family) {
			continue
		}
		if err := webByHand(ctx, family, m, o, stdout); err != nil {
			return fmt.Errorf("%s: %w", family, err)
		}
	}
	return nil
}

func sqlByHand(ctx context.Context, o options, stdout io.Writer) error {
	r, err := newRing(o.ringBytes, o.bodyBytes, keyDigits+1+payloadBytes+1)
	if err != nil {
		return err
	}
	defer r.free()
	s, err := startSink(ctx, o, r.rowBytes())
	if err != nil {
		return err
	}
	defer s.stop()
	contenders, err := sqlContenders(ctx, o, s, r)
	if err != nil {
		return err
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\nmysql and postgres by hand: %s\n", cpuTitle)
	printTable(stdout, "client CPU s/GiB", contenders, costs, func(c cost) float64 { return c.client.Seconds() })
	return nil
}

// webByHand has a sink and a ring of its own for a family: its answers count rows, and so must know how long these are.
func webByHand(ctx context.Context, family string, m loader.Method, o options, stdout io.Writer) error {
	if err := anyKeys(); err != nil {
		return err
	}
	d, err := documents()
	if err != nil {
		return err
	}
	runRows := int64(turns*o.ringBytes) / d.Schema().MaxRowBytes() // as of a push, whose keys are longer than the ring's
	r, err := newEncodedRing(ctx, m.Caps.Formats[0], o.ringBytes, o.bodyBytes, runRows)
	if err != nil {
		return err
	}
	defer r.free()
	s, err := startSink(ctx, o, r.rowBytes())
	if err != nil {
		return err
	}
	defer s.stop()
	contenders, err := webContenders(ctx, family, s, r, m)
	if err != nil {
		return err
	}
	costs, err := takeTurns(ctx, o.rounds, contenders)
	if err != nil {
		return err
	}
	fmt.Fprintf(stdout, "\n%s by hand: %s\n", family, cpuTitle)
	printTable(stdout, "client CPU s/GiB", contenders, costs, func(c cost) float64 { return c.client.Seconds() })
	return nil
}

// sqlContenders returns the write loop first: the others are measured against it.
func sqlContenders(ctx context.Context, o options, s *sinkProcess, r *ring) ([]contender, error) {
	loop, err := net.Dial("tcp", s.addresses["raw"])
	if err != nil {
		return nil, err
	}
	all := []contender{inProcess(loopName, s, r, func(_ context.Context, r *ring) (int64, error) { return writeLoop(loop, r) })}
	if o.wants("mysql") {
		driver, err := openMySQL(ctx, s.addresses["mysql"])
		if err != nil {
			return nil, err
		}
		all = append(all, inProcess("go-sql-driver alone", s, r, func(ctx context.Context, r *ring) (int64, error) { return loadData(ctx, driver, r) }))
	}
	if o.wants("postgres") {
		pg, err := pgconn.Connect(ctx, s.url("postgres"))
		if err != nil {
			return nil, err
		}
		all = append(all, inProcess("pgconn alone", s, r, func(ctx context.Context, r *ring) (int64, error) { return copyFrom(ctx, pg, r) }))
	}
	return all, nil
}

func measure(ctx context.Context, push func(context.Context, *ring) (int64, error), r *ring, sinkPID int) (cost, error) {
	client, sink, start := cpuTime(0), cpuTime(sinkPID), time.Now()
	rows, err := push(ctx, r)
	wall := time.Since(start)
	if err == nil && rows != r.rows {
		err = fmt.Errorf("%d rows acknowledged of %d", rows, r.rows)
	}
	perGiB := func(d time.Duration) time.Duration {
		return time.Duration(float64(d) / float64(r.bytes()) * (1 << 30))
	}
	return cost{perGiB(cpuTime(0) - client), perGiB(cpuTime(sinkPID) - sink), perGiB(wall)}, err
}

// writeBytes is what the loop hands to the kernel at once: more makes no difference.
const (
	writeBytes = 256 << 10
	loopName   = "write loop, 256 KiB"
)

// writeLoop is the least that any client can do.
func writeLoop(c net.Conn, r *ring) (rows int64, err error) {
	for _, b := range r.bodies {
		if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))); err != nil {
			return 0, err
		}
		for len(b) > 0 {
			n := min(len(b), writeBytes)
			if _, err := c.Write(b[:n]); err != nil {
				return 0, err
			}
			b = b[n:]
		}
		var answer [8]byte
		if _, err := io.ReadFull(c, answer[:]); err != nil {
			return 0, err
		}
		rows += int64(binary.BigEndian.Uint64(answer[:]))
	}
	return rows, nil
}

func openMySQL(ctx context.Context, address string) (*sql.Conn, error) {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr = "bench", "tcp", address
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector).Conn(ctx)
}

func loadData(ctx context.Context, c *sql.Conn, r *ring) (rows int64, err error) {
	defer mysql.DeregisterReaderHandler("ring")
	for _, b := range r.bodies {
		mysql.RegisterReaderHandler("ring", func() io.Reader { return (*body)(&b) })
		result, err := c.ExecContext(ctx, "LOAD DATA LOCAL INFILE 'Reader::ring' INTO TABLE t")
		if err != nil {
			return 0, err
		}
		n, err := result.RowsAffected()
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

func copyFrom(ctx context.Context, c *pgconn.PgConn, r *ring) (rows int64, err error) {
	for _, b := range r.bodies {
		tag, err := c.CopyFrom(ctx, (*body)(&b), "COPY t FROM STDIN")
		if err != nil {
			return 0, fmt.Errorf("copy: %w", err)
		}
		rows += tag.RowsAffected()
	}
	return rows, nil
}
