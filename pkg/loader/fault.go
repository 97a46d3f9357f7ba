package loader

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
)

// Fault is what a server's error means for a load.
type Fault struct {
	Codes string   // the server's codes, separated by spaces
	Words []string // parts of the server's message in lower case, where codes are not enough
	Verdict
	Hint string // what to do next, in one sentence; may be empty
}

// Refused returns the verdict of a permanent refusal.
func Refused(c Class) Verdict { return Verdict{Applied: No, Class: c} }

// Again returns the verdict of a refusal that may not be repeated at the next attempt.
func Again(c Class) Verdict { return Verdict{Applied: No, Class: c, Retry: true} }

// Reconnect returns the verdict of a failure without effect, after which another session may succeed.
func Reconnect(c Class) Verdict {
	return Verdict{Applied: No, Class: c, Retry: true, SessionDead: true}
}

// Lost returns the verdict of a session that ended with unknown outcome.
func Lost(c Class) Verdict { return Verdict{Class: c, Retry: true, SessionDead: true} }

// Faults is the table of a back-end.
type Faults []Fault

// Code returns the fault that lists code.
func (all Faults) Code(code string) (Fault, bool) {
	return all.first(func(f Fault) bool {
		return strings.Contains(f.Codes, code) && slices.Contains(strings.Fields(f.Codes), code)
	})
}

// Message returns the first fault with a word that occurs in text, in any case.
func (all Faults) Message(text string) (Fault, bool) {
	text = strings.ToLower(text)
	return all.first(func(f Fault) bool {
		return slices.ContainsFunc(f.Words, func(w string) bool { return strings.Contains(text, w) })
	})
}

func (all Faults) first(is func(Fault) bool) (Fault, bool) {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i], true
	}
	return Fault{}, false
}

// A FaultFunc reads the errors of one back-end's server and driver. It returns false for errors of contexts, network
// and TLS.
type FaultFunc func(error) (Fault, bool)

// Judge returns what err means for a load. An *Error in err decides whether the rows were applied.
func Judge(err error, server FaultFunc) Verdict {
	if errors.As(err, new(*TakenOverError)) { // the session is alive, and its batch has not been committed
		return Refused(ClassTakenOver)
	}

	v := faultOf(err, server).Verdict
	if known := (*Error)(nil); errors.As(err, &known) {
		v.Applied = known.Applied
	}
	return v
}

// Hint returns what to do about err; it may be empty.
func Hint(err error, server FaultFunc) string { return faultOf(err, server).Hint }

// Describe wraps err in an *Error with the operation, whether the rows were applied, and a hint. An *Error in err only
// gets the hint if it has none, in place. nil stays nil.
func Describe(op string, err error, server FaultFunc) error {
	if err == nil {
		return nil
	}
	known := (*Error)(nil)
	if !errors.As(err, &known) {
		f := faultOf(err, server)
		return &Error{Op: op, Applied: f.Applied, Err: err, Hint: f.Hint}
	}
	if known.Hint == "" {
		known.Hint = Hint(known.Err, server)
	}
	return err
}

// Mark wraps err in an *Error that says whether the rows were applied, unless err has one. nil stays nil.
func Mark(op string, applied Applied, err error) error {
	if known := (*Error)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return &Error{Op: op, Applied: applied, Err: err}
}

// ConnectError is Describe for a connection that could not be opened. where is the user's name of the server.
func ConnectError(where string, err error, server FaultFunc) error {
	op := "connect to " + where
	err = Describe(op, Mark(op, No, err), server)
	known := (*Error)(nil)
	if !errors.As(err, &known) || known.Hint != "" || ofLocalFile(err) {
		return err
	}
	switch {
	case isTimeout(err):
		known.Hint = "a firewall may drop the packets, or the port expects TLS"
	case isBroken(err) && !errors.Is(err, context.Canceled):
		known.Hint = "the server closed the connection: is this its port, and does it speak TLS as the target says?"
	}
	return err
}

// NetworkError returns the error of package net or a context in err, or err itself if there is none. What drivers wrap
// around it repeats the cause, and may hold the whole configuration with the password.
func NetworkError(err error) error {
	var (
		network *net.OpError
		name    *net.DNSError
	)
	isNetwork := errors.As(err, &network)
	switch {
	case errors.As(err, &name):
		return name
	case isNetwork && network.Op == "dial":
		return network
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer: %w", context.DeadlineExceeded)
	case isNetwork:
		return network
	}
	return err
}

