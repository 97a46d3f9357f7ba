package oracle

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/pkg/sqlload"
)

// CreateRuns implements sqlload.Claims.
func (l catalog) CreateRuns(s *sqlload.State) string { return l.statements(s).createRuns() }

// SelectRunSchemas implements sqlload.Claims.
func (catalog) SelectRunSchemas() string {
	return "SELECT owner FROM all_tables WHERE table_name = " + sqlload.Literal(strings.ToUpper(sqlload.RunsTable))
}

// Guard implements sqlload.Claims. DDL commits, and so ends every lock before it begins. It does not wait for others by
// itself (ORA-00054).
func (catalog) Guard(*sqlload.State) sqlload.Guard { return sqlload.Guard{} }

// Fence implements sqlload.Claims by locks on the tables that wait for the transactions which have changed them, and
// that a claim waits for in its turn, before it reads the run's row; see statements.claim. All take them in the same
// order.
func (l catalog) Fence(ctx context.Context, s *sqlload.State, f sqlload.Fence, change func(sqlload.Conn) error) error {
	return l.withConn(ctx, func(k *conn) error {
		lock := sqlload.TableLock{
			Lock: lockTables,
			Late: func(err error) bool { return is(err, codeBusy, codeWaitedForLock, codeDeadlock) },
			End:  endHolders,
		}
		return lock.Fence(ctx, begun{k}, append([]string{s.Runs()}, f.Claims...), change)
	})
}

// lockTables is TableLock.Lock.
func lockTables(wait time.Duration, tables []string) []string {
	statements := []string{"BEGIN"}
	for _, table := range tables {
		statements = append(statements, lockAlone(table, wait))
	}
	return statements
}

// begun is a conn whose statements are part of one transaction, which the driver begins and ends.
type begun struct{ *conn }

// Exec implements sqlload.Conn.
func (b begun) Exec(ctx context.Context, statement string) (rows int64, err error) {
	switch statement {
	case "BEGIN":
		return 0, b.begin(ctx)
	case "COMMIT":
		return 0, b.commit(ctx)
	case "ROLLBACK":
		return 0, b.rollback(ctx)
	}
	return b.exec(ctx, statement)
}

// createRuns creates the table of the runs' rows.
func (s statements) createRuns() string {
	columns := sqlload.RunColumns("VARCHAR2(255)", "VARCHAR2(255)", "NUMBER(19)")
	return "CREATE TABLE " + s.Runs() + " (" + strings.Join(columns, ", ") + ") NOCOMPRESS"
}

// lockAlone locks a table until the transaction ends. It waits no longer than it is told, since the claims of other
// runs wait behind it.
func lockAlone(table string, wait time.Duration) string {
	return fmt.Sprintf("LOCK TABLE %s IN EXCLUSIVE MODE WAIT %d", table, max(int(wait.Seconds()), 1))
}
