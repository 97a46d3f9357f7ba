package databend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// serverError is an error that a server answered with.
type serverError struct {
	status  int // of HTTP; a failed statement has 200
	code    int // Databend's; 0 where the answer has none
	message string
}

func (e *serverError) Error() string {
	if e.code != 0 {
		return fmt.Sprintf("server error %d: %s", e.code, e.message)
	}
	return fmt.Sprintf("HTTP status %d: %s", e.status, e.message)
}

// unreadableError is an answer that is cut off or not JSON. The request may have been carried out.
type unreadableError struct{ cause error }

func (e *unreadableError) Error() string {
	return "the server's answer cannot be read: " + e.cause.Error()
}
func (e *unreadableError) Unwrap() error { return e.cause }

// errSessionEnded is the error of a session that an earlier attempt has ended. The next session is on the next host.
var errSessionEnded = errors.New("an earlier attempt has ended the session")

// Classify implements loader.Driver.
func (Driver) Classify(err error) loader.Verdict { return verdict(err) }

func verdict(err error) loader.Verdict { return loader.Judge(err, faultOf) }

// failed adds the operation and a hint.
func failed(op string, err error) error { return loader.Describe(op, err, faultOf) }

// failedBefore is failed for what comes before any row can be in the table.
func failedBefore(op string, err error) error { return failed(op, loader.Mark(op, loader.No, err)) }

