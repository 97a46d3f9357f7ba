package doris

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/internal/sqlload"
	"github.com/terapush/terapush/pkg/loader"
)

// errDead is what a session says that has failed in a way it cannot go on from.
var errDead = errors.New("the session is of no use after an earlier error")

// Classify answers the questions a retry asks. What a session knew where the error happened (loader.Error) outweighs
// what the error alone tells.
func (Driver) Classify(err error) loader.Verdict { return verdict(err) }

func verdict(err error) loader.Verdict { return loader.Judge(err, faultOf) }

func hint(err error) string { return loader.Hint(err, faultOf) }

// failed says what was being done, and what to do next. It leaves what an error says about itself.
func failed(op string, err error) error { return loader.Describe(op, err, faultOf) }

// faultOf reads the errors of the server, of its HTTP answers and of the drivers.
func faultOf(err error) (loader.Fault, bool) {
	var (
		spent    *labelSpentError
		refused  *refusal
		cut      *unreadable
		replaced *replacedError
		alone    *notMergedError
		server   *mysql.MySQLError
		network  *net.OpError
	)
	stored, isStore := objstore.FaultOf(err)
	switch {
	case errors.As(err, &refused):
		return refused.fault(), true
	case errors.As(err, &cut):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	case errors.As(err, &replaced):
		return loader.Fault{
			Verdict: loader.Verdict{Class: loader.ClassOther},
			Hint: "labels are not kept here, so nothing recognises a batch that was sent twice: take --delivery " +
				"at-least-once",
		}, true
	case errors.As(err, &spent):
		return loader.Fault{
			Verdict: loader.Refused(loader.ClassOther),
			Hint: "push anew under another run id; or go on with --resume when the server has forgotten the label, " +
				"after twelve hours by default",
		}, true
	case errors.As(err, &alone): // the rows are in: once, but not as they were meant to be
		return loader.Fault{
			Verdict: loader.Verdict{Class: loader.ClassOther, Applied: loader.Yes},
			Hint: "the table or the batch does not qualify: it needs light_schema_change, and no label, partition or " +
				"two-phase commit",
		}, true
	case errors.As(err, &server):
		if f, listed := faults().Code(strconv.Itoa(int(server.Number))); listed {
			return f, true
		}
		return faultOfMessage(server.Message), true
	case errors.Is(err, errDead):
		return loader.Fault{Verdict: loader.Reconnect(loader.ClassConnection)}, true
	case isStore:
		return stored, true
	case errors.As(err, &network) && network.Op == "dial": // a port behind a firewall is as far away as one that refuses
		return loader.Fault{
			Verdict: loader.Reconnect(loader.ClassConnection),
			Hint: "check host and ports (9030, and ?http_port= for HTTP); where TLS is wanted and the frontend has none, " +
				"--tls off",
		}, true
	case loader.Ended(err) || loader.NotSent(err):
		return loader.Fault{}, false
	case httpload.Broken(err):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return sqlload.MySQLFault(err)
}

// faultOfMessage finds the first meaning of the server's words. What is not listed has failed for a reason that trying
// again does not change.
func faultOfMessage(message string) loader.Fault {
	f, listed := faults().Message(message)
	if !listed {
		f.Verdict = loader.Refused(loader.ClassOther)
	}
	return f
}

// fault of a refusal: by its HTTP status, its Status, or its words.
func (r *refusal) fault() loader.Fault {
	denied := func(status int) bool { return status == http.StatusUnauthorized || status == http.StatusForbidden }
	f := faultOfMessage(r.message)
	switch {
	case denied(r.http) || denied(r.code):
		f = faultOfMessage("unauthorized")
	case r.http == http.StatusTooManyRequests:
		f.Verdict = loader.Again(loader.ClassThrottled)
	case r.http >= 500: // perhaps by somebody in between who did not wait for the backend
		f.Verdict = loader.Verdict{Class: loader.ClassShutdown, Retry: true}
	case r.http == http.StatusRequestEntityTooLarge:
		f.Verdict = loader.Refused(loader.ClassTooLarge)
	case r.http != http.StatusOK:
		f.Verdict = loader.Refused(loader.ClassOther)
	case r.status == statusExists:
		f.Verdict = loader.Verdict{Class: loader.ClassOther, Retry: true}
	case r.code == 0 && !strings.EqualFold(r.status, "Fail") && !strings.EqualFold(r.status, "FAILED"):
		f.Verdict = loader.Verdict{Class: loader.ClassOther} // neither success nor failure, as far as anybody knows
	}
	return f
}

// faults lists the numbers of the MySQL protocol that Doris keeps to, and words, the more special ones first. Doris
// gives nearly all failures one number (1105) and one Status (Fail): the words are all there is (Doris' sources:
// be/src/load/stream_load, be/src/common/status.h, fe DatabaseTransactionMgr and LoadAction).
func faults() loader.Faults {
	return loader.Faults{
		{Codes: "1040 1203 1226",
			Verdict: loader.Reconnect(loader.ClassThrottled),
			Hint:    "lower --workers"},
		{Codes: "1153 1301",
			Verdict: loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No, SessionDead: true},
			Hint:    "lower --batch-bytes"},
		{Words: []string{"too many filtered rows"}, Verdict: loader.Refused(loader.ClassData),
			Hint: "the server could not read rows: see its words"},
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
			Hint: "SHOW BACKENDS tells which of them are alive and have room"},
		{Words: []string{"is not master", "not ready", "is shutting down", "graceful"},
			Verdict: loader.Again(loader.ClassShutdown)},
		{Words: []string{"blocked on schema change"}, Verdict: loader.Again(loader.ClassLock)},
		// By Resolve, which ends an attempt that was given up.
		{Words: []string{"user cancel"}, Verdict: loader.Again(loader.ClassOther)},
		{Words: []string{"get tablet lock", "lock timeout", "get table write lock timeout"},
			Verdict: loader.Verdict{Class: loader.ClassLock, Retry: true}},
		{Words: []string{"body exceed max size", "body size", "exceeds the max", "max_allowed_packet",
			"exceed max size"}, Verdict: loader.Refused(loader.ClassTooLarge),
			Hint: "lower --batch-bytes, or raise streaming_load_max_mb on the backends"},
		{Words: []string{"exceeded_limit", "disk full", "no space left", "reach capacity limit",
			"exceed capacity", "quota"}, Verdict: loader.Refused(loader.ClassDiskFull),
			Hint: "make room on the server, then go on with --resume"},
		{Codes: "1044 1045 1142 1143 1227", Words: []string{"access denied", "unauthorized",
			"no valid basic authorization", "denied", "privilege"}, Verdict: loader.Refused(loader.ClassPermission),
			Hint: "check user and password, and GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV on the database"},
		{Codes: "1046 1049 1051 1054 1109 1146", Words: []string{"unknown database", "unknown table",
			"unknown column", "does not exist", "table not found", "database not found", "not exist"},
			Verdict: loader.Refused(loader.ClassMissing),
			Hint:    "correct the target's database or --table; or the table has other columns"},
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
}
