package doris

import (
	"context"
	"crypto/tls"
	"database/sql"
	"database/sql/driver"
	"errors"
	"net"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// errDead is what a session says that has failed in a way it cannot go on from.
var errDead = errors.New("the session is of no use after an earlier error")

// Classify answers the questions a retry asks. What a session knew where the error happened (loader.Error) outweighs
// what the error alone tells.
func (Driver) Classify(err error) loader.Verdict {
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
		spent       *labelSpentError
		refused     *refusal
		cut         *unreadable
		replaced    *replacedError
		alone       *notMergedError
		server      *mysql.MySQLError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	stored, isStore := objstore.Classify(err)
	switch {
	case errors.As(err, &short):
		return loader.Verdict{Class: loader.ClassRows}
	case errors.As(err, &refused):
		return refused.verdict()
	case errors.As(err, &cut):
		return loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}
	case errors.As(err, &replaced):
		return loader.Verdict{Class: loader.ClassOther}
	case errors.As(err, &spent):
		return loader.Verdict{Class: loader.ClassOther, Applied: loader.No}
	case errors.As(err, &alone): // the rows are in: once, but not as they were meant to be
		return loader.Verdict{Class: loader.ClassOther, Applied: loader.Yes}
	case errors.As(err, &server):
		return serverVerdict(server)
	case errors.Is(err, errDead):
		return loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}
	case isStore:
		return stored
	case errors.As(err, &certificate), errors.As(err, &record), errors.Is(err, mysql.ErrNoTLS), sqlload.MySQLAuthentication(err):
		return loader.Verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}
	case errors.Is(err, mysql.ErrPktTooLarge):
		return loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No}
	case httpload.NotSent(err), errors.Is(err, driver.ErrBadConn), errors.Is(err, sql.ErrConnDone):
		// ErrBadConn is what the driver says when a statement could not be written: the server has seen no complete one.
		return loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}
	case errors.Is(err, context.DeadlineExceeded):
		return loader.Verdict{Class: loader.ClassTimeout, Retry: true, SessionDead: true}
	case errors.Is(err, context.Canceled):
		return loader.Verdict{Class: loader.ClassOther, SessionDead: true}
	case isBroken(err):
		return loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}
	}
	return loader.Verdict{Class: loader.ClassOther, SessionDead: true}
}

// serverVerdict reads an error of the MySQL protocol. The few numbers that Doris keeps to are connection limits and
// privileges; for the rest its words decide.
func serverVerdict(e *mysql.MySQLError) loader.Verdict {
	switch e.Number {
	case 1040, 1203, 1226:
		return loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true, SessionDead: true}
	case 1044, 1045, 1142, 1143, 1227:
		return loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}
	case 1046, 1049, 1051, 1054, 1109, 1146, 1193:
		return loader.Verdict{Class: loader.ClassMissing, Applied: loader.No}
	case 1153, 1301:
		return loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No, SessionDead: true}
	}
	return faultOf(e.Message).verdict()
}

func isBroken(err error) bool {
	var network net.Error
	return httpload.Broken(err) || sqlload.MySQLBroken(err) || errors.As(err, &network)
}

// withHint says what was being done, and what to do next. It leaves what an error says about itself.
func withHint(op string, err error) error {
	return loader.Describe(op, err, func(err error) loader.Applied { return verdict(err).Applied }, hint)
}

func hint(err error) string {
	var (
		refused     *refusal
		spent       *labelSpentError
		replaced    *replacedError
		alone       *notMergedError
		server      *mysql.MySQLError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &refused):
		return refused.hint()
	case errors.As(err, &spent):
		return "push anew under another run id; or go on with --resume when the server has forgotten the label, after twelve hours by default"
	case errors.As(err, &replaced):
		return "labels are not kept here, so nothing recognises a batch that was sent twice: take --delivery at-least-once"
	case errors.As(err, &alone):
		return "the table or the batch does not qualify: it needs light_schema_change, and no label, partition or two-phase commit"
	case errors.As(err, &server):
		return faultOf(server.Message).hint
	case errors.As(err, &certificate):
		return "give the authority's certificate, or take --tls require, which encrypts without knowing to whom, or --tls off"
	case errors.As(err, &record), errors.Is(err, mysql.ErrNoTLS):
		return "the frontend speaks no TLS there; --tls off goes on without"
	case httpload.NotSent(err):
		return "check host and ports (9030, and ?http_port= for HTTP); where TLS is wanted and the frontend has none, --tls off"
	}
	return ""
}