// faultOf knows the errors of the server, of its object store and of this package.
func faultOf(err error) (loader.Fault, bool) {
	var (
		lost       *lostError
		partial    *partialError
		server     *serverError
		noRows     *noRowsError
		file       *fileError
		unreadable *unreadableError
	)
	store, ofStore := objstore.FaultOf(err)
	switch {
	case errors.As(err, &lost):
		return loader.Fault{
			Verdict: loader.Verdict{Class: verdict(lost.cause).Class, SessionDead: true, Retry: !errors.Is(err, context.Canceled)},
			Hint:    "it is ended or awaited before the rows are sent again",
		}, true
	case errors.As(err, &partial): // Resolve may find out whose rows they are, and delete them
		return loader.Fault{Verdict: loader.Verdict{Class: loader.ClassRows, Retry: true}}, true
	case ofStore:
		return store, true
	case errors.As(err, &server):
		return server.fault(), true
	case errors.As(err, &noRows):
		return loader.Fault{Verdict: loader.Verdict{Class: loader.ClassRows, Applied: loader.No, Retry: noRows.retry}}, true
	case errors.As(err, &file):
		return loader.Fault{Verdict: loader.Again(loader.ClassConnection)}, true
	case errors.Is(err, errSessionEnded):
		return loader.Fault{Verdict: loader.Reconnect(loader.ClassConnection)}, true
	case loader.Ended(err):
		return loader.Fault{}, false
	case unreachable(err): // the session goes on with the next host
		f := loader.NetworkFault(err)
		f.SessionDead = false
		return f, true
	case loader.NotSent(err):
		return loader.Fault{}, false
	case errors.As(err, &unreadable), httpload.Broken(err):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return loader.Fault{}, false
}

// noSpace is how Rust prints ENOSPC. It comes from a file or an object store, under any code.
const noSpace = "(os error 28)"

// never finds in an internal error or a panic that the server cannot read what it was given, however often: half floats
// and times of Parquet, a text for a BINARY in ndjson. A load commits at its end, so nothing is in then.
var never = regexp.MustCompile(`(?i)not implemented|unsupported arrow type`)

// fault is found by the code, or without one by the message or the status.
func (e *serverError) fault() loader.Fault {
	if never.MatchString(e.message) {
		return loader.Fault{Verdict: loader.Refused(loader.ClassData)}
	}
	if strings.Contains(e.message, noSpace) {
		return loader.Fault{
			Verdict: loader.Verdict{Class: loader.ClassDiskFull}, Hint: "make room on the server, then resume",
		}
	}
	if e.code != 0 {
		f, listed := faults.Code(strconv.Itoa(e.code))
		if !listed {
			f.Class = loader.ClassOther
		}
		return f
	}
	if f, listed := faults.Message(e.message); listed {
		return f
	}
	f, listed := faults.Code("HTTP-" + strconv.Itoa(e.status))
	switch {
	case listed:
	case e.status >= http.StatusInternalServerError:
		f.Class, f.Retry = loader.ClassOther, true
	case e.status < http.StatusMultipleChoices: // a failure without code or message
		f.Class = loader.ClassOther
	default:
		f.Verdict = loader.Refused(loader.ClassOther)
		if e.status < http.StatusBadRequest {
			f.Hint = "something in between redirects: name the server itself"
		}
	}
	return f
}

// is reports whether the server answered with the code.
func is(err error, code int) bool {
	var server *serverError
	return errors.As(err, &server) && server.code == code
}

// Codes that this package looks for, under the server's names.
const (
	permissionDenied   = 1063
	storageUnsupported = 3902
)

// faults lists the server's codes (databend, src/common/exception/src/exception_code.rs). An error of the meta service
// or of the storage may come after a commit, so whether the rows are in is unknown, as with a code that is not listed.
var faults = loader.Faults{
	{Codes: "2014", Verdict: loader.Again(loader.ClassLock),
		Hint: "another COPY loads the same files at this moment"},
	// TableVersionMismatched, OCCRetryFailure, TableAlreadyLocked, TableLockExpired, TxnRetryMaxTimes,
	// UnresolvableConflict, CurrentTransactionIsAborted
	{Codes: "2009 2011 2015 2016 2317 4001 4002", Verdict: loader.Again(loader.ClassLock),
		Hint: "another statement changed the table at the same moment"},
	// TooManyUserConnections
	{Codes: "1041", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "max_active_sessions of the server is reached: use fewer workers"},
	// NoResourcesAvailable, MemoryExceedsLimit
	{Codes: "2404 2411", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "the server has no memory or node to spare: use fewer workers or smaller batches"},
	// AbortedSession, AbortedQuery, ClosedQuery
	{Codes: "1042 1043 1044", Verdict: loader.Verdict{Class: loader.ClassShutdown, Retry: true}},
	// Timeout, TransactionTimeout
	{Codes: "1122 4003", Verdict: loader.Verdict{Class: loader.ClassTimeout, Retry: true}},
	// NotFoundClusterNode, BadAddressFormat, DnsParseError, CannotConnectNode, MetaServiceError, MetaStorageError,
	// ClusterUnknownNode
	{Codes: "1035 1036 1037 1038 2001 2003 2401",
		Verdict: loader.Verdict{Class: loader.ClassConnection, Retry: true}},
	// StorageUnavailable, StorageOther
	{Codes: "3901 4000", Verdict: loader.Verdict{Class: loader.ClassOther, Retry: true},
		Hint: "the server cannot use its object store; if it cannot reach that of --staging, give the address it " +
			"knows as server_endpoint=… there"},
	// Internal, TokioError, UnwindError
	{Codes: "1001 1068 1104", Verdict: loader.Verdict{Class: loader.ClassOther, Retry: true}},
	{Codes: "1003", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "create the database first, or name another one in the URL"},
	// UnknownTable, UnknownView, UnknownColumn, UnknownCatalog
	{Codes: "1025 1026 1058 1119", Verdict: loader.Refused(loader.ClassMissing)},
	// UnknownStage, UnknownConnection
	{Codes: "2501 2510", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "create the stage first, or name another one with --stage"},
	// StorageNotFound, HttpNotFound
	{Codes: "3001 1072", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "a file is gone from the stage or the object store since it was put there"},
	// IllegalGrant, ManagementModePermissionDenied, PermissionDenied, NeedChangePasswordDenied
	{Codes: "1061 1062 1063 1066", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "the user needs INSERT and SELECT on the table, and CREATE on its database to create it"},
	// StagePermissionDenied, StoragePermissionDenied
	{Codes: "2506 3002", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "creating a stage takes the SUPER privilege; --method streaming-load needs no stage"},
	// UnknownUser, InvalidPassword, AuthenticateFailure, SessionTokenExpired, SessionTokenNotFound
	{Codes: "2201 2215 5100 5101 5103", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "check user and password"},
	// StorageInsecure
	{Codes: "3903", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "the server refuses a plain http endpoint: give one with https, or set storage.allow_insecure"},
	// BadArguments, BadDataValueType, EmptyData, DataStructMissMatch, BadDataArrayLength, BadBytes, Overflow,
	// SHA1CheckFailed, StrParseError, UnmarshalError, InvalidCompressionData, InvalidDate, InvalidTimestamp,
	// InvalidClusterKeys, ParquetFileInvalid, InvalidUtf8String
	{Codes: "1006 1010 1016 1017 1018 1046 1049 1057 1060 1064 1076 1079 1080 1081 1201 1202",
		Verdict: loader.Refused(loader.ClassData)},
	// TableSchemaMismatch, UnmatchColumnDataType, ConstraintError
	{Codes: "1303 1114 1133", Verdict: loader.Refused(loader.ClassConstraint)},
	// Unimplemented, SyntaxException, IllegalDataType, UnknownFunction, NumberArgumentsNotMatch, SemanticError,
	// UnknownFormat, UnknownCompressionType, IllegalStageFileFormat, UnknownFileFormat, IllegalFileFormat,
	// UnknownVariable, WrongValueForVariable
	{Codes: "1002 1005 1007 1008 1028 1065 1074 1075 2505 2507 2508 2801 2803 3902",
		Verdict: loader.Refused(loader.ClassOther)},
	{Codes: "HTTP-401 HTTP-403", Verdict: loader.Refused(loader.ClassPermission), Hint: "check user and password"},
	{Codes: "HTTP-404 HTTP-405", Verdict: loader.Refused(loader.ClassMissing), Hint: "is this Databend's HTTP port?"},
	{Codes: "HTTP-429", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "the server asks for fewer sessions: use fewer workers"},
	// An object store's, for requests that conflict: "please try again".
	{Codes: "HTTP-409", Verdict: loader.Again(loader.ClassLock)},
	{Codes: "HTTP-413", Verdict: loader.Refused(loader.ClassTooLarge),
		Hint: "a proxy bounds the length of bodies: lower --batch-bytes"},
	// Streaming loads have a message, and the status in place of the code.
	{Words: []string{"failed to upgrade session"}, Verdict: loader.Again(loader.ClassThrottled),
		Hint: "max_active_sessions of the server is reached: use fewer workers"},
	// The statement ran: errors of the commit, whose outcome is unknown, look the same.
	{Words: []string{"query execution failed"}, Verdict: loader.Verdict{Class: loader.ClassData}},
}
