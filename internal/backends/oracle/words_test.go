package oracle

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// oraError is an error of the server as a client reads it.
type oraError int

func (e oraError) Error() string {
	return fmt.Sprintf("ORA-%05d: the server's words\nerror occur at position: 3", int(e))
}

var plainTimes = bindTimes(func(t time.Time) time.Time { return t })

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
		times: plainTimes, maybeTimes: plainTimes,
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
		"ORA-02091: transaction rolled back\nORA-00001: unique constraint (U.PK) violated": 2091,
		"ORA-20000: from a trigger\nORA-06512: at U.T, line 3":                             20000,
	} {
		c := client{code: func(error) (int, string, bool) {
			n, err := strconv.Atoi(text[4:9])
			return n, text, err == nil
		}}
		number, ok := errorNumber(c.serverError(io.EOF))
		assert.True(t, ok)
		assert.Equal(t, want, number, text)
	}
	assert.Equal(t, "ORA-20000: a; b", oneLine("ORA-20000: a\nORA-06512: at U.T, line 3\n  b\nHelp: https://docs.oracle.com/error-help/db/ora-20000/\n"))
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

func TestFailed(t *testing.T) {
	c := reading()
	err := failed("load", c.serverError(oraError(1653)))
	require.Equal(t, "load: ORA-01653: the server's words (make room, then resume the run: enlarge the tablespace or the user's quota)", loader.Explain(err))
	var known *loader.Error
	require.ErrorAs(t, err, &known)
	assert.Equal(t, loader.Unknown, known.Applied, "it might have been a commit")
	var cause oraError
	assert.ErrorAs(t, err, &cause, "the cause is kept")
	assert.Equal(t, err, c.serverError(failed("again", err)), "again it changes nothing")

	kept := &loader.Error{Op: "lock", Applied: loader.No, Err: c.serverError(oraError(54)), Hint: "wait"}
	assert.Equal(t, "lock: ORA-00054: the server's words (wait)", loader.Explain(failed("load", kept)))
	assert.NoError(t, failed("load", nil))
	assert.NoError(t, c.serverError(nil))
}

// The library's words are no server's.
func TestNoNumber(t *testing.T) {
	cause := errors.New("ORA-00000: DPI-1047: Cannot locate a 64-bit Oracle Client library")
	err := failed("connect", reading().serverError(fmt.Errorf("dpi: %w", cause)))
	require.EqualError(t, err, "connect: dpi: DPI-1047: Cannot locate a 64-bit Oracle Client library")
	assert.ErrorIs(t, err, cause)
}

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults)
	var all []loadertest.Failure
	for n := range 66_000 {
		all = append(all, loadertest.Failure{Name: fmt.Sprint(n), Err: reading().serverError(oraError(n))})
	}
	all = append(all, []loadertest.Failure{
		{Name: "said before", Err: &serverError{number: 60, text: "ORA-00060: deadlock"}},
		{Name: "a panic", Err: driverPanic{"index out of range"}},
		{Name: "no result", Err: errNoResult},
		{Name: "not sent", Err: errNotSent},
		{Name: "cannot be bound", Err: &bindError{"no"}},
		{Name: "dead", Err: errDead()},
		{Name: "login 1017", Err: reading().serverError(oraError(1017))},
		{Name: "login 12541", Err: reading().serverError(oraError(12541))},
		{Name: "login 12514", Err: reading().serverError(oraError(12514))},
		{Name: "login 65000", Err: reading().serverError(oraError(65000))},
		{Name: "login without library", Err: errors.New("no library")},
		{Name: "login with library", Err: reading().serverError(errors.New("ORA-00000: DPI-1080: connection closed"))},
	}...)
	k := &conn{client: reading(), where: `h:1521, service "svc", as user "scott"`}
	connect := func(err error) error { return k.connectError(err) }
	loadertest.Verdicts(t, Driver{client: reading()}.Classify, failed, connect, all...)
}
