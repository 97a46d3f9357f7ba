package doris

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults)
	var all []loadertest.Failure
	add := func(name string, err error) { all = append(all, loadertest.Failure{Name: name, Err: err}) }
	for n := range 10_000 {
		add(fmt.Sprint(n), &mysql.MySQLError{Number: uint16(n), Message: "…"})
	}
	words := []string{"TOO_MANY_VERSION", "no valid Basic authorization", "hello"}
	for _, f := range faults {
		words = append(words, f.Words...)
	}
	for _, words := range words {
		add(words, &mysql.MySQLError{Number: 1105, Message: "errCode = 2, detailMessage = " + words})
		add("Fail: "+words, &refusal{http: http.StatusOK, status: "Fail", message: words})
	}
	add("1045 privilege", &mysql.MySQLError{Number: 1045, Message: "Access denied for user 'x'"})
	for status := 100; status < 600; status++ {
		add(fmt.Sprint("HTTP ", status), &refusal{http: status, message: "…"})
	}
	add("code 401", &refusal{http: http.StatusOK, code: http.StatusUnauthorized, message: "…"})
	add("code 403", &refusal{http: http.StatusOK, code: http.StatusForbidden, message: "…"})
	add("code 1", &refusal{http: http.StatusOK, code: 1, message: "…"})
	add("label exists", &refusal{http: http.StatusOK, status: statusExists, message: "…"})
	add("FAILED", &refusal{http: http.StatusOK, status: "FAILED", message: "…"})
	add("no status", &refusal{http: http.StatusOK, message: "timeout"})
	add("HTTP 500 in words", &refusal{http: 500, message: "quota"})
	add("unreadable", errUnreadable)
	add("replaced", errReplaced)
	add("not merged", errNotMerged)
	add("label spent", errLabelSpent)
	add("dead", errDead)
	add("lost", mysql.ErrInvalidConn)
	add("no TLS there", mysql.ErrNoTLS)
	add("cleartext", mysql.ErrCleartextPassword)
	add("too large", mysql.ErrPktTooLarge)
	add("login 1045", &mysql.MySQLError{Number: 1045, Message: "Access denied for user 'x'"})
	connect := func(err error) error { return loader.ConnectError("h:9030", err, faultOf) }
	loadertest.Verdicts(t, New().Classify, failed, connect, all...)
}
