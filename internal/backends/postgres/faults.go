package postgres

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// Classify implements loader.Driver. It does not ask pgconn.SafeToRetry, which says yes to a lost answer (see socket).
func (Driver) Classify(err error) loader.Verdict { return loader.Judge(err, faultOf) }

// faultOf reads the errors of the server and of pgconn.
func faultOf(err error) (loader.Fault, bool) {
	if f, ok := objstore.FaultOf(err); ok {
		return f, true
	}
	server := (*pgconn.PgError)(nil)
	switch {
	case errors.As(err, new(*loadError)):
		return loader.Fault{Verdict: loader.Refused(loader.ClassData)}, true
	case loader.Ended(err):
		return loader.Fault{}, false
	case errors.As(err, &server):
		return serverFault(server), true
	case wrongRole(err): // until the failover is over
		f := loader.Fault{Verdict: loader.Lost(loader.ClassShutdown), Hint: "target_session_attrs asks for another host"}
		return f, true
	case isNoTLS(err):
		return loader.Fault{
			Verdict: loader.Verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}, Hint: noTLSHint,
		}, true
	case errors.Is(err, pgconn.ErrConnClosed):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return loader.Fault{}, false
}

// serverFault finds an SQLSTATE in the table: the exact code first, then its class. ERROR ends the statement and undoes
// all it did; FATAL and PANIC end the session at any moment, even between a commit and its answer.
func serverFault(e *pgconn.PgError) loader.Fault {
	f, listed := faults.Code(e.Code)
	if !listed && len(e.Code) == 5 {
		f, listed = faults.Code(e.Code[:2])
	}
	if !listed {
		f.Verdict = loader.Refused(loader.ClassOther)
	}
	if e.Code == "28000" { // known in English; in other languages the hint is a wider one
		if because, known := unauthorized.Message(e.Message); known {
			f.Hint = because.Hint
		}
	}
	if e.Code == "42704" && strings.Contains(e.Message, `"vector"`) { // the quotes are the same in most languages
		f.Hint = "pgvector makes the type: install its package on the server, then CREATE EXTENSION vector in this database"
	}
	if e.Code == "42501" && e.Routine == "ExecWithCheckOptions" { // the message says it in the server's language
		f.Hint = "a policy of row-level security refuses the rows: load as the table's owner or a role with BYPASSRLS, or change the policy"
	}
	if cmp.Or(e.SeverityUnlocalized, e.Severity) != "ERROR" { // the former since PostgreSQL 9.6
		f.Applied, f.SessionDead = loader.Unknown, true
	}
	return f
}

const noTLSHint = "the server offers no TLS; --tls off connects without"

// isNoTLS reports whether TLS is needed and the server has none; pgconn's error has no type.
func isNoTLS(err error) bool {
	return err != nil && strings.Contains(err.Error(), "server refused TLS connection")
}

// unauthorized lists what SQLSTATE 28000 may mean (auth.c in the server's source). Before version 14 it says SSL on or
// off.
var unauthorized = loader.Faults{
	{Words: []string{"no encryption", "ssl off"}, Hint: "pg_hba.conf has no line for this without TLS: --tls verify, or " +
		"--tls require, which encrypts without verifying the server"},
	{Words: []string{"ssl encryption", "ssl on"}, Hint: "pg_hba.conf has no line for this user, database and address"},
	{Words: []string{"valid client certificate"}, Hint: "the server wants a client's certificate, signed by an " +
		"authority that it trusts: --tls-cert and --tls-key"},
	{Words: []string{"certificate authentication failed"}, Hint: "the client's certificate is for another user"},
}

