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
	applied := func(error) loader.Applied { return loader.No }
	hint := func(err error) string { return "look at " + err.Error() }
	if err := loader.Describe("load", nil, applied, hint); err != nil {
		t.Errorf("no error became %v", err)
	}
	var e *loader.Error
	if err := loader.Describe("load", io.EOF, applied, hint); !errors.As(err, &e) ||
		*e != (loader.Error{Op: "load", Applied: loader.No, Err: io.EOF, Hint: "look at EOF"}) {
		t.Errorf("%#v", err)
	}

	// An error that knows more keeps it, however it is wrapped.
	known := &loader.Error{Op: "commit", Applied: loader.Unknown, Err: io.EOF}
	wrapped := fmt.Errorf("worker 3: %w", known)
	if err := loader.Describe("load", wrapped, applied, hint); err != wrapped || //nolint:errorlint // the very same
		*known != (loader.Error{Op: "commit", Applied: loader.Unknown, Err: io.EOF, Hint: "look at EOF"}) {
		t.Errorf("%#v within %v", known, err)
	}
	known.Hint = "wait"
	if err := loader.Describe("load", known, applied, hint); err.Error() != "commit: EOF (wait)" {
		t.Error(err)
	}
}
