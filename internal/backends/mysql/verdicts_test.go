package mysql

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	var all []loadertest.Failure
	for n := range 10_000 {
		all = append(all, loadertest.Failure{Name: strconv.Itoa(n), Err: &mysql.MySQLError{Number: uint16(n), Message: "…"}})
	}
	for _, n := range []uint16{1, 3, 1004, 1005, 1006, 1030, 1064} {
		err := &mysql.MySQLError{Number: n, Message: `Got error 28 "No space left on device" from storage engine InnoDB`}
		all = append(all, loadertest.Failure{Name: fmt.Sprint(n, " of 28"), Err: err})
	}
	all = append(all, []loadertest.Failure{
		{Name: "lost", Err: mysql.ErrInvalidConn},
		{Name: "malformed", Err: mysql.ErrMalformPkt},
		{Name: "no TLS there", Err: mysql.ErrNoTLS},
		{Name: "cleartext", Err: mysql.ErrCleartextPassword},
		{Name: "native", Err: mysql.ErrNativePassword},
		{Name: "old", Err: mysql.ErrOldPassword},
		{Name: "plugin", Err: mysql.ErrUnknownPlugin},
		{Name: "protocol", Err: mysql.ErrOldProtocol},
		{Name: "out of sync", Err: mysql.ErrPktSync},
		{Name: "out of sync, more", Err: mysql.ErrPktSyncMul},
		{Name: "too large", Err: mysql.ErrPktTooLarge},
		{Name: "busy", Err: mysql.ErrBusyBuffer},
		{Name: "a pipeline", Err: &pipelineError{name: "p"}},
		{Name: "login 1045", Err: &mysql.MySQLError{Number: 1045, Message: "…"}},
		{Name: "login without TLS", Err: mysql.ErrNoTLS},
	}...)
	connect := func(err error) error { return withHint("connect to h:3306", err) }
	loadertest.Verdicts(t, New().Classify, withHint, connect, all...)
}
