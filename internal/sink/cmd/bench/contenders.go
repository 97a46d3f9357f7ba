//go:build linux

package main

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// contender is one way to push the ring. The product's row belongs into newContenders too: a push that runs the built
// terapush against the same sinks, taking its CPU time from the report instead of from this process.
type contender struct {
	name string
	push func(ctx context.Context, r *ring) (rows int64, err error)
}

// newContenders returns the write loop first: the others are measured against it.
func newContenders(ctx context.Context, address map[string]string) ([]contender, error) {
	loop, err := net.Dial("tcp", address["tcp"])
	if err != nil {
		return nil, err
	}
	plain, err := openMySQL(ctx, address["mysql"], nil)
	if err != nil {
		return nil, err
	}
	coalesced, err := openMySQL(ctx, address["mysql"], dialCoalescing)
	if err != nil {
		return nil, err
	}
	pg, err := pgconn.Connect(ctx, "postgres://bench@"+address["postgres"]+"/bench?sslmode=disable")
	if err != nil {
		return nil, err
	}
	return []contender{
		{"write loop, 256 KiB", func(_ context.Context, r *ring) (int64, error) { return writeLoop(loop, r) }},
		{"go-sql-driver load-data", func(ctx context.Context, r *ring) (int64, error) { return loadData(ctx, plain, r) }},
		{"… coalesced to 256 KiB", func(ctx context.Context, r *ring) (int64, error) { return loadData(ctx, coalesced, r) }},
		{"pgconn copy", func(ctx context.Context, r *ring) (int64, error) { return copyFrom(ctx, pg, r) }},
		{"… writev, 256 KiB", func(_ context.Context, r *ring) (int64, error) { return copyVectors(pg, r) }},
	}, nil
}

func writeLoop(c net.Conn, r *ring) (rows int64, err error) {
	for _, b := range r.bodies {
		if _, err := c.Write(binary.BigEndian.AppendUint64(nil, uint64(len(b)))); err != nil {
			return 0, err
		}
		for len(b) > 0 {
			n := min(len(b), coalesceBytes)
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

type dial func(ctx context.Context, network, address string) (net.Conn, error)

func openMySQL(ctx context.Context, address string, d dial) (*sql.Conn, error) {
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DialFunc = "bench", "tcp", address, d
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

// copyVectors is what copy could cost: the header and the ring's own bytes in one writev, nothing copied before the
// kernel does. It does not listen while it sends, so a server's error would come late.
func copyVectors(c *pgconn.PgConn, r *ring) (rows int64, err error) {
	front := c.Frontend()
	for _, b := range r.bodies {
		front.SendQuery(&pgproto3.Query{String: "COPY t FROM STDIN"})
		if err := front.Flush(); err != nil {
			return 0, err
		}
		for len(b) > 0 {
			n := min(len(b), coalesceBytes)
			header := binary.BigEndian.AppendUint32([]byte{'d'}, uint32(n+4))
			if _, err := (&net.Buffers{header, b[:n]}).WriteTo(c.Conn()); err != nil {
				return 0, err
			}
			b = b[n:]
		}
		front.Send(&pgproto3.CopyDone{})
		if err := front.Flush(); err != nil {
			return 0, err
		}
		n, err := copied(front)
		if err != nil {
			return 0, err
		}
		rows += n
	}
	return rows, nil
}

func copied(front *pgproto3.Frontend) (rows int64, err error) {
	for {
		message, err := front.Receive()
		if err != nil {
			return 0, err
		}
		switch m := message.(type) {
		case *pgproto3.CommandComplete:
			rows = pgconn.NewCommandTag(string(m.CommandTag)).RowsAffected()
		case *pgproto3.ErrorResponse:
			return 0, pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return rows, nil
		}
	}
}

const coalesceBytes = 256 << 10

// coalescing gathers writes. It is right for half-duplex protocols only: what is gathered leaves before the next Read.
type coalescing struct {
	net.Conn
	buf []byte
}

func dialCoalescing(ctx context.Context, network, address string) (net.Conn, error) {
	var d net.Dialer
	c, err := d.DialContext(ctx, network, address)
	return &coalescing{Conn: c, buf: make([]byte, 0, coalesceBytes)}, err
}

func (c *coalescing) Write(p []byte) (int, error) {
	if len(c.buf)+len(p) > cap(c.buf) {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	c.buf = append(c.buf, p...)
	return len(p), nil
}

func (c *coalescing) Read(p []byte) (int, error) {
	if err := c.flush(); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *coalescing) flush() error {
	if len(c.buf) == 0 {
		return nil
	}
	_, err := c.Conn.Write(c.buf)
	c.buf = c.buf[:0]
	return err
}
