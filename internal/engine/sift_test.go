package engine

import (
	"errors"
	"fmt"
	"maps"
	"math/bits"
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
	judged := func(err error) error {
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
			return judged(&loader.RecordError{Line: lines, Err: errors.New("bad")})
		},
		"names all": func(_ []batch.Record, bad []int) error {
			one := &loader.RecordError{Record: int64(bad[0] + 1), Err: errors.New("bad")}
			for _, i := range bad {
				one.More = append(one.More, &loader.RecordError{Record: int64(i + 1), Err: errors.New("bad")})
			}
			return judged(one)
		},
		"names a wrong one": func(sent []batch.Record, _ []int) error {
			return judged(&loader.RecordError{Record: int64(len(sent)/3 + 1), Err: errors.New("a value at row 1")})
		},
		"says nothing": func([]batch.Record, []int) error { return judged(errors.New("some are bad")) },
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
				in := map[int64]bool{}
				puts := 0
				put := func(sent []batch.Record) error {
					puts++
					var refuses []int
					seen := map[int64]bool{twice[0]: in[twice[0]], twice[1]: in[twice[1]]}
					for i, r := range sent {
						both := false
						if _, one := seen[r.Line]; one {
							seen[r.Line] = true
							both = seen[twice[0]] && seen[twice[1]] && twice[0] != twice[1]
						}
						if bad[r.Line] || both {
							refuses = append(refuses, i)
						}
					}
					if len(refuses) > 0 {
						return says(sent, refuses)
					}
					for _, r := range sent {
						require.False(t, in[r.Line], "a record is put twice")
						in[r.Line] = true
					}
					return nil
				}

				refusal := put(records)
				require.Error(t, refusal)
				s := sieve{records: records, bad: map[int]refused{}, most: int64(n), put: put, csv: true}
				require.NoError(t, s.sift(refusal))
				found := map[int64]bool{}
				for i, r := range records {
					_, is := s.bad[i]
					require.NotEqual(t, is, in[r.Line], "%s: record %d of %d", name, i, n)
					if is {
						found[r.Line] = true
					}
				}
				require.LessOrEqual(t, puts, 2*parts+8*(len(found)+1)*(bits.Len(uint(n))+1), "%s: %d bad of %d", name, len(found), n)
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
	in := map[int64]bool{0: true}
	put := func(sent []batch.Record) error {
		with := maps.Clone(in)
		for _, r := range sent {
			with[r.Line] = true
		}
		for _, r := range sent {
			if !with[parents[r.Line-1]] {
				return &loader.JudgedError{Verdict: loader.Refused(loader.ClassConstraint), Err: errors.New("its parent is not there")}
			}
		}
		in = with
		return nil
	}
	s := sieve{records: records, bad: map[int]refused{}, most: 10, put: put}
	require.NoError(t, s.sift(put(records)))
	require.Equal(t, []int{1, 4, 5}, slices.Sorted(maps.Keys(s.bad))) // the child of a bad one, too
}

// A batch is refused, and no part is: for a key that another connection has taken out by now. No record is to blame.
func TestSieveBlamesNobody(t *testing.T) {
	for _, n := range []int{1, 10} {
		for _, refusal := range []error{errors.New("a key is there"), &loader.RecordError{Line: 1, Err: errors.New("it was not there yet")}} {
			s := sieve{
				records: make([]batch.Record, n), bad: map[int]refused{}, most: 10,
				put: func([]batch.Record) error { return nil },
			}
			require.NoError(t, s.sift(refusal))
			require.Empty(t, s.bad)
		}
	}
}

// Files that are read in a wrong way are not put record by record to their ends, nor are those with more bad records than
// the user allows.
func TestSieveGivesUp(t *testing.T) {
	for name, c := range map[string]struct {
		records, wrong int
		most           int64
		bad            int
		nothing        bool
	}{
		"all of many":              {records: 5000, wrong: 5000, most: 1 << 40, bad: wrongRecords, nothing: true},
		"all of few":               {records: 20, wrong: 20, most: 1 << 40, bad: 20, nothing: true},
		"all of very few":          {records: 3, wrong: 3, most: 1 << 40, bad: 3},
		"more than the most":       {records: 5000, wrong: 5000, most: 17, bad: 18},
		"many, and some are right": {records: 5000, wrong: 4999, most: 1 << 40, bad: 4999},
	} {
		put := func(sent []batch.Record) error {
			if len(sent) == 1 && sent[0].Line == int64(c.wrong) {
				return nil
			}
			return &loader.JudgedError{Verdict: loader.Refused(loader.ClassData), Err: errors.New("bad")}
		}
		s := sieve{records: make([]batch.Record, c.records), bad: map[int]refused{}, most: c.most, put: put}
		for i := range s.records {
			s.records[i].Line = int64((i + 4000) % c.records)
		}
		require.NoError(t, s.sift(put(s.records)), name)
		require.Len(t, s.bad, c.bad, name)
		require.Equal(t, c.nothing, s.nothingIsRight(), name)
	}
}
