package databend

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestClassify(t *testing.T) {
	code := func(n int) error { return &serverError{status: 200, code: n, message: "words"} }
	status := func(n int, words string) error { return &serverError{status: n, message: words} }
	dial := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	reset := &net.OpError{Op: "read", Err: syscall.ECONNRESET}
	for _, c := range []struct {
		name string
		err  error
		want loader.Verdict
	}{
		{"syntax", code(1005), loader.Verdict{Class: loader.ClassOther, Applied: loader.No}},
		{"no database", code(1003), loader.Verdict{Class: loader.ClassMissing, Applied: loader.No}},
		{"no table", code(1025), loader.Verdict{Class: loader.ClassMissing, Applied: loader.No}},
		{"no stage", code(2501), loader.Verdict{Class: loader.ClassMissing, Applied: loader.No}},
		{"bad bytes", code(1046), loader.Verdict{Class: loader.ClassData, Applied: loader.No}},
		{"no privilege", code(1063), loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}},
		{"the same files", code(2014), loader.Verdict{Class: loader.ClassLock, Applied: loader.No, Retry: true}},
		{"table changed", code(2009), loader.Verdict{Class: loader.ClassLock, Applied: loader.No, Retry: true}},
		{"killed", code(1043), loader.Verdict{Class: loader.ClassShutdown, Retry: true}},
		{"took too long", code(1122), loader.Verdict{Class: loader.ClassTimeout, Retry: true}},
		{"meta service", code(2001), loader.Verdict{Class: loader.ClassConnection, Retry: true}},
		{"storage", code(4000), loader.Verdict{Class: loader.ClassOther, Retry: true}},
		{"disk full", &serverError{status: 200, code: 4000, message: "Unexpected (permanent) at write => No space left on device (os error 28)"}, loader.Verdict{Class: loader.ClassDiskFull}},
		{"disk full, streaming", &serverError{status: 500, message: "Query execution failed: No space left on device (os error 28)"}, loader.Verdict{Class: loader.ClassDiskFull}},
		{"a code of tomorrow", code(7777), loader.Verdict{Class: loader.ClassOther}},
		{"session limit", code(1041), loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}},

		{"bad request", status(400, "words"), loader.Verdict{Class: loader.ClassOther, Applied: loader.No}},
		{"login", status(401, "words"), loader.Verdict{Class: loader.ClassPermission, Applied: loader.No}},
		{"no route", status(404, "words"), loader.Verdict{Class: loader.ClassMissing, Applied: loader.No}},
		{"conflict in the store", status(409, "words"), loader.Verdict{Class: loader.ClassLock, Applied: loader.No, Retry: true}},
		{"too long", status(413, "words"), loader.Verdict{Class: loader.ClassTooLarge, Applied: loader.No}},
		{"sessions", status(429, "words"), loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}},
		{"sessions, streaming", status(400, "Failed to upgrade session: too many"), loader.Verdict{Class: loader.ClassThrottled, Applied: loader.No, Retry: true}},
		{"ran and failed", status(400, "Query execution failed: x"), loader.Verdict{Class: loader.ClassData}},
		{"internal", status(500, "words"), loader.Verdict{Class: loader.ClassOther, Retry: true}},
		{"gateway", status(504, ""), loader.Verdict{Class: loader.ClassOther, Retry: true}},
		{"redirect", status(302, ""), loader.Verdict{Class: loader.ClassOther, Applied: loader.No}},

		{"rows", &loader.RowsError{Sent: 2, Acknowledged: 1}, loader.Verdict{Class: loader.ClassRows}},
		{"in part", &partlyError{0, 3, 2}, loader.Verdict{Class: loader.ClassRows, Retry: true}},
		{"file not stored", &missingFileError{sent: "f"}, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}},
		{"page refused", &lostError{status(429, "words")}, loader.Verdict{Class: loader.ClassThrottled, Retry: true, SessionDead: true}},
		{"page of another node", &lostError{status(404, "words")}, loader.Verdict{Class: loader.ClassMissing, Retry: true, SessionDead: true}},
		{"page of a host that is gone", &lostError{dial}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{"page too late", &lostError{context.DeadlineExceeded}, loader.Verdict{Class: loader.ClassTimeout, Retry: true, SessionDead: true}},
		{"page cancelled", &lostError{context.Canceled}, loader.Verdict{Class: loader.ClassOther, SessionDead: true}},
		{"file cut short", &brokenFileError{"f", 1, 2}, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}},
		{"unreadable", &unreadableError{io.ErrUnexpectedEOF}, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{"refused", dial, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true}},
		{"reset", reset, loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{"end of file", fmt.Errorf("answer: %w", io.EOF), loader.Verdict{Class: loader.ClassConnection, Retry: true, SessionDead: true}},
		{"deadline", context.DeadlineExceeded, loader.Verdict{Class: loader.ClassTimeout, Retry: true, SessionDead: true}},
		{"cancelled", context.Canceled, loader.Verdict{Class: loader.ClassOther, SessionDead: true}},
		{"certificate", &tls.CertificateVerificationError{Err: errors.New("x")}, loader.Verdict{Class: loader.ClassPermission, Applied: loader.No, SessionDead: true}},
		{"left", errLeft, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}},
		{"anything", errors.New("x"), loader.Verdict{Class: loader.ClassOther, SessionDead: true}},
		{"known better", &loader.Error{Applied: loader.No, Err: reset}, loader.Verdict{Class: loader.ClassConnection, Applied: loader.No, Retry: true, SessionDead: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.want, New().Classify(c.err))
			require.Equal(t, c.want, New().Classify(fmt.Errorf("around: %w", c.err)))
		})
	}
}

func TestEveryCodeHasOneMeaning(t *testing.T) {
	seen := make(map[int]bool)
	for _, f := range codeFaults() {
		require.NotEmpty(t, f.class)
		for _, code := range f.codes {
			require.False(t, seen[code], "code %d stands there twice", code)
			seen[code] = true
		}
	}
}

// Errors of the storage end with a stack without names.
func TestErrorsWithoutTheServersStack(t *testing.T) {
	const stack = "\n\nBacktrace:\n   0: <unknown>\n   1: <unknown>"
	f := newFake(t)
	f.on("SELECT version()", say(failure(4000, "Unexpected at stat\n\nSource:\n   connection refused"+stack)))
	_, err := New().Open(t.Context(), f.target(stageLoad), testDeps())
	require.ErrorContains(t, err, "connection refused")
	require.ErrorContains(t, err, "server_endpoint")
	require.NotContains(t, err.Error(), "Backtrace")
	require.NotContains(t, err.Error(), "<unknown>")
}

func TestRefusalsOfProxiesAreShort(t *testing.T) {
	f := newFake(t)
	f.routes["/v1/streaming_load"] = func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write(make([]byte, 100<<10))
	}
	_, err := New().Open(t.Context(), f.target(streamingLoad), testDeps())
	require.ErrorContains(t, err, "HTTP status 401")
	require.Less(t, len(err.Error()), 2*maxWords)
}
