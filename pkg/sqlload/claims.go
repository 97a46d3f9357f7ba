package sqlload

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// Resolve implements loader.Resolver for claims. Its error leaves the outcome of the batch unknown,
// whatever the error of the query says about itself.
func (t ClaimedTable) Resolve(ctx context.Context, ref loader.Ref) (res loader.Resolution, err error) {
	s, err := t.State()
	if err != nil {
		return res, err
	}
	if res, err = t.lookFor(ctx, s, ref); err == nil {
		return res, nil
	}
	e := &loader.Error{Op: "look for the batch", Applied: loader.Unknown, Err: err}
	if known := (*loader.Error)(nil); !errors.As(err, &known) && errors.As(t.Failed(e.Op, err), &known) {
		e.Err, e.Hint = known.Err, known.Hint
	}
	return res, e
}

func (t ClaimedTable) lookFor(ctx context.Context, s *State, ref loader.Ref) (res loader.Resolution, err error) {
	if err := t.owned(ctx, s); err != nil {
		return res, err
	}
	if err := t.Claims.EndOthers(ctx, s, ref); err != nil {
		return res, err
	}
	err = t.connect(ctx, func(c Conn) (err error) {
		res, err = t.Claims.ResolveBatch(ctx, c, s, ref)
		return err
	})
	return res, err
}

// CheckKeys implements Claims.CheckClaims by Lookups.Keys, or else InformationSchema's: the claim table of a schema is
// there, and has a unique key on exactly run and batch.
func (t *Table) CheckKeys(ctx context.Context, c Conn, s *State, schema string) (exists bool, err error) {
	found, err := Rows(ctx, c, s.fill(cmp.Or(t.Lookups, &InformationSchema).Keys, &Relation{Schema: schema, Name: ClaimsTable}))
	if err != nil {
		return false, err
	}
	var d loader.Description
	for _, row := range found {
		addKey(&d, row)
	}
	if slices.ContainsFunc(d.Keys, isClaimKey) {
		return true, nil
	}

	_, err = Rows(ctx, c, "SELECT 1 FROM "+s.Claims+" WHERE 1 = 0")
	if t.isMissing(err) {
		return false, nil
	}
	if err != nil {
		return true, err
	}
	return true, s.RefuseClaims("ADD UNIQUE KEY (run, batch)", "no primary or unique key is (run, batch)")
}

// RefuseClaims returns the error of a claim table that cannot be relied on, and how ALTER TABLE repairs it.
func (s Statements) RefuseClaims(repair, format string, values ...any) error {
	return &loader.Error{
		Op: "check the claim table", Applied: loader.No,
		Err: fmt.Errorf("claims in %s cannot be relied on: %w", s.Claims, fmt.Errorf(format, values...)),
		Hint: fmt.Sprintf("ALTER TABLE %s %s; or drop it if no unfinished run needs its claims, and the next run makes it again",
			s.Claims, repair),
	}
}

// isClaimKey reports whether a batch cannot be claimed twice. A part of a column, or an expression, is not the column.
func isClaimKey(k loader.Key) bool {
	names := slices.Sorted(slices.Values(k.Columns))
	return k.Only == "" && k.Prefix == 0 && slices.EqualFunc(names, []string{"batch", "run"}, strings.EqualFold)
}

// WaitForClaim implements Claims.ResolveBatch: it inserts the claim as well, which waits for whoever has inserted it
// and neither committed nor rolled back, and takes that back. Only then is "not there" final. taken reports whether an
// error says that the key is there.
func (s *State) WaitForClaim(
	ctx context.Context, c Conn, ref loader.Ref, taken func(error) bool,
) (none loader.Resolution, err error) {
	if _, err := c.Exec(ctx, "BEGIN"); err != nil {
		return none, err
	}
	_, err = c.Exec(ctx, s.TryClaim(ref))
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), loader.ConnectTimeout)
	defer cancel()
	_, kept := c.Exec(over, "ROLLBACK")
	switch {
	case err == nil && kept == nil:
		return loader.Resolution{Applied: loader.No}, nil
	case err == nil:
		return none, kept
	case !taken(err):
		return none, err
	}

	found, err := s.FindClaim(ctx, c, s.SelectClaim(ref.ID.Run, ref.ID.Number), ref)
	if err == nil && found.Applied == loader.No {
		err = ErrClaimVanished
	}
	return found, err
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
