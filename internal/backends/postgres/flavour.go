package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader"
)

// flavour is a product that speaks PostgreSQL's protocol.
type flavour uint8

const (
	postgreSQL flavour = iota
	yugabyteDB
	redshift
)

// takesAhead lists the flavours that take claim and load in one message with a COPY's data behind it, and drop the data
// if the claim fails. YugabyteDB has that code, but runs statements again by itself after a conflict, which was not
// tried; a COPY of Redshift has no data. Other products that pass for PostgreSQL are asked first: CockroachDB refuses a
// COPY beside other statements.
var takesAhead = [...]bool{postgreSQL: true, yugabyteDB: false, redshift: false}

// productPostgreSQL is the first word of version() on PostgreSQL, Aurora and RDS.
const productPostgreSQL = "PostgreSQL"

// reportedSettings decide durability and speed; the report keeps them.
var reportedSettings = [...]string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_level", "wal_compression", "max_wal_size",
	"checkpoint_timeout", "shared_buffers", "max_connections", "autovacuum", "data_checksums", "server_encoding",
	"default_transaction_isolation", "yb_default_copy_from_rows_per_transaction",
}

// checkFlavour compares the product with what scheme, method and options assert.
func checkFlavour(t loader.Target, method string, o options, f flavour, s loader.Server) error {
	wrongScheme := func(product string) error {
		return &loader.Error{
			Op: "connect", Applied: loader.No, Err: fmt.Errorf("%s is %s %s, not %s", s.Endpoint, s.Product, s.Version, product),
			Hint: "write the target as postgres://…",
		}
	}
	wrong := func(what, product string) error {
		return fmt.Errorf("%s is for %s, and this is %s", what, product, s.Product)
	}
	switch {
	case t.Scheme == schemeYugabyte && f != yugabyteDB:
		return wrongScheme("YugabyteDB")
	case t.Scheme == schemeRedshift && f != redshift:
		return wrongScheme("Redshift")
	case f == redshift && method != methodS3Copy:
		return errRedshift()
	case f != redshift && method == methodS3Copy:
		return wrong("method "+method, "Redshift")
	case o.RowsPerTransaction > 0 && f != yugabyteDB:
		return wrong("option rows-per-transaction", "YugabyteDB")
	case o.NonTransactional && f != yugabyteDB:
		return wrong("option disable-transactional-writes", "YugabyteDB")
	case o.Unlogged && f == yugabyteDB:
		return wrong("option unlogged", "PostgreSQL")
	}
	return nil
}

// errRedshift refuses the methods that send rows to the server itself.
func errRedshift() error {
	return &loader.Error{
		Op: "connect", Applied: loader.No,
		Err:  errors.New("the target is Redshift, which takes bulk rows through S3 only: it has no COPY … FROM STDIN"),
		Hint: "add --method s3-copy --staging s3://bucket/prefix",
	}
}

// yugabyteNodes returns the nodes in yb_servers() that can be reached from here and are not known yet. It tries each
// address once: in containers and behind gateways a node's own address may mean nothing to a client.
func yugabyteNodes(ctx context.Context, a access, c *pgconn.PgConn, known []endpoint) ([]endpoint, error) {
	found, err := rowsOf(ctx, c, "SELECT host, port, public_ip FROM yb_servers()")
	if err != nil {
		return nil, failed("list the nodes", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	nodes := make([]endpoint, len(found))
	var wg sync.WaitGroup
	for i, row := range found {
		addresses := []endpoint{{host: row[0], port: row[1]}, {host: row[2], port: row[1]}}
		if slices.ContainsFunc(addresses, func(e endpoint) bool { return slices.Contains(known, e) }) {
			continue
		}
		wg.Go(func() {
			for _, e := range addresses {
				if e.host == "" {
					continue
				}
				if c, err := a.connect(ctx, e, nil); err == nil {
					_ = closeConn(c)
					nodes[i] = e
					return
				}
			}
		})
	}
	wg.Wait()
	return slices.DeleteFunc(nodes, func(e endpoint) bool { return e.host == "" }), nil
}
