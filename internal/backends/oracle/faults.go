package oracle

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// Classify reads the number of an ORA error where the server has answered, and the kind of network error where it has
// not.
func (b backend) Classify(err error) loader.Verdict { return loader.Judge(err, faultOf) }

// faultOf reads the errors of the server and of the drivers. A statement that fails leaves nothing behind; the end of a
// session may come at any moment, even between a commit and its answer.
func faultOf(err error) (loader.Fault, bool) {
	var (
		unbound  *bindError
		panicked driverPanic
	)
	if f, ok := objstore.FaultOf(err); ok {
		return f, true
	}
	number, said := numberOf(err)
	switch {
	case errors.As(err, &unbound):
		return loader.Fault{Verdict: loader.Refused(loader.ClassData)}, true
	case loader.Ended(err):
		return loader.Fault{}, false
	case errors.As(err, &panicked), errors.Is(err, errNoResult):
		return loader.Fault{Verdict: loader.Lost(loader.ClassOther)}, true
	case said:
		return faultOfNumber(number), true
	case errors.Is(err, errNotSent):
		return loader.Fault{Verdict: loader.Lost(loader.ClassConnection)}, true
	}
	return loader.Fault{}, false
}

// faultOfNumber finds an ORA error in the table. Numbers that are not there are of the statement, and not worth a
// retry.
func faultOfNumber(number int) loader.Fault {
	f, listed := faults().Code(strconv.Itoa(number))
	if !listed {
		f.Verdict = loader.Refused(loader.ClassOther)
	}
	return f
}

// failed says what was being done when err happened, and what to do next. It says nothing about what was applied: only
// who sent the statement knows whether it was a commit.
func failed(op string, err error) error {
	return loader.Describe(op, loader.Mark(op, loader.Unknown, err), faultOf)
}

// connectError names host, service and user. It repeats nothing of the driver's that quotes a connection string.
func (k *link) connectError(err error) error {
	err = k.client.said(err)
	_, said := numberOf(err)
	explained := ""
	if k.client.explain != nil && !said && !errors.Is(err, context.Canceled) {
		explained = k.client.explain(err)
	}
	if !said {
		err = loader.NetworkError(err)
	}
	var e *loader.Error
	_ = errors.As(loader.ConnectError(k.where, err, faultOf), &e)
	switch {
	case explained != "":
		e.Hint = explained
	case e.Hint != "" || errors.Is(err, context.Canceled):
	case said:
		e.Hint = "ask the listener for its services with lsnrctl status"
	default:
		e.Hint = "is it a listener of Oracle, and does the port speak TCP or TCPS as the target says?"
	}
	return e
}

// serverError is an error in the server's words, without what drivers add to them.
type serverError struct {
	number int // -1: these are words of the driver's library
	text   string
	cause  error
}

func (e *serverError) Error() string { return e.text }

func (e *serverError) Unwrap() error { return e.cause }

// noNumber is what godror puts in front of the words of its library, which are no server's.
const noNumber = "ORA-00000: "

// said puts the server's own words in the place of a driver's error, which stays below them. Every error of a driver
// comes through here before anything is put around it.
func (c client) said(err error) error {
	if already := (*serverError)(nil); err == nil || errors.As(err, &already) {
		return err
	}
	if number, text, ok := c.code(err); ok {
		text = words(text)
		return &serverError{number: inner(text, number), text: text, cause: err}
	}
	if text := err.Error(); strings.Contains(text, noNumber) {
		return &serverError{number: -1, text: strings.ReplaceAll(text, noNumber, ""), cause: err}
	}
	return err
}

// numberOf returns the number of an ORA error; ok is false where err has none.
func numberOf(err error) (number int, ok bool) {
	if said := (*serverError)(nil); errors.As(err, &said) && said.number >= 0 {
		return said.number, true
	}
	return 0, false
}

// is reports whether the server has said one of the numbers.
func (k *link) is(err error, numbers ...int) bool {
	number, said := numberOf(err)
	return said && slices.Contains(numbers, number)
}

// words are a server's lines as one, without where in a procedure it was and where on the web to read about it.
func words(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "Help: http") && !strings.HasPrefix(line, "ORA-06512") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "; ")
}

// inner is the number of the error that is listed behind those which say only that there was another.
func inner(text string, number int) int {
	if !outer(number) {
		return number
	}
	for _, word := range strings.Fields(text) {
		digits, is := strings.CutPrefix(strings.TrimSuffix(word, ":"), "ORA-")
		if n, err := strconv.Atoi(digits); is && err == nil && !outer(n) {
			return n
		}
	}
	return number
}

