package loader_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

func TestErrorTexts(t *testing.T) {
	for want, err := range map[string]error{
		"commit: EOF":                                          &loader.Error{Op: "commit", Err: io.EOF},
		"commit: EOF (try again)":                              &loader.Error{Op: "commit", Err: io.EOF, Hint: "try again"},
		"the server took 3 of 5 rows":                          &loader.RowsError{Sent: 5, Acknowledged: 3},
		"the server took 3 of 5 rows: a":                       &loader.RowsError{Sent: 5, Acknowledged: 3, Detail: []string{"a"}},
		"the server took 3 of 5 rows: a (and 1 more warnings)": &loader.RowsError{Sent: 5, Acknowledged: 3, Detail: []string{"a", "b"}},
	} {
		if err.Error() != want {
			t.Errorf("%q, want %q", err, want)
		}
	}
	if !errors.Is(&loader.Error{Op: "load", Err: io.EOF}, io.EOF) {
		t.Error("the cause is lost")
	}
}

func TestRegistry(t *testing.T) {
	d := (&loadertest.Memory{}).Driver()
	r, err := loader.NewRegistry(d)
	if err != nil {
		t.Fatal(err)
	}
	if found, ok := r.Lookup("memory"); !ok || found != d || len(r.Drivers()) != 1 || len(r.Schemes()) != 1 {
		t.Error("the driver is not found")
	}
	if _, ok := r.Lookup("nosql"); ok {
		t.Error("a driver for no scheme was found")
	}
	if _, err := loader.NewRegistry(d, d); err == nil {
		t.Error("one scheme for two drivers was taken")
	}
	for name, want := range map[string]bool{"": true, "keep": true, "copy": false} {
		if m, ok := loader.FindMethod(d, name); ok != want || ok && m.Name != "keep" {
			t.Errorf("method %q: %+v, %v", name, m, ok)
		}
	}
}

func TestDescribe(t *testing.T) {
	server := func(err error) (loader.Fault, bool) {
		return loader.Fault{Verdict: loader.Refused(loader.ClassData), Hint: "look at " + err.Error()}, errors.Is(err, io.EOF)
	}
	if err := loader.Describe("load", nil, server); err != nil {
		t.Errorf("no error became %v", err)
	}
	var e *loader.Error
	if err := loader.Describe("load", io.EOF, server); !errors.As(err, &e) ||
		*e != (loader.Error{Op: "load", Applied: loader.No, Err: io.EOF, Hint: "look at EOF"}) {
		t.Errorf("%#v", err)
	}

	// An error that knows more keeps it, however it is wrapped.
	known := &loader.Error{Op: "commit", Applied: loader.Unknown, Err: io.EOF}
	wrapped := fmt.Errorf("worker 3: %w", known)
	if err := loader.Describe("load", wrapped, server); err != wrapped || //nolint:errorlint // the very same
		*known != (loader.Error{Op: "commit", Applied: loader.Unknown, Err: io.EOF, Hint: "look at EOF"}) {
		t.Errorf("%#v within %v", known, err)
	}
	known.Hint = "wait"
	if err := loader.Describe("load", known, server); err.Error() != "commit: EOF (wait)" {
		t.Error(err)
	}
	if err := loader.ConnectError("h:1", known, server); err.Error() != "commit: EOF (wait)" {
		t.Error(err)
	}
}

// Codes are whole words, and of words that both occur the first in the table counts.
func TestFaults(t *testing.T) {
	all := loader.Faults{{Codes: "10 100", Hint: "a"}, {Codes: "1", Words: []string{"disk full"}, Hint: "b"}, {Words: []string{"full"}, Hint: "c"}}
	for code, want := range map[string]string{"10": "a", "100": "a", "1": "b", "0": "", "": ""} {
		if f, ok := all.Code(code); f.Hint != want || ok != (want != "") {
			t.Errorf("code %q: %+v", code, f)
		}
	}
	for text, want := range map[string]string{"full: DISK FULL": "b", "Full": "c", "empty": "", "": ""} {
		if f, ok := all.Message(text); f.Hint != want || ok != (want != "") {
			t.Errorf("%q: %+v", text, f)
		}
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
			"so it is not dropped (drop it yourself, allow it with --yes-drop d.t, or choose another --table)"},
		{create: loader.CreateTruncate, comment: "mine", named: "D.T", want: `truncate: table d.t was not made by terapush ` +
			`(its comment does not say "made by terapush"), so it is not emptied (empty it yourself, allow it with --yes-drop d.t, or choose another --table)`},
	} {
		p := loader.Preparation{Create: c.create, MayDrop: c.named}
		got := ""
		if err := p.MayRemove("d.t", c.comment, "d.t", "t"); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%+v: %q", c, got)
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
		var full *loader.RangeError
		if (err == nil) != c.fits || err != nil && (!errors.As(err, &full) || full.First != c.first || full.Rows != c.rows || full.Last != c.last) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
