package loader_test

import (
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/loader"
)

func TestExplain(t *testing.T) {
	closed := &loader.Error{Op: "commit", Err: io.EOF, Hint: "try again"}
	full := &loader.Error{Op: "load", Err: errors.New("disk full"), Hint: "make room"}
	for _, c := range []struct {
		name string
		err  error
		text string
		hint string
	}{
		{name: "nothing"},
		{"no hint", io.EOF, "EOF", ""},
		{"a hint", closed, "commit: EOF (try again)", "try again"},
		{"words on both sides", fmt.Errorf("a: %w, so b", closed), "a: commit: EOF, so b (try again)", "try again"},
		{"no words", loader.Final(closed), "commit: EOF (try again)", "try again"},
		{"two hints", fmt.Errorf("%w; %w", full, closed), "load: disk full; commit: EOF (make room; try again)", "make room; try again"},
		{"one hint twice", fmt.Errorf("%w; %w", closed, closed), "commit: EOF; commit: EOF (try again)", "try again"},
		{"in each other", &loader.Error{Op: "retry", Err: closed, Hint: "wait"}, "retry: commit: EOF (wait; try again)", "wait; try again"},
		{"the outer has none", &loader.Error{Op: "retry", Err: closed}, "retry: commit: EOF (try again)", "try again"},
		{"joined", errors.Join(full, io.EOF), "load: disk full (make room)\nEOF", "make room"},
		{
			"joined, and wrapped without a word", errors.Join(loader.Final(errors.Join(full, closed)), io.EOF),
			"load: disk full (make room)\ncommit: EOF (try again)\nEOF", "make room; try again",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.Equal(t, c.text, loader.Explain(c.err))
			require.Equal(t, c.hint, loader.HintOf(c.err))
		})
	}
}

func TestProblems(t *testing.T) {
	one, two := errors.New("one"), errors.New("two\nlines")
	final := loader.Final(one)
	said := fmt.Errorf("both: %w", errors.Join(one, two))
	for _, c := range []struct {
		err  error
		want []error
	}{
		{nil, nil},
		{two, []error{two}},
		{final, []error{final}}, // what wraps one problem is part of it
		{errors.Join(final), []error{final}},
		{errors.Join(one, two), []error{one, two}},
		{loader.Final(errors.Join(errors.Join(one, nil), loader.Final(errors.Join(two, one)))), []error{one, two, one}},
		{said, []error{said}},
	} {
		require.Equal(t, c.want, loader.Problems(c.err), "%v", c.err)
	}
}
