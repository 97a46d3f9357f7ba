package databend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/terapush/terapush/internal/httpload"
	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// serverError is what a server answered instead of success, in its own words.
type serverError struct {
	status  int // of HTTP; a failed statement has 200
	code    int // Databend's own, 0 where the answer has none
	message string
}

// Error names the code if there is one, else the status.
func (e *serverError) Error() string {
	if e.code != 0 {
		return fmt.Sprintf("server error %d: %s", e.code, e.message)
	}
	return fmt.Sprintf("HTTP status %d: %s", e.status, e.message)
}

// unreadableError is an answer that cannot be read: cut off, or no JSON. What was asked for may have been done.
type unreadableError struct{ cause error }

func (e *unreadableError) Error() string {
	return "the server's answer cannot be read: " + e.cause.Error()
}

func (e *unreadableError) Unwrap() error { return e.cause }

// errLeft is what a session says that an earlier attempt had to give up: the next one goes to the next host.
var errLeft = errors.New("the session ended with an earlier attempt")

// Classify answers the questions a retry asks. What a session knew where the error happened (loader.Error) outweighs
// what the error alone tells.
func (Driver) Classify(err error) loader.Verdict {
	v := verdict(err)
	var known *loader.Error
	if errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v
}

func verdict(err error) loader.Verdict {
	var (
		short       *loader.RowsError
		server      *serverError
		unreadable  *unreadableError
		spent       *spentError
		part        *partlyError
		broken      *brokenFileError
		missing     *missingFileError
		lost        *lostError
		certificate *tls.CertificateVerificationError
		network     net.Error
	)
	store, ofStore := objstore.Classify(err)
	switch {
	case errors.As(err, &lost):
		return loader.Verdict{Class: verdict(lost.cause).Class, Retry: !errors.Is(err, context.Canceled), SessionDead: true}
	case errors.As(err, &short):
		return loader.Verdict{Class: loader.ClassRows}
	case errors.As(err, &part): // Resolve may find out whose rows they are, and remove them
		return loader.Verdict{Class: loader.ClassRows, Retry: true}
	case ofStore:
		return store
	case errors.As(err, &server):
		return faultOf(server).verdict()
	case errors.As(err, &spent):
		return loader.Verdict{Class: loader.ClassRows, Applied: loader.No, Retry: spent.again}
	case errors.As(err, &broken), errors.As(err, &missing):
		return loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}
	case errors.Is(err, errLeft):
		return loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}
	case errors.Is(err, context.DeadlineExceeded):
		return loader.Verdict{Class: loader.ClassTimeout, Retry: true, SessionDead: true}
	case errors.Is(err, context.Canceled):
		return loader.Verdict{Class: loader.ClassOther, SessionDead: true}
	case errors.As(err, &certificate):
		return loader.Verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}
	case httpload.NotSent(err): // the session goes on with the next host
		return loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}
	case errors.As(err, &unreadable), httpload.Broken(err), errors.As(err, &network), errors.Is(err, io.EOF),
		errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}
	}
	return loader.Verdict{Class: loader.ClassOther, SessionDead: true}
}

// fault is what an answer means for a load.
type fault struct {
	codes   []int
	class   loader.Class
	unsure  bool // the statement may have taken effect all the same
	retry   bool
	advice  string
	phrases []string // where only the words tell
}

func (f fault) verdict() loader.Verdict {
	v := loader.Verdict{Class: f.class, Retry: f.retry, Applied: loader.No}
	if f.unsure {
		v.Applied = loader.Unknown
	}
	return v
}

// Codes that the code itself asks for, under the server's names.
const (
	unknownDatabase       = 1003
	duplicatedUpsertFiles = 2014
	storageUnsupported    = 3902
)

// noSpace is how the server's language prints ENOSPC; an object store or a file may have said it, under any code.
const noSpace = "(os error 28)"

