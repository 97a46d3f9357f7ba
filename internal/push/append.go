package push

import (
	"context"
	"errors"
	"fmt"

	"github.com/terapush/terapush/internal/plan"
	"github.com/terapush/terapush/pkg/loader"
)

// firstKey is the one asked for, or the first free one of a table that is appended to.
func (p *push) firstKey(ctx context.Context, run string) (int64, error) {
	switch first := p.Config.FirstKey; {
	case !p.Config.Append:
		return first.Key, nil
	case first.Given:
		return first.Key, p.unused(ctx, first.Key)
	}
	reserver, can := p.loader.(loader.Reserver)
	if !can {
		return 0, fmt.Errorf("%s cannot find out which keys are free: give --first-key besides --append, behind the table's largest key", p.driver.Name())
	}
	var first int64
	err := p.retried("first key", func(ctx context.Context) (err error) {
		first, err = reserver.Reserve(ctx, run, p.rows(), plan.LargestKey(p.data.Schema().MaxNumber()))
		return err
	})(ctx)
	if full := (*loader.RangeError)(nil); errors.As(err, &full) {
		return 0, fmt.Errorf("--append to table %s: %w; choose another --table, fewer --rows, or a --first-key with room behind it", p.table.Name, err)
	}
	return first, err
}

// giveBack removes the keys that were set aside for a run that has no record, without which nobody can forget it. It is
// needed after a lost answer, too.
func (p *push) giveBack(ctx context.Context, run string) {
	_, reserves := p.loader.(loader.Reserver)
	claims, can := p.loader.(loader.Claims)
	if !can || !reserves || !p.Config.Append || p.Config.FirstKey.Given {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), preflightTime) // an impatient user leaves none behind either
	defer cancel()
	if _, err := claims.Forget(ctx, run); err != nil && p.driver.Classify(err).Class != loader.ClassMissing {
		p.warn(fmt.Sprintf("keys may still be set aside for run %s, which did not begin: remove its rows from the claim table (%v)", run, err))
	}
}

// unused makes sure that no row has a key that the run would use: neither a lost answer nor the proof of arrival could
// tell such rows from the run's own. It sets nothing aside; who chooses the keys keeps other runs off them.
func (p *push) unused(ctx context.Context, first int64) error {
	counter, can := p.loader.(loader.Counter)
	if !can || p.silent() {
		p.warn(fmt.Sprintf("nobody has looked whether the keys from %d on are free in table %s", first, p.table.Name))
		return nil
	}
	var there int64
	keys := loader.KeyRange{First: first, Last: first + p.rows() - 1}
	err := p.retried("keys", func(ctx context.Context) error {
		there = 0
		return counter.Count(ctx, loader.Grouping{KeyRange: keys, Size: p.contract.BatchRows}, func(b loader.Bucket) error {
			there += b.Rows
			return nil
		})
	})(ctx)
	if err != nil {
		return fmt.Errorf("looking for keys from %d to %d: %w", keys.First, keys.Last, err)
	}
	if there > 0 {
		return fmt.Errorf("%d rows of table %s have keys from %d to %d, which are to be the run's: choose a larger --first-key",
			there, p.table.Name, keys.First, keys.Last)
	}
	return nil
}
