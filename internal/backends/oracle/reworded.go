package oracle

import (
	"strings"

	"github.com/terapush/terapush/pkg/loader"
)

// reworded is an error in other words.
type reworded struct {
	text string
	now  []error // what has taken the place of parts of it
	was  error
}

func (e *reworded) Error() string { return e.text }

// Unwrap gives what is new first, so that errors.As finds it; what it was stays.
func (e *reworded) Unwrap() []error { return append(e.now[:len(e.now):len(e.now)], e.was) }

// within puts what f makes of them in the place of all Errors in err that no other one is around, such as those of several
// hosts. The text around them stays.
func within(err error, f func(*loader.Error) *loader.Error) error {
	if e, is := any(err).(*loader.Error); is {
		return f(e)
	}
	found := outermost(err)
	if len(found) == 0 {
		return err
	}
	r := &reworded{text: err.Error(), was: err}
	done := 0 // bytes of the text, so that of two equal errors each has its turn
	for _, e := range found {
		next := f(e)
		r.now = append(r.now, next)
		if i := strings.Index(r.text[done:], e.Error()); i >= 0 {
			i += done
			r.text = r.text[:i] + next.Error() + r.text[i+len(e.Error()):]
			done = i + len(next.Error())
		}
	}
	return r
}

// outermost are the Errors in err that no other one is around, in the order of its text.
func outermost(err error) (all []*loader.Error) {
	switch e := any(err).(type) {
	case *loader.Error:
		return []*loader.Error{e}
	case *reworded:
		for _, part := range e.now {
			all = append(all, outermost(part)...)
		}
	case interface{ Unwrap() error }:
		return outermost(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range e.Unwrap() {
			all = append(all, outermost(part)...)
		}
	}
	return all
}
