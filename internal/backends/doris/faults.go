package doris

import (
	"net/http"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// fault is what a piece of the server's words means for a load. Doris gives nearly all failures one error number (1105)
// and one Status (Fail): the words are all there is.
type fault struct {
	words   []string // lower case; any of them
	class   loader.Class
	retry   bool
	unknown bool // the server itself may not know whether the load took effect
	hint    string
}

func (f fault) verdict() loader.Verdict {
	v := loader.Verdict{Class: f.class, Applied: loader.No, Retry: f.retry}
	if f.unknown {
		v.Applied = loader.Unknown
	}
	return v
}

// faultOf finds the first meaning of the words. What is not listed has failed for a reason that trying again does not
// change.
func faultOf(message string) fault {
	message = strings.ToLower(message)
	for _, f := range faults() {
		for _, w := range f.words {
			if strings.Contains(message, w) {
				return f
			}
		}
	}
	return fault{class: loader.ClassOther}
}

// faults lists the words, the more special ones first (Doris' sources: be/src/load/stream_load, be/src/common/status.h,
// fe DatabaseTransactionMgr and LoadAction).
func faults() []fault {
	return []fault{
		{words: []string{"too many filtered rows"}, class: loader.ClassData, hint: "the server could not read rows: see its words"},
		{words: []string{"receive body don't equal with body bytes", "receive body not equal"}, class: loader.ClassConnection, retry: true},
		{
			words: []string{"-235", "too_many_version", "too many versions", "tablet writer write failed, tablet_id"}, class: loader.ClassThrottled, retry: true,
			hint: "compaction is behind: fewer and larger batches, or fewer workers",
		},
		{
			words: []string{"current running txns on db"}, class: loader.ClassThrottled, retry: true,
			hint: "lower --workers, or raise max_running_txn_num_per_db on the frontends",
		},
		{
			words: []string{"mem_limit_exceeded", "mem_alloc_failed", "memory limit exceeded", "memory exceed", "too many connections"}, class: loader.ClassThrottled, retry: true,
			hint: "lower --workers or --batch-bytes",
		},
		{
			words: []string{"no backend load available", "no available be", "no available backend", "no alive backend", "failed to find enough host",
				"there is no scannodebackend available", "no backend available"}, class: loader.ClassShutdown, retry: true,
			hint: "SHOW BACKENDS tells which of them are alive and have room",
		},
		{words: []string{"is not master", "not ready", "is shutting down", "graceful"}, class: loader.ClassShutdown, retry: true},
		{words: []string{"blocked on schema change"}, class: loader.ClassLock, retry: true},
		{words: []string{"user cancel"}, class: loader.ClassOther, retry: true}, // by Resolve: an attempt that was given up
		{words: []string{"get tablet lock", "lock timeout", "get table write lock timeout"}, class: loader.ClassLock, retry: true, unknown: true},
		{
			words: []string{"body exceed max size", "body size", "exceeds the max", "max_allowed_packet", "exceed max size"}, class: loader.ClassTooLarge,
			hint: "lower --batch-bytes, or raise streaming_load_max_mb on the backends",
		},
		{
			words: []string{"exceeded_limit", "disk full", "no space left", "reach capacity limit", "exceed capacity", "quota"}, class: loader.ClassDiskFull,
			hint: "make room on the server, then go on with --resume",
		},
		{
			words: []string{"access denied", "unauthorized", "no valid basic authorization", "denied", "privilege"}, class: loader.ClassPermission,
			hint: "check user and password, and GRANT LOAD_PRIV, SELECT_PRIV, CREATE_PRIV on the database",
		},
		{
			words: []string{"unknown database", "unknown table", "unknown column", "does not exist", "table not found", "database not found", "not exist"},
			class: loader.ClassMissing, hint: "correct the target's database or --table; or the table has other columns",
		},
		{
			words: []string{"unknown system variable"}, class: loader.ClassMissing, hint: "the server has no such session variable; correct --set",
		},
		{words: []string{"has already been used", "label already exists"}, class: loader.ClassOther, retry: true, unknown: true},
		{words: []string{"replication num", "replication_num"}, class: loader.ClassOther, hint: "set --replication to at most the number of alive backends"},
		{words: []string{"timeout", "timed out", "time out"}, class: loader.ClassTimeout, retry: true, unknown: true},
		{
			words: []string{"connection refused", "connection reset", "broken pipe", "rpc", "thrift", "network"}, class: loader.ClassConnection, retry: true, unknown: true,
		},
	}
}

// verdict of a refusal: by its HTTP status, its Status, or its words.
func (r *refusal) verdict() loader.Verdict {
	switch {
	case r.http == http.StatusUnauthorized || r.http == http.StatusForbidden || r.code == http.StatusUnauthorized || r.code == http.StatusForbidden:
		return loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}
	case r.http == http.StatusTooManyRequests:
		return loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}
	case r.http >= 500: // perhaps by somebody in between who did not wait for the backend
		return loader.Verdict{Class: loader.ClassShutdown, Retry: true}
	case r.http == http.StatusRequestEntityTooLarge:
		return loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No}
	case r.http != http.StatusOK:
		return loader.Verdict{Class: loader.ClassOther, Applied: loader.No}
	case r.status == statusExists:
		return loader.Verdict{Class: loader.ClassOther, Retry: true}
	case r.code == 0 && !strings.EqualFold(r.status, "Fail") && !strings.EqualFold(r.status, "FAILED"):
		return loader.Verdict{Class: loader.ClassOther} // neither success nor failure, as far as anybody knows
	}
	return faultOf(r.message).verdict()
}

func (r *refusal) hint() string {
	if r.code == http.StatusUnauthorized || r.http == http.StatusUnauthorized || r.http == http.StatusForbidden {
		return faultOf("unauthorized").hint
	}
	return faultOf(r.message).hint
}
