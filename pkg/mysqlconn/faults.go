package mysqlconn

import (
	"database/sql"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
)

// FaultOf reads the errors that the driver makes up itself. What a server answers is each back-end's own matter: the
// numbers mean different things.
func FaultOf(err error) (loader.Fault, bool) {
	is := func(known ...error) bool {
		return slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) })
	}
	// Driver and server have no way in common to prove who the user is, or to encrypt. No statement was sent.
	refused := loader.Verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}
	switch {
	case is(mysql.ErrNoTLS):
		return loader.Fault{Verdict: refused, Hint: "the server offers no TLS; --tls off connects without"}, true
	case is(mysql.ErrCleartextPassword):
		const hint = "use an account with caching_sha2_password or mysql_native_password"
		return loader.Fault{Verdict: refused, Hint: hint}, true
	case is(mysql.ErrNativePassword, mysql.ErrOldPassword, mysql.ErrUnknownPlugin, mysql.ErrOldProtocol):
		return loader.Fault{Verdict: refused}, true
	case is(mysql.ErrPktTooLarge):
		return loader.Fault{Verdict: loader.Refused(loader.ClassTooLarge)}, true
	case is(driver.ErrBadConn, sql.ErrConnDone):
		// ErrBadConn is what the driver says when a packet of the statement could not be written: whatever the server
		// has seen is no complete statement.
		return loader.Fault{Verdict: loader.Reconnect(loader.ClassConnection)}, true
	case is(mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul, mysql.ErrBusyBuffer):
		// The connection ended or lost its order while a statement was on its way.
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return loader.Fault{}, false
}

// Answered reports whether err is what a server of the protocol has said.
func Answered(err error) bool { return errors.As(err, new(*mysql.MySQLError)) }

// Is reports whether a server has answered with an error of one of the numbers.
func Is(err error, numbers ...uint16) bool {
	var server *mysql.MySQLError
	return errors.As(err, &server) && slices.Contains(numbers, server.Number)
}

// Redacted returns err, where it is a server's, with redact done to its text: a server quotes pieces of a statement
// that it cannot parse, whatever secrets are in it.
func Redacted(err error, redact func(text string) string) error {
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		return err
	}
	clean := *server
	clean.Message = redact(clean.Message)
	return &clean
}

// SQLState returns the five characters with which a server's error says what kind it is, and "" for any other error.
func SQLState(err error) string {
	var server *mysql.MySQLError
	if !errors.As(err, &server) {
		return ""
	}
	return string(server.SQLState[:])
}