// Ended reports whether err is due to the end of a context.
func Ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// NotSent reports whether no connection was opened, so that nothing was sent.
func NotSent(err error) bool {
	var (
		op   *net.OpError
		name *net.DNSError
	)
	_, noTLS := tlsHint(err)
	return noTLS || errors.As(err, &op) && op.Op == "dial" || errors.As(err, &name)
}

// faultOf asks the back-end before NetworkFault. Neither hears of local files: their errors implement net.Error, and a
// full disk of this machine is not the server's.
func faultOf(err error, server FaultFunc) Fault {
	if ofLocalFile(err) {
		return Fault{Verdict: Verdict{Class: ClassOther, SessionDead: true}}
	}
	if f, ok := server(err); ok {
		return f
	}
	return NetworkFault(err)
}

// NetworkFault returns what an error of a context, the network or TLS means, whatever the server.
func NetworkFault(err error) Fault {
	f := networkFault(err)
	if NotSent(err) {
		f.Applied = No
	}
	return f
}

func networkFault(err error) Fault {
	var (
		counted *RowsError
		name    *net.DNSError
	)
	hint, noTLS := tlsHint(err)
	switch {
	case errors.As(err, &counted):
		return Fault{Verdict: Verdict{Class: ClassRows}}
	case errors.Is(err, context.DeadlineExceeded):
		return Fault{Verdict: Lost(ClassTimeout)}
	case errors.Is(err, context.Canceled):
		return Fault{Verdict: Verdict{Class: ClassOther, SessionDead: true}}
	case noTLS:
		return Fault{Verdict: Verdict{Class: ClassPermission, SessionDead: true}, Hint: hint}
	case isTimeout(err):
		return Fault{Verdict: Lost(ClassTimeout)}
	case errors.As(err, &name):
		return Fault{Verdict: Lost(ClassConnection), Hint: "check the host's name"}
	case NotSent(err):
		return Fault{Verdict: Lost(ClassConnection), Hint: "is the server up, and is this its port?"}
	case isBroken(err):
		return Fault{Verdict: Lost(ClassConnection)}
	}
	return Fault{Verdict: Verdict{Class: ClassOther, SessionDead: true}}
}

func ofLocalFile(err error) bool {
	return errors.As(err, new(*fs.PathError)) || errors.As(err, new(*os.LinkError))
}

func isTimeout(err error) bool {
	network := net.Error(nil)
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// isBroken reports whether err is due to a connection that has ended. Drivers drop the type of some of these errors.
func isBroken(err error) bool {
	if network := net.Error(nil); errors.As(err, &network) {
		return true
	}
	return slices.ContainsFunc([]error{
		io.EOF, io.ErrUnexpectedEOF, io.ErrShortWrite, io.ErrClosedPipe, net.ErrClosed, driver.ErrBadConn, sql.ErrConnDone,
	}, func(one error) bool { return errors.Is(err, one) })
}

// unnamed reports whether a certificate has no subject alternative name.
func unnamed(c *x509.Certificate) bool {
	return c != nil && len(c.DNSNames)+len(c.IPAddresses)+len(c.EmailAddresses)+len(c.URIs) == 0
}

// tlsHint returns what to do about a failed TLS handshake.
func tlsHint(err error) (hint string, ok bool) {
	var (
		certificate *tls.CertificateVerificationError
		authority   x509.UnknownAuthorityError
		name        x509.HostnameError
		invalid     x509.CertificateInvalidError
		record      tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &record):
		return "the server has no TLS there; --tls off connects without", true
	case errors.As(err, &name) && unnamed(name.Certificate):
		return "the certificate has no name but a common name, which is not compared: have it made with a subject " +
			"alternative name (SAN), or take --tls verify-ca, which compares no name", true
	case errors.As(err, &name):
		return "the certificate is for another name: see --tls-server-name", true
	case errors.As(err, &invalid):
		return "the certificate is not valid: renew it, or use --tls require without --tls-ca to connect unverified", true
	case errors.As(err, &certificate), errors.As(err, &authority):
		hint = "name the certificate's authority with --tls-ca, or use --tls require without it, which encrypts without " +
			"verifying the server"
		return hint, true
	}
	return "", false
}
