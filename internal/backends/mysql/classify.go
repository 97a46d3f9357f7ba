package mysql

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// Classify answers the questions a retry asks. What a session knew where the error happened (loader.Error) outweighs
// what the error alone tells: a lost connection is no loss before the commit was sent.
func (Driver) Classify(err error) loader.Verdict {
	if v, ok := objstore.Classify(err); ok {
		return v
	}
	v := verdict(err)
	var known *loader.Error
	if errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v
}

func verdict(err error) loader.Verdict {
	var (
		short       *loader.RowsError
		server      *mysql.MySQLError
		certificate *tls.CertificateVerificationError
		network     net.Error
		stuck       *pipelineError
	)
	switch {
	case errors.As(err, &short):
		return loader.Verdict{Class: loader.ClassRows}
	case errors.As(err, &server):
		return faultOf(server).verdict()
	case errors.Is(err, context.DeadlineExceeded):
		return loader.Verdict{Class: loader.ClassTimeout, Retry: true, SessionDead: true}
	case errors.Is(err, context.Canceled):
		return loader.Verdict{Class: loader.ClassOther, SessionDead: true}
	case errors.As(err, &stuck):
		// Its words are the server's for people: whether another try helps they do not say, so it is made.
		return loader.Verdict{Class: loader.ClassOther, Retry: true}
	case errors.As(err, &certificate), errors.Is(err, mysql.ErrNoTLS), sqlload.MySQLAuthentication(err):
		return loader.Verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}
	case errors.Is(err, mysql.ErrPktTooLarge):
		return loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No}
	case errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone), isDial(err):
		// ErrBadConn is what the driver says when a packet of the statement could not be written: whatever the server
		// has seen is no complete statement.
		return loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}
	case sqlload.MySQLBroken(err), errors.As(err, &network):
		return loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}
	}
	return loader.Verdict{Class: loader.ClassOther, SessionDead: true}
}

func isDial(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}

// Numbers that the code itself asks for.
const (
	diskFull     = 1021
	duplicateKey = 1062
	noSuchThread = 1094
	noSuchTable  = 1146
)

// accessDenied are the numbers of a missing privilege: on a database, a table, a column, or a global one.
var accessDenied = []uint16{1044, 1142, 1143, 1227}

// is tells whether the server answered with one of the numbers.
func is(err error, numbers ...uint16) bool {
	var server *mysql.MySQLError
	return errors.As(err, &server) && slices.Contains(numbers, server.Number)
}

// withHint says what was being done, and what to do next. It leaves what an error says about itself.
func withHint(op string, err error) error {
	return loader.Describe(op, err, func(err error) loader.Applied { return verdict(err).Applied }, hint)
}

func hint(err error) string {
	var server *mysql.MySQLError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &server):
		return faultOf(server).hint
	case errors.As(err, &certificate):
		return "give the authority's certificate, or take --tls require, which encrypts without knowing to whom"
	case errors.Is(err, mysql.ErrNoTLS):
		return "the server offers no TLS; --tls off goes on without"
	case errors.Is(err, mysql.ErrCleartextPassword):
		return "use an account with caching_sha2_password or mysql_native_password"
	case isDial(err):
		return "check host and port, and that the server listens there"
	}
	return ""
}