// faults lists SQLSTATEs, and classes of them by their first two digits (PostgreSQL manual, appendix A).
var faults = loader.Faults{
	{Codes: "08", Verdict: loader.Again(loader.ClassConnection)},
	{Codes: "57", Verdict: loader.Again(loader.ClassShutdown)},
	// read_only_sql_transaction: a standby, perhaps until a moment ago the primary, or a read-only user.
	// Another connection may find the new primary.
	{Codes: "25006", Verdict: loader.Reconnect(loader.ClassShutdown),
		Hint: "name the primary if this server is a standby; otherwise the user is read-only: --set " +
			"default_transaction_read_only=off"},
	{Codes: "53", Verdict: loader.Again(loader.ClassThrottled)}, // out of memory
	{Codes: "53300", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "lower --workers, or raise the server's max_connections"},
	{Codes: "53100", Verdict: loader.Refused(loader.ClassDiskFull),
		Hint: "make room on the server, then resume the run"},
	{Codes: "40", Verdict: loader.Again(loader.ClassLock)}, // serialization failure, deadlock
	// lock_not_available: our lock_timeout.
	{Codes: "55P03", Verdict: loader.Again(loader.ClassLock),
		Hint: "another transaction has held a lock for " + lockWait + ": look at pg_locks"},
	// query_canceled, by statement_timeout, too.
	{Codes: "57014", Verdict: loader.Again(loader.ClassTimeout),
		Hint: "if it was the server's statement_timeout: --set statement_timeout=0"},
	{Codes: "25P03 25P04", Verdict: loader.Again(loader.ClassTimeout)}, // idle in transaction, transaction timeout
	{Codes: "23", Verdict: loader.Refused(loader.ClassConstraint)},
	{Codes: "23505", Verdict: loader.Refused(loader.ClassConstraint),
		Hint: "rows with these keys are there already: use another --first-key, or --append"},
	{Codes: "22", Verdict: loader.Refused(loader.ClassData)},
	{Codes: "22P02 22P03 22021", Verdict: loader.Refused(loader.ClassData),
		Hint: "compare the types of the table's columns with those of --dry-run"},
	{Codes: "54", Verdict: loader.Refused(loader.ClassTooLarge)},
	{Codes: "28", Verdict: loader.Refused(loader.ClassPermission)},
	{Codes: "28P01 28000", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "check user and password: TERAPUSH_PASSWORD, PGPASSWORD and ~/.pgpass are read"},
	{Codes: "42501", Verdict: loader.Refused(loader.ClassPermission), Hint: "ask the owner for the privilege"},
	// invalid_sql_statement_name: another connection prepares the claim again.
	{Codes: "26000", Verdict: loader.Reconnect(loader.ClassConnection),
		Hint: "a pooler that pools transactions loses the session's claim: let it pool sessions, or name the server itself"},
	{Codes: "P0001", Verdict: loader.Refused(loader.ClassConstraint), Hint: "a trigger of the table refuses the rows"},
	{Codes: "3D000", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "create the database, or correct its name in the target"},
	{Codes: "3F000", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "create the schema, or name one that exists: --table SCHEMA.TABLE"},
	{Codes: "42P01", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "was the table dropped while the run was going?"},
	{Codes: "57P04 42703", Verdict: loader.Refused(loader.ClassMissing)}, // database dropped; no such column
	{Codes: "42704", Verdict: loader.Refused(loader.ClassOther), Hint: "check the names of --set"},
	// YugabyteDB's code for RPCs that timed out or found no leader.
	{Codes: "XX000", Verdict: loader.Again(loader.ClassOther)},
}

// serverError shows all parts of a server's error; pgconn shows the message only.
type serverError struct{ *pgconn.PgError }

func (e serverError) Error() string {
	text := e.PgError.Error()
	for _, more := range [...]string{e.Detail, e.Hint, e.Where} {
		if more != "" {
			text += "; " + strings.TrimSuffix(more, ".")
		}
	}
	return text
}

func (e serverError) Unwrap() error { return e.PgError }

// failed adds the operation, the server's words and a hint to err.
func failed(op string, err error) error { return loader.Describe(op, err, faultOf) }

// describe is failed for a caller that adds to the result. It drops what wraps an *Error in err.
func describe(op string, err error) *loader.Error {
	var e *loader.Error
	_ = errors.As(failed(op, err), &e)
	return e
}

// is reports whether err has the SQLSTATE.
func is(err error, code string) bool {
	server := (*pgconn.PgError)(nil)
	return errors.As(err, &server) && server.Code == code
}

// connectError names server, user and database, and drops pgconn's own error: it carries the whole configuration with
// the password in it, and lists the same cause once for TLS and once without.
func connectError(e endpoint, config *pgconn.Config, err error) error {
	if outer := (*pgconn.ConnectError)(nil); errors.As(err, &outer) {
		err = outer.Unwrap()
	}
	var (
		server      *pgconn.PgError
		certificate *tls.CertificateVerificationError
	)
	switch {
	case errors.As(err, &server):
		err = serverError{server}
	case errors.As(err, &certificate):
		err = certificate
	case !wrongRole(err):
		err = loader.NetworkError(err)
	}
	if server != nil && (server.Code == "42704" || strings.HasPrefix(server.Message, "unsupported startup parameter")) {
		return &loader.Error{
			Op: "connect to " + e.String(), Applied: loader.No, Err: err,
			Hint: "the target's parameters are those of libpq and settings of the server; leave this one out",
		}
	}
	return loader.ConnectError(fmt.Sprintf("%s as user %q, database %q", e, config.User, config.Database), err, faultOf)
}

// errDead is the error of a session whose connection broke in an earlier attempt: nothing is sent.
func errDead() error {
	err := fmt.Errorf("the session's connection broke before: %w", net.ErrClosed)
	return &loader.Error{Op: "load", Applied: loader.No, Err: err}
}
