package loader_test

import (
	"errors"
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
