package mysqlconn

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/sqlload"
)

// Numbers of errors that servers with transactions have in common.
const (
	tableExists  = 1050
	duplicateKey = 1062
	noSuchThread = 1094
	lockTimeout  = 1205
	deadlock     = 1213
)

// Exists implements sqlload.Catalog.Exists.
func Exists(err error) bool { return Is(err, tableExists) }

// Taken reports whether the key of a claim is there already.
func Taken(err error) bool { return Is(err, duplicateKey) }

// Guard implements sqlload.Claims.Guard. DDL commits, so no lock of a row would last until it is done.
func Guard(s *sqlload.State) sqlload.Guard {
	return sqlload.Guard{Before: fmt.Sprintf("LOCK TABLES %s WRITE, %s READ", s.Table, s.Runs()), After: "UNLOCK TABLES"}
}

// TableLock is a fence by LOCK TABLES … WRITE, which waits for every transaction that has used one of the tables, and
// lets no later one begin. Its connection has autocommit off.
func TableLock(end func() (others string, err error)) sqlload.TableLock {
	return sqlload.TableLock{
		Lock: func(wait time.Duration, tables []string) []string {
			return []string{
				fmt.Sprintf("SET SESSION lock_wait_timeout = %d", int(wait.Seconds())),
				"LOCK TABLES " + strings.Join(tables, " WRITE, ") + " WRITE",
			}
		},
		Late:   func(err error) bool { return Is(err, lockTimeout, deadlock) },
		Unlock: "UNLOCK TABLES",
		End:    end,
	}
}

// The isolation of a session that reads what is not committed, and of one that reads only what is.
const (
	ReadUncommitted = "SET SESSION TRANSACTION ISOLATION LEVEL READ UNCOMMITTED"
	ReadCommitted   = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"
)

// Kill ends a connection, unless it has ended by itself.
func Kill(ctx context.Context, c sqlload.Conn, connection string) error {
	_, err := c.Exec(ctx, "KILL "+connection)
	if Is(err, noSuchThread) {
		return nil
	}
	return err
}

// Uncommitted reads the connections of claims that are not committed, which the last column of query names. Connect
// opens a session that says besides what it is given.
func Uncommitted(
	ctx context.Context, connect func(ctx context.Context, besides ...string) (Conn, error), query string,
) ([]string, error) {
	const patience = "SET SESSION lock_wait_timeout = 10" // with a fence
	dirty, err := connect(ctx, ReadUncommitted, patience)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dirty.Close() }()
	committed, err := connect(ctx, ReadCommitted, patience)
	if err != nil {
		return nil, err
	}
	defer func() { _ = committed.Close() }()
	return sqlload.Uncommitted(ctx, dirty, committed, query)
}