// outer reports whether an error only says where there was another: in recursive SQL, in a row of an array, in a
// parallel query server, in an external table's callout and in the cartridge that this calls.
func outer(number int) bool {
	switch number {
	case 604, 24381, 12801, 29913, 29400:
		return true
	}
	return false
}

// driverPanic is a panic of the driver.
type driverPanic struct{ value any }

func (p driverPanic) Error() string { return fmt.Sprintf("the database driver panicked: %v", p.value) }

// errNoResult is a driver that reports neither an error nor what came of a statement.
var errNoResult = errors.New("the database driver says nothing of what came of the statement")

// errDead is what a session says whose connection broke in an earlier attempt: nothing is sent.
func errDead() error {
	err := fmt.Errorf("the session's connection broke before: %w", net.ErrClosed)
	return &loader.Error{Op: "load", Applied: loader.No, Err: err}
}

// rolledBack reports whether a commit's error means that the transaction is certainly not applied: the server says so, or
// refused the commit for a constraint that was checked only then.
func rolledBack(number int) bool {
	switch number {
	case 2091, 24761, 25402: // not 2049 and 2056: one branch of several that has waited, or was rolled back
		return true
	}
	return faultOfNumber(number).Class == loader.ClassConstraint
}

// Numbers of ORA errors that more than the table knows.
const (
	codeUnique        = 1
	codeBusy          = 54    // resource busy and NOWAIT
	codeWaitedForLock = 30006 // the same, and WAIT has ended
	codeNoColumn      = 904   // invalid identifier
	codeNoTable       = 942   // table or view does not exist, or may not be seen
	codeNoParameter   = 2248  // invalid option for ALTER SESSION: an older server
	codeUnsupported   = 2097  // parameter cannot be modified because specified value is invalid
)

