package sqlload

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/pkg/loader"
)

// ClaimedTable is a table on a server with transactions.
type ClaimedTable struct {
	*Table
	// Open opens a session, of a worker or of a probe. Beside an error the session is ignored.
	Open func(ctx context.Context, c loader.Contract) (Session, error)
}

// Session implements loader.Loader.
func (t ClaimedTable) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := t.Open(ctx, c)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Claimed implements loader.Claims.
func (t ClaimedTable) Claimed(ctx context.Context, run string, f func(number, rows int64) error) error {
	s, err := t.State()
	if err != nil {
		return err
	}
	return t.query(ctx, t.Connect, "read the claims of run "+run, s.SelectClaims(run), func(row [][]byte) error {
		number, err := ParseNumber(string(row[0]))
		if err != nil {
			return err
		}
		rows, err := ParseNumber(string(row[1]))
		if err != nil {
			return err
		}
		return f(number, rows)
	})
}

// Forget implements loader.Claims. A missing claim table, or one without the column run, has no claims of the run.
func (t ClaimedTable) Forget(ctx context.Context, run string) (rows int64, err error) {
	err = t.do(ctx, "remove the claims of run "+run, func(c Conn, s *State) error {
		for _, claims := range [...]string{s.Claims, s.OtherClaims} {
			if claims == "" {
				continue
			}
			in := s.Statements
			in.Claims = claims
			n, err := c.Exec(ctx, in.DeleteClaims(run))
			if err != nil && t.Classify(err).Class != loader.ClassMissing {
				return err
			}
			rows += n
		}
		return nil
	})
	return rows, err
}

// Reserve implements loader.Reserver.
func (t ClaimedTable) Reserve(ctx context.Context, run string, rows, last int64) (first int64, err error) {
	err = t.do(ctx, "reserve row numbers", func(c Conn, s *State) error {
		mayCreate := *s
		mayCreate.Want.Resume = false // a run without claims may lack the table when it resumes
		if err := t.ensureClaims(ctx, c, &mayCreate); err != nil {
			return err
		}
		return t.Claims.Serialize(ctx, c, s, func() (err error) {
			first, err = s.reserve(ctx, c, run, rows, last)
			return err
		})
	})
	return first, err
}

func (s *State) reserve(ctx context.Context, c Conn, run string, rows, last int64) (first int64, err error) {
	found, err := Rows(ctx, c, s.SelectReservation(run))
	if err != nil {
		return 0, err
	}
	if len(found) > 0 {
		return ParseNumber(found[0][0])
	}
	if first, err = s.nextFree(ctx, c, rows, last); err != nil {
		return 0, err
	}
	if err := loader.Fits(first, rows, last); err != nil {
		return 0, err
	}
	_, err = c.Exec(ctx, s.InsertReservation(run, first, rows))
	return first, err
}

// Announce implements loader.Claims. The number is the row count of a row of its own.
func (t ClaimedTable) Announce(ctx context.Context, run string, number int64) (kept int64, err error) {
	err = t.do(ctx, "announce run "+run, func(c Conn, s *State) error {
		read := func() error {
			found, err := Rows(ctx, c, s.SelectClaim(run, announced))
			if err == nil && len(found) > 0 {
				kept, err = ParseNumber(found[0][0])
			}
			return err
		}
		err := read()
		if number == 0 && err != nil && t.Classify(err).Class == loader.ClassMissing {
			return nil // no claim table
		}
		if err != nil || number == 0 || kept != 0 { // others are not kept waiting for what has an answer
			return err
		}
		return t.Claims.Serialize(ctx, c, s, func() error {
			if err := read(); err != nil || kept != 0 {
				return err
			}
			kept = number
			_, err := c.Exec(ctx, s.insert(run, announced, 0, number))
			return err
		})
	})
	return kept, err
}

// Resolve implements loader.Resolver for claims and key ranges. Its error leaves the outcome of the batch unknown,
// whatever the error of the query says about itself.
func (t ClaimedTable) Resolve(ctx context.Context, ref loader.Ref) (res loader.Resolution, err error) {
	s, err := t.State()
	if err != nil {
		return res, err
	}
	if err = t.Claims.EndOthers(ctx, s, ref); err == nil {
		err = t.connect(ctx, func(c Conn) error {
			res, err = t.Claims.ResolveBatch(ctx, c, s, ref)
			return err
		})
	}
	if err == nil {
		return res, nil
	}
	e := &loader.Error{Op: "look for the batch", Applied: loader.Unknown, Err: err}
	if known := (*loader.Error)(nil); !errors.As(err, &known) && errors.As(t.Failed(e.Op, err), &known) {
		e.Err, e.Hint = known.Err, known.Hint
	}
	return res, e
}

// FindClaim reads the claim of a batch or commit group by a query like SelectClaim.
func (s *State) FindClaim(ctx context.Context, c Conn, query string, ref loader.Ref) (loader.Resolution, error) {
	found, err := Rows(ctx, c, query)
	if err != nil {
		return loader.Resolution{}, err
	}
	return ReadClaim(found, ref)
}

// ReadClaim returns the resolution that the rows of SelectClaim mean.
func ReadClaim(found [][]string, ref loader.Ref) (loader.Resolution, error) {
	if len(found) == 0 {
		return loader.Resolution{Applied: loader.No}, nil
	}
	rows, err := ParseNumber(found[0][0])
	switch {
	case err != nil:
		return loader.Resolution{}, err
	case rows != ref.Rows:
		return loader.Resolution{Reason: fmt.Sprintf("the claim of batch %s has %d rows, but the batch has %d", ref.ID, rows, ref.Rows)}, nil
	}
	return loader.Resolution{Applied: loader.Yes}, nil
}

// ErrClaimVanished is the error of a claim that refused another and cannot be read.
var ErrClaimVanished = errors.New("the claim is taken and cannot be read: was it removed just now?")

// ResolveFront counts the rows at the front of a batch that are in the table, for loads that commit piece by piece in
// the order of their rows. Any other rows with the batch's keys were written by something else.
func (s *State) ResolveFront(ctx context.Context, c Conn, query string, ref loader.Ref) (res loader.Resolution, err error) {
	found, err := Rows(ctx, c, query)
	if err != nil {
		return res, err
	}
	if len(found) != 1 || len(found[0]) != 3 {
		return res, errors.New("the server returned no count")
	}
	n, err := ParseNumber(found[0][0])
	if err != nil || n == 0 {
		return loader.Resolution{Applied: loader.No}, err
	}
	first, firstErr := ParseNumber(found[0][1])
	last, lastErr := ParseNumber(found[0][2])
	switch {
	case firstErr != nil || lastErr != nil:
		return res, cmp.Or(firstErr, lastErr)
	case first != ref.First || last != ref.First+n-1:
		return loader.Resolution{Reason: fmt.Sprintf("batch %v: the table has %d rows from %d to %d, which are not the first rows of %d to %d "+
			"(something else writes to the table: load the range again into an empty table)",
			ref.ID, n, first, last, ref.First, ref.First+ref.Rows-1)}, nil
	case n == ref.Rows:
		return loader.Resolution{Applied: loader.Yes, Rows: n}, nil
	}
	return loader.Resolution{Applied: loader.No, Rows: n}, nil
}

// Outcome returns what the number of a batch's rows in the table means: all, none, or unknown.
func Outcome(found, rows int64) loader.Applied {
	switch found {
	case rows:
		return loader.Yes
	case 0:
		return loader.No
	}
	return loader.Unknown
}
