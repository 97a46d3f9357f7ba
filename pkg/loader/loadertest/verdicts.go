package loadertest

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/terapush/terapush/pkg/loader"
)

// Failure is an error with its name in a golden file.
type Failure struct {
	Name string
	Err  error
}

// Failures returns the errors that every back-end meets, whatever its server: of contexts, the network and TLS.
func Failures() []Failure {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, Err: err}
	}
	call := func(name string, err error) error { return os.NewSyscallError(name, err) }
	unknownHost := &net.DNSError{Err: "no such host", Name: "db.example", IsNotFound: true}
	// The errors of a dialer that timed out, or was cancelled, cannot be made outside of package net.
	late := net.Dialer{Deadline: time.Unix(1, 0)}
	_, dialLate := late.Dial("tcp", "192.0.2.1:1")
	ended, end := context.WithCancel(context.Background())
	end()
	_, dialCancelled := new(net.Dialer).DialContext(ended, "tcp", "192.0.2.1:1")
	return []Failure{
		{"cancelled", context.Canceled},
		{"cancelled, closed", fmt.Errorf("%w: %w", context.Canceled, net.ErrClosed)},
		{"deadline", context.DeadlineExceeded},
		{"deadline, closed", fmt.Errorf("%w: %w", context.DeadlineExceeded, net.ErrClosed)},
		{"dial refused", dial(call("connect", syscall.ECONNREFUSED))},
		{"dial unreachable", dial(call("connect", syscall.EHOSTUNREACH))},
		{"dial unknown host", &net.OpError{Op: "dial", Net: "tcp", Err: unknownHost}},
		{"dial late", dialLate},
		{"dial cancelled", dialCancelled},
		{"unknown host", unknownHost},
		{"read late", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}},
		{"os deadline", os.ErrDeadlineExceeded},
		{"read reset", &net.OpError{Op: "read", Net: "tcp", Err: call("read", syscall.ECONNRESET)}},
		{"write broken", &net.OpError{Op: "write", Net: "tcp", Err: call("write", syscall.EPIPE)}},
		{"reset", syscall.ECONNRESET},
		{"broken pipe", syscall.EPIPE},
		{"EOF", io.EOF},
		{"unexpected EOF", io.ErrUnexpectedEOF},
		{"short write", io.ErrShortWrite},
		{"closed pipe", io.ErrClosedPipe},
		{"closed", net.ErrClosed},
		{"authority", &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}},
		{"other name", &tls.CertificateVerificationError{
			Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"db.other"}}, Host: "db.example"},
		}},
		{"expired", &tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}},
		{"bare authority", x509.UnknownAuthorityError{}},
		{"no TLS", tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}},
		{"alert", &net.OpError{Op: "remote error", Err: tls.AlertError(40)}},
		{"bad connection", driver.ErrBadConn},
		{"connection done", sql.ErrConnDone},
		{"rows", &loader.RowsError{Sent: 2, Acknowledged: 1}},
		{"anything", errors.New("anything")},
	}
}

// Verdicts holds a back-end to its golden file: what Classify returns for each error, and which hint failed adds.
// Errors with one meaning stand on one line. more are those of the back-end's server; connect makes the error of a
// connection that failed, also for those of more whose names begin with "login".
func Verdicts(t *testing.T, classify func(error) loader.Verdict, failed func(op string, err error) error,
	connect func(error) error, more ...Failure,
) {
	t.Helper()
	var b strings.Builder
	section := func(title string, all []Failure, meaning func(Failure) string) {
		fmt.Fprintf(&b, "# %s\n", title)
		var order []string
		names := make(map[string][]string)
		for _, f := range all {
			m := meaning(f)
			if names[m] == nil {
				order = append(order, m)
				checkWrapped(t, classify, failed, f)
			}
			names[m] = append(names[m], f.Name)
		}
		for _, m := range order {
			text := strings.Join(names[m], ", ")
			if n := len(names[m]); n > 200 {
				text = fmt.Sprintf("%d others", n)
			}
			fmt.Fprintf(&b, "%s\n\t%s\n", text, m)
		}
	}
	verdict := func(v loader.Verdict) string {
		text := string(v.Class)
		if v.Retry {
			text += ", retry"
		}
		if v.SessionDead {
			text += ", session dead"
		}
		return fmt.Sprintf("%s, %s", text, v.Applied)
	}
	described := func(f Failure) string {
		v := classify(f.Err)
		text := verdict(v)
		known := (*loader.Error)(nil)
		if err := failed("load", f.Err); !errors.As(err, &known) {
			return text + "; not described"
		}
		if known.Applied != v.Applied {
			text += "; described as " + known.Applied.String()
		}
		return text + "; hint: " + known.Hint
	}
	section("of the server", more, described)
	section("of contexts, network and TLS", Failures(), described)
	refused := Failures()
	for _, f := range more {
		if strings.HasPrefix(f.Name, "login") {
			refused = append(refused, f)
		}
	}
	section("connect", refused, func(f Failure) string {
		err := connect(f.Err)
		return strings.ReplaceAll(loader.Explain(err), "\n", "; ") + "; " + verdict(classify(err))
	})
	golden(t, filepath.Join("testdata", "verdicts.golden"), b.String())
}

// ListedOnce holds that no code stands in a table twice: the second place would mean nothing.
func ListedOnce(t *testing.T, all loader.Faults) {
	t.Helper()
	seen := make(map[string]bool)
	for _, f := range all {
		for _, code := range strings.Fields(f.Codes) {
			if seen[code] {
				t.Errorf("%s is listed twice", code)
			}
			seen[code] = true
		}
	}
}

// checkWrapped holds that wrapping an error changes nothing of its verdict, and an Error around it only Applied.
func checkWrapped(t *testing.T, classify func(error) loader.Verdict, failed func(op string, err error) error, f Failure) {
	t.Helper()
	v := classify(f.Err)
	if w := classify(fmt.Errorf("around: %w", f.Err)); w != v {
		t.Errorf("%s: %+v, and wrapped %+v", f.Name, v, w)
	}
	for _, v.Applied = range []loader.Applied{loader.Unknown, loader.No, loader.Yes} {
		within := &loader.Error{Op: "before", Applied: v.Applied, Err: f.Err, Hint: "known"}
		if is := classify(within); is != v {
			t.Errorf("%s: in an Error %+v, want %+v", f.Name, is, v)
		}
		known := (*loader.Error)(nil)
		if err := failed("load", within); !errors.As(err, &known) || known.Op != "before" || known.Applied != v.Applied || known.Hint != "known" {
			t.Errorf("%s: in an Error, and described: %v", f.Name, err)
		}
	}
}

// golden compares with a file, which the flag -update of the tests rewrites.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if f := flag.Lookup("update"); os.Getenv("UPDATE") != "" || f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) == got {
		return
	}
	was, is := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			t.Fatalf("%s:%d: %q, want %q; -update rewrites it", path, i+1, is[i], was[i])
		}
	}
	t.Fatalf("%s: %d lines, want %d; -update rewrites it", path, len(is), len(was))
}
