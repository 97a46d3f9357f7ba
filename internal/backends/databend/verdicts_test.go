package databend

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults)
	var all []loadertest.Failure
	add := func(name string, err error) { all = append(all, loadertest.Failure{Name: name, Err: err}) }
	for code := 1; code < 10000; code++ {
		add(fmt.Sprint(code), &serverError{status: http.StatusOK, code: code, message: "…"})
	}
	for status := 100; status < 600; status++ {
		add(fmt.Sprint("HTTP ", status), &serverError{status: status, message: "…"})
	}
	for _, words := range []string{"Failed to upgrade session: x", "Query execution failed: x", "x (os error 28)", "not implemented: x"} {
		add("400 "+words, &serverError{status: http.StatusBadRequest, message: words})
		add("1001 "+words, &serverError{status: http.StatusOK, code: 1001, message: words})
	}
	add("in part", &partialError{loader.Ref{Rows: 3}, 2})
	add("file", &fileError{"f"})
	add("no rows", &noRowsError{})
	add("no rows, again", &noRowsError{retry: true})
	add("left", errSessionEnded)
	add("unreadable", &unreadableError{io.ErrUnexpectedEOF})
	add("lost: 429", &lostError{&serverError{status: http.StatusTooManyRequests, message: "…"}})
	add("lost: 404", &lostError{&serverError{status: http.StatusNotFound, message: "…"}})
	add("lost: refused", &lostError{&net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}})
	add("lost: deadline", &lostError{context.DeadlineExceeded})
	add("lost: cancelled", &lostError{context.Canceled})
	add("login 401", &serverError{status: http.StatusUnauthorized, message: "…"})
	connect := func(err error) error { return loader.ConnectError("h:8000", err, faultOf) }
	loadertest.Verdicts(t, New().Classify, failed, connect, all...)
}
