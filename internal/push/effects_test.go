package push_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/terapush/terapush/internal/report"
	"github.com/terapush/terapush/pkg/batch"
	"github.com/terapush/terapush/pkg/loader"
	"github.com/terapush/terapush/pkg/loader/loadertest"
)

// owned is a table with a trigger and a sequence of its own.
type owned struct {
	hooked
	moved *[]int64 // the last keys that sequences were moved behind
	err   error    // of moving them
	sees  error    // of looking at them
}

func (owned) Suspects(context.Context) ([]string, error) {
	return []string{"trigger away", "policy half"}, nil
}

func (o owned) Sequences(_ context.Context, last int64, move bool) ([]string, error) {
	if move {
		*o.moved = append(*o.moved, last)
		return []string{"SELECT setval"}, o.err
	}
	return []string{"SELECT setval"}, o.sees
}

func (p *fixture) owns(moveErr error) (moved *[]int64) {
	moved = new([]int64)
	p.wrap = func(h hooked) loader.Loader { return owned{hooked: h, moved: moved, err: moveErr} }
	return moved
}

// divertedSession is of a table whose rows others put in: the server says that it took one row less of every odd batch.
type divertedSession struct{ loader.Session }

func (s divertedSession) Load(ctx context.Context, b *batch.Batch) (loader.Ack, error) {
	ack, err := s.Session.Load(ctx, b)
	ack.Rows -= b.ID.Number % 2
	return ack, err
}

type diverted struct{ owned }

func (d diverted) Session(ctx context.Context, c loader.Contract) (loader.Session, error) {
	s, err := d.owned.Session(ctx, c)
	return divertedSession{s}, err
}

const why = "; the reason may be trigger away, or policy half"

// Rows that the server did not take are no proof, even if as many are found.
func TestMissingRowsHaveSuspects(t *testing.T) {
	p := newFixture(t)
	p.wrap = func(h hooked) loader.Loader { return diverted{owned{hooked: h}} }
	r := p.fails(small+" --delivery at-least-once --verify count", report.Rejected, "the server acknowledged 10 rows too few or too many"+why)
	require.EqualValues(t, 195, r.Verify.FoundRows)
	require.False(t, r.Verify.OK)
	require.Equal(t, []string{"the server acknowledged 10 rows too few or too many"}, r.Verify.Problems)

	p = newFixture(t)
	p.owns(nil)
	p.memory.Script = oddMissing
	p.fails(small+" --delivery at-least-once --verify ack", report.VerificationFailed, "185 of 195 rows were acknowledged"+why)

	for op, class := range map[string]loader.Class{"load": loader.ClassPermission, "probe": loader.ClassRows} {
		p = newFixture(t)
		p.owns(nil)
		refused := errors.New("refused")
		p.classes = map[error]loader.Class{refused: class}
		p.failOn(op, refused)
		_, err := p.push(small + " --retries 0")
		require.ErrorContains(t, err, "refused")
		require.ErrorContains(t, err, why, op)
	}

	p = newFixture(t)
	p.owns(nil)
	p.failOn("load", loadertest.ErrConnection)
	_, err := p.push(small + " --retries 0 --retry-for 1ns")
	require.NotContains(t, err.Error(), "trigger")
}

func TestSequencesBehindTheRows(t *testing.T) {
	const warning = "the sequence of the key is behind the rows, so that other programs get keys that are taken: run SELECT setval, " +
		"or push with --sync-sequences"
	p := newFixture(t)
	moved := p.owns(nil)
	p.succeeds(small)
	require.Empty(t, p.succeeds(small + " --create never --append --delivery at-least-once --first-key 1000 --verify none").Warnings[1:], "nothing but the load")
	require.Contains(t, p.succeeds(small+" --append").Warnings, warning)
	require.Empty(t, *moved)
	require.Empty(t, p.succeeds(small+" --append --first-key 10000 --sync-sequences").Warnings)
	require.Equal(t, []int64{10194}, *moved)

	p = newFixture(t)
	p.succeeds(small)
	p.forgetFolder()
	p.owns(errors.New("you may not"))
	r := p.fails(small+" --append --sync-sequences", report.Failed, "the rows were loaded, but the sequence of the key was not advanced: you may not")
	require.True(t, r.Verify.OK)

	p = newFixture(t)
	p.succeeds(small)
	p.forgetFolder()
	p.wrap = func(h hooked) loader.Loader { return owned{hooked: h, sees: errors.New("it is another table's")} }
	p.fails(small+" --append --sync-sequences", report.PreflightFailed, "--sync-sequences: it is another table's; or push without it")
}
