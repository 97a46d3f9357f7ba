package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

// oraError is an error of the server as a client reads it.
type oraError int

func (e oraError) Error() string {
	return fmt.Sprintf("ORA-%05d: the server's words\nerror occur at position: 3", int(e))
}

// reading is a client that reads oraError.
func reading() client {
	return client{
		name: "test",
		code: func(err error) (int, string, bool) {
			var e oraError
			if !errors.As(err, &e) {
				return 0, "", false
			}
			text, _, _ := strings.Cut(e.Error(), "\n")
			return int(e), text, true
		},
		explain: func(err error) string {
			if strings.Contains(err.Error(), "no library") {
				return "install it"
			}
			return ""
		},
		array: times, moment: timeOf,
	}
}

func TestClassify(t *testing.T) {
	const dead = true
	lost := loader.Verdict{Retry: true, SessionDead: dead, Class: loader.ClassConnection}
	said := func(class loader.Class, retry bool) loader.Verdict {
		return loader.Verdict{Applied: loader.No, Class: class, Retry: retry}
	}
	ended := func(class loader.Class, retry bool) loader.Verdict {
		return loader.Verdict{Class: class, Retry: retry, SessionDead: dead}
	}
	timeout := &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	for _, c := range []struct {
		name string
		err  error
		want loader.Verdict
	}{
		{"deadline", context.DeadlineExceeded, loader.Verdict{Retry: true, SessionDead: dead, Class: loader.ClassTimeout}},
		{"deadline, and what came of it", fmt.Errorf("%w: %w", context.DeadlineExceeded, net.ErrClosed), loader.Verdict{Retry: true, SessionDead: dead, Class: loader.ClassTimeout}},
		{"deadline, by godror's break", fmt.Errorf("%w: %w", context.DeadlineExceeded, oraError(1013)), loader.Verdict{Retry: true, SessionDead: dead, Class: loader.ClassTimeout}},
		{"given up", context.Canceled, loader.Verdict{SessionDead: dead, Class: loader.ClassOther}},
		{"network timeout", timeout, loader.Verdict{Retry: true, SessionDead: dead, Class: loader.ClassTimeout}},
		{"EOF", io.EOF, lost},
		{"cut short", io.ErrUnexpectedEOF, lost},
		{"reset", fmt.Errorf("read: %w", syscall.ECONNRESET), lost},
		{"broken pipe", syscall.EPIPE, lost},
		{"refused", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}, lost},
		{"bad connection", driver.ErrBadConn, lost},
		{"closed by package sql", sql.ErrConnDone, lost},
		{"not sent", errNotSent, lost},
		{"a panic", driverPanic{"index out of range"}, loader.Verdict{Retry: true, SessionDead: dead, Class: loader.ClassOther}},
		{"rows", &loader.RowsError{Sent: 2, Acknowledged: 1}, loader.Verdict{Applied: loader.No, Class: loader.ClassRows}},
		{"cannot be bound", fmt.Errorf("load: %w", &bindError{"no"}), loader.Verdict{Applied: loader.No, Class: loader.ClassData}},
		{"anything", errors.New("anything"), loader.Verdict{SessionDead: dead, Class: loader.ClassOther}},
		{"known better", &loader.Error{Op: "load", Applied: loader.No, Err: io.EOF}, loader.Verdict{Applied: loader.No, Retry: true, SessionDead: dead, Class: loader.ClassConnection}},
		{"in the server's words alone", &spoken{number: 60, text: "ORA-00060"}, said(loader.ClassLock, true)},

		{"session killed", oraError(28), ended(loader.ClassConnection, true)},
		{"not logged on", oraError(1012), ended(loader.ClassConnection, true)},
		{"end of file", oraError(3113), ended(loader.ClassConnection, true)},
		{"not connected", oraError(3114), ended(loader.ClassConnection, true)},
		{"lost contact", oraError(3135), ended(loader.ClassConnection, true)},
		{"connect timeout", oraError(12170), ended(loader.ClassConnection, true)},
		{"connection closed", oraError(12537), ended(loader.ClassConnection, true)},
		{"no listener", oraError(12541), ended(loader.ClassConnection, true)},
		{"unknown service", oraError(12514), ended(loader.ClassShutdown, true)},
		{"starting", oraError(1033), ended(loader.ClassShutdown, true)},
		{"not open", oraError(1034), ended(loader.ClassShutdown, true)},
		{"stopping", oraError(1089), ended(loader.ClassShutdown, true)},
		{"standby", oraError(16000), ended(loader.ClassShutdown, true)},
		{"sessions", oraError(18), ended(loader.ClassThrottled, true)},
		{"processes", oraError(20), ended(loader.ClassThrottled, true)},
		{"no handler", oraError(12519), ended(loader.ClassThrottled, true)},
		{"shared pool", oraError(4031), said(loader.ClassThrottled, true)},
		{"busy", oraError(54), said(loader.ClassLock, true)},
		{"busy for long", oraError(30006), said(loader.ClassLock, true)},
		{"deadlock", oraError(60), said(loader.ClassLock, true)},
		{"altered meanwhile", oraError(4068), said(loader.ClassLock, true)},
		{"cancelled", oraError(1013), said(loader.ClassTimeout, true)},
		{"tablespace", oraError(1653), said(loader.ClassDiskFull, false)},
		{"index tablespace", oraError(1654), said(loader.ClassDiskFull, false)},
		{"quota", oraError(1536), said(loader.ClassDiskFull, false)},
		{"undo", oraError(30036), said(loader.ClassDiskFull, false)},
		{"archived redo", oraError(257), said(loader.ClassDiskFull, true)},
		{"duplicate", oraError(1), said(loader.ClassConstraint, false)},
		{"null", oraError(1400), said(loader.ClassConstraint, false)},
		{"check", oraError(2290), said(loader.ClassConstraint, false)},
		{"no partition", oraError(14400), said(loader.ClassConstraint, false)},
		{"number too large", oraError(1438), said(loader.ClassData, false)},
		{"text too long", oraError(12899), said(loader.ClassData, false)},
		{"no number", oraError(1722), said(loader.ClassData, false)},
		{"no JSON", oraError(40441), said(loader.ClassData, false)},
		{"LONG", oraError(1461), said(loader.ClassTooLarge, false)},
		{"column too long", oraError(910), said(loader.ClassTooLarge, false)},
		{"array too long", oraError(3146), said(loader.ClassTooLarge, false)},
		{"password", oraError(1017), ended(loader.ClassPermission, false)},
		{"locked", oraError(28000), ended(loader.ClassPermission, false)},
		{"privilege", oraError(1031), said(loader.ClassPermission, false)},
		{"no table", oraError(942), said(loader.ClassMissing, false)},
		{"no column", oraError(904), said(loader.ClassMissing, false)},
		{"internal", oraError(600), ended(loader.ClassOther, true)},
		{"a number nobody knows", oraError(65000), said(loader.ClassOther, false)},
	} {
		t.Run(c.name, func(t *testing.T) {
			assert.Equal(t, c.want, backend{client: reading()}.Classify(c.err))
			wrapped := fmt.Errorf("while loading: %w", c.err)
			assert.Equal(t, c.want, backend{client: reading()}.Classify(wrapped), "wrapped")
		})
	}
}

