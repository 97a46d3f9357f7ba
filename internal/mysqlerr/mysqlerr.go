// Package mysqlerr says what the errors mean that the MySQL driver makes up itself, for all back-ends whose servers speak
// that protocol. What a server answers is each back-end's own matter: the numbers mean different things.
package mysqlerr

import (
	"errors"
	"io"
	"net"
	"slices"

	"github.com/go-sql-driver/mysql"
)

// Broken tells that the connection ended or lost its order while a statement was on its way, so whether that was
// carried out nobody knows.
func Broken(err error) bool {
	return isOneOf(err,
		mysql.ErrInvalidConn, mysql.ErrMalformPkt, mysql.ErrPktSync, mysql.ErrPktSyncMul, mysql.ErrBusyBuffer,
		io.EOF, io.ErrUnexpectedEOF, io.ErrShortWrite, io.ErrClosedPipe, net.ErrClosed)
}

// Authentication tells that driver and server have no way in common to prove who the user is. No statement was sent.
func Authentication(err error) bool {
	return isOneOf(err,
		mysql.ErrCleartextPassword, mysql.ErrNativePassword, mysql.ErrOldPassword, mysql.ErrUnknownPlugin, mysql.ErrOldProtocol)
}

func isOneOf(err error, known ...error) bool {
	return slices.ContainsFunc(known, func(one error) bool { return errors.Is(err, one) })
}
