package oracle

import (
	"errors"
	"fmt"
	"testing"

	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults())
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
	k := &link{client: reading(), where: `h:1521, service "svc", as user "scott"`}
	connect := func(err error) error { return k.connectError(err) }
	loadertest.Verdicts(t, backend{client: reading()}.Classify, failed, connect, all...)
}
