package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// connectPatience bounds one attempt to connect, for listeners that accept and then say nothing.
const connectPatience = 10 * time.Second

// link is one connection, a sqlload.Conn: a pool of its own that holds nothing else. Pinned, package sql repeats nothing on
// another one.
type link struct {
	client client
	pool   *sql.DB
	conn   *sql.Conn
	where  string

	// tx is the driver's transaction, if one is open; where transactions end by statements it stays.
	tx    driver.Tx
	claim *sql.Stmt // the INSERT of a claim; nil before the first
	dead  bool
}

// somewhere runs f on a connection of its own to the first host that answers.
func (l *opened) somewhere(ctx context.Context, f func(*link) error) error {
	k, err := l.dial(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }()
	return f(k)
}

// dial connects to the first host that answers, from the one numbered first on.
func (l *opened) dial(ctx context.Context, first int) (k *link, err error) {
	hosts := make([]int, max(len(l.target.Hosts), 1))
	for i := range hosts {
		hosts[i] = i
	}
	err = loader.FirstOf(ctx, hosts, first, func(ctx context.Context, host int) (err error) {
		k, err = l.connect(ctx, host)
		return err
	})
	return k, err
}

// connect opens a connection to one host of the target. What --set says holds for all of them: those that load, those that
// prove, and those that ask what became of a batch.
func (l *opened) connect(ctx context.Context, host int) (*link, error) {
	k := &link{client: l.client, where: where(l.target, host)}
	connector, err := l.client.connector(l.target, l.deps, host)
	if err != nil { // of the target or of a file, before anybody was asked
		return nil, &loader.Error{Op: "connect to " + k.where, Applied: loader.No, Err: err}
	}
	k.pool = sql.OpenDB(connector)
	k.pool.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	if k.conn, err = k.pool.Conn(ctx); err != nil {
		_ = k.pool.Close()
		return nil, k.connectError(err)
	}
	for _, statement := range alterSession(l.target.Settings) {
		if _, err := k.exec(ctx, statement); err != nil {
			_ = k.Close()
			return nil, failed("set up the session: "+statement, loader.Mark("set up the session: "+statement, loader.No, err))
		}
	}
	return k, nil
}

// where names a host of the target with service and user, and nothing that is secret.
func where(t loader.Target, host int) string {
	address, service := t.Address(host, defaultPort), t.Database
	if len(t.Hosts) == 0 {
		address = "the address in tnsnames.ora"
	}
	if sid := t.Params.Get(paramSID); sid != "" {
		return fmt.Sprintf("%s, SID %q, as user %q", address, sid, t.User)
	}
	return fmt.Sprintf("%s, service %q, as user %q", address, service, t.User)
}

// exec runs a statement and returns how many rows it changed.
func (k *link) exec(ctx context.Context, text string, args ...any) (rows int64, err error) {
	result, err := k.conn.ExecContext(ctx, text, args...)
	return k.affected(ctx, result, err)
}

// affected is how many rows a statement has changed. Without a guard a driver may panic here, too: package sql asks the
// driver's result, which may be none.
func (k *link) affected(ctx context.Context, result sql.Result, err error) (rows int64, _ error) {
	if err == nil {
		rows, err = affectedBy(result)
	}
	if err != nil {
		return 0, k.outcome(ctx, err)
	}
	return rows, nil
}

func affectedBy(result sql.Result) (rows int64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = driverPanic{p}
		}
	}()
	return result.RowsAffected()
}

// Exec implements sqlload.Conn. A DELETE has a transaction of its own, and DDL commits by itself.
func (k *link) Exec(ctx context.Context, statement string) (rows int64, err error) {
	if !strings.HasPrefix(statement, "DELETE ") {
		return k.exec(ctx, statement)
	}
	if err = k.begin(ctx); err == nil {
		rows, err = k.exec(ctx, statement)
	}
	if err == nil {
		err = k.commit(ctx)
	}
	return rows, err
}

// Query implements sqlload.Conn. To Oracle an empty value is a NULL, whatever a driver makes of it.
func (k *link) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	return k.outcome(ctx, sqlload.SQL{Conn: k.conn}.Query(ctx, query, func(row [][]byte) error {
		for i, value := range row {
			if len(value) == 0 {
				row[i] = nil
			}
		}
		return each(row)
	}))
}