// faults lists ORA errors.
func faults() loader.Faults {
	const wide = "compare the types of the table's columns with those of --dry-run"
	return loader.Faults{
		// The connection is gone. 1012 not logged on; 22 … 45 session ended or marked for it; 602, 603 the server process
		// has died, 12805 a parallel one; 1041, 3122, 28511, 56600 and others the client library calls so; 2396, 2399 idle
		// and connect time; 3113 … 3135 end of file, lost contact; 12xxx the network; 25408 … TAF and Application
		// Continuity.
		{Codes: "22 28 31 45 602 603 609 1012 1041 2396 2399 3106 3113 3114 3122 3135 3136 12152 12153 12157 " +
			"12170 12537 12543 12545 12547 12560 12564 12570 12571 12583 12592 12805 25401 25403 25408 25409 27146 " +
			"28511 28547 41412 56600", Verdict: loader.Lost(loader.ClassConnection)},
		{Codes: "12541", Verdict: loader.Lost(loader.ClassConnection),
			Hint: "is the server up, and is this its port?"},
		// Not yet, or not any more. 12514, 12505, 12521, 12528: the listener does not know the service (yet), or it is
		// blocked.
		{Codes: "1033 1034 1035 1089 1090 1092 1109 12526 12527 12528 27101 44787",
			Verdict: loader.Lost(loader.ClassShutdown),
			Hint:    "the instance is starting, stopping or restricted"},
		{Codes: "12514 12504", Verdict: loader.Lost(loader.ClassShutdown),
			Hint: "check the service behind the host with lsnrctl services: an SID is written ?" + paramSID + "=, and a " +
				"database that is starting up registers late"},
		{Codes: "12505", Verdict: loader.Lost(loader.ClassShutdown),
			Hint: "the listener knows no such SID: name the service behind the host instead"},
		{Codes: "16456 16000", Verdict: loader.Lost(loader.ClassShutdown),
			Hint: "this database is a standby: name the primary"},
		// Too much at a time. 18, 20 sessions, processes; 12516 … 12520 no handler; 2391 SESSIONS_PER_USER; 4031 shared
		// pool.
		{Codes: "18 20 12516 12518 12519 12520 2391 54523", Verdict: loader.Lost(loader.ClassThrottled),
			Hint: "lower --workers, or raise PROCESSES and SESSIONS"},
		{Codes: "4030 4031 4036 62140 62144", Verdict: loader.Again(loader.ClassThrottled)},
		{Codes: "56735 56720", Verdict: loader.Again(loader.ClassThrottled),
			Hint: "the resource manager holds the session back"},
		// Locks. 54 and 30006 resource busy; 60 deadlock; 8177 serialization; 1555 snapshot too old; 4021 … library locks;
		// 14403, 4068 the table was altered meanwhile.
		{Codes: "54 60 1555 1591 2049 4020 4021 4061 4065 4068 8103 8177 14403 30006",
			Verdict: loader.Again(loader.ClassLock)},
		{Codes: "40 1013", Verdict: loader.Again(loader.ClassTimeout)},
		// The network's own bounds. 3156, 12161: that of the call, which godror sets to the context's in whole milliseconds,
		// cut off, so that it may fire before the context does (DPI-1067).
		{Codes: "3156 12161 12535 12606 12608 12609", Verdict: loader.Lost(loader.ClassTimeout)},
		{Codes: "1536 1652 1653 1654 1658 1659 1683 1688 1691 1692 1631 1632 30036 30041",
			Verdict: loader.Refused(loader.ClassDiskFull),
			Hint:    "make room, then resume the run: enlarge the tablespace or the user's quota"},
		{Codes: "257 16014 16038 19502 19504 19809 19815", Verdict: loader.Again(loader.ClassDiskFull),
			Hint: "the archived redo has no room left: free some on the server"},
		{Codes: "1", Verdict: loader.Refused(loader.ClassConstraint),
			Hint: "rows with these keys are there already: use another --first-key, or --append"},
		{Codes: "1400 1407 2290 2291 2292 14400 14402 14401 2437 1452",
			Verdict: loader.Refused(loader.ClassConstraint)},
		{Codes: "40441 40597 40587", Verdict: loader.Refused(loader.ClassData), Hint: "a value is no JSON"},
		{Codes: "1438 12899 1722 1830 1839 1840 1841 1843 1847 1858 1861 932 1401 1426 1460 1465 1483 6502 12704 " +
			"29275 30653", Verdict: loader.Refused(loader.ClassData), Hint: wide},
		{Codes: "910 1461 1489 1704 972", Verdict: loader.Refused(loader.ClassTooLarge),
			Hint: "values beyond 4000 bytes (RAW: 2000) need MAX_STRING_SIZE = EXTENDED: lower --payload-bytes"},
		{Codes: "3146", Verdict: loader.Refused(loader.ClassTooLarge), Hint: "lower --batch-rows"},
		{Codes: "1562 1628", Verdict: loader.Refused(loader.ClassTooLarge),
			Hint: "lower --batch-bytes: the undo segment does not take the transaction"},
		{Codes: "1017 1004 1005", Verdict: loader.Verdict{Class: loader.ClassPermission, SessionDead: true},
			Hint: "check user and password: TERAPUSH_PASSWORD is read"},
		{Codes: "28000", Verdict: loader.Verdict{Class: loader.ClassPermission, SessionDead: true},
			Hint: "the account is locked: ALTER USER … ACCOUNT UNLOCK"},
		{Codes: "28001 28002", Verdict: loader.Verdict{Class: loader.ClassPermission, SessionDead: true},
			Hint: "the password has expired: change it with ALTER USER"},
		{Codes: "1045", Verdict: loader.Verdict{Class: loader.ClassPermission, SessionDead: true},
			Hint: "GRANT CREATE SESSION to the user"},
		{Codes: "1031 1749 1950 1720 27486 41900", Verdict: loader.Refused(loader.ClassPermission),
			Hint: "ask an administrator for the privilege; a table wants CREATE TABLE and a quota on its tablespace"},
		{Codes: "12506 12529", Verdict: loader.Verdict{Class: loader.ClassPermission, SessionDead: true},
			Hint: "the listener refuses this client's address"},
		{Codes: "28759 28860 29024 28864 28868 29106 28365 28374",
			Verdict: loader.Verdict{Class: loader.ClassPermission, SessionDead: true},
			Hint:    "check the wallet and the server's certificate"},
		{Codes: "942 4043 1918 1435 959 2149 980", Verdict: loader.Refused(loader.ClassMissing),
			Hint: "there is no such thing, or this user may not see it"},
		{Codes: "904", Verdict: loader.Refused(loader.ClassMissing), Hint: wide},
		{Codes: "2248 2097", Verdict: loader.Refused(loader.ClassMissing),
			Hint: "check the names and values of --set"},
		{Codes: "38910", Verdict: loader.Refused(loader.ClassOther),
			Hint: "use a binary of make build-godror, or another method"},
		{Codes: "12838", Verdict: loader.Refused(loader.ClassOther),
			Hint: "direct path wants a commit before the table is used again"},
		{Codes: "600 7445", Verdict: loader.Lost(loader.ClassOther),
			Hint: "an internal error of the server: see its alert log"},
	}
}
