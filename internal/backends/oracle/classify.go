package oracle

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/terapush/terapush/internal/objstore"
	"github.com/terapush/terapush/pkg/loader"
)

// Classify reads the number of an ORA error where the server has spoken, and the kind of network error where it has not.
func (b backend) Classify(err error) loader.Verdict {
	if v, ok := objstore.Classify(err); ok {
		return v
	}
	v := verdict(b.client, err)
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v
}

func verdict(c client, err error) loader.Verdict {
	var (
		counted  *loader.RowsError
		network  net.Error
		unbound  *bindError
		panicked driverPanic
	)
	number, _, said := numberOf(c, err)
	switch {
	case errors.As(err, &unbound):
		return loader.Verdict{Applied: loader.No, Class: loader.ClassData}
	case errors.Is(err, context.DeadlineExceeded):
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassTimeout}
	case errors.Is(err, context.Canceled):
		return loader.Verdict{SessionDead: true, Class: loader.ClassOther}
	case errors.As(err, &panicked), errors.Is(err, errNoResult):
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassOther}
	case said:
		return saidVerdict(number)
	case errors.As(err, &counted):
		return loader.Verdict{Applied: loader.No, Class: loader.ClassRows}
	case errors.As(err, &network) && network.Timeout():
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassTimeout}
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed),
		errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, driver.ErrBadConn),
		errors.Is(err, sql.ErrConnDone), errors.Is(err, errNotSent):
		return loader.Verdict{Retry: true, SessionDead: true, Class: loader.ClassConnection}
	}
	return loader.Verdict{SessionDead: true, Class: loader.ClassOther}
}

// numberOf is the number of an ORA error with the server's words, as the client reads it or as an earlier hand has.
func numberOf(c client, err error) (number int, text string, ok bool) {
	if known := (*spoken)(nil); errors.As(err, &known) {
		return known.number, known.text, true
	}
	if err == nil || c.code == nil {
		return 0, "", false
	}
	if number, text, ok = c.code(err); !ok {
		return 0, "", false
	}
	text = words(text)
	return inner(text, number), text, true
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

// outer tells of an error that it only says where there was another: in recursive SQL, in a row of an array, in a parallel
// query server, in an external table's callout and in the cartridge that this calls.
func outer(number int) bool {
	switch number {
	case 604, 24381, 12801, 29913, 29400:
		return true
	}
	return false
}

// saidVerdict judges an error of the server. A statement that fails leaves nothing behind; the end of a session may come
// at any moment, even between a commit and its answer.
func saidVerdict(number int) loader.Verdict {
	known := judge(number)
	v := loader.Verdict{Applied: loader.No, Class: known.class, Retry: known.retry, SessionDead: known.dead}
	if known.dead {
		v.Applied = loader.Unknown
	}
	return v
}

// spoken is an error of the server in its words, without what drivers add to them.
type spoken struct {
	number int
	text   string
	cause  error
}

func (e *spoken) Error() string { return e.text }

func (e *spoken) Unwrap() error { return e.cause }

// driverPanic is a panic of the driver.
type driverPanic struct{ value any }

func (p driverPanic) Error() string { return fmt.Sprintf("the database driver panicked: %v", p.value) }

// errNoResult is a driver that reports neither an error nor what came of a statement.
var errNoResult = errors.New("the database driver says nothing of what came of the statement")

// failed says what was being done when err happened. Whoever gave the connection adds what to do next: see complete.
func failed(op string, err error) error {
	if err == nil {
		return nil
	}
	if known := (*loader.Error)(nil); errors.As(err, &known) {
		return err
	}
	return &loader.Error{Op: op, Applied: loader.Unknown, Err: err}
}

// failed is the package's failed, and complete.
func (l *opened) failed(op string, err error) error { return complete(l.client, failed(op, err)) }

// complete adds to an error what the client can read in it: the server's own words and what to do next. It says nothing
// about what was applied: only who sent the statement knows whether it was a commit.
func complete(c client, err error) error {
	return within(err, func(e *loader.Error) *loader.Error { return completed(c, e) })
}

func completed(c client, known *loader.Error) *loader.Error {
	e := *known
	e.Err = say(c, e.Err)
	number, _, ok := numberOf(c, e.Err)
	switch {
	case e.Hint != "":
	case ok:
		e.Hint = judge(number).hint
	case c.explain != nil:
		e.Hint = c.explain(e.Err)
	}
	return &e
}

// noNumber is what godror puts in front of the words of its library, which are no server's.
const noNumber = "ORA-00000: "

// say puts the server's own words in the place of the driver's error, which stays below them. What stands around an Error
// stays; what a driver puts around the server's words does not.
func say(c client, err error) error {
	if err == nil {
		return nil
	}
	if len(outermost(err)) > 0 {
		return within(err, func(e *loader.Error) *loader.Error {
			said := *e
			said.Err = say(c, e.Err)
			return &said
		})
	}
	if already := (*spoken)(nil); errors.As(err, &already) {
		return err
	}
	if number, text, ok := numberOf(c, err); ok {
		return &spoken{number: number, text: text, cause: err}
	}
	if text := err.Error(); strings.Contains(text, noNumber) {
		return &reworded{text: strings.ReplaceAll(text, noNumber, ""), was: err}
	}
	return err
}

// connectError names host, service and user. It repeats nothing of the driver's that quotes a connection string.
func (k *link) connectError(err error) *loader.Error {
	e := &loader.Error{Op: "connect to " + k.where, Applied: loader.No, Err: err}
	var (
		network *net.OpError
		name    *net.DNSError
	)
	_, _, said := numberOf(k.client, err)
	switch {
	case said:
		// What the listener and the server say about a login stands for itself, and most of it has a hint of its own.
	case errors.Is(err, context.Canceled):
		e.Hint = "it was given up"
	case errors.As(err, &name):
		e.Err, e.Hint = name, "check the host's name"
	case k.client.explain != nil && k.client.explain(err) != "":
		e.Hint = k.client.explain(err)
	case errors.Is(err, context.DeadlineExceeded):
		e.Err, e.Hint = &noAnswer{err}, "a firewall may drop the packets, or the port speaks TCPS and not TCP"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		e.Hint = "the other end hung up at once: is it a listener, and does the port speak TCPS?"
	case errors.As(err, &network):
		e.Err, e.Hint = network, "is the listener up, and is this its port?"
	default:
		e.Hint = "is it a listener of Oracle, and does the port speak TCP or TCPS as the target says?"
	}
	if e = completed(k.client, e); e.Hint == "" {
		e.Hint = "ask the listener for its services with lsnrctl status"
	}
	return e
}

// noAnswer is a connection that nobody answered in time.
type noAnswer struct{ error }

func (noAnswer) Error() string { return "no answer" }

func (e noAnswer) Unwrap() error { return e.error }

// is tells whether the server has said one of the numbers.
func (k *link) is(err error, numbers ...int) bool {
	said, _, ok := numberOf(k.client, err)
	for _, n := range numbers {
		if ok && said == n {
			return true
		}
	}
	return false
}

// rolledBack tells of a commit's error that the transaction is certainly not applied: the server says it itself, or
// refused the commit for a constraint that was checked only then.
func rolledBack(number int) bool {
	switch number {
	case 2091, 24761, 25402: // not 2049 and 2056: one branch of several that has waited, or was rolled back
		return true
	}
	return judge(number).class == loader.ClassConstraint
}
