package mysql

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults())
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
	connect := func(err error) error { return loader.ConnectError("h:3306", err, faultOf) }
	loadertest.Verdicts(t, New().Classify, failed, connect, all...)
}

// A full disk has many words, and some numbers that stand for anything the system or the engine may say.
func TestClassifyOfAFullDisk(t *testing.T) {
	for _, c := range []struct {
		number uint16
		text   string
		want   loader.Class
	}{
		{1030, `Got error 28 "No space left on device" from storage engine InnoDB`, loader.ClassDiskFull},
		{1030, "Got error 28 from storage engine", loader.ClassDiskFull},
		{1030, "Got error 1028 from storage engine", loader.ClassOther},
		{1030, "Got error 280 from storage engine", loader.ClassOther},
		{1, `Can't create/write to file '/tmp/28' (Errcode: 13 "Permission denied")`, loader.ClassOther},
		{3, "Error writing file '/tmp/MYbd0Yk9' (Errcode: 28)", loader.ClassDiskFull},
		{3, "Error writing file '/tmp/MLfd=80' (OS errno 28 - No space left on device)", loader.ClassDiskFull},
		{1005, "Can't create table `tera`.`documents` (errno: 28 \"No space left on device\")", loader.ClassDiskFull},
		{1026, "Error writing file '/tmp/ML' (errno: 28 - No space left on device)", loader.ClassDiskFull},
		{1064, "You have an error in your SQL syntax near 'error 28'", loader.ClassOther},
	} {
		err := &mysql.MySQLError{Number: c.number, Message: c.text}
		assert.Equal(t, loader.Verdict{Applied: loader.No, Class: c.want}, New().Classify(err), "%d %s", c.number, c.text)
		assert.Equal(t, c.want == loader.ClassDiskFull, hint(err) == "make room on the server, then resume", "%d %s", c.number, c.text)
	}
}
