package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// flavour is the product behind the protocol, as far as it makes a difference.
type flavour uint8

const (
	postgreSQL flavour = iota
	yugabyteDB
	redshift
)

// recorded are the settings that decide durability and speed; the report keeps them.
var recorded = [...]string{
	"fsync", "synchronous_commit", "full_page_writes", "wal_level", "wal_compression", "max_wal_size",
	"checkpoint_timeout", "shared_buffers", "max_connections", "autovacuum", "data_checksums", "server_encoding",
	"default_transaction_isolation", "yb_default_copy_from_rows_per_transaction",
}

// probeServer asks the server what it is.
func probeServer(ctx context.Context, c *pgconn.PgConn, settings []loader.Setting) (flavour, loader.Server, error) {
	version, err := rowsOf(ctx, c, "SELECT version()")
	if err != nil {
		return 0, loader.Server{}, failed("ask for the version", err)
	}
	text := version[0][0]
	product, _, _ := strings.Cut(text, " ")
	s := loader.Server{Product: product, Version: c.ParameterStatus("server_version"), Settings: make(map[string]string)}
	f := postgreSQL
	switch {
	case strings.Contains(text, "Redshift"): // "PostgreSQL 8.0.2 on …, Redshift 1.0.117891"
		_, s.Version, _ = strings.Cut(text, "Redshift ")
		s.Product = "Redshift"
		for _, set := range settings {
			s.Settings[set.Name] = set.Value
		}
		return redshift, s, nil // durability is not for a session to choose there
	case strings.Contains(text, "-YB-"): // "PostgreSQL 15.2-YB-2024.2.0.0-b145 on …"
		f, s.Product = yugabyteDB, "YugabyteDB"
	}

	names := recorded[:]
	for _, set := range settings {
		names = append(slices.Clip(names), strings.ToLower(set.Name))
	}
	found, err := rowsOf(ctx, c, fmt.Sprintf("SELECT name, current_setting(name) FROM pg_settings WHERE lower(name) IN (%s)",
		sqlload.Literals(names)))
	if err != nil {
		return 0, s, failed("read the settings", err)
	}
	for _, row := range found {
		s.Settings[row[0]] = row[1]
	}
	return f, s, nil
}

// asserts checks what the target takes for granted against what was found.
func asserts(t loader.Target, method string, o options, f flavour, s loader.Server) error {
	switch {
	case t.Scheme == schemeYugabyte && f != yugabyteDB:
		return &loader.Error{
			Op: "connect", Applied: loader.No, Err: fmt.Errorf("%s says it is %s %s, not YugabyteDB", s.Endpoint, s.Product, s.Version),
			Hint: "write the target as postgres://…",
		}
	case t.Scheme == schemeRedshift && f != redshift:
		return &loader.Error{
			Op: "connect", Applied: loader.No, Err: fmt.Errorf("%s says it is %s %s, not Redshift", s.Endpoint, s.Product, s.Version),
			Hint: "write the target as postgres://…",
		}
	case f == redshift && method != methodS3Copy:
		return errRedshift()
	case f != redshift && method == methodS3Copy:
		return fmt.Errorf("method %s is Redshift's, and this is %s: here method %s sends rows to the server itself", method, s.Product, methodCopy)
	case f != postgreSQL && method == methodImport:
		return fmt.Errorf("method %s is that of Aurora and RDS for PostgreSQL, and this is %s", method, s.Product)
	case o.rowsPerTransaction > 0 && f != yugabyteDB:
		return fmt.Errorf("option %s is YugabyteDB's, and this is %s: here a batch is one transaction, and --batch-rows sets its size",
			optionRowsPerTransaction, s.Product)
	case o.nonTransactional && f != yugabyteDB:
		return fmt.Errorf("option %s is YugabyteDB's, and this is %s", optionNonTransactional, s.Product)
	case o.unlogged && f == yugabyteDB:
		return fmt.Errorf("option %s: YugabyteDB has no unlogged tables", optionUnlogged)
	}
	return nil
}

// errRedshift refuses the methods that send rows to the server itself.
func errRedshift() error {
	return &loader.Error{
		Op: "connect", Applied: loader.No,
		Err:  errors.New("the target is Redshift, which takes bulk rows through S3 only: it has no COPY … FROM STDIN"),
		Hint: "add --method s3-copy --via s3://bucket/prefix",
	}
}

// yugabyteNodes lists the nodes that yb_servers() knows and that can be reached from here, with one try each: inside
// containers and behind gateways a node's own address may mean nothing to a client.
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
		wg.Go(func() {
			own, public := endpoint{host: row[0], port: row[1]}, endpoint{host: row[2], port: row[1]}
			if slices.Contains(known, own) || slices.Contains(known, public) {
				return
			}
			for _, e := range [...]endpoint{own, public} {
				if e.host == "" {
					continue
				}
				if c, err := a.connect(ctx, e, adminName, nil); err == nil {
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