// The connection has gone, or was waited for in vain, in more ways than anybody has seen.
func TestDeadSessions(t *testing.T) {
	for class, numbers := range map[loader.Class][]int{
		loader.ClassTimeout: {3156, 12161, 12535, 12606, 12608, 12609},
		loader.ClassConnection: {
			22, 28, 31, 45, 602, 603, 609, 1012, 1041, 3113, 3114, 3122, 3135, 12537, 12543, 12547, 12564, 12570, 12583, 12592, 12805,
			27146, 28511, 28547, 56600,
		},
	} {
		for _, number := range numbers {
			want := loader.Verdict{Class: class, Retry: true, SessionDead: true}
			assert.Equal(t, want, backend{client: reading()}.Classify(oraError(number)), "ORA-%05d", number)
		}
	}
}

// Some errors only say that there was another.
func TestInnerErrors(t *testing.T) {
	for text, want := range map[string]int{
		"ORA-24381: error(s) in array DML\nORA-00001: unique constraint (U.PK) violated\n": 1,
		"ORA-00604: error occurred at recursive SQL level 1\nORA-01653: unable to extend":  1653,
		"ORA-24381: error(s) in array DML":                                                 24381,
		"ORA-12801: error signaled in parallel query server P001\nORA-01652: no extent":    1652,
		"ORA-12801: error signaled\nORA-00604: recursive\nORA-01653: unable to extend":     1653,
		"ORA-29913: error while processing FETCH\nORA-30653: reject limit reached":         30653,
		"ORA-29913: error while processing OPEN\nORA-29400: data cartridge error\nKUP-1":   29913,
		"ORA-02091: transaction rolled back\nORA-00001: unique constraint (U.PK) violated": 2091,
		"ORA-20000: from a trigger\nORA-06512: at U.T, line 3":                             20000,
	} {
		c := client{code: func(error) (int, string, bool) {
			n, err := strconv.Atoi(text[4:9])
			return n, text, err == nil
		}}
		number, _, ok := numberOf(c, io.EOF)
		assert.True(t, ok)
		assert.Equal(t, want, number, text)
	}
	assert.Equal(t, "ORA-20000: a; b", words("ORA-20000: a\nORA-06512: at U.T, line 3\n  b\nHelp: https://docs.oracle.com/error-help/db/ora-20000/\n"))
}

