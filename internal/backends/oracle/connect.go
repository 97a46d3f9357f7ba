package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/terapush/terapush/internal/netio"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/sqlload"
)

// defaultPort is the listener's.
const defaultPort = "1521"

// conn is one connection, a sqlload.Conn. It has a pool of its own and is pinned, so that package sql never repeats a
// statement on another connection.
type conn struct {
	client client
	pool   *sql.DB
	conn   *sql.Conn
	where  string

	// tx is the open transaction or nil. Where transactions end by statements it is kept for the next one.
	tx    driver.Tx
	claim *sql.Stmt // the INSERT of a claim; nil before the first
	dead  bool
}

// endpoints numbers the target's hosts. Without one it is 0, for the address in tnsnames.ora.
func endpoints(t loader.Target) (all []int) {
	for host := range max(len(t.Hosts), 1) {
		all = append(all, host)
	}
	return all
}

// withConn runs f on a connection of its own to the first host that answers.
func (l *opened) withConn(ctx context.Context, f func(*conn) error) error {
	k, err := l.dial(ctx, 0)
	if err != nil {
		return err
	}
	defer func() { _ = k.Close() }()
	return f(k)
}

// dial connects to the first host that answers, beginning with the one numbered first.
func (l *opened) dial(ctx context.Context, first int) (k *conn, err error) {
	err = l.hosts.From(ctx, first, func(ctx context.Context, host int) (err error) {
		connect := func(ctx context.Context) error {
			k, err = l.connect(ctx, host)
			return err
		}
		if l.server.Product != "" || len(l.target.Hosts) == 0 || encrypted(l.target.TLS) { // it has answered, or has no port
			return connect(ctx)
		}
		answered := func(err error) bool { _, _, is := l.client.code(err); return is }
		return netio.Reach(ctx, l.deps.Dial, l.target.Address(host, defaultPort), netio.Oracle, answered, connect)
	})
	return k, err
}

// connect connects to one host of the target. --set applies to every connection, whatever it is for.
func (l *opened) connect(ctx context.Context, host int) (*conn, error) {
	k := &conn{client: l.client, where: where(l.target, host)}
	connector, err := l.client.connector(l.target, l.deps, host)
	if err != nil { // in the target or a file: nothing was sent
		return nil, &loader.Error{Op: "connect to " + k.where, Applied: loader.No, Err: err}
	}
	k.pool = sql.OpenDB(connector)
	k.pool.SetMaxOpenConns(1)
	ctx, cancel := context.WithTimeout(ctx, loader.ConnectTimeout)
	defer cancel()
	if k.conn, err = k.pool.Conn(ctx); err != nil {
		_ = k.pool.Close()
		return nil, k.connectError(err)
	}
	if err := k.setUp(ctx, sessionSettings(l.target.Settings)...); err != nil {
		_ = k.Close()
		return nil, err
	}
	return k, nil
}

// where names a host of the target with service and user, without secrets.
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
func (k *conn) exec(ctx context.Context, text string, args ...any) (rows int64, err error) {
	result, err := k.conn.ExecContext(ctx, text, args...)
	return k.affected(ctx, result, err)
}

// affected returns how many rows a statement has changed. package sql panics at the nil result of an unguarded driver.
func (k *conn) affected(ctx context.Context, result sql.Result, err error) (rows int64, failure error) {
	defer func() {
		if p := recover(); p != nil {
			rows, failure = 0, k.observe(ctx, driverPanic{p})
		}
	}()
	if err == nil {
		rows, err = result.RowsAffected()
	}
	return rows, k.observe(ctx, err)
}

// Exec implements sqlload.Conn. A change of rows gets its own transaction; DDL commits by itself.
func (k *conn) Exec(ctx context.Context, statement string) (rows int64, err error) {
	switch word, _, _ := strings.Cut(statement, " "); word {
	case "INSERT", "UPDATE", "DELETE":
	default:
		return k.exec(ctx, statement)
	}
	if err := k.begin(ctx); err != nil {
		return 0, err
	}
	if rows, err = k.exec(ctx, statement); err != nil {
		return rows, err
	}
	return rows, k.commit(ctx)
}

