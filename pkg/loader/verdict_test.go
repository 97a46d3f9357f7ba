package loader_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"commit: EOF":                                          &loader.Error{Op: "commit", Err: io.EOF},
		"the server took 3 of 5 rows":                          &loader.RowsError{Sent: 5, Acknowledged: 3},
		"the server took 3 of 5 rows: a":                       &loader.RowsError{Sent: 5, Acknowledged: 3, Detail: []string{"a"}},
		"the server took 3 of 5 rows: a (and 1 more warnings)": &loader.RowsError{Sent: 5, Acknowledged: 3, Detail: []string{"a", "b"}},
	} {
		require.EqualError(t, err, want)
	}
}

// Who wraps or joins an error cannot change its verdict.
func TestJudged(t *testing.T) {
	lost, refused := loader.Lost(loader.ClassConnection), loader.Refused(loader.ClassData)
	judged := loader.Judged(io.EOF, lost)
	require.EqualError(t, judged, "EOF")
	require.ErrorIs(t, judged, io.EOF)
	for _, err := range []error{
		judged, fmt.Errorf("a: %w", judged), errors.Join(io.ErrNoProgress, judged), loader.Judged(loader.Final(judged), refused),
	} {
		require.Equal(t, lost, loader.VerdictOf(err), "%v", err)
	}
	require.NoError(t, loader.Judged(nil, lost))
	for _, err := range []error{nil, io.EOF} {
		require.Zero(t, loader.VerdictOf(err), "%v", err)
	}
}

func TestRegistry(t *testing.T) {
	d := (&loadertest.Memory{}).Driver()
	r, err := loader.NewRegistry(d)
	require.NoError(t, err)
	found, ok := r.Lookup("memory")
	require.True(t, ok)
	require.Equal(t, d, found)
	_, ok = r.Lookup("nosql")
	require.False(t, ok)
	_, err = loader.NewRegistry(d, d)
	require.Error(t, err, "two drivers of one scheme")
	for name, want := range map[string]bool{"": true, "keep": true, "copy": false} {
		_, ok := loader.FindMethod(d, name)
		require.Equal(t, want, ok, name)
	}
}

func TestDescribe(t *testing.T) {
	server := func(err error) (loader.Fault, bool) {
		return loader.Fault{Verdict: loader.Refused(loader.ClassData), Hint: "look at " + err.Error()}, errors.Is(err, io.EOF)
	}
	require.NoError(t, loader.Describe("load", nil, server))
	require.Equal(t, &loader.Error{Op: "load", Applied: loader.No, Err: io.EOF, Hint: "look at EOF"}, loader.Describe("load", io.EOF, server))

	// An error that knows more keeps it, however it is wrapped.
	known := &loader.Error{Op: "commit", Applied: loader.Unknown, Err: io.EOF}
	wrapped := fmt.Errorf("worker 3: %w", known)
	require.Same(t, wrapped, loader.Describe("load", wrapped, server))
	require.Equal(t, loader.Error{Op: "commit", Applied: loader.Unknown, Err: io.EOF, Hint: "look at EOF"}, *known)
	require.Equal(t, loader.Unknown, loader.Judge(wrapped, server).Applied)
	require.Equal(t, loader.Lost(loader.ClassConnection), loader.Judge(net.ErrClosed, server), "which the server knows nothing of")
	known.Hint = "wait"
	require.Equal(t, "commit: EOF (wait)", loader.Explain(loader.Describe("load", known, server)))
	require.Equal(t, "commit: EOF (wait)", loader.Explain(loader.ConnectError("h:1", known, server)))
}

// A state folder's full disk is neither the network's fault nor the server's, whatever the back-end would make of the text.
func TestLocalFiles(t *testing.T) {
	unread := func(error) (loader.Fault, bool) { return loader.Fault{}, false }
	full := func(error) (loader.Fault, bool) {
		return loader.Fault{Verdict: loader.Refused(loader.ClassDiskFull)}, true
	}
	other := loader.Verdict{Class: loader.ClassOther, SessionDead: true}
	for _, err := range []error{
		&fs.PathError{Op: "write", Path: "journal", Err: syscall.ENOSPC},
		&os.LinkError{Op: "rename", Old: ".new", New: "run", Err: syscall.ENOSPC},
	} {
		err = fmt.Errorf("writing: %w", err)
		require.Equal(t, other, loader.Judge(err, unread))
		require.Equal(t, other, loader.Judge(err, full))
		require.EqualError(t, loader.ConnectError("h:1", err, unread), "connect to h:1: "+err.Error(), "no hint at the server")
	}
}

// Codes are whole words, and of words that both occur the first in the table counts.
func TestFaults(t *testing.T) {
	all := loader.Faults{{Codes: "10 100", Hint: "a"}, {Codes: "1", Words: []string{"disk full"}, Hint: "b"}, {Words: []string{"full"}, Hint: "c"}}
	for code, want := range map[string]string{"10": "a", "100": "a", "1": "b", "0": "", "": ""} {
		f, ok := all.Code(code)
		require.Equal(t, want, f.Hint, "code %q", code)
		require.Equal(t, want != "", ok, "code %q", code)
	}
	for text, want := range map[string]string{"full: DISK FULL": "b", "Full": "c", "empty": "", "": ""} {
		f, ok := all.Message(text)
		require.Equal(t, want, f.Hint, text)
		require.Equal(t, want != "", ok, text)
	}
}

// Rows go where terapush has put them, or where the user names the table; every back-end says so in the same words.
func TestMayRemove(t *testing.T) {
	for _, c := range []struct {
		create  loader.CreateMode
		comment string
		named   string
		want    string
	}{
		{create: loader.CreateRecreate, comment: loader.MadeBy},
		{create: loader.CreateTruncate, comment: loader.MadeBy, named: "another"},
		{create: loader.CreateRecreate, named: "d.t"},
		{create: loader.CreateTruncate, comment: "mine", named: "t"},
		{create: loader.CreateRecreate, want: `recreate: table d.t was not made by terapush (its comment does not say "made by terapush"), ` +
			"so it is not dropped (drop it yourself, allow it with --allow-drop d.t, or choose another --table)"},
		{create: loader.CreateTruncate, comment: "mine", named: "D.T", want: `truncate: table d.t was not made by terapush ` +
			`(its comment does not say "made by terapush"), so it is not emptied (empty it yourself, allow it with --allow-drop d.t, or choose another --table)`},
	} {
		err := loader.Preparation{Create: c.create, MayDrop: c.named}.MayRemove("d.t", c.comment, "d.t", "t")
		if c.want == "" {
			require.NoError(t, err)
		} else {
			require.Equal(t, c.want, loader.Explain(err))
		}
	}
}

func TestFits(t *testing.T) {
	const most = 1<<63 - 1
	for _, c := range []struct {
		first, rows, last int64
		fits              bool
	}{
		{0, 1, 0, true},
		{0, 2, 0, false},
		{5, 5, 9, true},
		{5, 6, 9, false},
		{10, 1, 9, false},
		{0, most, most, true},
		{most, 1, most, true},
		{most, 2, most, false},
		{most, most, most / 2, false},
	} {
		err := loader.Fits(c.first, c.rows, c.last)
		if c.fits {
			require.NoError(t, err, "%+v", c)
			continue
		}
		require.Equal(t, &loader.RangeError{First: c.first, Rows: c.rows, Last: c.last}, err)
	}
}
