// Package verify proves that the rows of a run arrived, each exactly once and unchanged. The expectation is computed
// from seed, batch size and key, so a process that saw nothing of the load can check it at any later time.
//
// The modes prove:
//
//   - ack: the server's acknowledgements add up to the rows of the run. It costs nothing and trusts the server.
//   - count: every batch has the right number of rows, and the right minimum, maximum, sum and sum of squares of their
//     offsets in the batch. Other sets of rows agree in all five (0, 4, 5 and 1, 2, 6 in number, sum and squares), but
//     no lost, doubled or exchanged row goes unnoticed.
//   - full: a keyed sum over the offsets is right too (loader.Mix), which closes that gap: it is right by chance less than once in
//     2^59; the variable columns have the right length; and a sample of rows is equal byte for byte.
package verify

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/source"
	"github.com/terapush/terapush/pkg/loader"
)

// Mode is how much is proven.
type Mode string

// The modes, in order of proof.
const (
	None  Mode = "none"
	Ack   Mode = "ack"
	Count Mode = "count"
	Full  Mode = "full"
)

// Modes lists the names of all modes.
func Modes() []string { return []string{string(None), string(Ack), string(Count), string(Full)} }

// Scans returns how often the mode reads the whole table at most: to count by batch, and to fetch the sample if neither
// an index nor a Sampler helps.
func (m Mode) Scans() int {
	switch m {
	case Count:
		return 1
	case Full:
		return 2
	default:
		return 0
	}
}

// Possible returns the strongest mode up to m that the features allow, with a warning if that is weaker than m.
func Possible(can loader.Features, m Mode) (Mode, string) {
	switch {
	case m != Count && m != Full:
		return m, ""
	case can.OnlyObjects() && m == Full:
		return Count, "verify full is not possible: objects are not read back; their number and lengths are compared instead"
	case can.OnlyObjects():
		return m, ""
	case can.Counter == nil:
		return Ack, fmt.Sprintf("verify %s is not possible: this back-end cannot count rows; the server's acknowledgements are compared instead", m)
	case m == Full && can.Fetcher == nil:
		return Count, "verify full is not possible: this back-end cannot read single rows back; rows are counted by batch instead"
	}
	return m, ""
}

// DefaultVerifyRows is the default size of Full's sample.
const DefaultVerifyRows = 10_000

// Expect is what the table must hold.
type Expect struct {
	source.Spans // the run's batches; other rows of the table are ignored
	source.Proof // Full only

	VerifyRows int    // size of the sample; 0 = DefaultVerifyRows. Full only
	Seed       uint64 // chooses the sample

	Acked int64 // rows that the server acknowledged; Ack only

	// Of a run that has only objects: its id, and the acknowledged length of a batch's object.
	Run    string
	Length func(number int64) (bytes int64, known bool)

	// Workers is over how many connections the table is counted, if it can be split; 0 is 1.
	Workers int
	// Progress is called with the counted share of the table and the rows found in it, if it is split; nil is not.
	Progress func(share float64, rows int64)
	// Saved keeps what is counted, so that an interrupted proof can continue; nil if nothing is kept. Identity is the
	// table's: a tally of another one is not used.
	Saved    Saved
	Identity string

	// Retry calls f, and again if an answer was lost. nil: f is called once.
	Retry func(ctx context.Context, what string, f func(context.Context) error) error
}

// Saved keeps a text.
type Saved interface {
	Load() []byte     // nil if there is none
	Save(text []byte) // nil removes it. An error of saving does not stop a proof.
}

func (e Expect) ask(ctx context.Context, what string, f func(context.Context) error) error {
	if e.Retry != nil {
		return e.Retry(ctx, what, f)
	}
	return f(ctx)
}

// Run checks the table or the objects that the features belong to. An error means that they could not be checked; what
// is wrong with them is in the Result.
func Run(ctx context.Context, can loader.Features, m Mode, e Expect) (Result, error) {
	if possible, warning := Possible(can, m); possible != m {
		return Result{}, errors.New(warning)
	}
	r := Result{Mode: m, ExpectedRows: e.Rows}
	var err error
	switch {
	case m == None:
	case m == Ack:
		r.FoundRows = e.Acked
	case m == Count && can.OnlyObjects():
		err = r.objects(ctx, can.Inventory, e)
	case m == Count:
		err = r.count(ctx, can.Counter, e, nil)
	case m == Full:
		err = r.full(ctx, can, e)
	default:
		err = fmt.Errorf("verify: there is no mode %q", m)
	}
	if err != nil {
		return Result{}, err
	}
	if e.Saved != nil {
		e.Saved.Save(nil)
	}
	r.OK = r.holds()
	r.name(e.Dataset)
	return r, nil
}
