package postgres

import (
	"net"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// Every class of SQLSTATE in appendix A of the PostgreSQL manual, and every code with a meaning of its own.
func TestVerdicts(t *testing.T) {
	loadertest.ListedOnce(t, faults)
	var all []loadertest.Failure
	codes := []string{
		"53100", "53200", "53300", "55P03", "57014", "57P01", "57P02", "57P03", "57P04", "57P05", "25P03", "25P04", "42P01", "42P07", "42703", "42704",
		"42710", "3D000", "3F000", "25006", "42501", "28P01", "22P02", "22P03", "22021", "23502", "23505", "40001", "40P01", "08006",
		"XX000", "XX001", "P0001", "42601", "40002", "", "5701",
	}
	const digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for _, a := range digits {
		for _, b := range digits {
			codes = append(codes, string(a)+string(b)+"000")
		}
	}
	for _, severity := range []string{"ERROR", "FATAL", "PANIC"} {
		for _, code := range codes {
			err := serverError{&pgconn.PgError{SeverityUnlocalized: severity, Code: code, Message: "…"}}
			all = append(all, loadertest.Failure{Name: severity + " " + code, Err: err})
		}
	}
	all = append(all,
		loadertest.Failure{Name: "before PostgreSQL 9.6", Err: &pgconn.PgError{Severity: "ERROR", Code: "40001"}},
		loadertest.Failure{Name: "42501 by a policy", Err: &pgconn.PgError{Severity: "ERROR", Code: "42501", Routine: "ExecWithCheckOptions"}},
		loadertest.Failure{Name: "conn closed", Err: pgconn.ErrConnClosed},
		loadertest.Failure{Name: "read-only", Err: pgconn.ErrReadOnlyConnection},
		loadertest.Failure{Name: "read-write", Err: pgconn.ErrReadWriteConnection},
		loadertest.Failure{Name: "primary", Err: pgconn.ErrPrimaryConnection},
		loadertest.Failure{Name: "standby", Err: pgconn.ErrStandbyConnection},
		loadertest.Failure{Name: "a row of Redshift", Err: &loadError{err: net.ErrClosed}},
		loadertest.Failure{Name: "dead", Err: errDead()},
	)
	for _, code := range []string{"28P01", "3D000", "57P03"} {
		said := &pgconn.PgError{SeverityUnlocalized: "FATAL", Severity: "FATAL", Code: code, Message: "m", Detail: "d."}
		all = append(all, loadertest.Failure{Name: "login " + code, Err: said})
	}
	config := &pgconn.Config{User: "u", Database: "d"}
	connect := func(err error) error { return connectError(endpoint{host: "h", port: "5432"}, config, err) }
	loadertest.Verdicts(t, Driver{}.Classify, failed, connect, all...)
}
