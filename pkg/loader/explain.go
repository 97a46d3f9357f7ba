package loader

import (
	"errors"
	"slices"
	"strings"
)

// HintOf returns what to do about err: the hints of all Errors in its tree, each once, the outermost first. It is "" if
// there is none.
func HintOf(err error) string { return strings.Join(hints(err, nil), "; ") }

func hints(err error, before []string) []string {
	if known, ok := err.(*Error); ok && known.Hint != "" && !slices.Contains(before, known.Hint) { //nolint:errorlint // this walks the tree itself
		before = append(before, known.Hint)
	}
	for _, cause := range causes(err) {
		before = hints(cause, before)
	}
	return before
}

// Explain returns the text of err for people: a line for each of its Problems, with the hint in parentheses at the end.
// It is "" for nil.
func Explain(err error) string {
	var lines []string
	for _, problem := range Problems(err) {
		line := problem.Error()
		if hint := HintOf(problem); hint != "" {
			line += " (" + hint + ")"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// Problems returns the errors that errors.Join has joined to err, in order, however often it was joined or wrapped
// without a word of the wrapper's own. Any other error is a problem by itself; nil is none.
func Problems(err error) []error {
	if err == nil {
		return nil
	}
	all := causes(err)
	if len(all) == 0 || errors.Join(all...).Error() != err.Error() { // a wrapper that says something
		return []error{err}
	}
	var problems []error
	for _, one := range all {
		problems = append(problems, Problems(one)...)
	}
	if _, joined := err.(interface{ Unwrap() []error }); !joined && len(problems) == 1 { //nolint:errorlint // as causes
		return []error{err} // what wraps one problem is part of it
	}
	return problems
}

// causes returns the errors that err wraps.
func causes(err error) []error {
	switch e := err.(type) { //nolint:errorlint // its callers walk the tree
	case interface{ Unwrap() []error }:
		return e.Unwrap()
	case interface{ Unwrap() error }:
		if cause := e.Unwrap(); cause != nil {
			return []error{cause}
		}
	}
	return nil
}
