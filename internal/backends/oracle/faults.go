package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// Classify implements loader.Driver.
func (d Driver) Classify(err error) loader.Verdict { return loader.Judge(err, faultOf) }

// faultOf judges errors of the server and the drivers. A failed statement leaves nothing behind; a session may end at
// any moment, even between a commit and its answer.
func faultOf(err error) (loader.Fault, bool) {
	var (
		unbound  *bindError
		panicked driverPanic
	)
	number, ok := errorNumber(err)
	switch {
	case errors.As(err, &unbound):
		return loader.Fault{Verdict: loader.Refused(loader.ClassData)}, true
	case loader.Ended(err):
		return loader.Fault{}, false
	case errors.As(err, &panicked), errors.Is(err, errNoResult):
		return loader.Fault{Verdict: loader.Lost(loader.ClassOther)}, true
	case ok:
		return faultOfNumber(number), true
	case errors.Is(err, errNotSent):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return loader.Fault{}, false
}

// faultOfNumber looks up an ORA error. One that is not listed is not retried.
func faultOfNumber(number int) loader.Fault {
	f, listed := faults.Code(strconv.Itoa(number))
	if !listed {
		f.Verdict = loader.Refused(loader.ClassOther)
	}
	return f
}

// failed adds operation and hint to err. Whether rows were applied only the sender of the statement knows.
func failed(op string, err error) error {
	return loader.Describe(op, loader.Mark(op, loader.Unknown, err), faultOf)
}

// connectError names host, service and user. It leaves out text of the driver, which may quote the connection string.
func (k *conn) connectError(err error) error {
	err = k.client.serverError(err)
	_, answered := errorNumber(err)
	hint := ""
	if !answered {
		if k.client.explain != nil && !errors.Is(err, context.Canceled) {
			hint = k.client.explain(err)
		}
		err = loader.NetworkError(err)
	}
	var e *loader.Error
	_ = errors.As(loader.ConnectError(k.where, err, faultOf), &e)
	switch {
	case hint != "":
		e.Hint = hint
	case e.Hint != "" || errors.Is(err, context.Canceled):
	case answered:
		e.Hint = "list the listener's services with lsnrctl status"
	default:
		e.Hint = "is it a listener of Oracle, and does the port speak TCP or TCPS as the target says?"
	}
	return e
}

// serverError is an error in the server's words, without the driver's additions.
type serverError struct {
	number int // -1: an error of the driver's library
	text   string
	cause  error
}

func (e *serverError) Error() string { return e.text }

func (e *serverError) Unwrap() error { return e.cause }

// noNumber is godror's prefix for errors of its library.
const noNumber = "ORA-00000: "

// serverError replaces a driver's error, which becomes its cause, by the server's words.
func (c client) serverError(err error) error {
	if already := (*serverError)(nil); err == nil || errors.As(err, &already) {
		return err
	}
	if number, text, ok := c.code(err); ok {
		text = oneLine(text)
		return &serverError{number: innerNumber(text, number), text: text, cause: err}
	}
	if text := err.Error(); strings.Contains(text, noNumber) {
		return &serverError{number: -1, text: strings.ReplaceAll(text, noNumber, ""), cause: err}
	}
	return err
}

// errorNumber returns the number of an ORA error.
func errorNumber(err error) (number int, ok bool) {
	if e := (*serverError)(nil); errors.As(err, &e) && e.number >= 0 {
		return e.number, true
	}
	return 0, false
}

// is reports whether err is one of the ORA errors.
func is(err error, numbers ...int) bool {
	number, ok := errorNumber(err)
	return ok && slices.Contains(numbers, number)
}

// oneLine joins the lines of a server's message, without positions in procedures and links to the manual.
func oneLine(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Help: http") && !strings.HasPrefix(line, "ORA-06512") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}

var oraNumber = regexp.MustCompile(`\bORA-(\d+)`)

// innerNumber returns the number of the cause, where number only says that there is one.
func innerNumber(text string, number int) int {
	if !wraps(number) {
		return number
	}
	for _, match := range oraNumber.FindAllStringSubmatch(text, -1) {
		if n, err := strconv.Atoi(match[1]); err == nil && !wraps(n) {
			return n
		}
	}
	return number
}

// wraps reports whether an error only says where another one occurred: in recursive SQL, a row of an array, or a
// parallel query server.
func wraps(number int) bool {
	return slices.Contains([]int{604, 24381, 12801}, number)
}

// driverPanic is a panic of the driver.
type driverPanic struct{ value any }

func (p driverPanic) Error() string { return fmt.Sprintf("the database driver panicked: %v", p.value) }

// errNoResult is the error of a driver that returns neither an error nor a result.
var errNoResult = errors.New("the database driver returned no result")

// errDead is the error of a session whose connection broke in an earlier attempt: nothing is sent.
func errDead() error {
	err := fmt.Errorf("the session's connection broke before: %w", net.ErrClosed)
	return &loader.Error{Op: "load", Applied: loader.No, Err: err}
}

// rolledBack reports whether a commit's error means that the transaction was rolled back, for one because of a deferred
// constraint. ORA-02049 and ORA-02056 are about one branch of several.
func rolledBack(number int) bool {
	return slices.Contains([]int{2091, 24761, 25402}, number) || faultOfNumber(number).Class == loader.ClassConstraint
}

// Numbers of ORA errors that are tested for.
const (
	codeUnique        = 1
	codeBusy          = 54    // resource busy and NOWAIT
	codeWaitedForLock = 30006 // the same, and WAIT has ended
	codeDeadlock      = 60    // the server has ended one statement of those that wait for each other
	codeMayNotWrite   = 20735 // raised by statements.claim
	codeNoColumn      = 904   // invalid identifier
	codeNameTaken     = 955   // CREATE TABLE: there is an object of this name
	codeReferenced    = 2266  // TRUNCATE: enabled foreign keys of other tables refer to the table
	codeNoTable       = 942   // table or view does not exist, or may not be seen
	codeNoParameter   = 2248  // invalid option for ALTER SESSION: an older server
	codeUnsupported   = 2097  // parameter cannot be modified because specified value is invalid
)

const compareTypes = "compare the types of the table's columns with those of --dry-run"

// denied is the verdict of a connection or a login that was refused.
var denied = loader.Verdict{Class: loader.ClassPermission, SessionDead: true}

// faults lists ORA errors.
var faults = loader.Faults{
	// Connection lost. 1012 not logged on; 22 … 45 session ended or marked for it; 602, 603 the server process
	// has died, 12805 a parallel one; 1041, 3122, 28511, 56600 and others of the client library; 2396, 2399 idle
	// and connect time; 3113 … 3135 end of file, lost contact; 12xxx the network; 25408 … TAF and Application
	// Continuity.
	{Codes: "22 28 31 45 602 603 609 1012 1041 2396 2399 3106 3113 3114 3122 3135 3136 12152 12153 12157 " +
		"12170 12537 12543 12545 12547 12560 12564 12570 12571 12583 12592 12805 25401 25403 25408 25409 27146 " +
		"28511 28547 41412 56600", Verdict: loader.Lost(loader.ClassConnection)},
	{Codes: "12541", Verdict: loader.Lost(loader.ClassConnection),
		Hint: "is the server up, and is this its port?"},
	// Starting or stopping. 12514, 12505, 12521, 12528: the listener does not know the service (yet), or it is
	// blocked.
	{Codes: "1033 1034 1035 1089 1090 1092 1109 12526 12527 12528 27101 44787",
		Verdict: loader.Lost(loader.ClassShutdown),
		Hint:    "the instance is starting, stopping or restricted"},
	{Codes: "12514 12504", Verdict: loader.Lost(loader.ClassShutdown),
		Hint: "check the service after the host with lsnrctl services: an SID is written ?" + paramSID + "=, and a " +
			"database that is starting up registers late"},
	{Codes: "12505", Verdict: loader.Lost(loader.ClassShutdown),
		Hint: "the listener does not know this SID: name the service after the host instead"},
	{Codes: "16456 16000", Verdict: loader.Lost(loader.ClassShutdown),
		Hint: "this database is a standby: name the primary"},
	// Overload. 18, 20 sessions, processes; 12516 … 12520 no handler; 2391 SESSIONS_PER_USER; 4031 shared
	// pool.
	{Codes: "18 20 12516 12518 12519 12520 2391 54523", Verdict: loader.Lost(loader.ClassThrottled),
		Hint: "lower --workers, or raise PROCESSES and SESSIONS"},
	{Codes: "4030 4031 4036 62140 62144", Verdict: loader.Again(loader.ClassThrottled)},
	{Codes: "56735 56720", Verdict: loader.Again(loader.ClassThrottled),
		Hint: "the resource manager holds the session back"},
	// Locks. 54 and 30006 resource busy; 60 deadlock; 8177 serialization; 1555 snapshot too old; 4021 … library locks;
	// 14403, 4068 the table was altered meanwhile.
	{Codes: "54", Verdict: loader.Again(loader.ClassLock),
		Hint: "another session has uncommitted rows or a lock on the table: wait for it or end it"},
	{Codes: "60 1555 1591 2049 4020 4021 4061 4065 4068 8103 8177 14403 30006",
		Verdict: loader.Again(loader.ClassLock)},
	{Codes: "40 1013", Verdict: loader.Again(loader.ClassTimeout)},
	// Timeouts of the network. 3156, 12161: of the call, which godror sets to the context's in whole milliseconds,
	// rounded down, so that it may end before the context does (DPI-1067).
	{Codes: "3156 12161 12535 12606 12608 12609", Verdict: loader.Lost(loader.ClassTimeout)},
	{Codes: "1536 1652 1653 1654 1658 1659 1683 1688 1691 1692 1631 1632 30036 30041",
		Verdict: loader.Refused(loader.ClassDiskFull),
		Hint:    "make room, then resume the run: enlarge the tablespace or the user's quota"},
	{Codes: "257 16014 16038 19502 19504 19809 19815", Verdict: loader.Again(loader.ClassDiskFull),
		Hint: "there is no space left for archived redo: free some on the server"},
	{Codes: "1", Verdict: loader.Refused(loader.ClassConstraint),
		Hint: "rows with these keys are there already: use another --first-key, or --append"},
	{Codes: "2266", Verdict: loader.Refused(loader.ClassOther),
		Hint: "disable the foreign keys of other tables that refer to it"},
	{Codes: "1400 1407 2290 2291 2292 14400 14402 14401 2437 1452",
		Verdict: loader.Refused(loader.ClassConstraint)},
	{Codes: "40441 40597 40587", Verdict: loader.Refused(loader.ClassData), Hint: "a value is not JSON"},
	{Codes: "1438 12899 1722 1830 1839 1840 1841 1843 1847 1858 1861 932 1401 1426 1460 1465 1483 6502 12704 " +
		"29275", Verdict: loader.Refused(loader.ClassData), Hint: compareTypes},
	{Codes: "910 1461 1489 1704 972", Verdict: loader.Refused(loader.ClassTooLarge),
		Hint: "values beyond 4000 bytes (RAW: 2000) need MAX_STRING_SIZE = EXTENDED: lower --payload-bytes"},
	{Codes: "3146", Verdict: loader.Refused(loader.ClassTooLarge), Hint: "lower --batch-rows"},
	{Codes: "1562 1628", Verdict: loader.Refused(loader.ClassTooLarge),
		Hint: "lower --batch-bytes: the transaction is too large for the undo segment"},
	{Codes: "1017 1004 1005", Verdict: denied,
		Hint: "check user and password (TERAPUSH_PASSWORD)"},
	{Codes: "28000 28001 28002 1045", Verdict: denied,
		Hint: "unlock the user, change its password or GRANT CREATE SESSION"},
	{Codes: "1031 1749 1950 1720 27486 41900", Verdict: loader.Refused(loader.ClassPermission),
		Hint: "ask an administrator for the privilege; a table needs CREATE TABLE and a quota on its tablespace"},
	{Codes: "12506 12529", Verdict: denied,
		Hint: "the listener refuses this client's address"},
	{Codes: "28759 28860 29024 28864 28868 29106 28365 28374", Verdict: denied,
		Hint: "check the wallet and the server's certificate"},
	{Codes: "942 4043 1918 1435 959 2149 980", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "it does not exist, or this user may not see it"},
	{Codes: "904", Verdict: loader.Refused(loader.ClassMissing), Hint: compareTypes},
	{Codes: "2248 2097", Verdict: loader.Refused(loader.ClassMissing),
		Hint: "check the names and values of --set"},
	{Codes: "600 7445", Verdict: loader.Lost(loader.ClassOther),
		Hint: "an internal error of the server: see its alert log"},
}