func faultOf(e *serverError) fault {
	if strings.Contains(e.message, noSpace) {
		return fault{class: loader.ClassDiskFull, unsure: true, advice: "make room on the server, then go on with --resume"}
	}
	if e.code != 0 {
		for _, f := range codeFaults() {
			if slices.Contains(f.codes, e.code) {
				return f
			}
		}
		return fault{class: loader.ClassOther, unsure: true}
	}
	for _, f := range wordFaults() {
		if slices.ContainsFunc(f.phrases, func(p string) bool { return strings.Contains(e.message, p) }) {
			return f
		}
	}
	return statusFault(e.status)
}

// codeFaults lists the server's codes (databend, src/common/exception/src/exception_code.rs). An error of the meta
// service or of the storage can come after a commit, so it is unsure; so is a code that is not listed.
func codeFaults() []fault {
	const (
		rights  = "the user needs INSERT and SELECT on the table, and CREATE on its database if it is to be made"
		stages  = "creating a stage takes the SUPER privilege; --method streaming-load needs no stage"
		store   = "the server cannot use its object store; if it cannot reach that of --via, give the address it knows as server_endpoint=… there"
		running = "another statement changed the table at the same moment"
	)
	return []fault{
		{codes: []int{duplicatedUpsertFiles}, class: loader.ClassLock, retry: true,
			advice: "another COPY loads the same files at this moment"},
		// TableVersionMismatched, OCCRetryFailure, TableAlreadyLocked, TableLockExpired, TxnRetryMaxTimes,
		// UnresolvableConflict, CurrentTransactionIsAborted
		{codes: []int{2009, 2011, 2015, 2016, 2317, 4001, 4002}, class: loader.ClassLock, retry: true, advice: running},
		// TooManyUserConnections
		{codes: []int{1041}, class: loader.ClassThrottled, retry: true,
			advice: "max_active_sessions of the server is reached: use fewer workers"},
		// NoResourcesAvailable, MemoryExceedsLimit
		{codes: []int{2404, 2411}, class: loader.ClassThrottled, retry: true,
			advice: "the server has no memory or node to spare: use fewer workers or smaller batches"},
		// AbortedSession, AbortedQuery, ClosedQuery
		{codes: []int{1042, 1043, 1044}, class: loader.ClassShutdown, unsure: true, retry: true},
		// Timeout, TransactionTimeout
		{codes: []int{1122, 4003}, class: loader.ClassTimeout, unsure: true, retry: true},
		// NotFoundClusterNode, BadAddressFormat, DnsParseError, CannotConnectNode, MetaServiceError, MetaStorageError,
		// ClusterUnknownNode
		{codes: []int{1035, 1036, 1037, 1038, 2001, 2003, 2401}, class: loader.ClassConnection, unsure: true, retry: true},
		// StorageUnavailable, StorageOther
		{codes: []int{3901, 4000}, class: loader.ClassOther, unsure: true, retry: true, advice: store},
		// Internal, TokioError, UnwindError
		{codes: []int{1001, 1068, 1104}, class: loader.ClassOther, unsure: true, retry: true},
		{codes: []int{unknownDatabase}, class: loader.ClassMissing, advice: "create the database first, or name another one in the URL"},
		// UnknownTable, UnknownView, UnknownColumn, UnknownCatalog
		{codes: []int{1025, 1026, 1058, 1119}, class: loader.ClassMissing},
		// UnknownStage, UnknownConnection
		{codes: []int{2501, 2510}, class: loader.ClassMissing, advice: "create the stage first, or name another one with --stage"},
		// StorageNotFound, HttpNotFound
		{codes: []int{3001, 1072}, class: loader.ClassMissing,
			advice: "a file is gone from the stage or the object store since it was put there"},
		// IllegalGrant, ManagementModePermissionDenied, PermissionDenied, NeedChangePasswordDenied
		{codes: []int{1061, 1062, 1063, 1066}, class: loader.ClassPermission, advice: rights},
		// StagePermissionDenied, StoragePermissionDenied
		{codes: []int{2506, 3002}, class: loader.ClassPermission, advice: stages},
		// UnknownUser, InvalidPassword, AuthenticateFailure, SessionTokenExpired, SessionTokenNotFound
		{codes: []int{2201, 2215, 5100, 5101, 5103}, class: loader.ClassPermission, advice: "check user and password"},
		// StorageInsecure
		{codes: []int{3903}, class: loader.ClassPermission, advice: "the server refuses a plain http endpoint: give one with https, or set storage.allow_insecure"},
		// BadArguments, BadDataValueType, EmptyData, DataStructMissMatch, BadDataArrayLength, BadBytes, Overflow,
		// SHA1CheckFailed, StrParseError, UnmarshalError, InvalidCompressionData, InvalidDate, InvalidTimestamp,
		// InvalidClusterKeys, ParquetFileInvalid, InvalidUtf8String
		{codes: []int{1006, 1010, 1016, 1017, 1018, 1046, 1049, 1057, 1060, 1064, 1076, 1079, 1080, 1081, 1201, 1202}, class: loader.ClassData},
		// TableSchemaMismatch, UnmatchColumnDataType, ConstraintError
		{codes: []int{1303, 1114, 1133}, class: loader.ClassConstraint},
		// Unimplemented, SyntaxException, IllegalDataType, UnknownFunction, NumberArgumentsNotMatch, SemanticError,
		// UnknownFormat, UnknownCompressionType, IllegalStageFileFormat, UnknownFileFormat, IllegalFileFormat,
		// UnknownVariable, WrongValueForVariable
		{codes: []int{1002, 1005, 1007, 1008, 1028, 1065, 1074, 1075, 2505, 2507, 2508, 2801, 2803, storageUnsupported}, class: loader.ClassOther},
	}
}