// execPrepared runs a statement that is prepared once, and after an error anew.
func (k *link) execPrepared(ctx context.Context, s **sql.Stmt, text string, args ...any) (rows int64, err error) {
	if *s == nil {
		if *s, err = k.conn.PrepareContext(ctx, text); err != nil {
			*s = nil
			return 0, k.outcome(ctx, err)
		}
	}
	result, err := (*s).ExecContext(ctx, args...)
	if rows, err = k.affected(ctx, result, err); err == nil {
		return rows, nil
	}
	if !k.dead {
		_ = (*s).Close()
	}
	*s = nil
	return 0, err
}

// begin opens a transaction. Oracle begins one at the first change by itself: what this is for is that the driver sends
// nothing any more with the order to commit it. godror asks the server once all the same (SET TRANSACTION READ WRITE), and
// the first ctx is what ends that; it keeps none of them.
func (k *link) begin(ctx context.Context) error {
	if k.tx != nil && k.client.endsByStatement {
		return nil
	}
	if k.tx != nil {
		return errors.New("the last transaction has not ended")
	}
	return k.outcome(ctx, k.conn.Raw(func(c any) (err error) {
		b, ok := c.(driver.ConnBeginTx)
		if !ok {
			return fmt.Errorf("%s knows no transactions", k.client.name)
		}
		k.tx, err = b.BeginTx(ctx, driver.TxOptions{})
		if err != nil {
			k.tx = nil
		}
		return err
	}))
}

// commit ends the transaction. An error leaves open whether the server has committed, unless it is errNotSent. It also
// leaves open whether there is still a transaction, to which the next one would be added, so the connection is given up.
func (k *link) commit(ctx context.Context) error {
	err := k.end(ctx, "COMMIT", driver.Tx.Commit)
	if err != nil {
		k.giveUp()
	}
	return err
}

// rollback gives the transaction up, if there is one. It is needed most when ctx has ended. A connection that cannot roll
// back is of no use any more: the server rolls back by itself when it ends.
func (k *link) rollback(ctx context.Context) error {
	if k.tx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectPatience)
	defer cancel()
	err := k.end(ctx, "ROLLBACK", driver.Tx.Rollback)
	if err != nil {
		k.giveUp()
	}
	return err
}

// errNotSent says that the connection had broken before.
var errNotSent = errors.New("the connection broke before, and nothing was sent")

func (k *link) end(ctx context.Context, statement string, end func(driver.Tx) error) error {
	if k.dead || k.tx == nil {
		return errNotSent
	}
	if k.client.endsByStatement {
		_, err := k.exec(ctx, statement)
		return err
	}
	tx := k.tx
	k.tx = nil
	return k.outcome(ctx, k.conn.Raw(func(c any) error {
		if w, ok := c.(watcher); ok {
			defer w.watch(ctx)()
		}
		return end(tx)
	}))
}

// onAnswer has f called when the driver begins to wait for the answer to what it sends next. It returns false where the
// driver lets nobody see.
func (k *link) onAnswer(f func()) (seen bool) {
	_ = k.conn.Raw(func(c any) error {
		var w watcher
		if w, seen = c.(watcher); seen {
			w.onAnswer(f)
		}
		return nil
	})
	return seen
}

// outcome remembers that the connection is lost, and says of an error after the end of ctx that this was its reason.
func (k *link) outcome(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	err = k.client.said(err)
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if loader.Judge(err, faultOf).SessionDead {
		k.giveUp()
	}
	return err
}

// giveUp ends a connection that is of no use any more, at once and not when its session is closed: as long as it stands,
// the server keeps its transaction, and whoever asks what became of that waits for its locks.
func (k *link) giveUp() {
	if k.dead {
		return
	}
	k.dead = true
	end := func() { _ = errors.Join(k.conn.Close(), k.pool.Close()) }
	if k.client.endsByStatement { // godror rolls back first, and waits for a server that may be gone
		go end()
		return
	}
	end()
}

// Close implements sqlload.Conn. It rolls back first: to Oracle a session that says goodbye is done with its work, and what
// it has not committed is committed.
func (k *link) Close() error {
	if k.dead {
		return nil
	}
	_ = k.rollback(context.Background()) // gives the connection up if it fails
	if k.dead {
		return nil
	}
	return errors.Join(k.conn.Close(), k.pool.Close())
}
