package sqlload

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"
)

// MySQLBroken reports whether the connection ended or lost its order while a statement was on its way, so that nobody
// knows whether that was carried out. Of the MySQL driver's errors this and MySQLAuthentication judge those that it makes
// up itself. What a server answers is each back-end's own matter: the numbers mean different things.
func MySQLBroken(err error) bool {
	return isOneOf(err,
		mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul, mysql.ErrBusyBuffer,
		io.EOF, io.ErrUnexpectedEOF, io.ErrShortWrite, io.ErrClosedPipe, net.ErrClosed)
}

// MySQLAuthentication reports whether driver and server have no way in common to prove who the user is. No statement was
// sent.
func MySQLAuthentication(err error) bool {
	return isOneOf(err,
		mysql.ErrCleartextPassword, mysql.ErrNativePassword, mysql.ErrOldPassword, mysql.ErrUnknownPlugin, mysql.ErrOldProtocol)
}

func isOneOf(err error, known ...error) bool {
	return slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) })
}