// Query implements sqlload.Conn. An empty value is NULL in Oracle, whatever a driver returns.
func (k *conn) Query(ctx context.Context, query string, each func(row [][]byte) error) error {
	return k.observe(ctx, sqlload.SQL{Conn: k.conn}.Query(ctx, query, func(row [][]byte) error {
		for i, value := range row {
			if len(value) == 0 {
				row[i] = nil
			}
		}
		return each(row)
	}))
}

// execPrepared runs a statement that is prepared once, and again after an error.
func (k *conn) execPrepared(ctx context.Context, s **sql.Stmt, text string, args ...any) (rows int64, err error) {
	if *s == nil {
		if *s, err = k.conn.PrepareContext(ctx, text); err != nil {
			*s = nil
			return 0, k.observe(ctx, err)
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

// begin opens a transaction. Oracle begins one by itself at the first change; this makes the driver stop sending the
// order to commit with each statement. godror sends SET TRANSACTION READ WRITE the first time, which ctx interrupts; it
// does not keep ctx.
func (k *conn) begin(ctx context.Context) error {
	if k.tx != nil && k.client.endsByStatement {
		return nil
	}
	if k.tx != nil {
		return errors.New("the last transaction has not ended")
	}
	return k.observe(ctx, k.conn.Raw(func(c any) (err error) {
		if k.tx, err = c.(driver.ConnBeginTx).BeginTx(ctx, driver.TxOptions{}); err != nil {
			k.tx = nil
		}
		return err
	}))
}

// commit ends the transaction. After an error other than errNotSent it is unknown whether the server has committed, and
// whether a transaction is still open to which the next batch would be added, so the connection is closed.
func (k *conn) commit(ctx context.Context) error { return k.end(ctx, "COMMIT", driver.Tx.Commit) }

// rollback rolls back the transaction, if there is one, even if ctx has ended. A connection that cannot roll back is
// closed, and the server rolls back.
func (k *conn) rollback(ctx context.Context) error {
	if k.tx == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loader.ConnectTimeout)
	defer cancel()
	return k.end(ctx, "ROLLBACK", driver.Tx.Rollback)
}

// errNotSent is the error of a statement on a connection that had broken before.
var errNotSent = errors.New("the connection broke before, and nothing was sent")

// end ends the transaction, and closes the connection after an error.
func (k *conn) end(ctx context.Context, statement string, end func(driver.Tx) error) (err error) {
	switch tx := k.tx; {
	case k.dead || tx == nil:
		err = errNotSent
	case k.client.endsByStatement:
		_, err = k.exec(ctx, statement)
	default:
		k.tx = nil
		err = k.observe(ctx, k.conn.Raw(func(c any) error {
			if w, ok := c.(watcher); ok {
				defer w.watch(ctx)()
			}
			return end(tx)
		}))
	}
	if err != nil {
		k.abandon()
	}
	return err
}

// onAnswer calls f when the driver begins to wait for the answer to its next request. It returns false where that
// cannot be observed.
func (k *conn) onAnswer(f func()) (seen bool) {
	_ = k.conn.Raw(func(c any) error {
		var w watcher
		if w, seen = c.(watcher); seen {
			w.onAnswer(f)
		}
		return nil
	})
	return seen
}

// observe closes a connection that err shows to be broken, and adds the error of ctx if that has ended.
func (k *conn) observe(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	err = k.client.serverError(err)
	if ended := ctx.Err(); ended != nil && !errors.Is(err, ended) {
		err = fmt.Errorf("%w: %w", ended, err)
	}
	if loader.Judge(err, faultOf).SessionDead {
		k.abandon()
	}
	return err
}

// abandon closes the connection at once, and not only when its session is closed: until then the server keeps its
// transaction, whose locks a Resolve waits for.
func (k *conn) abandon() {
	if k.dead {
		return
	}
	k.dead = true
	end := func() { _ = errors.Join(k.conn.Close(), k.pool.Close()) }
	if k.client.endsByStatement { // godror rolls back first, and waits for a server that may be gone
		go end()
	} else {
		end()
	}
}

// Close implements sqlload.Conn. It rolls back first: Oracle commits when a session logs off.
func (k *conn) Close() error {
	_ = k.rollback(context.Background())
	if k.dead {
		return nil
	}
	return errors.Join(k.conn.Close(), k.pool.Close())
}
