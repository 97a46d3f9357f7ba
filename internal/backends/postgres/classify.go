package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// Classify reads the SQLSTATE where the server has spoken, and the kind of network error where it has not. It does not
// ask pgconn.SafeToRetry, which says yes to a lost answer (see socket).
func (driver) Classify(err error) loader.Verdict {
	if v, ok := objstore.Classify(err); ok {
		return v
	}
	v := verdict(err)
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v
}

func verdict(err error) loader.Verdict {
	var (
		said    *pgconn.PgError
		counted *loader.RowsError
		network net.Error
		badRow  *loadError
	)
	switch {
	case errors.As(err, &badRow):
		return loader.Verdict{Applied: loader.No, Class: loader.ClassData}
	case errors.Is(err, context.DeadlineExceeded):
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassTimeout}
	case errors.Is(err, context.Canceled):
		return loader.Verdict{SessionDead: true, Class: loader.ClassOther}
	case errors.As(err, &said):
		return saidVerdict(said)
	case wrongRole(err): // until the failover is over
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassShutdown}
	case errors.As(err, &counted):
		return loader.Verdict{Applied: loader.No, Class: loader.ClassRows}
	case errors.As(err, &network) && network.Timeout():
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassTimeout}
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, pgconn.ErrConnClosed):
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassConnection}
	}
	return loader.Verdict{SessionDead: true, Class: loader.ClassOther}
}

// saidVerdict judges an error of the server. ERROR ends the statement and with it everything it did; FATAL and PANIC
// end the session, at any moment, even between a commit and its answer.
func saidVerdict(e *pgconn.PgError) loader.Verdict {
	v := loader.Verdict{Applied: loader.No, Class: class(e.Code)}
	severity := e.SeverityUnlocalized
	if severity == "" { // before PostgreSQL 9.6
		severity = e.Severity
	}
	if severity != "ERROR" {
		v.Applied, v.SessionDead = loader.Unknown, true
	}
	switch v.Class {
	case loader.ClassConnection, loader.ClassShutdown, loader.ClassThrottled, loader.ClassLock, loader.ClassTimeout:
		v.Retry = true
	case loader.ClassOther:
		v.Retry = e.Code == "XX000" // YugabyteDB's code for RPCs that timed out or found no leader
	}
	return v
}

// readOnly is read_only_sql_transaction: of a standby, and of a user with default_transaction_read_only.
const readOnly = "25006"

// class sorts SQLSTATEs, listed in appendix A of the PostgreSQL manual: the exact code first, then its class.
func class(code string) loader.Class {
	switch code {
	case "53100":
		return loader.ClassDiskFull
	case "55P03": // lock_not_available: our lock_timeout
		return loader.ClassLock
	case "57014", "25P03", "25P04": // query_canceled (statement_timeout, too), idle in transaction, transaction timeout
		return loader.ClassTimeout
	case "57P04", "42P01", "42703", "3D000", "3F000": // database dropped; no such table, column, database, schema
		return loader.ClassMissing
	case readOnly: // a standby, perhaps until a moment ago the primary
		return loader.ClassShutdown
	case "42501":
		return loader.ClassPermission
	}
	if len(code) != 5 {
		return loader.ClassOther
	}
	switch code[:2] {
	case "08":
		return loader.ClassConnection
	case "57":
		return loader.ClassShutdown
	case "53":
		return loader.ClassThrottled // too many connections, out of memory
	case "40":
		return loader.ClassLock // serialization failure, deadlock
	case "23":
		return loader.ClassConstraint
	case "22":
		return loader.ClassData
	case "28":
		return loader.ClassPermission
	case "54":
		return loader.ClassTooLarge
	}
	return loader.ClassOther
}

// hint says what to do about an SQLSTATE; "" where the server's words are enough.
func hint(code string) string {
	switch code {
	case "28P01", "28000":
		return "check user and password: TERAPUSH_PASSWORD, PGPASSWORD and ~/.pgpass are read"
	case "3D000":
		return "create the database, or name another one behind the host of the target"
	case "3F000":
		return "create the schema first"
	case "53300":
		return "lower --workers, or raise the server's max_connections"
	case "53100":
		return "make room on the server, then resume the run"
	case "55P03":
		return "another transaction has held a lock for " + lockWait + ": look at pg_locks"
	case "57014":
		return "if it was the server's statement_timeout: --set statement_timeout=0"
	case "23505":
		return "rows with these keys are there already: use another --first-key, or --append"
	case "22P02", "22P03", "22021":
		return "compare the types of the table's columns with those of --dry-run"
	case readOnly:
		return "name the primary if this server is a standby; otherwise the user is read-only: --set default_transaction_read_only=off"
	case "42704":
		return "check the names of --set"
	case "42501":
		return "ask the owner for the privilege"
	case "42P01":
		return "was the table dropped while the run was going?"
	}
	return ""
}

// spoken is a server's error with all of its words: pgconn shows the first line only.
type spoken struct {
	*pgconn.PgError
	hint string // in place of the SQLSTATE's, unless empty
}

func (e spoken) Error() string {
	text := e.PgError.Error()
	for _, more := range [...]string{e.Detail, e.Hint, e.Where} {
		if more != "" {
			text += "; " + strings.TrimSuffix(more, ".")
		}
	}
	return text
}

func (e spoken) Unwrap() error { return e.PgError }

// failed says what was being done when err happened, with the server's words and what to do next.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	return describe(op, err)
}

// describe is failed for errors whose description is not complete. What an earlier hand has said about err stays.
func describe(op string, err error) *loader.Error {
	e := &loader.Error{Op: op, Applied: verdict(err).Applied, Err: err}
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		*e = *known
	}
	if said := (*pgconn.PgError)(nil); e.Hint == "" && errors.As(e.Err, &said) {
		var whole spoken
		_ = errors.As(e.Err, &whole)
		e.Hint = cmp.Or(whole.hint, hint(said.Code))
	}
	return e
}

// connectError names server, user and database, and drops pgconn's own error: it carries the whole configuration with
// the password in it, and lists the same cause once for TLS and once without.
func connectError(e endpoint, config *pgconn.Config, err error) error {
	if outer := (*pgconn.ConnectError)(nil); errors.As(err, &outer) {
		err = outer.Unwrap()
	}
	var (
		said    *pgconn.PgError
		network *net.OpError
		name    *net.DNSError
		advice  string
	)
	switch {
	case errors.As(err, &said):
		err = spoken{PgError: said}
		advice = hint(said.Code)
	case wrongRole(err):
		advice = "target_session_attrs asks for another host"
	case errors.As(err, &name):
		err = name
	case errors.As(err, &network):
		err = network
		advice = "is the server up, and is this its port?"
	case errors.Is(err, context.DeadlineExceeded):
		err = fmt.Errorf("no answer: %w", context.DeadlineExceeded)
		advice = "a firewall may drop the packets"
	}
	return &loader.Error{
		Op:  fmt.Sprintf("connect to %s as user %q, database %q", e, config.User, config.Database),
		Err: err, Applied: loader.No, Hint: advice,
	}
}

// errDead is what a session says whose connection broke in an earlier attempt: nothing is sent.
func errDead() error {
	return &loader.Error{Op: "load", Applied: loader.No, Err: fmt.Errorf("the session's connection broke before: %w", net.ErrClosed)}
}

func parseInt(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("the server answered %q where a number was expected", text)
	}
	return n, nil
}