// Of a commit, most errors leave open what came of it.
func TestRolledBack(t *testing.T) {
	for number, want := range map[int]bool{
		2091: true, 2290: true, 1: true, 24761: true, 25402: true,
		2049: false, 2056: false, 3113: false, 1013: false, 600: false, 60: false,
	} {
		assert.Equal(t, want, rolledBack(number), "ORA-%05d", number)
	}
}

func TestComplete(t *testing.T) {
	c := reading()
	err := complete(c, failed("load", oraError(1653)))
	require.EqualError(t, err, "load: ORA-01653: the server's words (make room, then resume the run: enlarge the tablespace or the user's quota)")
	var known *loader.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, loader.Unknown, known.Applied, "it might have been a commit")
	var cause oraError
	assert.ErrorAs(t, err, &cause, "the cause is kept")
	assert.Equal(t, err, complete(c, err), "again it changes nothing")

	assert.EqualError(t, complete(c, failed("load", errors.New("no library"))), "load: no library (install it)")
	kept := &loader.Error{Op: "lock", Applied: loader.No, Err: oraError(54), Hint: "wait"}
	assert.EqualError(t, complete(c, failed("load", kept)), "lock: ORA-00054: the server's words (wait)")
	assert.NoError(t, failed("load", nil))
	assert.NoError(t, complete(c, nil))
}

// Of several errors each is completed, and what stands around one stays.
func TestCompleteAll(t *testing.T) {
	c := reading()
	first, second := failed("connect to a", oraError(1653)), failed("connect to b", errors.New("no library"))
	const (
		a = "connect to a: ORA-01653: the server's words (make room, then resume the run: enlarge the tablespace or the user's quota)"
		b = "connect to b: no library (install it)"
	)
	for want, err := range map[string]error{
		a + "\n" + b:                      errors.Join(first, second),
		"while loading: " + a + "; twice": fmt.Errorf("while loading: %w; twice", first),
		a + "\n" + a:                      errors.Join(first, first),
		"1: " + b + "\n2: " + a:           errors.Join(fmt.Errorf("1: %w", second), fmt.Errorf("2: %w", first)),
	} {
		done := complete(c, err)
		require.EqualError(t, done, want)
		assert.EqualError(t, complete(c, done), want, "again it changes nothing")
		assert.EqualError(t, complete(c, say(c, err)), want)
		assert.EqualError(t, open(done), want)
		require.ErrorIs(t, done, first, "what it was stays")
		var known *loader.Error
		require.ErrorAs(t, done, &known)
		assert.NotEmpty(t, known.Hint, "the completed one is found first")
	}
	plain := errors.New("plain")
	assert.Equal(t, plain, complete(c, plain))
	assert.NoError(t, complete(c, nil))
	assert.NoError(t, say(c, nil))
}

// The library's words are no server's.
func TestNoNumber(t *testing.T) {
	cause := errors.New("ORA-00000: DPI-1047: Cannot locate a 64-bit Oracle Client library")
	err := complete(reading(), failed("connect", fmt.Errorf("dpi: %w", cause)))
	require.EqualError(t, err, "connect: dpi: DPI-1047: Cannot locate a 64-bit Oracle Client library")
	assert.ErrorIs(t, err, cause)
}

// Every error of connect names host, service and user, and says what to do.
func TestConnectErrors(t *testing.T) {
	target, err := loader.ParseTarget("oracle://scott:hunter2@h:1521/svc")
	require.NoError(t, err)
	k := &link{client: reading(), where: where(target, 0)}
	const prefix = `connect to h:1521, service "svc", as user "scott": `
	for want, err := range map[string]error{
		"ORA-12541: the server's words (is the listener up, and is this its port?)":             oraError(12541),
		"ORA-01017: the server's words (check user and password: TERAPUSH_PASSWORD is read)":    oraError(1017),
		"ORA-65000: the server's words (ask the listener for its services with lsnrctl status)": oraError(65000),
		"no library (install it)": errors.New("no library"),
		"no answer (a firewall may drop the packets, or the port speaks TCPS and not TCP)":     fmt.Errorf("%w: closed", context.DeadlineExceeded),
		"EOF (the other end hung up at once: is it a listener, and does the port speak TCPS?)": io.EOF,
		"dial tcp: connection refused (is the listener up, and is this its port?)":             fmt.Errorf("a: %w", &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
		"lookup h: no such host (check the host's name)":                                       fmt.Errorf("a: %w", &net.DNSError{Err: "no such host", Name: "h"}),
	} {
		got := k.connectError(err)
		assert.EqualError(t, got, prefix+want)
		assert.Equal(t, loader.No, got.Applied)
	}
	ended := k.connectError(fmt.Errorf("%w: %w", context.Canceled, &net.OpError{Op: "read", Err: net.ErrClosed}))
	assert.ErrorIs(t, ended, context.Canceled)
	target.Database, target.Params = "", map[string][]string{paramSID: {"orcl"}}
	assert.Equal(t, `h:1521, SID "orcl", as user "scott"`, where(target, 0))
}
