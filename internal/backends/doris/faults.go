package doris

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/mysqlconn"
)

// Errors that are found here.
var (
	errDead       = errors.New("the session cannot be used after an earlier error")
	errUnreadable = errors.New("the answer cannot be read") // cut off on the way, or by a proxy
	errReplaced   = errors.New("the server replaced the label")
	errNotMerged  = errors.New("the server did not merge the load, as group commit requires")
	errLabelSpent = errors.New("it belongs to a load that is over and put no rows in, and no other can use it")
)

func labelReplaced(sent, got string) error { return fmt.Errorf("%w %s by %s", errReplaced, sent, got) }

func notMerged(label string) error { return fmt.Errorf("%w (label %q)", errNotMerged, label) }

// Classify implements loader.Driver. A *loader.Error in err decides whether the rows are in.
func (Driver) Classify(err error) loader.Verdict { return verdict(err) }

func verdict(err error) loader.Verdict { return loader.Judge(err, faultOf) }

func hint(err error) string { return loader.Hint(err, faultOf) }

// failed adds to an error what was being done, and what to do next.
func failed(op string, err error) error { return loader.Describe(op, err, faultOf) }

// faultOf reads errors of the server, of its HTTP answers and of the drivers.
func faultOf(err error) (loader.Fault, bool) {
	var (
		refused *refusal
		server  *mysql.MySQLError
		network *net.OpError
	)
	stored, isStore := objstore.FaultOf(err)
	switch {
	case errors.As(err, &refused):
		return refused.fault(), true
	case errors.Is(err, errUnreadable):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	case errors.Is(err, errReplaced):
		return loader.Fault{
			Verdict: loader.Verdict{Class: loader.ClassOther},
			Hint:    "without labels the server does not recognize a batch that is sent twice: take --delivery at-least-once",
		}, true
	case errors.Is(err, errLabelSpent):
		return loader.Fault{
			Verdict: loader.Refused(loader.ClassOther),
			Hint:    "push under another run id, or --resume when the server has forgotten the label, after 12 hours by default",
		}, true
	case errors.Is(err, errNotMerged): // the rows are in, once
		return loader.Fault{
			Verdict: loader.Verdict{Class: loader.ClassOther, Applied: loader.Yes},
			Hint:    "the table needs light_schema_change, and a load no label, partition or two-phase commit",
		}, true
	case errors.As(err, &server):
		if f, listed := faults.Code(strconv.Itoa(int(server.Number))); listed {
			return f, true
		}
		return faultOfMessage(server.Message), true
	case errors.Is(err, errDead):
		return loader.Fault{Verdict: loader.Reconnect(loader.ClassConnection)}, true
	case isStore:
		return stored, true
	case errors.As(err, &network) && network.Op == "dial": // also by a timeout, behind a firewall
		return loader.Fault{
			Verdict: loader.Reconnect(loader.ClassConnection),
			Hint:    "check host and ports (9030, and ?http_port= for HTTP); for a frontend without TLS take --tls off",
		}, true
	case loader.Ended(err) || loader.NotSent(err):
		return loader.Fault{}, false
	case httpload.Broken(err):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return mysqlconn.FaultOf(err)
}

// faultOfMessage returns the first fault that lists the server's words. Anything else fails again at every attempt.
func faultOfMessage(message string) loader.Fault {
	f, listed := faults.Message(message)
	if !listed {
		f.Verdict = loader.Refused(loader.ClassOther)
	}
	return f
}

// fault judges a refusal by its HTTP status, its Status, or its words.
func (r *refusal) fault() loader.Fault {
	denied := func(status int) bool { return status == http.StatusUnauthorized || status == http.StatusForbidden }
	f := faultOfMessage(r.message)
	switch {
	case denied(r.http) || denied(r.code):
		f = faultOfMessage("unauthorized")
	case r.http == http.StatusTooManyRequests:
		f.Verdict = loader.Again(loader.ClassThrottled)
	case r.http >= 500: // perhaps of a proxy that did not wait for the backend
		f.Verdict = loader.Verdict{Class: loader.ClassShutdown, Retry: true}
	case r.http == http.StatusRequestEntityTooLarge:
		f.Verdict = loader.Refused(loader.ClassTooLarge)
	case r.http != http.StatusOK:
		f.Verdict = loader.Refused(loader.ClassOther)
	case r.status == statusExists:
		f.Verdict = loader.Verdict{Class: loader.ClassOther, Retry: true}
	case r.code == 0 && !strings.EqualFold(r.status, "Fail") && !strings.EqualFold(r.status, "FAILED"):
		f.Verdict = loader.Verdict{Class: loader.ClassOther} // neither success nor failure
	}
	return f
}

// faults lists words, the more special ones first, and the numbers of the MySQL protocol that Doris keeps to. Nearly
// all failures have one number (1105) and one Status (Fail), so words decide (Doris' sources: be/src/load/stream_load,
// be/src/common/status.h, fe DatabaseTransactionMgr and LoadAction).
var faults = loader.Faults{
	{Codes: "1040 1203 1226", Verdict: loader.Reconnect(loader.ClassThrottled), Hint: "lower --workers"},
	{Codes: "1153 1301", Hint: "lower --batch-bytes",
		Verdict: loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No, SessionDead: true}},
	{Codes: "1047 1295", Words: []string{"only support prepare", "not supported for prepare"},
		Verdict: loader.Refused(loader.ClassOther),
		Hint:    "leave out --prepared: early releases prepare nothing, or only on the master (apache/doris#46206)"},
	{Words: []string{"too many filtered rows"}, Verdict: loader.Refused(loader.ClassData),
		Hint: "the server could not read some rows"},
	{Words: []string{"receive body don't equal with body bytes", "receive body not equal"},
		Verdict: loader.Again(loader.ClassConnection)},
	{Words: []string{"-235", "too_many_version", "too many versions", "tablet writer write failed, tablet_id"},
		Verdict: loader.Again(loader.ClassThrottled),
		Hint:    "compaction is behind: fewer and larger batches, or fewer workers"},
	{Words: []string{"current running txns on db"}, Verdict: loader.Again(loader.ClassThrottled),
		Hint: "lower --workers, or raise max_running_txn_num_per_db on the frontends"},
	{Words: []string{"mem_limit_exceeded", "mem_alloc_failed", "memory limit exceeded", "memory exceed",
		"too many connections"}, Verdict: loader.Again(loader.ClassThrottled),
		Hint: "lower --workers or --batch-bytes"},
	{Words: []string{"no backend load available", "no available be", "no available backend",
		"no alive backend", "failed to find enough host", "there is no scannodebackend available",
		"no backend available"}, Verdict: loader.Again(loader.ClassShutdown),
		Hint: "SHOW BACKENDS lists which are alive and have room"},
	{Words: []string{"is not master", "not ready", "is shutting down", "graceful"},
		Verdict: loader.Again(loader.ClassShutdown)},
	{Words: []string{"blocked on schema change"}, Verdict: loader.Again(loader.ClassLock)},
	// By Resolve, which cancels an abandoned attempt.
	{Words: []string{"user cancel"}, Verdict: loader.Again(loader.ClassOther)},
	{Words: []string{"get tablet lock", "lock timeout", "get table write lock timeout"},
		Verdict: loader.Verdict{Class: loader.ClassLock, Retry: true}},
	{Words: []string{"body exceed max size", "body size", "exceeds the max", "max_allowed_packet",
		"exceed max size"}, Verdict: loader.Refused(loader.ClassTooLarge),
		Hint: "lower --batch-bytes, or raise streaming_load_max_mb on the backends"},
	{Words: []string{"exceeded_limit", "disk full", "no space left", "reach capacity limit",
		"exceed capacity", "quota"}, Verdict: loader.Refused(loader.ClassDiskFull),
		Hint: "make room on the server, then resume"},
	{Codes: "1044 1045 1142 1143 1227", Words: []string{"access denied", "unauthorized",
		"no valid basic authorization", "denied", "privilege"}, Verdict: loader.Refused(loader.ClassPermission),
		Hint: "check user and password, and GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV on the database"},
	{Codes: "1046 1049 1051 1054 1109 1146", Words: []string{"unknown database", "unknown table",
		"unknown column", "does not exist", "table not found", "database not found", "not exist"},
		Verdict: loader.Refused(loader.ClassMissing),
		Hint:    "check the database, --table, and the table's columns"},
	{Codes: "1193", Words: []string{"unknown system variable"}, Verdict: loader.Refused(loader.ClassMissing),
		Hint: "the server has no such session variable; correct --set"},
	{Words: []string{"has already been used", "label already exists"},
		Verdict: loader.Verdict{Class: loader.ClassOther, Retry: true}},
	{Words: []string{"replication num", "replication_num"}, Verdict: loader.Refused(loader.ClassOther),
		Hint: "set --replication to at most the number of alive backends"},
	{Words: []string{"timeout", "timed out", "time out"},
		Verdict: loader.Verdict{Class: loader.ClassTimeout, Retry: true}},
	{Words: []string{"connection refused", "connection reset", "broken pipe", "rpc", "thrift", "network"},
		Verdict: loader.Verdict{Class: loader.ClassConnection, Retry: true}},
}