// wordFaults are for streaming loads, whose errors carry the status in the place of the code.
func wordFaults() []fault {
	return []fault{
		{phrases: []string{"Failed to upgrade session"}, class: loader.ClassThrottled, retry: true,
			advice: "max_active_sessions of the server is reached: use fewer workers"},
		// The rows were sent and the statement ran: also an error of the commit, whose outcome may be open, says so.
		{phrases: []string{"Query execution failed"}, class: loader.ClassData, unsure: true},
	}
}

func statusFault(status int) fault {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return fault{class: loader.ClassPermission, advice: "check user and password"}
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed:
		return fault{class: loader.ClassMissing, advice: "is this Databend's HTTP port?"}
	case status == http.StatusTooManyRequests:
		return fault{class: loader.ClassThrottled, retry: true, advice: "the server asks for fewer sessions: use fewer workers"}
	case status == http.StatusConflict: // an object store's, of requests that get into each other's way: "please try again"
		return fault{class: loader.ClassLock, retry: true}
	case status == http.StatusRequestEntityTooLarge:
		return fault{class: loader.ClassTooLarge, advice: "a proxy bounds the length of bodies: lower --batch-bytes"}
	case status >= http.StatusInternalServerError:
		return fault{class: loader.ClassOther, unsure: true, retry: true}
	case status < http.StatusMultipleChoices: // a failure without a code or a word
		return fault{class: loader.ClassOther, unsure: true}
	case status < http.StatusBadRequest:
		return fault{class: loader.ClassOther, advice: "something in between redirects: name the server itself"}
	}
	return fault{class: loader.ClassOther}
}

// withHint says what was being done, and what to do next. It leaves what an error says about itself.
func withHint(op string, err error) error {
	return loader.Describe(op, err, func(err error) loader.Applied { return verdict(err).Applied }, hint)
}

// failed is withHint for what comes before rows can be in the table: certainly none is.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	var known *loader.Error
	if errors.As(err, &known) {
		return withHint(op, err)
	}
	return &loader.Error{Op: op, Applied: loader.No, Err: err, Hint: hint(err)}
}

func hint(err error) string {
	var lost *lostError
	var server *serverError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &lost):
		return "it is ended or waited for before the rows are sent again"
	case errors.As(err, &server):
		return faultOf(server).advice
	case errors.As(err, &certificate):
		return "give the authority's certificate, or take --tls require, which encrypts without knowing to whom"
	case errors.As(err, &record):
		return "the server speaks plain http: write ?sslmode=disable"
	case httpload.NotSent(err):
		return "check host and port, and that the server listens there"
	}
	return ""
}

// is tells whether the server answered with the code.
func is(err error, code int) bool {
	var server *serverError
	return errors.As(err, &server) && server.code == code
}
