package mysql

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"

	"github.com/terapush/terapush/pkg/loader"
)

func TestClassify(t *testing.T) {
	number := func(n uint16) error { return &mysql.MySQLError{Number: n, Message: "words"} }
	dial := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	for _, c := range []struct {
		name string
		err  error
		want loader.Verdict
	}{
		{"duplicate key", number(1062), loader.Verdict{Applied: loader.No, Class: loader.ClassConstraint}},
		{"lock wait", number(1205), loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassLock}},
		{"deadlock", number(1213), loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassLock}},
		{"too many connections", number(1040), loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled}},
		{"too many of this user", number(1203), loader.Verdict{Applied: loader.No, Retry: true, Class: loader.ClassThrottled}},
		{"read-only", number(1290), loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassShutdown}},
		{"local infile, MySQL 8", number(3948), loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{"local infile, older", number(1148), loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{"packet too large", number(1153), loader.Verdict{Applied: loader.No, SessionDead: true, Class: loader.ClassTooLarge}},
		{"result too large", number(1301), loader.Verdict{Applied: loader.No, SessionDead: true, Class: loader.ClassTooLarge}},
		{"TiDB transaction too large", number(8004), loader.Verdict{Applied: loader.No, Class: loader.ClassTooLarge}},
		{"TiDB does not know", number(8501), loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"server gone", number(2006), loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"server lost", number(2013), loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"killed, MariaDB", number(1927), loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"interrupted", number(1317), loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"shutdown", number(1053), loader.Verdict{Applied: loader.Unknown, Retry: true, SessionDead: true, Class: loader.ClassShutdown}},
		{"disk full", number(1021), loader.Verdict{Applied: loader.No, Class: loader.ClassDiskFull}},
		{"table full", number(1114), loader.Verdict{Applied: loader.No, Class: loader.ClassDiskFull}},
		{"no privilege, database", number(1044), loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{"wrong password", number(1045), loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{"no privilege, table", number(1142), loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{"no privilege, global", number(1227), loader.Verdict{Applied: loader.No, Class: loader.ClassPermission}},
		{"no database", number(1049), loader.Verdict{Applied: loader.No, Class: loader.ClassMissing}},
		{"no table", number(1146), loader.Verdict{Applied: loader.No, Class: loader.ClassMissing}},
		{"no column", number(1054), loader.Verdict{Applied: loader.No, Class: loader.ClassMissing}},
		{"bad value", number(1366), loader.Verdict{Applied: loader.No, Class: loader.ClassData}},
		{"not listed", number(1064), loader.Verdict{Applied: loader.No, Class: loader.ClassOther}},

		{"not written", driver.ErrBadConn, loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"closed before", sql.ErrConnDone, loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"refused", dial, loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"answer lost", mysql.ErrInvalidConn, loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"end of stream", io.ErrUnexpectedEOF, loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"reset", &net.OpError{Op: "write", Err: syscall.ECONNRESET}, loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"deadline", context.DeadlineExceeded, loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassTimeout}},
		{"cancelled", context.Canceled, loader.Verdict{SessionDead: true, Class: loader.ClassOther}},
		{"certificate", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, loader.Verdict{Applied: loader.No, SessionDead: true, Class: loader.ClassPermission}},
		{"no TLS", mysql.ErrNoTLS, loader.Verdict{Applied: loader.No, SessionDead: true, Class: loader.ClassPermission}},
		{"unheard of", errors.New("?"), loader.Verdict{SessionDead: true, Class: loader.ClassOther}},

		{"rows missing", &loader.Error{Op: "load", Applied: loader.No, Err: &loader.RowsError{Sent: 2, Acknowledged: 1}},
			loader.Verdict{Applied: loader.No, Class: loader.ClassRows}},
		{"lost before the commit", &loader.Error{Op: "load", Applied: loader.No, Err: mysql.ErrInvalidConn},
			loader.Verdict{Applied: loader.No, Retry: true, SessionDead: true, Class: loader.ClassConnection}},
		{"refused at the commit", &loader.Error{Op: "commit", Applied: loader.Unknown, Err: number(1205)},
			loader.Verdict{Applied: loader.Unknown, Retry: true, Class: loader.ClassLock}},
	} {
		assert.Equal(t, c.want, New().Classify(c.err), c.name)
		assert.Equal(t, c.want, New().Classify(fmt.Errorf("worker 3: %w", c.err)), c.name+", wrapped")
	}
}

// A full disk has many words, and some numbers that stand for anything the system or the engine may say.
func TestClassifyOfAFullDisk(t *testing.T) {
	for _, c := range []struct {
		number uint16
		text   string
		want   loader.Class
	}{
		{1030, `Got error 28 "No space left on device" from storage engine InnoDB`, loader.ClassDiskFull},
		{1030, "Got error 28 - 'No space left on device' from storage engine", loader.ClassDiskFull},
		{1030, "Got error 28 from storage engine", loader.ClassDiskFull},
		{1030, "Got error 1028 from storage engine", loader.ClassOther},
		{1030, "Got error 280 from storage engine", loader.ClassOther},
		{1030, `Got error 168 "Unknown (generic) error from engine" from storage engine InnoDB`, loader.ClassOther},
		{1030, `Got error 122 "Internal (unspecified) error in handler" from storage engine Aria`, loader.ClassOther},
		{1030, "Got error 24 - 'Too many open files' from storage engine", loader.ClassOther},
		{1, `Can't create/write to file '/tmp/ibXXXX' (Errcode: 28 "No space left on device")`, loader.ClassDiskFull},
		{1, `Can't create/write to file '/tmp/28' (Errcode: 13 "Permission denied")`, loader.ClassOther},
		{3, "Error writing file '/tmp/MYbd0Yk9' (Errcode: 28)", loader.ClassDiskFull},
		{3, "Error writing file '/tmp/MLfd=80' (OS errno 28 - No space left on device)", loader.ClassDiskFull},
		{1005, "Can't create table `tera`.`documents` (errno: 28 \"No space left on device\")", loader.ClassDiskFull},
		{1005, "Can't create table `tera`.`documents` (errno: 150 \"Foreign key constraint is incorrectly formed\")", loader.ClassOther},
		{1026, "Error writing file '/tmp/ML' (errno: 28 - No space left on device)", loader.ClassDiskFull},
		{1114, "The table 'documents' is full", loader.ClassDiskFull},
		{1064, "You have an error in your SQL syntax near 'error 28'", loader.ClassOther},
	} {
		err := &mysql.MySQLError{Number: c.number, Message: c.text}
		assert.Equal(t, loader.Verdict{Applied: loader.No, Class: c.want}, New().Classify(err), "%d %s", c.number, c.text)
		assert.Equal(t, c.want == loader.ClassDiskFull, hint(err) == "make room on the server, then go on with --resume", "%d %s", c.number, c.text)
	}
}

// A number listed twice would have the meaning of the first place only.
func TestFaultsAreListedOnce(t *testing.T) {
	seen := make(map[uint16]bool)
	for _, f := range faults() {
		for _, n := range f.numbers {
			assert.False(t, seen[n], "%d is listed twice", n)
			seen[n] = true
		}
	}
}

func TestWithHint(t *testing.T) {
	assert.NoError(t, withHint("load", nil))
	err := withHint("load", &mysql.MySQLError{Number: 3948, Message: "Loading local data is disabled"})
	assert.EqualError(t, err, "load: Error 3948: Loading local data is disabled ("+localInfileHint+")")
	var known *loader.Error
	assert.ErrorAs(t, err, &known)
	assert.Equal(t, loader.No, known.Applied)

	inner := &loader.Error{Op: "commit", Applied: loader.Unknown, Err: &mysql.MySQLError{Number: 1040}, Hint: "mine"}
	assert.Same(t, inner, withHint("load", inner))
	assert.Equal(t, "mine", inner.Hint)
}
