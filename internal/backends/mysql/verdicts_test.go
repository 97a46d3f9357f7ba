package mysql

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults)
	var all []loadertest.Failure
	for n := range 10_000 {
		all = append(all, loadertest.Failure{Name: strconv.Itoa(n), Err: &mysql.MySQLError{Number: uint16(n), Message: "…"}})
	}
	// A full disk has many words, and some numbers that stand for anything the system or the engine may say.
	const full = `Got error 28 "No space left on device" from storage engine InnoDB`
	for _, said := range []struct {
		number uint16
		text   string
	}{
		{1, full}, {3, full}, {1004, full}, {1005, full}, {1006, full}, {1030, full}, {1064, full},
		{1030, "Got error 28 from storage engine"},
		{1030, "Got error 1028 from storage engine"},
		{1030, "Got error 280 from storage engine"},
		{1, `Can't create/write to file '/tmp/28' (Errcode: 13 "Permission denied")`},
		{3, "Error writing file '/tmp/MYbd0Yk9' (Errcode: 28)"},
		{3, "Error writing file '/tmp/MLfd=80' (OS errno 28 - No space left on device)"},
		{1290, "The MySQL server is running with the --read-only option so it cannot execute this statement"},
		{1290, "The MariaDB server is running with the --super-read-only option so it cannot execute this statement"},
		{1290, "The MySQL server is running with the --innodb_read_only option so it cannot execute this statement"},
		{1290, "The MySQL server is running with the --skip-grant-tables option so it cannot execute this statement"},
		{1290, "The MySQL server is running with the LOCK_WRITE_GROWTH option so it cannot execute this statement"},
		{1005, "Can't create table `tera`.`documents` (errno: 28 \"No space left on device\")"},
	} {
		name := strings.Replace(fmt.Sprint(said.number, " ", said.text), full, "of 28", 1)
		all = append(all, loadertest.Failure{Name: name, Err: &mysql.MySQLError{Number: said.number, Message: said.text}})
	}
	all = append(all, []loadertest.Failure{
		{Name: "3140 of class 22", Err: &mysql.MySQLError{Number: 3140, SQLState: [5]byte{'2', '2', '0', '3', '2'}}},
		{Name: "9999 of class 23", Err: &mysql.MySQLError{Number: 9999, SQLState: [5]byte{'2', '3', '0', '0', '0'}}},
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
	connect := func(err error) error { return loader.ConnectError("h:3306", err, faultOf) }
	loadertest.Verdicts(t, New().Classify, failed, connect, all...)
}
