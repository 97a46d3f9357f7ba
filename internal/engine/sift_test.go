package engine

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
)

// Whatever a server says of bad records, all of them are found and no others: one that stops at the first with its line, one
// that names all, and one that says nothing, also of keys that are there twice.
func TestSieve(t *testing.T) {
	refused := func(err error) error {
		return &loader.JudgedError{Verdict: loader.Refused(loader.ClassData), Err: &loader.Error{Op: "try", Applied: loader.No, Err: err}}
	}
	servers := map[string]func(sent []batch.Record, bad []int) error{
		"stops, with the line": func(sent []batch.Record, bad []int) error {
			lines := int64(0)
			for i := range sent[:bad[0]+1] {
				lines++
				within := "\n" // line ends count, but in the first record
				if i == 0 {
					within = "\r"
				}
				lines += int64(strings.Count(strings.TrimSuffix(string(sent[i].Wire), "\n"), within))
			}
			return refused(&loader.RecordError{Line: lines, Err: errors.New("bad")})
		},
		"names all": func(_ []batch.Record, bad []int) error {
			one := &loader.RecordError{Record: int64(bad[0] + 1), Err: errors.New("bad")}
			for _, i := range bad {
				one.More = append(one.More, &loader.RecordError{Record: int64(i + 1), Err: errors.New("bad")})
			}
			return refused(one)
		},
		"names a wrong one": func(sent []batch.Record, _ []int) error {
			return refused(&loader.RecordError{Record: int64(len(sent)/3 + 1), Err: errors.New("a value at row 1")})
		},
		"says nothing": func([]batch.Record, []int) error { return refused(errors.New("some are bad")) },
	}
	draw := rand.New(rand.NewPCG(1, 1))
	for name, says := range servers {
		for _, n := range []int{1, 2, 3, 100} {
			for range 20 {
				records, bad := make([]batch.Record, n), map[int64]bool{}
				for i := range records {
					records[i] = batch.Record{Wire: []byte("r\n"), Line: int64(i)}
					if draw.IntN(3) == 0 {
						records[i].Wire = []byte("\"\n\r\r\"\n")
					}
					if draw.IntN(10) == 0 {
						bad[int64(i)] = true
					}
				}
				bad[draw.Int64N(int64(n))] = true
				twice := [2]int64{draw.Int64N(int64(n)), draw.Int64N(int64(n))} // bad together
				try := func(sent []batch.Record) error {
					var refuses []int
					seen := 0
					for i, r := range sent {
						if r.Line == twice[0] || r.Line == twice[1] {
							seen++
						}
						if bad[r.Line] || seen == 2 && (r.Line == twice[0] || r.Line == twice[1]) {
							refuses = append(refuses, i)
						}
					}
					if len(refuses) == 0 {
						return nil
					}
					return says(sent, refuses)
				}

				left := records
				found := map[int64]bool{}
				for round := 0; ; round++ {
					require.Less(t, round, 10, "%s, %d records", name, n)
					err := try(left)
					if err == nil {
						break
					}
					s := sieve{records: left, bad: map[int]string{}, columns: map[int]string{}, try: try, csv: true}
					require.NoError(t, s.sift(err))
					require.NotEmpty(t, s.bad)
					var rest []batch.Record
					for i, r := range left {
						if _, is := s.bad[i]; is {
							found[r.Line] = true
						} else {
							rest = append(rest, r)
						}
					}
					left = rest
				}
				extra := 0
				for line := range found {
					if !bad[line] {
						extra++
						require.Contains(t, twice[:], line, fmt.Sprint(name))
					}
				}
				require.LessOrEqual(t, extra, 1, "one of two that are bad together")
				for line := range bad {
					require.True(t, found[line], "%s: record %d of %d", name, line, n)
				}
			}
		}
	}
}

// A record that is right only beside another one of its batch stays in, though a half of the batch is refused for it.
func TestSieveKeepsChildrenWithParents(t *testing.T) {
	parents := []int64{0, 9, 1, 3, 50, 2, 7} // of the records 1 to 7; there are no others
	records := make([]batch.Record, len(parents))
	for i := range records {
		records[i].Line = int64(i + 1)
	}
	try := func(sent []batch.Record) error {
		in := map[int64]bool{0: true}
		for _, r := range sent {
			in[r.Line] = true
		}
		for _, r := range sent {
			if !in[parents[r.Line-1]] {
				return &loader.JudgedError{Verdict: loader.Refused(loader.ClassConstraint), Err: errors.New("its parent is not there")}
			}
		}
		return nil
	}
	s := sieve{records: records, bad: map[int]string{}, columns: map[int]string{}, try: try}
	require.NoError(t, s.sift(try(records)))
	require.Equal(t, []int{1, 4, 5}, slices.Sorted(maps.Keys(s.bad))) // the child of a bad one, too
}

// A batch is refused, and no trial is: of a constraint that is checked at the commit, or of a key that another connection
// has put in by now. No record is to blame.
func TestSieveBlamesNobody(t *testing.T) {
	for _, n := range []int{1, 10} {
		for _, refusal := range []error{errors.New("at the commit"), &loader.RecordError{Line: 1, Err: errors.New("it was not there yet")}} {
			s := sieve{
				records: make([]batch.Record, n), bad: map[int]string{}, columns: map[int]string{},
				try: func([]batch.Record) error { return nil },
			}
			require.NoError(t, s.sift(refusal))
			require.Empty(t, s.bad)
		}
	}
}
